package app

import (
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"xiaozhi/agent"
	"xiaozhi/agent/record"
	"xiaozhi/console/talks"
	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
	"xiaozhi/internal/config"
	"xiaozhi/internal/engines"
	"xiaozhi/internal/recording"
	"xiaozhi/internal/text/message"
	"xiaozhi/internal/wire"
	"xiaozhi/store"
)

// recorders write down what is said. A nil one writes nothing.
type recorders struct {
	talks *record.Recorder    // whole conversations, to be played again; set before devices connect
	turns *recording.Recorder // the sound of turns, next to them in the store
}

const (
	recordingsFolder = "recordings" // in the data folder
	recordingTold    = 5 * time.Minute
	forgetSound      = 30 * time.Second // that a disk has to delete the recordings of a device
)

// open keeps the sound of turns next to them in the store. Nothing is made before there is some.
func (r *recorders) open(ctx context.Context, cfg config.Recording, data string, s *store.Store, log *slog.Logger) {
	r.turns = recording.New(ctx, recording.Options{
		Dir: filepath.Join(data, recordingsFolder), Table: s.Recordings, Flush: s.Log.Flush,
		Keep: time.Duration(cfg.Days) * 24 * time.Hour, Quota: int64(cfg.Quota), Log: log,
	})
}

// tape writes a conversation down, to be played again; nil: nobody does, or nothing of it may be kept.
func (r *recorders) tape(s wire.Session) *record.Tape {
	if s.Private {
		return nil
	}
	return r.talks.Tape(s)
}

// forget deletes the recordings of a device. A disk that does not answer is an error.
func (r *recorders) forget(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, forgetSound)
	defer cancel()
	return r.turns.Forget(ctx, id)
}

// recordOf reads what the settings say of whose sound is kept.
func recordOf(says string) agent.Record {
	switch says {
	case config.RecordUser:
		return agent.RecordUser
	case config.RecordBoth:
		return agent.RecordBoth
	}
	return agent.RecordNone
}

// keepsSound reports whether the sound of a device's turns is kept.
func keepsSound(a *App, device string) bool {
	p, ok := a.cast.Of(device, "")
	return ok && a.stored != nil && !p.Forgets && p.Record != agent.RecordNone
}

// report says where people look, and in the log, that sound is kept.
func (r *recorders) report(cfg *config.Config, data string, to *engines.Report, log *slog.Logger) {
	on, how := cfg.Recorded(), cfg.Recording
	if len(on) == 0 || r.turns == nil {
		return
	}
	dir := filepath.Join(data, recordingsFolder)
	to.Line("  REC  " + message.Both("app/recording", strings.Join(on, ", "), how.Days, how.Quota, dir))
	log.Warn("the sound of turns is recorded", "folder", dir, "by", on, "days", how.Days, "quota", how.Quota)
}

// trouble says for people what is wrong with recordings, a line each.
func (r *recorders) trouble() (lines []string) {
	s := r.turns.Stats()
	switch {
	case s.Err != nil:
		lines = append(lines, message.Both("app/recording-failing"))
	case !s.DroppedAt.IsZero() && time.Since(s.DroppedAt) <= recordingTold:
		lines = append(lines, message.Both("app/recording-dropped"))
	}
	return lines
}

// talksOf gives people what was said; nil without a store.
func talksOf(a *App) *talks.Talks {
	if a.stored == nil {
		return nil
	}
	o := talks.Options{Store: a.stored, Sound: a.recorders.turns, Guard: a.web.guard, Days: func() int { return a.base().Recording.Days }, Zone: a.forces.zone.Location}
	if a.outside.known != nil {
		o.Erased = a.outside.known.Erased
	}
	return talks.New(o)
}

// talkRoutes are the paths by which programs get what was said; without a store there are none.
func talkRoutes(a *App) []access.Route {
	if a.web.talks == nil {
		return nil
	}
	return a.web.talks.Programs()
}

// talkOf tells the page Talk what there is.
type talkOf struct{ *App }

// Agents names those that are everybody's, or the person's own.
func (a talkOf) Agents(p account.Person) []string {
	return slices.DeleteFunc(a.crew.Names(), func(name string) bool {
		made, there := a.crew.roster.Get(name)
		return there && made.Owner != "" && made.Owner != p.ID && !p.Is(account.Owner)
	})
}

// LastTurn returns the last turn of a device that was kept.
func (a talkOf) LastTurn(ctx context.Context, device string) (*store.Turn, error) {
	last, err := a.stored.Turns.List(ctx, device, store.Page{Limit: 1})
	if err != nil || len(last) == 0 {
		return nil, err
	}
	return &last[0], nil
}

// DeviceOwner is whose a device is.
func (a talkOf) DeviceOwner(ctx context.Context, device string) (string, error) {
	return deviceOwner(a.stored)(ctx, device)
}

// HTTPSPort is that of the listener for browsers.
func (a talkOf) HTTPSPort() string {
	_, port, _ := net.SplitHostPort(a.cfg.Server.TLS.Listen)
	return port
}
