// Package openairealtime is a fake of OpenAI Realtime: sessions of speech to speech over a
// WebSocket, with the events of today ([New]) and with those that copies still send
// ([NewBeta]). Fakes of services that follow its protocol are made by [Start].
package openairealtime

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/servicetest"
)

// Dialect is one of the protocols that follow OpenAI's.
type Dialect struct {
	Path      string
	Rate      int  // of the sound of a client, Hz; sound of the server has 24 kHz
	Old       bool // the names of the beta
	Nameless  bool // the end of a call's arguments does not name its tool
	Truncates bool // knows conversation.item.truncate
	Finishes  bool // knows session.finish
	// Admit refuses a request before its upgrade, or reports true.
	Admit func(s *servicetest.Server, w http.ResponseWriter, r *http.Request, f servicetest.Fault) bool
	// Greet is a failure right after the upgrade, or nil.
	Greet func(r *http.Request, f servicetest.Fault) *Problem
	// Settle reads the settings of a session.
	Settle func(raw json.RawMessage, model string, f servicetest.Fault) (*Settings, *Problem)
	// Fails is why a response fails, or nil.
	Fails func(f servicetest.Fault) *Problem
}

// Problem holds the members of an error event.
type Problem struct {
	Type, Code, Message, Param string
	Close                      int // code with which the socket is closed then; 0: it stays
}

// Settings are those of a session.
type Settings struct {
	Manual     bool          // the client says where a turn ends
	Silence    time.Duration // after which the server says so
	Waits      bool          // the client asks for each response, also after the server's end of a turn
	Transcribe bool          // the words of the user are told
	Mute       bool          // answers are text
	Tools      []servicetest.Tool
}

// New starts a server that speaks the protocol of today.
func New(t testing.TB) *servicetest.Server {
	t.Helper()
	return Start(t, Dialect{Path: "/v1/realtime", Rate: 24000, Truncates: true, Admit: admitToday, Greet: greet, Settle: settle, Fails: fails})
}

// NewBeta starts a server that speaks the protocol of the beta, as copies of it do.
func NewBeta(t testing.TB) *servicetest.Server {
	t.Helper()
	return Start(t, Dialect{
		Path: "/v1/realtime", Rate: 24000, Old: true, Nameless: true, Truncates: true, Admit: admit, Greet: greet, Settle: settleOld, Fails: fails,
	})
}

// Start starts a server that speaks a dialect.
func Start(t testing.TB, d Dialect) *servicetest.Server {
	t.Helper()
	var s *servicetest.Server
	s = servicetest.New(t, func(w http.ResponseWriter, r *http.Request) { d.serve(s, w, r) },
		servicetest.WrongKey, servicetest.NoMoney, servicetest.RateLimited, servicetest.WrongModel, servicetest.WrongVoice, servicetest.Slow,
		servicetest.Silent, servicetest.Cut, servicetest.Closed, servicetest.Broken, servicetest.Huge, servicetest.Odd, servicetest.Stale,
		servicetest.Ends, servicetest.Late)
	return s
}

func (d *Dialect) serve(s *servicetest.Server, w http.ResponseWriter, r *http.Request) {
	f := s.Fault()
	switch {
	case r.URL.Path != d.Path:
		s.Refuse(w, http.StatusNotFound, `{"error":{"message":"Invalid URL (GET `+r.URL.Path+`)","type":"invalid_request_error","param":null,"code":null}}`)
		return
	case !d.Admit(s, w, r, f):
		s.Note(servicetest.Request{Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header.Clone()})
		return
	}
	l, ok := s.Line(w, r, http.Header{"X-Request-Id": {"req_0123456789"}})
	if !ok {
		return
	}
	defer l.Close()
	t := &talk{d: d, line: l, model: r.URL.Query().Get("model"), ear: servicetest.Ear{Rate: d.Rate}, lengths: map[string]int{}, calls: map[string]bool{}}
	if p := d.Greet(r, f); p != nil {
		t.fails(p, "")
		return
	}
	if t.says("session.created", "session", map[string]any{"id": "sess_1", "object": "realtime.session", "type": "realtime", "model": t.model}) {
		t.run()
	}
}

// admit wants the key and the name of a model.
func admit(s *servicetest.Server, w http.ResponseWriter, r *http.Request, f servicetest.Fault) bool {
	switch {
	case f == servicetest.WrongKey || r.Header.Get("Authorization") != "Bearer "+servicetest.Key:
		s.Refuse(w, http.StatusUnauthorized, `{"error":{"message":"Incorrect API key provided: `+masked(r)+`. You can find your API key at https://platform.openai.com/account/api-keys.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`)
	case r.URL.Query().Get("model") == "":
		s.Refuse(w, http.StatusBadRequest, `{"error":{"message":"you must provide a model parameter","type":"invalid_request_error","param":null,"code":"missing_model"}}`)
	default:
		return true
	}
	return false
}

// admitToday wants no word of the beta, too.
func admitToday(s *servicetest.Server, w http.ResponseWriter, r *http.Request, f servicetest.Fault) bool {
	if r.Header.Get("OpenAI-Beta") != "" {
		s.Refuse(w, http.StatusBadRequest, `{"error":{"message":"The Realtime Beta API is no longer supported. Please use /v1/realtime for the GA API.","type":"invalid_request_error","param":null,"code":"beta_api_shape_disabled"}}`)
		return false
	}
	return admit(s, w, r, f)
}

// masked is the key of a request as the service shows it: all of it, where it is short.
func masked(r *http.Request) string {
	key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if len(key) < 12 {
		return key
	}
	return key[:3] + "*****" + key[len(key)-4:]
}

func greet(r *http.Request, f servicetest.Fault) *Problem {
	if model := r.URL.Query().Get("model"); f == servicetest.WrongModel || !strings.Contains(model, "realtime") && !strings.Contains(model, "audio") {
		return &Problem{Code: "model_not_found", Message: "The model `" + model + "` does not exist or you do not have access to it.", Close: 4000}
	}
	return nil
}

func fails(f servicetest.Fault) *Problem {
	switch f {
	case servicetest.NoMoney:
		return &Problem{Type: "insufficient_quota", Code: "insufficient_quota", Message: "You exceeded your current quota, please check your plan and billing details."}
	case servicetest.RateLimited:
		return &Problem{Type: "requests", Code: "rate_limit_exceeded", Message: "Rate limit reached. Please try again in 1s."}
	}
	return nil
}
