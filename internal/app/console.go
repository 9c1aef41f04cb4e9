package app

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"xiaozhi/agent/feature/mail"
	"xiaozhi/agent/feature/remote"
	"xiaozhi/connection/identity"
	"xiaozhi/connection/pairing"
	"xiaozhi/console"
	agentpages "xiaozhi/console/agents"
	"xiaozhi/console/api"
	"xiaozhi/console/conversations"
	"xiaozhi/console/devices"
	doctorpage "xiaozhi/console/doctor"
	"xiaozhi/console/documents"
	"xiaozhi/console/overview"
	"xiaozhi/console/people"
	settingspage "xiaozhi/console/settings"
	"xiaozhi/console/setup"
	"xiaozhi/console/tools"
	"xiaozhi/console/trials"
	voicespage "xiaozhi/console/voices"
	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
	"xiaozhi/internal/contact/excerpt"
	"xiaozhi/internal/directory"
	"xiaozhi/internal/doctor"
	"xiaozhi/internal/engines"
	"xiaozhi/internal/fleet"
	"xiaozhi/internal/lab"
	"xiaozhi/internal/roster"
	"xiaozhi/internal/settings"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/internal/version"
	"xiaozhi/providers/service"
	"xiaozhi/store"
)

// openConsole makes the pages, where there are accounts by which people can be known.
func openConsole(ctx context.Context, a *App, f *factory, desk *tools.Desk, household *voicespage.Desk) error {
	if a.accounts == nil || !a.cfg.Console.Enabled {
		return nil
	}
	backups := newBackupDesk(ctx, a)
	all, err := console.New(console.Parts{
		Guard: a.web.guard, Zone: a.forces.zone.Location, Version: version.Number(), Explain: explain, Watch: a.options.Collector.Watch, Log: a.log,
		Overview: overview.Options{From: overviewOf{a}, Quiet: quietOf{a}},
		Setup:    setupOf{a},
		Talk:     talkOf{a},
		Talks:    conversations.Options{From: a.web.talks, Choices: choicesOf(a)},
		People:   people.Options{Accounts: a.accounts, Log: a.seen.tail.All},
		Devices: devices.Options{
			Fleet: a.seen.fleet, Letters: a.outside.letters, Book: bookOf{a}, ID: identity.ParseID, Owner: deviceOwner(a.stored),
			Find: func(id string) (remote.Device, error) { return a.outside.devices.Find(id) }, Transcript: transcriptOf(a),
			Callers: a.seen.callers, MaxDays: pairing.MaxDays, Day: lastDay(a),
		},
		Doctor: doctorOf{a}, Services: servicesOf(a), Settings: a.settings, Backups: backups,
		Agents: agentpages.Options{Book: a.crew.api(a.web.guard, a.stored), Lab: a.web.lab.Lab, Stock: a.web.stock},
		Papers: papersOf(a),
		Tools:  desk,
		Voices: household,
		Change: changing(a),
		Trials: trialsOf(a),
	})
	if err != nil {
		return err
	}
	a.web.console = all
	backups.told = func() { all.Changed(settingspage.BackupTopic, "") }
	a.life.atEnd(a.seen.devices.Log.Follow(func(id string) {
		all.Changed(doctorpage.Topic, "")
		all.Changed(doctorpage.TopicContact, id)
		all.Changed(doctorpage.TopicContact, identity.AddressOf(id)) // its page names others that say the same Device-Id
		pageWatcher{all}.deviceCalled(id)                            // one that asks where to connect holds no conversation
	}))
	a.life.atEnd(a.seen.doctor.Follow(func() { all.Changed(doctorpage.Topic, "") }))
	a.outside.devices.Watch(pageWatcher{all})
	f.external.Follow(func() {
		all.Changed(tools.TopicServers, "")
		all.Changed(tools.Topic, "")
	})
	a.seen.fleet.Follow(pageWatcher{all}.deviceCalled) // as long as the program runs
	a.web.lab.Lab.Follow(func(run string) { all.Changed(trials.Topic, run) })
	a.stored.Log.Follow(func() {
		all.Changed(conversations.Topic, "")
		all.Changed(conversations.TopicTurns, "")
	})
	a.web.documents = func(agent string) { all.Changed(documents.Topic, agent) }
	a.crew.told = func() {
		all.Changed(agentpages.AllTopic, "")
		all.Changed(agentpages.OneTopic, "")
	}
	a.settings.Follow(func() {
		all.Changed(settingspage.Topic, "")
		all.Changed(tools.Topic, "")
		all.Changed(tools.TopicServers, "")
	})
	if a.outside.voices != nil {
		a.life.atEnd(a.outside.voices.Follow(func() { all.Changed(voicespage.Topic, "") }))
	}
	a.outside.quiet.Follow(func() { all.Changed(overview.Topic, "") })
	a.seen.tail.tell(func() { all.Changed(people.LogTopic, "") })
	return nil
}

