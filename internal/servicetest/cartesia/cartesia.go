// Package cartesia is a fake of Cartesia's voices over a WebSocket: many contexts on one
// socket, each a voice whose text comes in pieces.
package cartesia

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/servicetest"
)

const (
	idle  = 1500 * time.Millisecond // 5 min with the vendor
	pause = 2 * time.Millisecond    // between rounds, in which each context gets a piece
	piece = 3200                    // bytes of a voice that are sent at once
)

// fake is the service.
type fake struct{ *servicetest.Server }

// New starts the fake.
func New(t testing.TB) *servicetest.Server {
	t.Helper()
	f := &fake{}
	mux := http.NewServeMux()
	mux.HandleFunc("/tts/websocket", f.socket)
	f.Server = servicetest.New(t, mux.ServeHTTP,
		servicetest.WrongKey, servicetest.NoMoney, servicetest.RateLimited, servicetest.WrongModel, servicetest.WrongVoice,
		servicetest.Slow, servicetest.Silent, servicetest.Cut, servicetest.Closed, servicetest.Broken, servicetest.Huge,
		servicetest.Odd, servicetest.Stale)
	return f.Server
}

// order is a piece of text, or the end of a context.
type order struct {
	Model      string  `json:"model_id"`
	Transcript *string `json:"transcript"`
	Voice      struct {
		Mode string `json:"mode"`
		ID   string `json:"id"`
	} `json:"voice"`
	Language string `json:"language"`
	Context  string `json:"context_id"`
	Format   struct {
		Container string `json:"container"`
		Encoding  string `json:"encoding"`
		Rate      int    `json:"sample_rate"`
	} `json:"output_format"`
	Continue bool `json:"continue"`
	Flush    bool `json:"flush"`
	Cancel   bool `json:"cancel"`
}

// voice is a context that has not ended.
type voice struct {
	order    order  // the first piece, whose settings all share
	sound    []byte // that is not sent
	complete bool   // the last piece has come
	flushes  int
}

// session is one socket.
type session struct {
	f        *fake
	l        *servicetest.Line
	contexts map[string]*voice
	ids      []string // of the contexts, in order
	spent    string   // the context that ended last
}

// socket takes a client.
func (f *fake) socket(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	key := r.Header.Get("X-API-Key") + q.Get("api_key")
	if bearer := r.Header.Get("Authorization"); bearer != "" {
		key += bearer[min(len("Bearer "), len(bearer)):]
	}
	version := q.Get("cartesia_version") + r.Header.Get("Cartesia-Version")
	switch fault := f.Fault(); {
	case version == "":
		f.Refuse(w, http.StatusBadRequest, `{"error":"Missing cartesia version"}`)
		return
	case key != servicetest.Key || fault == servicetest.WrongKey:
		f.Refuse(w, http.StatusUnauthorized, `{"error":"Invalid API key"}`, "X-Request-Id", "req-1")
		return
	case fault == servicetest.NoMoney:
		f.Refuse(w, http.StatusPaymentRequired, `{"error":"You have run out of credits"}`, "X-Request-Id", "req-1")
		return
	}
	l, ok := f.Line(w, r, nil)
	if !ok {
		return
	}
	defer l.Close()
	s := &session{f: f, l: l, contexts: map[string]*voice{}}
	for s.next() {
	}
}

// next takes a message if there is one, and sends a piece of each context. It reports
// false when the session is over.
func (s *session) next() bool {
	wait := idle
	if slices.ContainsFunc(s.ids, func(id string) bool { v := s.contexts[id]; return len(v.sound) > 0 || v.complete }) {
		wait = pause
	}
	m, err := s.l.Next(wait)
	switch {
	case errors.Is(err, servicetest.ErrIdle) && wait == idle && len(s.ids) == 0:
		s.l.End(websocket.CloseNormalClosure, "idle")
		return false
	case errors.Is(err, servicetest.ErrIdle):
		return s.round()
	case err != nil:
		return false
	}
	var o order
	if m.Type != websocket.TextMessage || json.Unmarshal(m.Data, &o) != nil {
		return s.fail("", http.StatusBadRequest, "invalid JSON")
	}
	return s.take(o)
}

