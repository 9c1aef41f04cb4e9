package doctor

import (
	"bytes"
	"context"
	"net/http"
	"time"

	"xiaozhi/console/ui"
	"xiaozhi/internal/access"
	"xiaozhi/internal/contact"
	"xiaozhi/internal/contact/excerpt"
)

// Limits of what is told of listening: of each device once in a while, since browsers ask for sound in pieces.
const (
	heardFor  = 10 * time.Minute
	heardMost = 1024
)

// microphone describes the last sound of a device, and whether a person can hear it.
type microphone struct {
	There    bool // it can be heard
	Asked    bool // what comes is kept, for it was asked for
	Recorded bool // the sound of turns is kept
	Span     int  // seconds that are kept
	For      int  // minutes for which it is kept when somebody asks
	Gone     int  // minutes after which it goes
}

func (p *Page) microphone(ctx context.Context, id string) microphone {
	now := p.sounds(ctx, id).Of(id)
	return microphone{
		There: now.Length > 0, Asked: !now.Until.IsZero(), Recorded: p.from.Recorded(id),
		Span: int(excerpt.Span.Seconds()), For: int(excerpt.AskedFor.Minutes()), Gone: int(excerpt.KeptFor.Minutes()),
	}
}

// sounds returns what is kept of microphones, without what was asked of a device while it was somebody else's: a command beside the
// server may have given it away.
func (p *Page) sounds(ctx context.Context, id string) *excerpt.Excerpts {
	all := p.from.Microphones()
	if owner, err := p.from.DeviceOwner(ctx, id); err == nil {
		all.Belongs(id, owner)
	}
	return all
}

// actContact has the sound of a device be kept for a while, or forgets it.
func (p *Page) actContact(w http.ResponseWriter, r *http.Request) {
	f, ok := p.site.Form(w, r)
	if !ok {
		return
	}
	id, done := p.device(r), ""
	switch f.Get("do") {
	case "listen":
		if contact.IsNameless(id) {
			p.site.NotFound(w, r)
			return
		}
		owner, err := p.from.DeviceOwner(r.Context(), id)
		if err != nil {
			owner = "" // nobody's, as far as is known
		}
		p.from.Microphones().Ask(id, owner)
		p.door.Did(r, "device.listen-in", id, nil)
	case "unlisten":
		p.from.Microphones().Drop(id)
		done = "checkup/microphone-dropped"
	default:
		p.site.NotFound(w, r)
		return
	}
	to := p.contactPath(id) + "#microphone"
	if done == "" {
		ui.Redirect(w, r, to)
		return
	}
	p.site.Done(w, r, to, done)
}

// sound gives what a device has sent last. That somebody hears a device that is not theirs is in the audit.
func (p *Page) sound(w http.ResponseWriter, r *http.Request) {
	id := p.device(r)
	wav, last, ok := p.sounds(r.Context(), id).WAV(id)
	if !ok {
		p.site.NotFound(w, r)
		return
	}
	p.listens(r, id)
	w.Header().Set("Content-Type", "audio/wav")
	w.Header().Set("Cache-Control", "no-store")
	http.ServeContent(w, r, "", last, bytes.NewReader(wav))
}

func (p *Page) listens(r *http.Request, id string) {
	who := access.PersonOf(r)
	if whose, err := p.from.DeviceOwner(r.Context(), id); err == nil && whose != "" && whose == who.ID {
		return
	}
	told, now := false, time.Now()
	p.heard.Update(who.ID+" "+id, func(last time.Time) (time.Time, int) {
		if told = now.Sub(last) < heardFor; told {
			return last, 0
		}
		return now, 0
	})
	if !told {
		p.door.Did(r, "device.listen", id, nil)
	}
}
