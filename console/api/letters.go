package api

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"xiaozhi/agent/feature/mail"
	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
	"xiaozhi/internal/fleet"
	"xiaozhi/internal/sender"
)

// Order is the body of POST /api/v1/say, /ask and /play.
type Order struct {
	To       string `json:"to"`
	Text     string `json:"text"`
	Song     string `json:"song"`
	Language string `json:"language"`
	Now      bool   `json:"now"`
	At       string `json:"at"`
	Priority string `json:"priority"`
	Expires  int    `json:"expires"` // seconds after at; 0: a day
	Wait     int    `json:"wait"`    // seconds that the answer may take
}

// Letter is something that a device is to say, ask or play, and what has become of it.
type Letter struct {
	ID       string    `json:"id,omitempty"`
	Batch    string    `json:"batch,omitempty"`
	Device   string    `json:"device"`
	Name     string    `json:"name,omitempty"` // of the device
	Kind     mail.Kind `json:"kind"`
	Text     string    `json:"text,omitempty"`
	Song     string    `json:"song,omitempty"`
	Fate     mail.Fate `json:"fate"`
	Why      mail.Why  `json:"why,omitempty"` // of refused
	Heard    int       `json:"heard"`         // characters that were played, of a song seconds
	Of       int       `json:"of"`
	Answer   string    `json:"answer,omitempty"`
	Priority string    `json:"priority"`
	Source   string    `json:"source"`
	By       string    `json:"by,omitempty"`
	Tries    int       `json:"tries"`
	Made     time.Time `json:"made,omitzero"`
	At       time.Time `json:"at,omitzero"`
	Told     time.Time `json:"told,omitzero"`
	Ends     time.Time `json:"ends,omitzero"`
}

// SentList is the answer to an order.
type SentList struct {
	ID      string   `json:"id"` // by which all letters of the order are found
	Letters []Letter `json:"letters"`
}

// LetterList is the answer to GET /api/v1/letters.
type LetterList struct {
	Letters []Letter `json:"letters"`
	Before  string   `json:"before,omitempty"` // asks for the next page
}

func letter(l mail.Letter, name string) Letter {
	return Letter{
		ID: l.ID, Batch: l.Batch, Device: l.Device, Name: name, Kind: l.Kind, Text: l.Text, Song: l.Song, Fate: l.Fate, Why: l.Why, Heard: l.Heard, Of: l.Length(), Answer: l.Answer,
		Priority: l.Priority.String(), Source: l.Source, By: l.By, Tries: l.Tries, Made: l.Made, At: l.At, Told: l.Told, Ends: l.Ends,
	}
}

// letterRoutes are those of letters to any device.
func (a *api) letterRoutes() []access.Route {
	look := account.Need{Role: account.Member, Scope: account.Read}
	act := account.Need{Role: account.Member, Scope: account.Say}
	of := func(pattern string, need account.Need, h http.HandlerFunc) access.Route {
		return access.Route{Pattern: pattern, For: access.People, Need: need, Handler: h}
	}
	return []access.Route{
		of("POST /api/v1/say", act, a.ordering(mail.Say)),
		of("POST /api/v1/ask", act, a.ordering(mail.Ask)),
		of("POST /api/v1/play", act, a.ordering(mail.Play)),
		of("GET /api/v1/letters", look, a.letters),
		of("GET /api/v1/letters/{letter}", look, a.letter),
		of("DELETE /api/v1/letters/{letter}", act, a.cancel),
	}
}

// may reports whether a person may speak to a device.
func may(p account.Person) func(d fleet.Device) bool {
	return func(d fleet.Device) bool {
		return p.May(account.Need{Role: account.Member, Scope: account.Say, Own: true}, d.Owner, time.Time{}) == nil
	}
}

// order reads what devices are to do.
func (a *api) order(r *http.Request, kind mail.Kind) (sender.Order, time.Duration, error) {
	var o Order
	if err := read(r, &o); err != nil {
		return sender.Order{}, 0, err
	}
	if o.Wait < 0 || o.Wait > maxWait || o.Expires < 0 {
		return sender.Order{}, 0, errWait
	}
	p := access.PersonOf(r)
	priority, err := a.priority(p, o.Priority)
	return sender.Order{
		To: o.To, Kind: kind, Text: o.Text, Song: o.Song, Lang: o.Language, Now: o.Now, At: o.At, Expires: time.Duration(o.Expires) * time.Second, Priority: priority, Source: "api", By: p.Name,
	}, time.Duration(o.Wait) * time.Second, err
}

// priority reads a priority that a person may use: a token that speaks in quiet hours has a scope for that.
func (a *api) priority(p account.Person, name string) (mail.Priority, error) {
	priority, err := mail.ParsePriority(name)
	if err == nil && priority == mail.Urgent {
		err = p.May(account.Need{Role: account.Member, Scope: account.Urgent}, "", time.Time{})
	}
	return priority, err
}

