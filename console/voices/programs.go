package voices

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
	"xiaozhi/internal/text/message"
	"xiaozhi/voices"
)

// List is the answer to GET /api/v1/people.
type List struct {
	Engine   string    `json:"engine"` // that tells people apart; "": none does
	People   []Person  `json:"people"`
	Removals []Removal `json:"removals,omitempty"`
}

// Person is somebody whose voice may be known.
type Person struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	AddedBy string    `json:"added_by,omitempty"`
	AddedAt time.Time `json:"added_at"`
	Voices  []Voice   `json:"voices"`
}

// Voice is a print of a person's voice.
type Voice struct {
	ID      string        `json:"id"`
	Service string        `json:"service"`
	Source  voices.Source `json:"source"`
	Device  string        `json:"device,omitempty"`
	Seconds float64       `json:"seconds"`
	At      time.Time     `json:"at"`
	Stale   bool          `json:"stale,omitempty"`
}

// Removal is a print that a service has not forgotten yet.
type Removal struct {
	Voice   string    `json:"voice"`
	Service string    `json:"service"`
	At      time.Time `json:"at"`
	Next    time.Time `json:"next"`
	Tries   int       `json:"tries"`
	Fault   string    `json:"fault,omitempty"`
}

// Deleted is the answer to what deletes a person or a voice.
type Deleted struct {
	Left  bool     `json:"left"`            // a service has not forgotten it yet
	Files []string `json:"files,omitempty"` // that may hold something of it
}

// Trial is the answer to POST /api/v1/people/identify.
type Trial struct {
	Verdict string  `json:"verdict"` // known, stranger, unclear or unknown
	Person  string  `json:"person,omitempty"`
	Name    string  `json:"name,omitempty"`
	Sure    int     `json:"sure,omitempty"`
	Nearest string  `json:"nearest,omitempty"`
	Score   int     `json:"score"`
	Needed  int     `json:"needed"`
	Seconds float64 `json:"seconds"`
}

// programs serve programs.
type programs struct {
	*Desk
	guard *access.Guard
}

var owners = account.Need{Role: account.Owner, Scope: account.Admin}

// Programs are the routes for programs, of nobody: none. They are for owners alone: a voice is like a fingerprint.
func (d *Desk) Programs(guard *access.Guard) []access.Route {
	if d == nil {
		return nil
	}
	p := programs{d, guard}
	of := func(pattern string, most int64, h http.HandlerFunc) access.Route {
		return access.Route{Pattern: pattern, For: access.People, Need: owners, MaxBody: most, Handler: h}
	}
	return []access.Route{
		of("GET /api/v1/people", 0, p.list),
		of("POST /api/v1/people", 0, p.addOne),
		of("GET /api/v1/people/{person}", 0, p.one),
		of("PUT /api/v1/people/{person}", 0, p.renameOne),
		of("DELETE /api/v1/people/{person}", 0, p.deleteOne),
		of("POST /api/v1/people/{person}/voices", maxFile+1, p.enrolOne),
		of("DELETE /api/v1/people/{person}/voices/{voice}", 0, p.deleteVoice),
		of("POST /api/v1/people/identify", maxFile+1, p.identify),
	}
}

// fail answers why something was not done.
func (p programs) fail(w http.ResponseWriter, r *http.Request, err error) {
	status, id, args := reason(err)
	if status == 0 {
		p.guard.Fail(w, r, err)
		return
	}
	access.Refuse(w, status, id, message.Both(id, args...))
}

// did keeps in the audit what was done, and answers.
func (p programs) did(w http.ResponseWriter, r *http.Request, act, object string, err error, answer func() any) {
	p.guard.Did(r, act, object, err)
	if err != nil {
		p.fail(w, r, err)
		return
	}
	access.Answer(w, http.StatusOK, answer())
}

var errBody = errors.New("the body is not as it should be")

