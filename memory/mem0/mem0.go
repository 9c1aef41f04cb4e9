// Package mem0 remembers with mem0: its cloud (API version 3, https://docs.mem0.ai/api-reference) or a server of one's own (server/main.py of
// github.com/mem0ai/mem0), whose paths and answers differ.
//
// Who talks is one user of mem0: a device with an agent. mem0 keeps the memories of a user and of an agent apart even if both are named, so
// that two names would find less than both have.
package mem0

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"xiaozhi/memory"
	"xiaozhi/memory/hosted"
	"xiaozhi/providers"
	"xiaozhi/providers/transport"
)

// Where mem0 is.
const (
	Cloud = "https://api.mem0.ai"
	Home  = "http://127.0.0.1:8888" // of a server of one's own
)

const (
	pageSize  = 100
	threshold = 0.1             // of likeness, from which on something was found
	pollEvery = time.Second     // whether the cloud has worked off what it was given
	pollTime  = 4 * time.Second // at most
	goneTries = 4               // that what was deleted is looked for
	mostFound = 20
)

// Options are the settings of a [Service].
type Options struct {
	hosted.Account

	Own bool // it is a server of one's own
}

// Service is mem0. It may be used by any number of goroutines at once.
type Service struct {
	*hosted.Client
	own  bool
	poll time.Duration
}

var (
	_ hosted.Service  = (*Service)(nil)
	_ hosted.Searcher = (*Service)(nil)
)

// New makes the service. It asks nothing.
func New(o Options) (*Service, error) {
	home := Cloud
	if o.Own {
		home = Home
	}
	c, err := hosted.NewClient(o.Account, home, func(h http.Header) {
		switch {
		case o.Key == "":
		case o.Own:
			h.Set("X-API-Key", o.Key.Reveal())
		default:
			h.Set("Authorization", "Token "+o.Key.Reveal())
		}
	})
	if err != nil {
		return nil, err
	}
	return &Service{c, o.Own, pollEvery}, nil
}

// userOf is the id of an owner as a user of mem0.
func userOf(o memory.Owner) string { return "xiaozhi/" + o.Device + "/" + o.Agent }

// item is a memory as mem0 tells it.
type item struct {
	ID       string         `json:"id"`
	Memory   string         `json:"memory"`
	User     *string        `json:"user_id"`
	Run      string         `json:"run_id"`
	Metadata map[string]any `json:"metadata"`
	Created  string         `json:"created_at"`
	Updated  string         `json:"updated_at"`
}

// items are those of an answer: a list, or an object that holds one.
type items struct {
	All  []item
	Next bool // there are more
}

// UnmarshalJSON reads either.
func (l *items) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '[' {
		return json.Unmarshal(raw, &l.All)
	}
	var whole struct {
		Results []item  `json:"results"`
		Next    *string `json:"next"`
	}
	err := json.Unmarshal(raw, &whole)
	l.All, l.Next = whole.Results, whole.Next != nil && *whole.Next != ""
	return err
}

// of are the items of a user; what is another's is no answer.
func (l *items) of(user string) []item {
	return slices.DeleteFunc(l.All, func(i item) bool { return i.ID == "" || i.User != nil && *i.User != user })
}

// fact is an item as a fact.
func (i *item) fact() memory.Fact {
	f := memory.Fact{ID: i.ID, Text: hosted.Line(i.Memory), Talk: i.Run, Sure: 90}
	if told, ok := i.Metadata["told"].(bool); ok {
		f.Told = told
	}
	for _, at := range []string{i.Updated, i.Created} {
		if f.At.IsZero() {
			f.At, _ = time.Parse(time.RFC3339, at) // of what is no time: unknown
		}
	}
	return f
}

