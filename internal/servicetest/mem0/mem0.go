// Package mem0 is a fake of mem0: of its cloud as https://docs.mem0.ai/api-reference has it (version 3 of adding, listing and searching,
// version 1 of the rest), and of the server that its repository has for those who run their own (server/main.py).
package mem0

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"xiaozhi/internal/servicetest"
)

// Server is the fake.
type Server struct {
	*servicetest.Server
	servicetest.Mind

	own bool

	mu     sync.Mutex
	last   int // number of ids that were given
	events map[string]event
}

// event is the work of the cloud on something that it was given.
type event struct {
	ends    time.Time
	failed  bool
	results []object
}

type object = map[string]any

// New starts the cloud.
func New(t testing.TB) *Server {
	t.Helper()
	return start(t, false)
}

// Own starts a server of one's own.
func Own(t testing.TB) *Server {
	t.Helper()
	return start(t, true)
}

func start(t testing.TB, own bool) *Server {
	s := &Server{own: own, events: map[string]event{}}
	mux := http.NewServeMux()
	if own {
		mux.HandleFunc("POST /memories", s.keep)
		mux.HandleFunc("GET /memories", s.listOwn)
		mux.HandleFunc("DELETE /memories", s.deleteAll)
		mux.HandleFunc("POST /search", s.search)
		mux.HandleFunc("PUT /memories/{id}", s.edit)
		mux.HandleFunc("DELETE /memories/{id}", s.delete)
	} else {
		mux.HandleFunc("POST /v3/memories/add/{$}", s.add)
		mux.HandleFunc("POST /v3/memories/{$}", s.list)
		mux.HandleFunc("POST /v3/memories/search/{$}", s.search)
		mux.HandleFunc("GET /v1/event/{id}/{$}", s.event)
		mux.HandleFunc("PUT /v1/memories/{id}/{$}", s.edit)
		mux.HandleFunc("DELETE /v1/memories/{id}/{$}", s.delete)
		mux.HandleFunc("DELETE /v1/memories/{$}", s.deleteAll)
	}
	s.Server = servicetest.New(t, func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, mux) },
		servicetest.WrongKey, servicetest.RateLimited, servicetest.Silent, servicetest.Cut, servicetest.Broken, servicetest.Huge)
	return s
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, mux *http.ServeMux) {
	body := s.Take(w, r)
	r.Body = http.NoBody
	if len(body) > 0 {
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	proof, want := r.Header.Get("Authorization"), "Token "+servicetest.Key
	if s.own {
		proof, want = r.Header.Get("X-API-Key"), servicetest.Key
	}
	_, pattern := mux.Handler(r)
	switch f := s.Fault(); {
	case r.Method == http.MethodHead:
		w.WriteHeader(http.StatusOK)
	case !s.Late(r.Context(), s.Server):
	case pattern == "":
		s.refuse(w, http.StatusNotFound, "Not Found")
	case f == servicetest.WrongKey || proof != want:
		s.refuse(w, http.StatusUnauthorized, "Given token not valid for any token type")
	case f == servicetest.RateLimited:
		w.Header().Set("Retry-After", "1")
		s.refuse(w, http.StatusTooManyRequests, "Request was throttled.")
	case f != servicetest.None:
		s.Send(w, r, f, servicetest.Reply{Type: "application/json", Body: []byte(`{"results":[]}`), Broken: []byte(`{"results":[`), Filler: []byte(" ")})
	default:
		mux.ServeHTTP(w, r)
	}
}

// refuse answers as the cloud does, or as FastAPI does.
func (s *Server) refuse(w http.ResponseWriter, status int, words string) {
	name := "error"
	if s.own {
		name = "detail"
	}
	s.Object(w, status, object{name: words})
}

func (s *Server) id() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	return fmt.Sprintf("8f0c3a52-0000-4000-8000-%012d", s.last)
}