// pageWatcher tells open pages of what devices do.
type pageWatcher struct{ console *console.Console }

func (w pageWatcher) DeviceChanged(id string) {
	w.deviceCalled(id)
	w.console.Changed(tools.Topic, "")
}

func (w pageWatcher) deviceCalled(id string) {
	w.console.Changed(overview.Topic, "")
	w.console.Changed(setup.Topic, "")
	w.console.Changed(devices.AllTopic, "")
	w.console.Changed(devices.OneTopic, id)
}

func (w pageWatcher) TranscriptChanged(id string) { w.console.Changed(devices.OneTopic, id) }

// letterChanged tells open pages, and routines, that what a device is to be told has another fate.
func letterChanged(a *App) func(mail.Letter) {
	return func(l mail.Letter) {
		a.web.console.Changed(devices.OneTopic, l.Device)
		if l.Fate != mail.Queued && a.outside.routines != nil {
			a.outside.routines.Told(l.Device, l.Key, l.Fate.Over())
		}
	}
}

// explain says to people why something was not done; "": it is not for them.
func explain(lang text.Lang, err error) string {
	if refusal, ok := errors.AsType[*roster.RefusalError](err); ok {
		return refusal.In(lang)
	}
	if refusal, ok := errors.AsType[*lab.RefusalError](err); ok {
		return refusal.In(lang)
	}
	if words := cmp.Or(settings.Explain(lang, err), documents.Explain(lang, err)); words != "" {
		return words
	}
	if words := voicespage.Explain(lang, err); words != "" {
		return words
	}
	id := cmp.Or(pairing.Reason(err), api.Reason(err))
	if id == "" {
		return ""
	}
	return message.In(lang, id)
}

// transcriptOf tells what was said with a connected device.
func transcriptOf(a *App) func(id string) []directory.Line {
	return func(id string) []directory.Line {
		d, err := a.outside.devices.Find(id)
		if err != nil {
			return nil
		}
		return d.Transcript()
	}
}

// bookOf does what people decide about devices.
type bookOf struct{ *App }

// Claim makes a waiting device a person's by its code.
func (a bookOf) Claim(ctx context.Context, by account.Person, code string) (string, error) {
	id, err := a.book.Claim(ctx, code, by.Name)
	if err == nil {
		err = a.told(id, a.accounts.Give(ctx, by.Actor(by.Remote), id, by.Name))
	}
	return id, err
}

// told tells open pages of a device that somebody has changed, and passes err on.
func (a bookOf) told(id string, err error) error {
	a.seen.fleet.Changed(id)
	return err
}

// Accept makes a device a person's without its code.
func (a bookOf) Accept(ctx context.Context, by account.Person, id string) error {
	return a.told(id, setupOf(a).Accept(ctx, by, id))
}

// Rename gives a device a name.
func (a bookOf) Rename(ctx context.Context, _ account.Person, id, name string) error {
	return a.told(id, a.book.Rename(ctx, id, name))
}

// Refuse turns a device away from now on.
func (a bookOf) Refuse(ctx context.Context, by account.Person, id string) error {
	return a.told(id, a.book.Refuse(ctx, id, by.Name))
}

