// Package memobase is a fake of Memobase as https://docs.memobase.io has it (API 0.0.40): users, blobs that wait in a buffer, profiles and
// events. Every answer has status 200, data, errno and errmsg, but those to who may not ask.
package memobase

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"xiaozhi/internal/servicetest"
)

// Server is the fake. Its mind holds profiles; the topics of one are in Meta.
type Server struct {
	*servicetest.Server
	servicetest.Mind

	mu      sync.Mutex
	last    int
	users   map[string]bool
	waiting map[string][]string // texts in the buffer, by user
	events  map[string][]servicetest.Item
}

type object = map[string]any

// New starts it.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{users: map[string]bool{}, waiting: map[string][]string{}, events: map[string][]servicetest.Item{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/v1/users", s.addUser)
	for pattern, serve := range map[string]func(w http.ResponseWriter, r *http.Request, user string){
		"DELETE /api/v1/users/{user}":              s.deleteUser,
		"POST /api/v1/blobs/insert/{user}":         s.insert,
		"POST /api/v1/users/buffer/{user}/chat":    s.flush,
		"GET /api/v1/users/profile/{user}":         s.profile,
		"POST /api/v1/users/profile/{user}":        s.addProfile,
		"PUT /api/v1/users/profile/{user}/{id}":    s.editProfile,
		"DELETE /api/v1/users/profile/{user}/{id}": s.deleteProfile,
		"GET /api/v1/users/event/{user}":           s.listEvents,
		"DELETE /api/v1/users/event/{user}/{id}":   s.deleteEvent,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.of(w, r, serve) })
	}
	s.Server = servicetest.New(t, func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, mux) },
		servicetest.WrongKey, servicetest.RateLimited, servicetest.Silent, servicetest.Cut, servicetest.Broken, servicetest.Huge)
	return s
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, mux *http.ServeMux) {
	body := s.Take(w, r)
	r.Body = io.NopCloser(bytes.NewReader(body))
	_, pattern := mux.Handler(r)
	switch f := s.Fault(); {
	case r.Method == http.MethodHead:
		w.WriteHeader(http.StatusOK)
	case !s.Late(r.Context(), s.Server):
	case f == servicetest.WrongKey || r.Header.Get("Authorization") != "Bearer "+servicetest.Key:
		s.Object(w, http.StatusUnauthorized, object{"data": nil, "errno": 401, "errmsg": "Unauthorized access to the API"})
	case f == servicetest.RateLimited:
		s.Object(w, http.StatusTooManyRequests, object{"data": nil, "errno": 429, "errmsg": "Rate limit exceeded"})
	case pattern == "":
		s.Object(w, http.StatusNotFound, object{"detail": "Not Found"})
	case f != servicetest.None:
		s.Send(w, r, f, servicetest.Reply{Type: "application/json", Body: []byte(`{"data":null,"errno":0,"errmsg":""}`), Broken: []byte(`{"data":{`), Filler: []byte(" ")})
	default:
		mux.ServeHTTP(w, r)
	}
}

// answer is that to a request that succeeds.
func (s *Server) answer(w http.ResponseWriter, data any) {
	s.Object(w, http.StatusOK, object{"data": data, "errno": 0, "errmsg": ""})
}

// refuse answers with an error.
func (s *Server) refuse(w http.ResponseWriter, errno int, words string) {
	s.Object(w, http.StatusOK, object{"data": nil, "errno": errno, "errmsg": words})
}

