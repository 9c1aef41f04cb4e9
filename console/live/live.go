// Package live tells open pages what has changed. A change has no content of its own: each page is rendered anew for who
// looks at it, so a stream that was interrupted has missed nothing.
package live

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
)

// Part is a part of a page: an element with an id, and its HTML.
type Part struct {
	ID   string `json:"id"`
	HTML string `json:"html"`
}

// Topic is something that pages can follow.
type Topic struct {
	Name  string
	Need  account.Need
	Owner func(r *http.Request, key string) (id string, err error) // whose the object is; set where Need.Own is
	Ages  bool                                                     // time alone changes what is shown of it, to a heartbeat
	// Parts renders what a page shows of it. key is what follows the name and a colon, such as the id of a device.
	Parts func(r *http.Request, key string) ([]Part, error)
}

// Whole is the topic of a page with one live part.
func Whole(name string, need account.Need, id string, html func(r *http.Request) (string, error)) Topic {
	return Topic{Name: name, Need: need, Parts: func(r *http.Request, _ string) ([]Part, error) {
		shown, err := html(r)
		return []Part{{ID: id, HTML: shown}}, err
	}}
}

// Limits of streams.
const (
	pace      = 250 * time.Millisecond // between two writings to a stream
	heartbeat = 15 * time.Second
	writing   = 5 * time.Second // how long a browser may take to read
	maxTopics = 16              // of a stream
)

// Hub knows the streams. Its methods may be called at the same time.
type Hub struct {
	guard  *access.Guard
	topics map[string]Topic
	turn   func(context.Context) (done func()) // waits until a part may be made
	watch  func() (done func())                // is told of each stream

	mu      sync.Mutex
	streams map[*stream]bool
	closed  bool
}

// stream is one open page: the topics that changed since they were last rendered for it.
type stream struct {
	topics []string // as the page names them: name or name:key
	wake   chan struct{}
	dirty  map[string]bool // guarded by Hub.mu
}

// New returns a hub of the topics. It waits with turn before it makes the parts of one, and calls watch at the beginning of each
// stream; what they return is called at the end.
func New(guard *access.Guard, turn func(context.Context) (done func()), watch func() (done func()), topics ...Topic) *Hub {
	h := &Hub{guard: guard, turn: turn, watch: watch, topics: map[string]Topic{}, streams: map[*stream]bool{}}
	for _, t := range topics {
		h.topics[t.Name] = t
	}
	return h
}

// Changed tells all pages that follow a topic that it has changed: that of one key, or of all with "". It never waits.
func (h *Hub) Changed(name, key string) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.streams {
		for _, topic := range s.topics {
			n, k, _ := strings.Cut(topic, ":")
			if n == name && (key == "" || k == "" || k == key) {
				s.touch(topic)
			}
		}
	}
}

// Close ends all streams; later ones are refused.
func (h *Hub) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for s := range h.streams {
		delete(h.streams, s)
		close(s.wake)
	}
}

// Route is that of the stream.
func (h *Hub) Route(refused func(http.ResponseWriter, *http.Request, error)) access.Route {
	return access.Route{
		Pattern: "GET /console/events", For: access.People, Need: account.Need{Role: account.Viewer, Scope: account.Admin},
		Use: access.Stream, Handler: http.HandlerFunc(h.serve), Refused: refused,
	}
}

// join begins a stream. Not ok: the server stops.
func (h *Hub) join(topics []string) (s *stream, ok bool) {
	s = &stream{topics: topics, wake: make(chan struct{}, 1), dirty: map[string]bool{}}
	for _, t := range topics {
		s.dirty[t] = true
	}
	s.wake <- struct{}{}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.streams[s] = true
	}
	return s, !h.closed
}

func (h *Hub) leave(s *stream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.streams, s)
}

// taken returns the topics that have changed, and forgets it.
func (h *Hub) taken(s *stream) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := slices.Sorted(maps.Keys(s.dirty))
	clear(s.dirty)
	return all
}