// fail says that a context has failed. The others go on.
func (s *session) fail(context string, status int, message string) bool {
	s.forget(context)
	return s.l.Say(servicetest.JSON(map[string]any{
		"type": "error", "context_id": context, "status_code": status, "done": true, "title": http.StatusText(status), "message": message, "error_code": "e",
	}))
}

// forget ends a context.
func (s *session) forget(context string) {
	delete(s.contexts, context)
	s.ids = slices.DeleteFunc(s.ids, func(id string) bool { return id == context })
	s.spent = context
}

// take takes a piece of text or the end of a context.
func (s *session) take(o order) bool {
	v, known := s.contexts[o.Context]
	fault := s.l.Fault()
	switch {
	case o.Context == "":
		return s.fail("", http.StatusBadRequest, "context_id is missing")
	case o.Cancel:
		s.forget(o.Context)
		return true
	case fault == servicetest.RateLimited:
		return s.fail(o.Context, http.StatusTooManyRequests, "too many concurrent requests")
	case o.Model == "" || fault == servicetest.WrongModel:
		return s.fail(o.Context, http.StatusBadRequest, "model_id is not valid")
	case o.Voice.Mode != "id" || o.Voice.ID == "" || fault == servicetest.WrongVoice:
		return s.fail(o.Context, http.StatusNotFound, "voice is not found")
	case o.Format.Container != "raw" || o.Format.Encoding != "pcm_s16le" || o.Format.Rate < 8000 || o.Format.Rate > 48000:
		return s.fail(o.Context, http.StatusBadRequest, "output_format is not valid")
	case o.Transcript == nil:
		return s.fail(o.Context, http.StatusBadRequest, "transcript is missing")
	case !known && *o.Transcript == "":
		return s.fail(o.Context, http.StatusBadRequest, "transcript is empty")
	case known && (v.complete || v.order.Format != o.Format || v.order.Voice != o.Voice || v.order.Model != o.Model || v.order.Language != o.Language):
		return s.fail(o.Context, http.StatusBadRequest, "the context has other settings, or has ended")
	}
	if !known {
		if fault == servicetest.Stale && s.spent != "" && !s.chunk(s.spent, servicetest.Speech("xy", o.Format.Rate)) {
			return false
		}
		v = &voice{order: o}
		s.contexts[o.Context], s.ids = v, append(s.ids, o.Context)
	}
	v.sound = append(v.sound, servicetest.Speech(*o.Transcript, o.Format.Rate)...)
	v.complete = !o.Continue
	if o.Flush {
		v.flushes++
	}
	return true
}

// chunk sends a piece of a voice.
func (s *session) chunk(context string, sound []byte) bool {
	m := servicetest.JSON(map[string]any{
		"type": "chunk", "context_id": context, "data": base64.StdEncoding.EncodeToString(sound), "done": false, "status_code": 206, "step_time": 12.5, "flush_id": 0,
	})
	return s.l.Result(m, servicetest.Text(`{"type":"chunk","data":"*`))
}

// round sends a piece of each context, and the end of those that are complete.
func (s *session) round() bool {
	n := piece
	if s.l.Fault() == servicetest.Odd {
		n = 1001
		if !s.l.Say(servicetest.JSON(map[string]any{"type": "something_new", "é": []any{nil}})) {
			return false
		}
	}
	for _, id := range slices.Clone(s.ids) {
		v := s.contexts[id]
		if k := min(n, len(v.sound)); k > 0 {
			if !s.chunk(id, v.sound[:k]) {
				return false
			}
			v.sound = v.sound[k:]
		}
		if len(v.sound) > 0 {
			continue
		}
		for ; v.flushes > 0; v.flushes-- {
			if !s.l.Say(servicetest.JSON(map[string]any{"type": "flush_done", "context_id": id, "flush_done": true, "flush_id": 1, "status_code": 206, "done": false})) {
				return false
			}
		}
		if v.complete {
			s.forget(id)
			if !s.l.Say(servicetest.JSON(map[string]any{"type": "done", "context_id": id, "status_code": 200, "done": true})) {
				return false
			}
		}
	}
	return true
}