// uuid is the form of ids that Memobase takes: version 4 or 5.
var uuid = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[45][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

func (s *Server) id() string {
	s.last++
	return fmt.Sprintf("9a1d4b60-0000-4000-8000-%012d", s.last)
}

// of serves a request for a user that is known.
func (s *Server) of(w http.ResponseWriter, r *http.Request, serve func(w http.ResponseWriter, r *http.Request, user string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	user := r.PathValue("user")
	switch {
	case !uuid.MatchString(user):
		s.Object(w, http.StatusUnprocessableEntity, object{"detail": []object{{"loc": []string{"path", "user_id"}, "msg": "UUID version 4 or 5 expected", "type": "uuid_version"}}})
	case s.Trouble().Fails && r.Method != http.MethodGet:
		s.refuse(w, http.StatusInternalServerError, "Internal Server Error")
	case !s.users[user]:
		s.refuse(w, http.StatusNotFound, "User "+user+" not found")
	default:
		serve(w, r, user)
	}
}

func (s *Server) addUser(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var q struct {
		ID string `json:"id"`
	}
	err := json.NewDecoder(r.Body).Decode(&q)
	switch {
	case err != nil || !uuid.MatchString(q.ID):
		s.Object(w, http.StatusUnprocessableEntity, object{"detail": "UUID version 4 or 5 expected"})
	case s.users[q.ID]:
		s.refuse(w, http.StatusInternalServerError, "duplicate key value violates unique constraint")
	default:
		s.users[q.ID] = true
		s.answer(w, object{"id": q.ID})
	}
}

func (s *Server) deleteUser(w http.ResponseWriter, _ *http.Request, user string) {
	s.Delete(func(i servicetest.Item) bool { return i.User == user })
	if !s.Trouble().Keeps {
		delete(s.users, user)
		delete(s.waiting, user)
		delete(s.events, user)
	}
	s.answer(w, nil)
}

func (s *Server) insert(w http.ResponseWriter, r *http.Request, user string) {
	var q struct {
		Type string `json:"blob_type"`
		Data struct {
			Messages []struct {
				Role    string `json:"role"`
				Content string `json:"content"`
			} `json:"messages"`
		} `json:"blob_data"`
	}
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil || q.Type != "chat" || len(q.Data.Messages) == 0 {
		s.refuse(w, http.StatusBadRequest, "invalid blob")
		return
	}
	for _, m := range q.Data.Messages {
		if m.Role == "user" {
			s.waiting[user] = append(s.waiting[user], m.Content)
		}
	}
	s.answer(w, object{"id": s.id(), "chat_results": nil})
}

func (s *Server) flush(w http.ResponseWriter, r *http.Request, user string) {
	if r.URL.Query().Get("wait_process") != "true" {
		s.refuse(w, http.StatusBadRequest, "this fake works off nothing in the background")
		return
	}
	done := []object{}
	for _, text := range s.waiting[user] {
		for _, told := range servicetest.Told(text) {
			s.Keep(servicetest.Item{ID: s.id(), User: user, Text: told, Meta: object{"topic": "basic_info", "sub_topic": "note_" + strconv.Itoa(s.last)}})
			s.events[user] = append(s.events[user], servicetest.Item{ID: s.id(), Text: told})
		}
	}
	if len(s.waiting[user]) > 0 {
		done = append(done, object{"event_id": s.id(), "add_profiles": []string{}, "update_profiles": []string{}, "delete_profiles": []string{}})
	}
	delete(s.waiting, user)
	s.answer(w, done)
}

func (s *Server) profile(w http.ResponseWriter, _ *http.Request, user string) {
	all := []object{}
	for _, i := range s.Of(user) {
		all = append(all, object{
			"id": i.ID, "content": i.Text, "attributes": i.Meta, "created_at": "2026-11-22T09:00:00.123456", "updated_at": "2026-11-22T09:00:00.123456",
		})
	}
	s.answer(w, object{"profiles": all})
}

// part is a part of a profile as clients send it.
type part struct {
	Content    string         `json:"content"`
	Attributes map[string]any `json:"attributes"`
}

func (s *Server) addProfile(w http.ResponseWriter, r *http.Request, user string) {
	var p part
	if err := json.NewDecoder(r.Body).Decode(&p); err != nil || p.Content == "" || p.Attributes["topic"] == nil || p.Attributes["sub_topic"] == nil {
		s.refuse(w, http.StatusBadRequest, "invalid profile")
		return
	}
	id := s.id()
	s.Keep(servicetest.Item{ID: id, User: user, Text: p.Content, Meta: p.Attributes})
	s.answer(w, object{"id": id})
}

func (s *Server) editProfile(w http.ResponseWriter, r *http.Request, _ string) {
	var p part
	switch err := json.NewDecoder(r.Body).Decode(&p); {
	case err != nil || p.Content == "":
		s.refuse(w, http.StatusBadRequest, "invalid profile")
	case !s.Edit(r.PathValue("id"), p.Content):
		s.refuse(w, http.StatusNotFound, "Profile not found")
	default:
		s.answer(w, nil)
	}
}

func (s *Server) deleteProfile(w http.ResponseWriter, r *http.Request, _ string) {
	if s.Delete(func(i servicetest.Item) bool { return i.ID == r.PathValue("id") }) == 0 {
		s.refuse(w, http.StatusNotFound, "Profile not found")
		return
	}
	s.answer(w, nil)
}

func (s *Server) listEvents(w http.ResponseWriter, _ *http.Request, user string) {
	all := []object{}
	for _, e := range s.events[user] {
		all = append(all, object{"id": e.ID, "event_data": object{"event_tip": "- " + e.Text, "profile_delta": []object{{"content": e.Text}}}, "created_at": "2026-11-22T09:00:00"})
	}
	s.answer(w, object{"events": all})
}

func (s *Server) deleteEvent(w http.ResponseWriter, r *http.Request, user string) {
	before := len(s.events[user])
	s.events[user] = slices.DeleteFunc(s.events[user], func(e servicetest.Item) bool { return e.ID == r.PathValue("id") })
	if len(s.events[user]) == before {
		s.refuse(w, http.StatusNotFound, "Event not found")
		return
	}
	s.answer(w, nil)
}

// Events lists the texts of the events of all users.
func (s *Server) Events() (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, events := range s.events {
		for _, e := range events {
			all = append(all, strings.TrimSpace(e.Text))
		}
	}
	return all
}