// Forget drops all that is kept of a device.
func (a bookOf) Forget(ctx context.Context, _ account.Person, id string) (left []string, err error) {
	if err := a.book.Forget(ctx, id); err != nil {
		return nil, err
	}
	left, err = a.forget(ctx, id)
	return left, a.told(id, err)
}

// Assign gives a device an agent.
func (a bookOf) Assign(ctx context.Context, by account.Person, id, agent string) error {
	if agent != "" && !slices.Contains(a.Agents(by), agent) {
		return account.ErrForbidden
	}
	return a.told(id, a.crew.roster.Assign(ctx, id, agent))
}

// Agents lists those that a person may choose: everybody's and their own.
func (a bookOf) Agents(by account.Person) []string {
	return slices.DeleteFunc(a.crew.Names(), func(name string) bool {
		made, there := a.crew.roster.Get(name)
		return there && made.Owner != "" && made.Owner != by.ID && !by.Is(account.Owner)
	})
}

// overviewOf tells the overview what there is.
type overviewOf struct{ *App }

// Devices tells of those that somebody may see.
func (a overviewOf) Devices(ctx context.Context, person string) (all overview.Devices, err error) {
	words := transcriptOf(a.App)
	known, err := a.seen.fleet.List(ctx)
	for _, d := range known {
		if d.State == fleet.Waiting {
			all.Waiting = append(all.Waiting, cmp.Or(d.Name, d.Board, d.ID))
		}
		if person != "" && d.Owner != person {
			continue
		}
		all.Known++
		if !d.State.Connected() {
			continue
		}
		one := overview.Device{ID: d.ID, Name: d.Name, State: string(d.State), Kind: devices.Shape(d.State), Since: d.Since}
		if lines := words(d.ID); len(lines) > 0 {
			one.Words = lines[len(lines)-1].Text
		}
		all.Connected = append(all.Connected, one)
	}
	return all, err
}

// quietOf is quiet mode as the overview switches it.
type quietOf struct{ *App }

// Now tells how it is.
func (a quietOf) Now() overview.Quiet {
	s := a.outside.quiet.State()
	return overview.Quiet{On: s.On, Until: s.Until, By: s.By}
}

// Begin switches it on.
func (a quietOf) Begin(r *http.Request, until time.Time) error {
	err := a.outside.quiet.Begin(r.Context(), "", until, access.PersonOf(r).Name)
	a.web.guard.Did(r, "server.quiet", "", err)
	return err
}

// End switches it off.
func (a quietOf) End(r *http.Request) error {
	_, err := a.outside.quiet.End(r.Context(), "")
	a.web.guard.Did(r, "server.loud", "", err)
	return err
}

// Problems lists what the doctor has found, and devices that wait for somebody.
func (a overviewOf) Problems(ctx context.Context, lang text.Lang, waiting []string) (all []overview.Problem, err error) {
	found, err := a.seen.doctor.Report(ctx)
	if err != nil {
		return nil, err
	}
	for _, f := range found.Findings {
		if f.Level == doctor.OK {
			continue
		}
		what, do := f.In(lang)
		path := "/console/doctor"
		if f.Area == doctor.Services {
			path = "/console/services"
		}
		all = append(all, overview.Problem{Bad: f.Level == doctor.Problem, What: what, Do: do, Path: path})
	}
	slices.SortStableFunc(all, func(a, b overview.Problem) int {
		switch {
		case a.Bad == b.Bad:
			return 0
		case a.Bad:
			return -1
		}
		return 1
	})
	for _, name := range waiting {
		all = append(all, overview.Problem{What: message.In(lang, "app/device-waits", name), Path: "/console/devices"})
	}
	return all, nil
}