// named reads the body of a request that names a person.
func named(r *http.Request) (name string, err error) {
	var body struct {
		Name string `json:"name"`
	}
	in := json.NewDecoder(r.Body)
	in.DisallowUnknownFields()
	if err := in.Decode(&body); err != nil || in.More() {
		return "", errBody
	}
	return body.Name, nil
}

func told(one person) Person {
	out := Person{ID: one.ID, Name: one.Name, AddedBy: one.By, AddedAt: one.At, Voices: []Voice{}}
	for _, v := range one.Voices {
		out.Voices = append(out.Voices, toldVoice(v.Voice, v.Stale))
	}
	return out
}

func toldVoice(v voices.Voice, stale bool) Voice {
	return Voice{ID: v.Print.ID, Service: v.Service, Source: v.Source, Device: v.Device, Seconds: v.Length.Seconds(), At: v.At, Stale: stale}
}

func (p programs) list(w http.ResponseWriter, _ *http.Request) {
	out := List{Engine: p.o.Book.Engine(), People: []Person{}}
	for _, one := range p.people() {
		out.People = append(out.People, told(one))
	}
	for _, x := range p.o.Book.Removals() {
		out.Removals = append(out.Removals, Removal{Voice: x.ID, Service: x.Service, At: x.At, Next: x.Next, Tries: x.Tries, Fault: x.Fault})
	}
	access.Answer(w, http.StatusOK, out)
}

func (p programs) one(w http.ResponseWriter, r *http.Request) {
	one, there := p.o.Book.Person(r.PathValue("person"))
	if !there {
		p.fail(w, r, voices.ErrNobody)
		return
	}
	access.Answer(w, http.StatusOK, told(p.person(one)))
}

func (p programs) addOne(w http.ResponseWriter, r *http.Request) {
	name, err := named(r)
	var one voices.Person
	if err == nil {
		one, err = p.add(r, name)
	}
	p.did(w, r, "person.add", one.Name, err, func() any { return told(p.person(one)) })
}

func (p programs) renameOne(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("person")
	name, err := named(r)
	if err == nil {
		err = p.rename(r.Context(), id, name)
	}
	one, _ := p.o.Book.Person(id)
	p.did(w, r, "person.rename", one.Name, err, func() any { return told(p.person(one)) })
}

func (p programs) deleteOne(w http.ResponseWriter, r *http.Request) {
	id, memories := r.PathValue("person"), r.URL.Query().Get("memories")
	one, _ := p.o.Book.Person(id)
	var f Forgotten
	err := errBody
	if memories == "" || memories == "true" || memories == "false" {
		f, err = p.o.Forget(r.Context(), id, memories == "true")
	}
	p.did(w, r, "person.delete", one.Name, err, func() any { return Deleted(f) })
}

func (p programs) enrolOne(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("person")
	v, err := p.enrol(r, id, r.Body)
	one, _ := p.o.Book.Person(id)
	p.did(w, r, "voice.enrol", one.Name, err, func() any { return toldVoice(v, false) })
}

func (p programs) deleteVoice(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("person")
	one, _ := p.o.Book.Person(id)
	left, err := p.o.Book.DeleteVoice(r.Context(), id, r.PathValue("voice"))
	p.did(w, r, "voice.delete", one.Name, err, func() any { return Deleted{Left: left} })
}

func (p programs) identify(w http.ResponseWriter, r *http.Request) {
	t, err := p.try(r, r.Body)
	p.did(w, r, "voice.try", t.Speaker.Name, err, func() any {
		return Trial{
			Verdict: verdict(t.Speaker.Verdict), Person: t.Speaker.ID, Name: t.Speaker.Name, Sure: t.Speaker.Sure, Nearest: t.Nearest, Score: t.Score, Needed: t.Needed,
			Seconds: t.Said.Seconds(),
		}
	})
}

func verdict(v voices.Verdict) string {
	switch v {
	case voices.Known:
		return "known"
	case voices.Stranger:
		return "stranger"
	case voices.Unclear:
		return "unclear"
	case voices.Unknown:
	}
	return "unknown"
}
