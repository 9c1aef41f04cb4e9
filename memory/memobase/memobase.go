// Package memobase remembers with Memobase (https://docs.memobase.io, API 0.0.40), in its cloud or on a server of one's own.
//
// Memobase makes a profile of a user: short texts, each under a topic and one below it, which are the facts here, and events that tell what a
// talk was about. Talks go into a buffer, which is flushed at once. Its answers have status 200 also where something went wrong: errno says it.
package memobase

import (
	"context"
	"crypto/sha1" //nolint:gosec // the ids that Memobase wants are made so
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"xiaozhi/memory"
	"xiaozhi/memory/hosted"
	"xiaozhi/providers"
	"xiaozhi/providers/transport"
)

// Where Memobase is.
const (
	Cloud = "https://api.memobase.dev"
	Home  = "http://127.0.0.1:8019" // of a server of one's own
)

// The topics of what somebody has asked to be remembered.
const (
	toldTopic = "remembered"
	allEvents = 1000  // that are looked through for what is to be forgotten
	allDays   = 36500 // in which they were
)

// Options are the settings of a [Service].
type Options struct {
	hosted.Account

	Own bool // it is a server of one's own
}

// Service is Memobase. It may be used by any number of goroutines at once.
type Service struct{ *hosted.Client }

var _ hosted.Service = (*Service)(nil)

// New makes the service. It asks nothing.
func New(o Options) (*Service, error) {
	home := Cloud
	if o.Own {
		home = Home
	}
	o.BaseURL = strings.TrimSuffix(strings.TrimRight(o.BaseURL, "/"), "/api/v1") // as its own clients want it, or not
	c, err := hosted.NewClient(o.Account, home, func(h http.Header) {
		if o.Key != "" {
			h.Set("Authorization", "Bearer "+o.Key.Reveal())
		}
	})
	if err != nil {
		return nil, err
	}
	return &Service{c}, nil
}

// space is that of the ids of users: Memobase takes UUIDs of the versions 4 and 5 only.
var space = [16]byte{0x78, 0x69, 0x61, 0x6f, 0x7a, 0x68, 0x69, 0x2d, 0x6d, 0x65, 0x6d, 0x6f, 0x72, 0x79, 0x00, 0x01}