// Today sums up the turns since midnight.
func (a overviewOf) Today(ctx context.Context, person string) (t overview.Today, err error) {
	now := time.Now().In(a.forces.zone.Location())
	q := store.CostQuery{OwnerID: person, From: time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location()), To: now.Add(time.Minute)}
	sum, err := a.stored.Turns.Summary(ctx, q)
	if err != nil {
		return t, err
	}
	t = overview.Today{Turns: sum.Turns, Failed: sum.Failed, Cut: sum.Cut, P50: sum.P50, P95: sum.P95, Currency: a.cfg.Console.Currency}
	rows, err := a.stored.Turns.Costs(ctx, q)
	for _, r := range rows {
		t.Micros += int64(r.CostMicros)
		t.Unpriced += r.Unpriced
	}
	return t, err
}

// doctorOf tells the page of the doctor what there is.
type doctorOf struct{ *App }

// Doctor is that of the server.
func (a doctorOf) Doctor() *doctor.Doctor { return a.seen.doctor }

// Name returns that given by a person.
func (a doctorOf) Name(id string) string { return a.outside.Name(id) }

// DeviceOwner is whose a device is.
func (a doctorOf) DeviceOwner(ctx context.Context, id string) (string, error) {
	return deviceOwner(a.stored)(ctx, id)
}

// Device is the one spelling of a device's id.
func (a doctorOf) Device(typed string) string { return identity.ParseID(typed) }

// Microphones keeps what they have sent last.
func (a doctorOf) Microphones() *excerpt.Excerpts { return a.seen.devices.Sound }

// Recorded reports whether the sound of a device's turns is kept.
func (a doctorOf) Recorded(id string) bool { return keepsSound(a.App, id) }

// Bases are the addresses of the server.
func (a doctorOf) Bases() []string {
	var at []net.Addr
	for _, open := range a.seen.open {
		if tcp, err := net.ResolveTCPAddr("tcp", open); err == nil {
			at = append(at, tcp)
		}
	}
	return bases(a.cfg, at)
}

// pages lists the paths of the console.
func pages(a *App) []access.Route {
	if a.web.console == nil {
		return nil
	}
	return a.web.console.Routes()
}

// setupOf tells the setup what there is.
type setupOf struct{ *App }

// HasOwner reports whether somebody owns the server.
func (a setupOf) HasOwner(ctx context.Context) bool { return a.accounts.HasOwner(ctx) }

// Speakers lists the devices that have called and are nobody's, the newest first.
func (a setupOf) Speakers(ctx context.Context, most int) (all []setup.Speaker, more bool) {
	whose, known := deviceOwner(a.stored), a.book.List()
	slices.SortFunc(known, func(x, y identity.Known) int { return y.Seen.Compare(x.Seen) })
	for _, k := range known {
		if k.State != identity.Newcomer.String() && k.State != identity.Paired.String() {
			continue
		}
		if owner, err := whose(ctx, k.ID); err == nil && owner == "" {
			if len(all) == most {
				return all, true
			}
			all = append(all, setup.Speaker{ID: k.ID, Board: k.Board, Code: k.Code, Remote: k.Remote, Seen: k.Seen})
		}
	}
	return all, false
}

// Accept makes a device that has called a person's.
func (a setupOf) Accept(ctx context.Context, by account.Person, id string) error {
	id, err := a.book.Accept(ctx, id, by.Name)
	if err != nil {
		return err
	}
	return a.accounts.Give(ctx, by.Actor(by.Remote), id, by.Name)
}

// Roles lists the chains that all have.
func (a setupOf) Roles() (all []setup.Role) {
	for _, c := range (condition{a.App}).chains().Chains {
		if len(c.Agents) > 0 || !slices.Contains([]service.Role{service.ASR, service.LLM, service.TTS}, c.Role) {
			continue
		}
		role := setup.Role{Name: strings.ToLower(string(c.Role)), Own: true}
		for _, m := range c.Members {
			if m.Condition == engines.LeftOut {
				continue
			}
			role.Members = append(role.Members, m.Name)
			role.Own = role.Own && slices.Contains([]string{"pocketsphinx", "rules", "local"}, m.Name)
		}
		all = append(all, role)
	}
	return all
}