// Facts implements [hosted.Service].
func (s *Service) Facts(ctx context.Context, o memory.Owner) (all []memory.Fact, err error) {
	user := userOf(o)
	for page := 1; len(all) < memory.MaxFacts; page++ {
		var l items
		if s.own {
			err = s.Call(ctx, "list memories", http.MethodGet, "/memories?"+url.Values{"user_id": {user}}.Encode(), nil, &l, refused)
		} else {
			err = s.Call(ctx, "list memories", http.MethodPost, fmt.Sprintf("/v3/memories/?page=%d&page_size=%d", page, pageSize), object{"filters": object{"user_id": user}}, &l, refused)
		}
		if hosted.Missing(err) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		for _, i := range l.of(user) {
			all = append(all, i.fact())
		}
		if s.own || !l.Next || len(l.All) == 0 {
			break
		}
	}
	return all[:min(len(all), memory.MaxFacts)], nil
}

type object = map[string]any

// refused returns the error that stands in an answer of success; nil: none does.
func refused(body []byte) error {
	if words, ok := transport.ErrorMessage(body); ok {
		return &transport.Refusal{Status: http.StatusOK, Text: words}
	}
	return nil
}

// Search implements [hosted.Searcher].
func (s *Service) Search(ctx context.Context, o memory.Owner, words string, most int) (ids []string, err error) {
	user, path := userOf(o), "/v3/memories/search/"
	if s.own {
		path = "/search"
	}
	if words = strings.TrimSpace(words); words == "" { // mem0 refuses that
		return nil, nil
	}
	var l items
	err = s.Call(ctx, "search memories", http.MethodPost, path, object{
		"query": words, "filters": object{"user_id": user}, "top_k": min(most, mostFound), "threshold": threshold,
	}, &l, refused)
	for _, i := range l.of(user) {
		ids = append(ids, i.ID)
	}
	return ids, err
}

// message is one of a talk.
type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// accepted is the answer to what is to be kept: the cloud works it off later.
type accepted struct {
	items
	Event  string
	Status string
}

// UnmarshalJSON reads it.
func (a *accepted) UnmarshalJSON(raw []byte) error {
	if err := a.items.UnmarshalJSON(raw); err != nil || len(raw) > 0 && raw[0] == '[' {
		return err
	}
	var event struct {
		Event  string `json:"event_id"`
		Status string `json:"status"`
	}
	err := json.Unmarshal(raw, &event)
	a.Event, a.Status = event.Event, event.Status
	return err
}

// add has mem0 keep something.
func (s *Service) add(ctx context.Context, body object) (a accepted, err error) {
	path := "/v3/memories/add/"
	if s.own {
		path = "/memories"
	}
	err = s.Call(ctx, "add memories", http.MethodPost, path, body, &a, refused)
	return a, err
}

// Learn implements [hosted.Service].
func (s *Service) Learn(ctx context.Context, o memory.Owner, talk string, said []memory.Said) (settled bool, err error) {
	var messages []message
	for _, t := range said {
		messages = append(messages, message{"user", t.Heard})
		if t.Reply != "" {
			messages = append(messages, message{"assistant", t.Reply})
		}
	}
	a, err := s.add(ctx, object{"messages": messages, "user_id": userOf(o), "run_id": talk, "infer": true})
	if err != nil || a.Event == "" {
		return err == nil, err
	}
	state, _, err := s.await(ctx, a.Event)
	if err != nil && ctx.Err() == nil {
		return false, nil // it has it, and goes on
	}
	if state == "FAILED" {
		return true, failed(s.Name(), "add memories", "it could not work off a talk")
	}
	return state == "SUCCEEDED", err
}

func failed(name, op, words string) error {
	return &providers.Error{Provider: name, Op: op, Kind: providers.Unavailable, Err: errors.New(words)}
}

