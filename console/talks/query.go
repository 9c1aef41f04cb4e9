package talks

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/store"
)

// FieldError says which field of a search cannot be understood.
type FieldError struct{ Field string }

// Error says so in both languages.
func (e *FieldError) Error() string { return message.Both("talks/field", e.Field) }

// In says so in a language.
func (e *FieldError) In(lang text.Lang) string { return message.In(lang, "talks/field", e.Field) }

// Limits of a search.
const (
	maxField  = 200              // characters of a field
	maxSlower = 10 * time.Minute // until the first sound
	maxRows   = 200              // that a program gets at once
)

// ParseFilter reads a search as an address has it: device, agent, text, tool, failed, interrupted and kept (1), slower (in
// milliseconds), before (of [Cursor]) and limit. The error is a [FieldError].
func ParseFilter(v url.Values) (f store.TalkFilter, p store.Page, err error) {
	bad := func(field string) {
		if err == nil {
			err = &FieldError{field}
		}
	}
	words := func(field string) string {
		s := strings.TrimSpace(v.Get(field))
		if utf8.RuneCountInString(s) > maxField || !utf8.ValidString(s) {
			bad(field)
			return ""
		}
		return s
	}
	yes := func(field string) bool {
		switch v.Get(field) {
		case "", "0":
			return false
		case "1", "on":
			return true
		}
		bad(field)
		return false
	}
	number := func(field string, most int64) int64 {
		s := v.Get(field)
		if s == "" {
			return 0
		}
		n, wrong := strconv.ParseInt(s, 10, 64)
		if wrong != nil || n < 0 || n > most {
			bad(field)
			return 0
		}
		return n
	}
	f = store.TalkFilter{
		Device: words("device"), Agent: words("agent"), Text: words("text"), Tool: words("tool"), Failed: yes("failed"), Interrupted: yes("interrupted"), Kept: yes("kept"),
		Slower: time.Duration(number("slower", maxSlower.Milliseconds())) * time.Millisecond,
	}
	p.Limit = int(number("limit", maxRows))
	if c := v.Get("before"); c != "" {
		ms, id, ok := strings.Cut(c, "-")
		at, wrong := strconv.ParseInt(ms, 10, 64)
		if !ok || wrong != nil || at < 0 || len(id) > maxField || !utf8.ValidString(id) {
			bad("before")
		}
		p.Before = store.Cursor{At: time.UnixMilli(at).UTC(), ID: id}
	}
	return f, p, err
}

// Cursor writes where a list goes on; "": nowhere.
func Cursor(c store.Cursor) string {
	if c == (store.Cursor{}) {
		return ""
	}
	return strconv.FormatInt(c.At.UnixMilli(), 10) + "-" + c.ID
}

// Listed is a talk in a list for programs.
type Listed struct {
	ID          string    `json:"id"`
	Device      string    `json:"device"`
	Name        string    `json:"device_name,omitempty"`
	Agent       string    `json:"agent,omitempty"`
	Began       time.Time `json:"began"`
	Last        time.Time `json:"last"` // its last turn
	Turns       int       `json:"turns"`
	Words       string    `json:"words,omitempty"` // of the user, the first ones
	Failed      int       `json:"failed,omitempty"`
	Interrupted int       `json:"interrupted,omitempty"`
	SlowestMS   int64     `json:"slowest_ms,omitempty"`
	CostMicros  int       `json:"cost_micros,omitempty"`
	Kept        bool      `json:"kept,omitempty"`
}

// List is a part of a list for programs. Before asks for the next one; "": there is none.
type List struct {
	Talks  []Listed `json:"talks"`
	Before string   `json:"before,omitempty"`
}

// Programs are the routes for programs.
func (t *Talks) Programs() []access.Route {
	own := account.Need{Role: account.Member, Scope: account.Read, Own: true}
	change := account.Need{Role: account.Member, Scope: account.Admin, Own: true}
	return []access.Route{
		{Pattern: "GET /api/v1/talks", For: access.People, Need: account.Need{Role: account.Member, Scope: account.Read}, Handler: http.HandlerFunc(t.list)},
		{Pattern: "GET /api/v1/talks/{talk}", For: access.People, Need: own, Owner: t.OwnerOfTalk, Handler: http.HandlerFunc(t.one)},
		{Pattern: "DELETE /api/v1/talks/{talk}", For: access.People, Need: change, Owner: t.OwnerOfTalk, Handler: t.deletes("talk", t.DeleteTalk)},
		{Pattern: "DELETE /api/v1/turns/{turn}", For: access.People, Need: change, Owner: t.OwnerOfTurn, Handler: t.deletes("turn", t.DeleteTurn)},
	}
}

// list gives talks, the newest first.
func (t *Talks) list(w http.ResponseWriter, r *http.Request) {
	f, p, err := ParseFilter(r.URL.Query())
	if err != nil {
		access.Refuse(w, http.StatusBadRequest, "talks/field", err.Error())
		return
	}
	found, err := t.List(r.Context(), access.PersonOf(r), f, p)
	if err != nil {
		t.o.Guard.Fail(w, r, err)
		return
	}
	l := List{Talks: []Listed{}, Before: Cursor(found.Next)}
	for i := range found.Talks {
		c := &found.Talks[i]
		l.Talks = append(l.Talks, Listed{
			ID: c.ID, Device: c.DeviceID, Name: c.DeviceName, Agent: c.Agent, Began: c.BeganAt, Last: c.LastAt, Turns: c.Turns, Words: c.Words, Failed: c.Failed,
			Interrupted: c.Interrupted, SlowestMS: c.Slowest.Milliseconds(), CostMicros: c.CostMicros, Kept: c.Kept,
		})
	}
	access.Answer(w, http.StatusOK, l)
}

// one gives a talk with its turns after ?after=SEQ, a hundred at most.
func (t *Talks) one(w http.ResponseWriter, r *http.Request) {
	after := 0
	if s := r.URL.Query().Get("after"); s != "" {
		var err error
		if after, err = strconv.Atoi(s); err != nil || after < 0 {
			access.Refuse(w, http.StatusBadRequest, "talks/field", (&FieldError{"after"}).Error())
			return
		}
	}
	talk, err := t.Talk(r.Context(), r.PathValue("talk"), after)
	if err != nil {
		t.o.Guard.Fail(w, r, Unknown(err))
		return
	}
	d := t.document(&talk)
	if talk.More {
		d.After = talk.Turns[len(talk.Turns)-1].Seq
	}
	access.Answer(w, http.StatusOK, d)
}

// deletes deletes what a part of the path names.
func (t *Talks) deletes(part string, do func(r *http.Request, id string) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := do(r, r.PathValue(part)); err != nil {
			t.o.Guard.Fail(w, r, Unknown(err))
			return
		}
		access.Answer(w, http.StatusOK, struct{}{})
	})
}
