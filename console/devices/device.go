package devices

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"xiaozhi/agent/feature/mail"
	"xiaozhi/agent/feature/remote"
	"xiaozhi/console/live"
	"xiaozhi/console/ui"
	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
	"xiaozhi/internal/directory"
	"xiaozhi/internal/fleet"
)

// single is the page of one device.
type single struct {
	row
	Lines   []directory.Line
	Tools   []string
	Letters []mail.Letter
	Agents  []string
	Owner   bool   // who looks owns the server
	Whose   string // it is; "": nobody's, or that of an account that is disabled
	Heirs   []Heir // who else can have it; nil: who looks may not give it away
	Kept    Kept
	Day     day
	Answer  string // to what was asked
	Leaves  bool   // who looks has come to forget it
}

// errGone says that nobody knows a device.
var errGone = account.ErrNoDevice

const shownLetters = 10

func (p *Page) single(r *http.Request, id string) (single, error) {
	d, ok, err := p.o.Fleet.Get(r.Context(), id)
	if err == nil && !ok {
		err = errGone
	}
	if err != nil {
		return single{}, err
	}
	who := access.PersonOf(r)
	s := single{row: row{d, shapes[d.State], d.Since}, Agents: p.o.Book.Agents(who), Owner: who.Is(account.Owner)}
	if d.State.Connected() {
		s.Lines = p.o.Transcript(id)
		if talks, err := p.o.Find(id); err == nil {
			for _, o := range talks.Offers() {
				s.Tools = append(s.Tools, o.LLMName)
			}
		}
	}
	if s.Owner {
		if s.Whose, s.Heirs, err = p.heirs(r.Context(), d.Owner); err != nil {
			return s, err
		}
		if s.Kept, err = p.o.Book.Kept(r.Context(), id); err != nil {
			return s, err
		}
	}
	if s.Day, err = p.o.Day(r.Context(), id); err != nil {
		return s, err
	}
	s.Letters, err = p.o.Letters.Last(r.Context(), id, shownLetters)
	return s, err
}

func (p *Page) one(w http.ResponseWriter, r *http.Request, f *ui.Form) { p.answered(w, r, f, "") }

func (p *Page) answered(w http.ResponseWriter, r *http.Request, f *ui.Form, answer string) {
	s, err := p.single(r, p.o.ID(r.PathValue("id")))
	if err != nil {
		p.site.Refused(w, r, err)
		return
	}
	s.Answer, s.Leaves = answer, r.URL.Query().Has("forget")
	p.site.Show(w, r, "device", ui.Content{Title: cmp.Or(s.Name, s.ID), Data: s, Form: f})
}

func (p *Page) oneParts(r *http.Request, id string) ([]live.Part, error) {
	s, err := p.single(r, id)
	if err != nil {
		return nil, err
	}
	var parts []live.Part
	for _, name := range []string{"now", "letters", "day"} {
		html, err := p.site.Fragment(r, "device-"+name, s)
		if err != nil {
			return nil, err
		}
		parts = append(parts, live.Part{ID: name, HTML: html})
	}
	return parts, nil
}

// actTime limits what a device does while the page waits.
const actTime = 40 * time.Second

// change does what somebody has asked for on the page of a device.
func (p *Page) change(w http.ResponseWriter, r *http.Request) {
	f, ok := p.site.Form(w, r)
	if !ok {
		return
	}
	id, by := p.o.ID(r.PathValue("id")), access.PersonOf(r)
	ctx, cancel := context.WithTimeout(r.Context(), actTime)
	defer cancel()
	done, field, answer := "", "", ""
	var err error
	switch do := f.Get("do"); do {
	case "rename":
		err, done, field = p.o.Book.Rename(ctx, by, id, f.Get("name")), "devices/renamed", "name"
	case "agent":
		err, done, field = p.o.Book.Assign(ctx, by, id, f.Get("agent")), "devices/assigned", "agent"
	case "say", "say-now":
		done, err = p.say(ctx, by, id, f.Get("words"), do == "say-now")
		field = "words"
	case "withdraw":
		err, done = p.withdraw(ctx, id, f.Get("letter")), "devices/withdrawn"
	case "ask", "listen", "stop":
		answer, err = p.act(ctx, id, do, f.Get("words"))
		field, done = "words", "devices/did-"+do
	case "refuse":
		if !by.Is(account.Owner) {
			err = account.ErrForbidden
			break
		}
		err, done = p.o.Book.Refuse(ctx, by, id), "devices/refused"
	default:
		p.site.NotFound(w, r)
		return
	}
	p.door.Did(r, "device."+f.Get("do"), id, err)
	switch {
	case err != nil && !p.explain(w, r, f, field, err):
	case err != nil || answer != "":
		p.answered(w, r, f, answer)
	default:
		p.site.Done(w, r, path+"/"+id, done)
	}
}