// request holds what is known of the bodies of clients.
type request struct {
	Messages []struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	} `json:"messages"`
	User      string         `json:"user_id"`
	Run       string         `json:"run_id"`
	Infer     *bool          `json:"infer"`
	Meta      map[string]any `json:"metadata"`
	Query     string         `json:"query"`
	Filters   map[string]any `json:"filters"`
	Most      int            `json:"top_k"`
	Threshold *float64       `json:"threshold"`
	Text      string         `json:"text"`
}

// read reads the body; false: the request was refused.
func (s *Server) read(w http.ResponseWriter, r *http.Request) (q request, ok bool) {
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		s.refuse(w, http.StatusBadRequest, "JSON parse error")
		return q, false
	}
	return q, true
}

// learned are the memories that come of messages.
func (s *Server) learned(q *request) (items []servicetest.Item) {
	for _, m := range q.Messages {
		texts := []string{m.Content}
		if q.Infer == nil || *q.Infer {
			texts = nil
			if m.Role == "user" {
				texts = servicetest.Told(m.Content)
			}
		}
		for _, text := range texts {
			items = append(items, servicetest.Item{ID: s.id(), User: q.User, Text: text, Run: q.Run, Meta: q.Meta})
		}
	}
	return items
}

func added(items []servicetest.Item) []object {
	all := []object{}
	for _, i := range items {
		all = append(all, object{"id": i.ID, "memory": i.Text, "event": "ADD"})
	}
	return all
}

// add is that of the cloud: it works things off later.
func (s *Server) add(w http.ResponseWriter, r *http.Request) {
	q, ok := s.read(w, r)
	switch {
	case !ok:
	case q.User == "":
		s.refuse(w, http.StatusBadRequest, "At least one of the filters: agent_id, user_id, app_id, run_id is required!")
	case len(q.Messages) == 0:
		s.refuse(w, http.StatusBadRequest, "messages: This field may not be empty.")
	default:
		trouble := s.Trouble()
		e := event{ends: time.Now().Add(trouble.Delay), failed: trouble.Fails}
		if !trouble.Fails {
			e.results = added(s.Keep(s.learned(&q)...))
		}
		id := s.id()
		s.mu.Lock()
		s.events[id] = e
		s.mu.Unlock()
		s.Object(w, http.StatusOK, object{"message": "Memory processing has been queued for background execution", "status": "PENDING", "event_id": id})
	}
}

func (s *Server) event(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	e, ok := s.events[r.PathValue("id")]
	s.mu.Unlock()
	switch {
	case !ok:
		s.refuse(w, http.StatusNotFound, "Event not found")
	case time.Now().Before(e.ends):
		s.Object(w, http.StatusOK, object{"id": r.PathValue("id"), "event_type": "ADD", "status": "PENDING", "results": nil})
	case e.failed:
		s.Object(w, http.StatusOK, object{"id": r.PathValue("id"), "event_type": "ADD", "status": "FAILED", "results": nil})
	default:
		s.Object(w, http.StatusOK, object{"id": r.PathValue("id"), "event_type": "ADD", "status": "SUCCEEDED", "results": e.results})
	}
}

// keep is that of a server of one's own: it answers when it has worked things off.
func (s *Server) keep(w http.ResponseWriter, r *http.Request) {
	q, ok := s.read(w, r)
	switch {
	case !ok:
	case q.User == "":
		s.refuse(w, http.StatusBadRequest, "At least one identifier (user_id, agent_id, run_id) is required.")
	case s.Trouble().Fails:
		s.refuse(w, http.StatusInternalServerError, "Connection error.") // its model is away
	default:
		s.Object(w, http.StatusOK, object{"results": added(s.Keep(s.learned(&q)...))})
	}
}

func (s *Server) told(items []servicetest.Item, from, n int) []object {
	all := []object{}
	for _, i := range items[min(from, len(items)):min(from+n, len(items))] {
		one := object{
			"id": i.ID, "memory": i.Text, "user_id": i.User, "metadata": i.Meta, "hash": "5e6f", "created_at": "2026-11-22T09:00:00.123456-08:00", "updated_at": nil,
		}
		if i.Run != "" {
			one["run_id"] = i.Run
		}
		all = append(all, one)
	}
	return all
}