// ordering has all devices that an address means do something.
func (a *api) ordering(kind mail.Kind) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		p := access.PersonOf(r)
		o, wait, err := a.order(r, kind)
		var devices []fleet.Device
		if err == nil {
			devices, err = a.Sender.Meant(r.Context(), o.To, may(p))
		}
		if err == nil {
			thing := "letters" // a batch is one act
			if len(devices) == 1 {
				thing = devices[0].ID
			}
			err = a.pace.Often(p.ID, thing)
		}
		var sent []sender.Sent
		if err == nil {
			sent, err = a.Sender.SendTo(r.Context(), o, devices)
		}
		a.Guard.Did(r, "device."+string(kind), objects(devices), err)
		if err == nil && wait > 0 {
			ctx, cancel := context.WithTimeout(r.Context(), wait)
			defer cancel()
			err = a.Sender.Await(ctx, sent)
		}
		if err != nil {
			a.fail(w, r, err)
			return
		}
		answerSent(w, sent)
	}
}

// answerSent answers what has become of letters: 202 while one of them is not over.
func answerSent(w http.ResponseWriter, sent []sender.Sent) {
	list, status := SentList{Letters: make([]Letter, len(sent))}, http.StatusOK
	for i, s := range sent {
		list.ID, list.Letters[i] = s.Batch, letter(s.Letter, s.Device.Name)
		if !s.Fate.Over() {
			status = http.StatusAccepted
		}
	}
	access.Answer(w, status, list)
}

// maxObjects bounds the devices that the audit names of one act.
const maxObjects = 8

// objects names devices for the audit.
func objects(devices []fleet.Device) string {
	var ids []string
	for _, d := range devices[:min(len(devices), maxObjects)] {
		ids = append(ids, d.ID)
	}
	if more := len(devices) - len(ids); more > 0 {
		ids = append(ids, "+"+strconv.Itoa(more))
	}
	return strings.Join(ids, " ")
}

// names returns the names of the devices of which a person may know, by id.
func (a *api) names(r *http.Request) (map[string]string, error) {
	all, err := a.Fleet.List(r.Context())
	names, p := map[string]string{}, access.PersonOf(r)
	for _, d := range all {
		if p.Knows(d.Owner) {
			names[d.ID] = d.Name
		}
	}
	return names, err
}

// letters lists letters, the newest first: of all devices of which a person may know, or of one.
func (a *api) letters(w http.ResponseWriter, r *http.Request) {
	page, err := access.PageOf(r)
	names := map[string]string{}
	if err == nil {
		names, err = a.names(r)
	}
	q := r.URL.Query()
	f := mail.Filter{Batch: q.Get("batch"), Before: mail.Cursor(page.Before), Limit: page.Limit + 1, Devices: []string{}}
	switch q.Get("state") {
	case "":
	case "open":
		f.Open = true
	case "over":
		f.Over = true
	default:
		err = errors.Join(err, errState)
	}
	if err != nil {
		a.fail(w, r, err)
		return
	}
	for id := range names {
		if one := q.Get("device"); one == "" || a.ID(one) == id {
			f.Devices = append(f.Devices, id)
		}
	}
	if access.PersonOf(r).Is(account.Owner) && q.Get("device") == "" {
		f.Devices = nil
	}
	all, err := a.Letters.List(r.Context(), f)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	list := LetterList{Letters: []Letter{}}
	for i, l := range all {
		if i == page.Limit {
			last := all[i-1]
			list.Before = access.Before(last.Made, last.ID)
			break
		}
		list.Letters = append(list.Letters, letter(l, names[l.Device]))
	}
	access.Answer(w, http.StatusOK, list)
}

// found returns the letter of an id, or those of a batch, of devices of which a person may know, whose names it returns too; at least
// one, or [mail.ErrNoLetter].
func (a *api) found(r *http.Request, id string) (all []mail.Letter, names map[string]string, err error) {
	if names, err = a.names(r); err != nil {
		return nil, nil, err
	}
	l, err := a.Letters.Find(r.Context(), id)
	if all = []mail.Letter{l}; errors.Is(err, mail.ErrNoLetter) {
		all, err = a.Letters.List(r.Context(), mail.Filter{Batch: id, Limit: maxBatch})
	}
	all = slices.DeleteFunc(all, func(l mail.Letter) bool {
		_, known := names[l.Device]
		return !known
	})
	if err == nil && len(all) == 0 {
		err = mail.ErrNoLetter
	}
	return all, names, err
}

// maxBatch bounds the letters of a batch that are looked at.
const maxBatch = 500

func (a *api) letter(w http.ResponseWriter, r *http.Request) {
	all, names, err := a.found(r, r.PathValue("letter"))
	if err != nil {
		a.fail(w, r, err)
		return
	}
	access.Answer(w, http.StatusOK, letter(all[0], names[all[0].Device]))
}

// cancel takes back a letter that waits, or all of a batch that do.
func (a *api) cancel(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("letter")
	all, names, err := a.found(r, id)
	list := SentList{ID: id, Letters: []Letter{}}
	taken := 0
	for _, l := range all {
		now, werr := a.Letters.Withdraw(r.Context(), l.ID)
		switch {
		case werr == nil:
			taken++
		case !errors.Is(werr, mail.ErrOver):
			err = errors.Join(err, werr)
		}
		list.Letters = append(list.Letters, letter(now, names[l.Device]))
	}
	if err == nil && taken == 0 {
		err = mail.ErrOver
	}
	a.Guard.Did(r, "device.withdraw", id, err)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	access.Answer(w, http.StatusOK, list)
}
