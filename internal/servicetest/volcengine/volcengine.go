// Package volcengine is a fake of the speech services of Volcengine (Doubao), version 3:
// recognition by WebSocket, and voices by bidirectional and one-way WebSocket, by lines
// of JSON and by server-sent events.
package volcengine

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"xiaozhi/internal/servicetest"
)

// Idle is how long a connection lives on without a packet: 5 s at the real recogniser,
// minutes at the real voices.
const Idle = time.Second

// fake is the service.
type fake struct {
	*servicetest.Server
	t testing.TB

	mu  sync.Mutex
	ids map[string]bool // of sessions, which are never to come twice
}

// New starts the service. It takes [servicetest.Key] in X-Api-Key, or as the access key
// of the app [servicetest.ID].
func New(t testing.TB) *servicetest.Server {
	t.Helper()
	f := &fake{t: t, ids: map[string]bool{}}
	mux := http.NewServeMux()
	for _, kind := range []string{"bigmodel", "bigmodel_async", "bigmodel_nostream"} {
		mux.HandleFunc("/api/v3/sauc/"+kind, f.granted(hearing, func(w http.ResponseWriter, r *http.Request) { f.hear(w, r, kind) }))
	}
	mux.HandleFunc("/api/v3/tts/bidirection", f.granted(speaking, f.converse))
	mux.HandleFunc("/api/v3/tts/unidirectional/stream", f.granted(speaking, f.recite))
	mux.HandleFunc("POST /api/v3/tts/unidirectional", f.granted(speaking, f.lines))
	mux.HandleFunc("POST /api/v3/tts/unidirectional/sse", f.granted(speaking, f.lines))
	f.Server = servicetest.New(t, mux.ServeHTTP, servicetest.WrongKey, servicetest.NoMoney, servicetest.RateLimited,
		servicetest.WrongModel, servicetest.WrongVoice, servicetest.Slow, servicetest.Silent, servicetest.Cut, servicetest.Closed,
		servicetest.Broken, servicetest.Huge, servicetest.Odd, servicetest.Stale, servicetest.Parts, servicetest.Late)
	return f.Server
}

// The resources that an account may have, parted by blanks.
const (
	hearing  = "volc.bigasr.sauc.duration volc.bigasr.sauc.concurrent volc.seedasr.sauc.duration volc.seedasr.sauc.concurrent"
	speaking = first + " " + second + " " + cloned
	first    = "seed-tts-1.0 seed-tts-1.0-concurr volc.service_type.10029 volc.service_type.10048"
	second   = "seed-tts-2.0"
	cloned   = "seed-icl-1.0 seed-icl-1.0-concurr seed-icl-2.0 volc.megatts.default"
)

// logID is what the service calls every request in its log.
const logID = "20260101000000ABCDEF0123456789"

// granted lets those in who may use a resource.
func (f *fake) granted(resources string, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		fault, h := f.Fault(), r.Header
		w.Header().Set("X-Tt-Logid", logID)
		key, wrong := h.Get("X-Api-Key"), "Invalid X-Api-Key"
		if key == "" {
			key, wrong = h.Get("X-Api-Access-Key"), "invalid auth token"
			if app := h.Get("X-Api-App-Key") + " " + h.Get("X-Api-App-Id"); !strings.Contains(app, servicetest.ID) {
				key = ""
			}
		}
		resource := h.Get("X-Api-Resource-Id")
		switch {
		case key != servicetest.Key || fault == servicetest.WrongKey:
			f.refuse(w, r, http.StatusUnauthorized, wrong)
		case resource == "":
			f.refuse(w, r, http.StatusBadRequest, "missing X-Api-Resource-Id")
		case fault == servicetest.WrongModel || !among(resources, resource):
			f.refuse(w, r, http.StatusForbidden, "[resource_id="+resource+"] requested resource not granted")
		default:
			next(w, r)
		}
	}
}

// refuse answers a request that is not let in.
func (f *fake) refuse(w http.ResponseWriter, r *http.Request, status int, words string) {
	f.Note(servicetest.Request{Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header.Clone()})
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(servicetest.JSON(map[string]any{"error": words, "reqid": logID}).Data)
}

// among says whether a word is one of a list parted by blanks.
func among(list, word string) bool {
	for w := range strings.FieldsSeq(list) {
		if w == word {
			return true
		}
	}
	return false
}

// taken says whether the id of a session was there before, and keeps it.
func (f *fake) taken(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.ids[id]
	f.ids[id] = true
	return before
}

// upgraded are the headers of an accepted upgrade.
func upgraded(r *http.Request) http.Header {
	h := http.Header{}
	h.Set("X-Tt-Logid", logID)
	h.Set("X-Api-Connect-Id", r.Header.Get("X-Api-Connect-Id"))
	return h
}