// serve writes to a page what changes of its topics, until it is closed or its session ends.
func (h *Hub) serve(w http.ResponseWriter, r *http.Request) {
	topics := strings.Split(r.URL.Query().Get("on"), ",")
	if len(topics) > maxTopics {
		topics = topics[:maxTopics]
	}
	s, ok := h.join(slices.Compact(slices.Sorted(slices.Values(topics))))
	if !ok {
		w.Header().Set("Retry-After", "5")
		http.Error(w, "", http.StatusServiceUnavailable)
		return
	}
	defer h.leave(s)
	defer h.watch()()
	access.JSONHeaders(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	out := &writer{w: w, control: http.NewResponseController(w), seed: maphash.MakeSeed(), sent: map[string]uint64{}}
	if out.write("retry: 1000\n\n") != nil {
		return
	}
	h.follow(r.Context(), r, s, out)
}

// follow is the loop of a stream. ctx ends with the page, the session, or the right to see the console.
func (h *Hub) follow(ctx context.Context, r *http.Request, s *stream, out *writer) {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	role := access.PersonOf(r).Role
	for {
		var err error
		select {
		case <-ctx.Done():
			_ = out.write(gone) // the browser may be gone too
			return
		case _, open := <-s.wake:
			if !open {
				return // the server stops: the browser asks again
			}
			now, who := access.Door{Guard: h.guard}.Now(r)
			if who == nil && now.Role != role {
				_ = out.write(gone)
				return
			}
			for _, topic := range h.taken(s) {
				err = cmp.Or(err, h.send(r, topic, out))
			}
			wait(ctx, pace)
		case <-beat.C:
			err = out.write(": beat\n\n")
			h.age(s)
		}
		if err != nil {
			return
		}
	}
}

// age has what time alone changes looked at again.
func (h *Hub) age(s *stream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, topic := range s.topics {
		if name, _, _ := strings.Cut(topic, ":"); h.topics[name].Ages && !h.closed {
			s.touch(topic)
		}
	}
}

// touch notes that a topic has changed. The caller holds Hub.mu.
func (s *stream) touch(topic string) {
	s.dirty[topic] = true
	select {
	case s.wake <- struct{}{}:
	default: // it is awake
	}
}

// gone has a page loaded anew: who looks at it may see something else now.
const gone = "event: gone\ndata: {}\n\n"

func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// send renders a topic, where the person may see it, and writes the parts that differ from what was sent before.
func (h *Hub) send(r *http.Request, topic string, out *writer) error {
	name, key, _ := strings.Cut(topic, ":")
	t, ok := h.topics[name]
	if !ok {
		return nil
	}
	owner := ""
	if t.Owner != nil {
		var err error
		if owner, err = t.Owner(r, key); err != nil {
			return nil //nolint:nilerr // what is not there shows nothing
		}
	}
	if access.PersonOf(r).May(t.Need, owner, time.Now()) != nil {
		return nil
	}
	done := h.turn(r.Context())
	parts, err := t.Parts(r, key)
	done()
	if err != nil {
		return nil //nolint:nilerr // the page itself says what is wrong when it is loaded
	}
	for _, part := range parts {
		if err := out.part(part); err != nil {
			return err
		}
	}
	return nil
}

// writer writes the events of one stream, each part only when it is another one than before.
type writer struct {
	w       http.ResponseWriter
	control *http.ResponseController
	seed    maphash.Seed
	sent    map[string]uint64 // hash of the last HTML, by id
}

func (o *writer) part(p Part) error {
	sum := maphash.String(o.seed, p.HTML)
	if o.sent[p.ID] == sum {
		return nil
	}
	o.sent[p.ID] = sum
	raw, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return o.write(fmt.Sprintf("data: %s\n\n", raw))
}

func (o *writer) write(text string) error {
	_ = o.control.SetWriteDeadline(time.Now().Add(writing)) // one that cannot be set is not needed
	if _, err := o.w.Write([]byte(text)); err != nil {
		return err
	}
	err := o.control.Flush()
	_ = o.control.SetWriteDeadline(time.Time{}) // by HTTP/2 it would end a stream that has nothing to tell
	return err
}
