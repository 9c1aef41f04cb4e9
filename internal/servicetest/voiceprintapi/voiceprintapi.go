// Package voiceprintapi is a fake of the voiceprint service that other servers use: it keeps the pitch of each voice, and
// compares pitches.
package voiceprintapi

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"

	"xiaozhi/internal/servicetest"
)

// Prefix begins the paths of the service.
const Prefix = "/voiceprint"

// floor is the score below which the service names nobody.
const floor = 0.2

// Server is a fake that tells what it has been given.
type Server struct {
	*servicetest.Server

	mu      sync.Mutex
	pitches map[string]float64 // by id
	refuse  bool               // it deletes nothing
}

// New starts a server for tests of the contract.
func New(t testing.TB) *servicetest.Server { return Start(t).Server }

// Start starts a server. Like the service it refuses files whose name does not end in .wav, sound that is shorter than half
// a second or longer than 30 s, and lists without ids; it answers sound of fewer than 1000 bytes with score 0.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{pitches: map[string]float64{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Prefix+"/health", s.health)
	mux.HandleFunc("POST "+Prefix+"/register", s.guarded(s.register))
	mux.HandleFunc("POST "+Prefix+"/identify", s.guarded(s.identify))
	mux.HandleFunc("DELETE "+Prefix+"/{id}", s.guarded(s.remove))
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { detail(w, http.StatusNotFound, "Not Found") })
	s.Server = servicetest.New(t, mux.ServeHTTP, servicetest.WrongKey, servicetest.Slow, servicetest.Silent, servicetest.Cut,
		servicetest.Closed, servicetest.Broken, servicetest.Huge, servicetest.Odd)
	return s
}

// Kept lists the ids of the voices that it keeps, in no order.
func (s *Server) Kept() (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.pitches {
		ids = append(ids, id)
	}
	return ids
}

// Refuse has it delete nothing from now on, or delete again.
func (s *Server) Refuse(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = on
}

// detail answers as FastAPI does with an error.
func detail(w http.ResponseWriter, status int, words string) {
	body, _ := json.Marshal(map[string]string{"detail": words})
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// guarded lets those in who show the key. A header that is missing is another status than one that is wrong.
func (s *Server) guarded(next func(w http.ResponseWriter, r *http.Request) (reply any, ok bool)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		fault, shown := s.Fault(), r.Header.Get("Authorization")
		switch {
		case shown == "":
			detail(w, http.StatusForbidden, "Not authenticated")
			return
		case shown != "Bearer "+servicetest.Key || fault == servicetest.WrongKey:
			detail(w, http.StatusUnauthorized, "invalid api token")
			return
		}
		reply, ok := next(w, r)
		if !ok {
			return
		}
		body, _ := json.Marshal(reply)
		s.Send(w, r, fault, servicetest.Reply{Type: "application/json", Body: body, Broken: []byte(`{"success":tr`), Filler: []byte(" ")})
	}
}

func (s *Server) health(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("key") != servicetest.Key {
		detail(w, http.StatusUnauthorized, "invalid key")
		return
	}
	body, _ := json.Marshal(map[string]any{"total_voiceprints": len(s.Kept()), "status": "healthy"})
	s.Send(w, r, s.Fault(), servicetest.Reply{Type: "application/json", Body: body})
}

// sound reads the file of a request; not ok: it was refused.
func (s *Server) sound(w http.ResponseWriter, r *http.Request) (pcm []byte, rate int, ok bool) {
	if err := r.ParseMultipartForm(8 << 20); err != nil {
		detail(w, http.StatusUnprocessableEntity, "no form")
		return nil, 0, false
	}
	s.Note(servicetest.Request{Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header.Clone(), Body: []byte(r.Form.Encode())})
	file, head, err := r.FormFile("file")
	if err != nil {
		detail(w, http.StatusUnprocessableEntity, "file: field required")
		return nil, 0, false
	}
	if !strings.HasSuffix(strings.ToLower(head.Filename), ".wav") {
		detail(w, http.StatusBadRequest, "only WAV files are supported")
		return nil, 0, false
	}
	all, _ := io.ReadAll(file)
	pcm, rate, ok = servicetest.ReadWAV(all)
	if !ok {
		detail(w, http.StatusInternalServerError, "the sound cannot be read")
	}
	return pcm, rate, ok
}

func (s *Server) register(w http.ResponseWriter, r *http.Request) (any, bool) {
	pcm, rate, ok := s.sound(w, r)
	if !ok {
		return nil, false
	}
	if seconds := float64(len(pcm)/2) / float64(rate); seconds < 0.5 || seconds > 30 || rate < 8000 {
		detail(w, http.StatusBadRequest, fmt.Sprintf("audio of %.1f seconds", seconds))
		return nil, false
	}
	id := r.FormValue("speaker_id")
	if id == "" {
		detail(w, http.StatusUnprocessableEntity, "speaker_id: field required")
		return nil, false
	}
	if s.Fault() != servicetest.Silent {
		s.mu.Lock()
		s.pitches[id] = pitch(pcm, rate)
		s.mu.Unlock()
	}
	return map[string]any{"success": true, "msg": "registered: " + id}, true
}

func (s *Server) identify(w http.ResponseWriter, r *http.Request) (any, bool) {
	pcm, rate, ok := s.sound(w, r)
	if !ok {
		return nil, false
	}
	ids := strings.Split(r.FormValue("speaker_ids"), ",")
	if r.FormValue("speaker_ids") == "" {
		detail(w, http.StatusBadRequest, "speaker_ids must not be empty")
		return nil, false
	}
	best, score := "", 0.0
	if len(pcm) >= 1000 && servicetest.Loud(pcm) {
		heard := pitch(pcm, rate)
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, id := range ids {
			if known, there := s.pitches[strings.TrimSpace(id)]; there {
				if alike := max(0, 1-math.Abs(math.Log2(heard/known))*4); alike > score { // a quarter of an octave apart: nothing in common
					best, score = strings.TrimSpace(id), alike
				}
			}
		}
	}
	if score < floor {
		best = ""
	}
	return map[string]any{"speaker_id": best, "score": score, "confidence": "odd"}, true
}

func (s *Server) remove(w http.ResponseWriter, r *http.Request) (any, bool) {
	s.Note(servicetest.Request{Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header.Clone()})
	id := r.PathValue("id")
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.pitches[id]; !there && s.Fault() != servicetest.Silent { // that has kept nothing
		detail(w, http.StatusNotFound, "no such speaker: "+id)
		return nil, false
	}
	if s.refuse {
		detail(w, http.StatusInternalServerError, "database is locked")
		return nil, false
	}
	delete(s.pitches, id)
	return map[string]any{"success": true, "msg": "deleted: " + id}, true
}

// pitch counts how often sound goes from below zero to above it in a second: the pitch of a tone.
func pitch(pcm []byte, rate int) float64 {
	rises, before := 0, int16(0)
	for i := 0; i+1 < len(pcm); i += 2 {
		now := int16(binary.LittleEndian.Uint16(pcm[i:]))
		if before < 0 && now >= 0 {
			rises++
		}
		before = now
	}
	return max(1, float64(rises)*float64(rate)/max(1, float64(len(pcm)/2)))
}