// explain notes why something was not done. Not ok: it has been answered.
func (p *Page) explain(w http.ResponseWriter, r *http.Request, f *ui.Form, field string, err error) (ok bool) {
	switch {
	case errors.Is(err, directory.ErrNotConnected):
		f.Wrong(field, p.site.Say(r, "devices/not-connected"))
	case errors.Is(err, context.DeadlineExceeded):
		f.Wrong(field, p.site.Say(r, "devices/no-answer"))
	case p.site.Reason(r, err) == "":
		f.Wrong(field, p.site.Say(r, "devices/not-done"))
	default:
		return p.site.Explain(w, r, f, field, err)
	}
	return true
}

// say hands over a text, and returns the notice of its fate.
func (p *Page) say(ctx context.Context, by account.Person, id, words string, now bool) (notice string, err error) {
	l, err := p.o.Letters.Send(ctx, mail.Letter{Device: id, Text: words, Now: now, Source: "console", By: by.Name})
	if err != nil {
		return "", err
	}
	if l.Fate == mail.Queued {
		if d, _, err := p.o.Fleet.Get(ctx, id); err == nil && !d.State.Connected() {
			return "devices/said-later", nil
		}
	}
	return "devices/said", nil
}

// withdraw takes a text of this device back.
func (p *Page) withdraw(ctx context.Context, id, letter string) error {
	l, err := p.o.Letters.Find(ctx, letter)
	if err == nil && l.Device != id {
		err = mail.ErrNoLetter
	}
	if err == nil {
		_, err = p.o.Letters.Withdraw(ctx, letter)
	}
	return err
}

// act has a connected device do something. answer is what its user says to a question.
func (p *Page) act(ctx context.Context, id, do, words string) (answer string, err error) {
	d, err := p.o.Find(id)
	switch {
	case err != nil:
		return "", err
	case do == "listen":
		return "", d.Listen(ctx)
	case do == "stop":
		_, err = d.Stop(ctx)
		return "", err
	case words == "":
		return "", mail.ErrLength
	}
	return d.Ask(remote.ByHand(ctx), words)
}

// forget drops all that is kept of a device, once its name or id was typed.
func (p *Page) forget(w http.ResponseWriter, r *http.Request) {
	f, ok := p.site.Form(w, r)
	if !ok {
		return
	}
	id := p.o.ID(r.PathValue("id"))
	d, known, err := p.o.Fleet.Get(r.Context(), id)
	switch {
	case err != nil:
		p.site.Refused(w, r, err)
		return
	case !known:
		p.site.Refused(w, r, errGone)
		return
	case !strings.EqualFold(f.Get("typed"), cmp.Or(d.Name, d.ID)) && p.o.ID(f.Get("typed")) != d.ID:
		f.Wrong("typed", p.site.Say(r, "devices/typed-wrong", cmp.Or(d.Name, d.ID)))
		p.one(w, r, f)
		return
	}
	left, err := p.o.Book.Forget(r.Context(), access.PersonOf(r), id)
	p.door.Did(r, "device.forget", "", err)
	if err != nil {
		if p.site.Explain(w, r, f, "typed", err) {
			p.one(w, r, f)
		}
		return
	}
	if len(left) > 0 {
		p.site.Done(w, r, path, "devices/forgotten-but", strings.Join(left, " "))
		return
	}
	p.site.Done(w, r, path, "devices/forgotten")
}

// Fates are the shapes of what became of a text.
func (single) Fates(f mail.Fate) string {
	return map[mail.Fate]string{mail.Queued: "idle", mail.Delivered: "busy", mail.Heard: "ok", mail.Expired: "warn", mail.Refused: "bad"}[f]
}

// Connected reports whether the device holds a conversation.
func (r row) Connected() bool { return fleet.State(r.State).Connected() }