// userOf is the id of an owner as a user: a UUID of version 5 (RFC 9562, 5.5) of the device and the agent.
func userOf(o memory.Owner) string {
	h := sha1.New() //nolint:gosec // as above
	_, _ = h.Write(space[:])
	_, _ = h.Write([]byte(o.Device + "\x00" + o.Agent))
	id := h.Sum(nil)[:16]
	id[6], id[8] = id[6]&0x0f|0x50, id[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

type object = map[string]any

// envelope is around each answer.
type envelope struct {
	Data  json.RawMessage `json:"data"`
	Errno int             `json:"errno"`
	Error string          `json:"errmsg"`
}

// call makes a request, and reads the data of its answer.
func (s *Service) call(ctx context.Context, op, method, path string, in, out any) error {
	var e envelope
	err := s.Call(ctx, op, method, "/api/v1"+path, in, &e, func(body []byte) error {
		var told envelope
		if err := json.Unmarshal(body, &told); err != nil {
			return fmt.Errorf("the answer is not the JSON expected: %w", err)
		}
		if told.Errno == 0 {
			return nil
		}
		kind := transport.KindOf(told.Errno) // they are those of HTTP
		return &transport.Refusal{Status: http.StatusOK, Code: strconv.Itoa(told.Errno), Kind: kind, Text: told.Error}
	})
	if err != nil || out == nil || len(e.Data) == 0 {
		return err
	}
	if err := json.Unmarshal(e.Data, out); err != nil {
		return &providers.Error{Provider: s.Name(), Op: op, Kind: providers.Unavailable, Err: errors.New("the data of the answer has another form")}
	}
	return nil
}

// profile is a part of what is known of a user.
type profile struct {
	ID         string `json:"id"`
	Content    string `json:"content"`
	Attributes struct {
		Topic string `json:"topic"`
		Sub   string `json:"sub_topic"`
	} `json:"attributes"`
	Updated string `json:"updated_at"`
}

// fact is a part of a profile as a fact.
func (p *profile) fact() memory.Fact {
	f := memory.Fact{ID: p.ID, Text: hosted.Line(p.Content), Sure: 90, Told: p.Attributes.Topic == toldTopic}
	if !f.Told {
		f.Text = hosted.Line(strings.NewReplacer("_", " ").Replace(p.Attributes.Topic+", "+p.Attributes.Sub) + ": " + p.Content)
	}
	for _, form := range []string{time.RFC3339, "2006-01-02T15:04:05.999999"} {
		if f.At.IsZero() {
			f.At, _ = time.Parse(form, p.Updated) // of what is no time: unknown
		}
	}
	return f
}

// profiles are all parts of what is known of an owner; none of one that Memobase does not know.
func (s *Service) profiles(ctx context.Context, o memory.Owner) ([]profile, error) {
	var data struct {
		Profiles []profile `json:"profiles"`
	}
	err := s.call(ctx, "read a profile", http.MethodGet, "/users/profile/"+userOf(o), nil, &data)
	if hosted.Missing(err) {
		err = nil
	}
	return data.Profiles, err
}

// Facts implements [hosted.Service].
func (s *Service) Facts(ctx context.Context, o memory.Owner) (all []memory.Fact, err error) {
	parts, err := s.profiles(ctx, o)
	for _, p := range parts[:min(len(parts), memory.MaxFacts)] {
		if p.ID != "" {
			all = append(all, p.fact())
		}
	}
	return all, err
}

// known makes a request for a user that Memobase must know, and has it know that if it does not.
func (s *Service) known(ctx context.Context, o memory.Owner, ask func() error) error {
	err := ask()
	if !hosted.Missing(err) {
		return err
	}
	if err := s.call(ctx, "add a user", http.MethodPost, "/users", object{"id": userOf(o), "data": object{"device": o.Device, "agent": o.Agent}}, nil); err != nil {
		return err
	}
	return ask()
}

// message is one of a talk.
type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
	Created string `json:"created_at,omitempty"`
}

// Learn implements [hosted.Service].
func (s *Service) Learn(ctx context.Context, o memory.Owner, _ string, said []memory.Said) (settled bool, err error) {
	var messages []message
	for _, t := range said {
		at := ""
		if !t.At.IsZero() {
			at = t.At.UTC().Format(time.RFC3339)
		}
		messages = append(messages, message{"user", t.Heard, at})
		if t.Reply != "" {
			messages = append(messages, message{"assistant", t.Reply, at})
		}
	}
	err = s.known(ctx, o, func() error {
		return s.call(ctx, "insert a talk", http.MethodPost, "/blobs/insert/"+userOf(o), object{"blob_type": "chat", "blob_data": object{"messages": messages}}, nil)
	})
	if err != nil {
		return false, err
	}
	var done []json.RawMessage
	if err := s.call(ctx, "flush the buffer", http.MethodPost, "/users/buffer/"+userOf(o)+"/chat?wait_process=true", nil, &done); err != nil {
		return false, ctx.Err() // it has the talk, and flushes by itself
	}
	return len(done) > 0, nil // else it was busy with the talk already
}

// Remember implements [hosted.Service].
func (s *Service) Remember(ctx context.Context, o memory.Owner, f memory.Fact) (id string, err error) {
	var data struct {
		ID string `json:"id"`
	}
	sub := time.Now().UTC().Format("2006-01-02 15:04:05.000") // each is one of its own
	err = s.known(ctx, o, func() error {
		return s.call(ctx, "add to a profile", http.MethodPost, "/users/profile/"+userOf(o), object{"content": f.Text, "attributes": object{"topic": toldTopic, "sub_topic": sub}}, &data)
	})
	if err == nil && data.ID == "" {
		err = &providers.Error{Provider: s.Name(), Op: "add to a profile", Kind: providers.Unavailable, Err: errors.New("the answer does not tell what was kept")}
	}
	return data.ID, err
}

// Edit implements [hosted.Service].
func (s *Service) Edit(ctx context.Context, o memory.Owner, id, text string) error {
	parts, err := s.profiles(ctx, o)
	if err != nil {
		return err
	}
	for _, p := range parts {
		if p.ID == id {
			return s.call(ctx, "change a profile", http.MethodPut, "/users/profile/"+userOf(o)+"/"+url.PathEscape(id), object{
				"content": text, "attributes": object{"topic": toldTopic, "sub_topic": p.Attributes.Topic + " " + p.Attributes.Sub},
			}, nil)
		}
	}
	return memory.ErrUnknown
}

// Forget implements [hosted.Service]. Events that tell the fact are deleted, too.
func (s *Service) Forget(ctx context.Context, o memory.Owner, f memory.Fact) error {
	user := userOf(o)
	if f.Text == "" { // it is not known here what it says
		parts, err := s.profiles(ctx, o)
		if err != nil {
			return err
		}
		for _, p := range parts {
			if p.ID == f.ID {
				f.Text = p.Content
			}
		}
	}
	var data struct {
		Events []struct {
			ID   string          `json:"id"`
			Data json.RawMessage `json:"event_data"`
		} `json:"events"`
	}
	err := s.call(ctx, "read events", http.MethodGet, fmt.Sprintf("/users/event/%s?topk=%d&time_range_in_days=%d", user, allEvents, allDays), nil, &data)
	if hosted.Missing(err) {
		return nil // the user is not there
	}
	if err != nil {
		return err
	}
	for _, e := range data.Events {
		if !memory.Tells(words(e.Data), f.Text) {
			continue
		}
		if err := s.call(ctx, "delete an event", http.MethodDelete, "/users/event/"+user+"/"+url.PathEscape(e.ID), nil, nil); err != nil && !hosted.Missing(err) {
			return err
		}
	}
	err = s.call(ctx, "delete from a profile", http.MethodDelete, "/users/profile/"+user+"/"+url.PathEscape(f.ID), nil, nil)
	if err != nil && !hosted.Missing(err) {
		return err
	}
	left, err := s.profiles(ctx, o)
	for _, p := range left {
		if p.ID == f.ID {
			return s.still("delete from a profile")
		}
	}
	return err
}

func (s *Service) still(op string) error {
	return &providers.Error{Provider: s.Name(), Op: op, Kind: providers.Unavailable, Err: errors.New("it still knows what it was to delete")}
}

// words are all texts in JSON, whatever its form.
func words(raw json.RawMessage) string {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return ""
	}
	var b strings.Builder
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			b.WriteString(v + "\n")
		case []any:
			for _, one := range v {
				walk(one)
			}
		case map[string]any:
			for _, one := range v {
				walk(one)
			}
		}
	}
	walk(v)
	return b.String()
}

// ForgetTalk implements [hosted.Service]: a profile does not say which talk it was made of.
func (*Service) ForgetTalk(context.Context, memory.Owner, string) error { return hosted.ErrNoTalks }

// ForgetAll implements [hosted.Service].
func (s *Service) ForgetAll(ctx context.Context, o memory.Owner) error {
	err := s.call(ctx, "delete a user", http.MethodDelete, "/users/"+userOf(o), nil, nil)
	if err != nil && !hosted.Missing(err) {
		return err
	}
	left, err := s.profiles(ctx, o)
	if err == nil && len(left) > 0 {
		return s.still("delete a user")
	}
	return err
}