// whose reads the user that the filters name; false: the request was refused.
func (s *Server) whose(w http.ResponseWriter, q *request) (user string, ok bool) {
	user, _ = q.Filters["user_id"].(string)
	if user == "" || q.User != "" {
		s.refuse(w, http.StatusBadRequest, "Entity ids must be in filters.")
		return "", false
	}
	return user, true
}

func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	q, ok := s.read(w, r)
	if !ok {
		return
	}
	user, ok := s.whose(w, &q)
	if !ok {
		return
	}
	page, _ := strconv.Atoi(r.URL.Query().Get("page"))
	size, _ := strconv.Atoi(r.URL.Query().Get("page_size"))
	if page < 1 || size < 1 || size > 200 {
		s.refuse(w, http.StatusBadRequest, "Invalid page.")
		return
	}
	all := s.Of(user)
	answer := object{"count": len(all), "next": nil, "previous": nil, "results": s.told(all, (page-1)*size, size)}
	if page*size < len(all) {
		answer["next"] = fmt.Sprintf("https://api.mem0.ai/v3/memories/?page=%d&page_size=%d", page+1, size)
	}
	s.Object(w, http.StatusOK, answer)
}

func (s *Server) listOwn(w http.ResponseWriter, r *http.Request) {
	user := r.URL.Query().Get("user_id")
	if user == "" {
		s.refuse(w, http.StatusBadRequest, "At least one identifier is required.")
		return
	}
	all := s.Of(user)
	s.Object(w, http.StatusOK, object{"results": s.told(all, 0, len(all))})
}

func (s *Server) search(w http.ResponseWriter, r *http.Request) {
	q, ok := s.read(w, r)
	if !ok {
		return
	}
	user, ok := s.whose(w, &q)
	if !ok {
		return
	}
	if strings.TrimSpace(q.Query) == "" {
		s.refuse(w, http.StatusBadRequest, "query: This field may not be blank.")
		return
	}
	threshold := 0.1
	if q.Threshold != nil {
		threshold = *q.Threshold
	}
	found := s.Found(user, q.Query, max(q.Most, 1), threshold)
	s.Object(w, http.StatusOK, object{"results": s.told(found, 0, len(found))})
}

func (s *Server) edit(w http.ResponseWriter, r *http.Request) {
	q, ok := s.read(w, r)
	switch {
	case !ok:
	case s.Trouble().Fails:
		s.refuse(w, http.StatusInternalServerError, "An error occurred.")
	case q.Text == "":
		s.refuse(w, http.StatusBadRequest, "text: This field is required.")
	case !s.Edit(r.PathValue("id"), q.Text):
		s.refuse(w, http.StatusNotFound, "Memory not found!")
	default:
		s.Object(w, http.StatusOK, object{"id": r.PathValue("id"), "text": q.Text, "message": "Memory updated successfully!"})
	}
}

func (s *Server) delete(w http.ResponseWriter, r *http.Request) {
	n := 0
	if !s.Trouble().Fails {
		n = s.Delete(func(i servicetest.Item) bool { return i.ID == r.PathValue("id") })
	}
	switch {
	case s.Trouble().Fails:
		s.refuse(w, http.StatusInternalServerError, "An error occurred.")
	case n == 0:
		s.refuse(w, http.StatusNotFound, "Memory not found!")
	default:
		s.Object(w, http.StatusOK, object{"message": "Memory deleted successfully!"})
	}
}

func (s *Server) deleteAll(w http.ResponseWriter, r *http.Request) {
	user := r.URL.Query().Get("user_id")
	switch {
	case s.Trouble().Fails:
		s.refuse(w, http.StatusInternalServerError, "An error occurred.")
	case user == "":
		s.refuse(w, http.StatusBadRequest, "At least one filter is required.")
	default:
		s.Delete(func(i servicetest.Item) bool { return i.User == user })
		s.Object(w, http.StatusOK, object{"message": "Memories deleted successfully!"})
	}
}