// await waits until the cloud has worked off an event. The state is PENDING if it goes on when the time is over.
func (s *Service) await(ctx context.Context, event string) (state string, done items, err error) {
	for end := time.Now().Add(pollTime); ; {
		var e struct {
			Status  string          `json:"status"`
			Results json.RawMessage `json:"results"`
		}
		if err := s.Call(ctx, "look at an event", http.MethodGet, "/v1/event/"+url.PathEscape(event)+"/", nil, &e, refused); err != nil {
			return "", done, err
		}
		switch strings.ToUpper(e.Status) {
		case "SUCCEEDED", "COMPLETED":
			_ = json.Unmarshal(e.Results, &done.All) // some events tell none
			return "SUCCEEDED", done, nil
		case "FAILED", "ERROR":
			return "FAILED", done, nil
		}
		if !time.Now().Add(s.poll).Before(end) || !transport.Wait(ctx, s.poll) {
			return "PENDING", done, ctx.Err()
		}
	}
}

// Remember implements [hosted.Service].
func (s *Service) Remember(ctx context.Context, o memory.Owner, f memory.Fact) (id string, err error) {
	a, err := s.add(ctx, object{"messages": []message{{"user", f.Text}}, "user_id": userOf(o), "infer": false, "metadata": object{"told": true}})
	if err != nil {
		return "", err
	}
	if a.Event != "" && len(a.All) == 0 {
		state, done, err := s.await(ctx, a.Event)
		if err != nil {
			return "", err
		}
		if state == "FAILED" {
			return "", failed(s.Name(), "add memories", "it could not keep what it was told")
		}
		a.All = done.All
	}
	for _, i := range a.All {
		if i.ID != "" {
			return i.ID, nil
		}
	}
	all, err := s.Facts(ctx, o) // the answer does not tell
	if err != nil {
		return "", err
	}
	for _, known := range all {
		if known.Text == hosted.Line(f.Text) {
			return known.ID, nil
		}
	}
	return "", failed(s.Name(), "add memories", "what it was told is not there")
}

// path returns that of one memory.
func (s *Service) path(id string) string {
	if s.own {
		return "/memories/" + url.PathEscape(id)
	}
	return "/v1/memories/" + url.PathEscape(id) + "/"
}

// Edit implements [hosted.Service].
func (s *Service) Edit(ctx context.Context, _ memory.Owner, id, text string) error {
	err := s.Call(ctx, "update a memory", http.MethodPut, s.path(id), object{"text": text}, nil, refused)
	if hosted.Missing(err) {
		return memory.ErrUnknown
	}
	return err
}

// Forget implements [hosted.Service].
func (s *Service) Forget(ctx context.Context, o memory.Owner, f memory.Fact) error {
	return s.delete(ctx, s.path(f.ID), o, func(known memory.Fact) bool { return known.ID == f.ID })
}

// ForgetTalk implements [hosted.Service]. Each memory of it is deleted by its id: what is documented of deleting by several names does not
// say that all of them must fit.
func (s *Service) ForgetTalk(ctx context.Context, o memory.Owner, talk string) error {
	all, err := s.Facts(ctx, o)
	for _, f := range all {
		if err == nil && f.Talk == talk {
			err = s.Forget(ctx, o, f)
		}
	}
	return err
}

// ForgetAll implements [hosted.Service].
func (s *Service) ForgetAll(ctx context.Context, o memory.Owner) error {
	path := "/v1/memories/?"
	if s.own {
		path = "/memories?"
	}
	return s.delete(ctx, path+url.Values{"user_id": {userOf(o)}}.Encode(), o, func(memory.Fact) bool { return true })
}

// delete deletes what is at a path, and looks whether it is gone: a server of one's own refuses to delete what is not there.
func (s *Service) delete(ctx context.Context, path string, o memory.Owner, meant func(memory.Fact) bool) error {
	refused := s.Call(ctx, "delete memories", http.MethodDelete, path, nil, nil, refused)
	if hosted.Missing(refused) {
		refused = nil
	}
	for try := 1; ; try++ {
		left, err := s.Facts(ctx, o)
		if err != nil {
			return cmp.Or(refused, err)
		}
		if !slices.ContainsFunc(left, meant) {
			return nil
		}
		if refused != nil {
			return refused
		}
		if try == goneTries || !transport.Wait(ctx, s.poll) {
			return cmp.Or(ctx.Err(), failed(s.Name(), "delete memories", "it still knows what it was to delete"))
		}
	}
}
