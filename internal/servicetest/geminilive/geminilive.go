// Package geminilive is a fake of Gemini Live: speech to speech over a WebSocket, whose
// server sends JSON in binary frames.
package geminilive

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/servicetest"
)

const (
	method   = "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent"
	inRate   = 16000
	outRate  = 24000
	pace     = 4 * time.Millisecond // between two frames of an answer
	silence  = 300 * time.Millisecond
	handle   = "handle-0123456789"
	badKey   = `{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}`
	notFound = 1008 // the code of a close for what the account may not use
)

// New starts the server. A session may be resumed by the newest handle that it gave. A
// server that [servicetest.Ends] says that it goes away once it has heard half of the
// words, and closes 50 ms later.
func New(t testing.TB) *servicetest.Server {
	t.Helper()
	var s *servicetest.Server
	s = servicetest.New(t, func(w http.ResponseWriter, r *http.Request) { serve(s, w, r) },
		servicetest.WrongKey, servicetest.NoMoney, servicetest.RateLimited, servicetest.WrongModel, servicetest.WrongVoice, servicetest.Slow,
		servicetest.Silent, servicetest.Cut, servicetest.Closed, servicetest.Broken, servicetest.Huge, servicetest.Odd, servicetest.Ends, servicetest.Late)
	return s
}

func serve(s *servicetest.Server, w http.ResponseWriter, r *http.Request) {
	key := r.Header.Get("X-Goog-Api-Key")
	if key == "" {
		key = r.URL.Query().Get("key")
	}
	note := func(status int, body string) {
		s.Note(servicetest.Request{Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header.Clone()})
		s.Refuse(w, status, body)
	}
	switch {
	case r.URL.Path != method:
		note(http.StatusNotFound, `{"error":{"code":404,"message":"Not Found","status":"NOT_FOUND"}}`)
	case s.Fault() == servicetest.WrongKey || key != servicetest.Key:
		note(http.StatusBadRequest, badKey)
	default:
		l, ok := s.Line(w, r, nil)
		if !ok {
			return
		}
		defer l.Close()
		t := &talk{line: l, ear: servicetest.Ear{Rate: inRate}, calls: map[string]string{}}
		t.run()
	}
}

// object is one of JSON.
type object = map[string]any

// step is a frame that is to be sent.
type step struct {
	result bool
	after  bool // it ends the answer
	o      object
}

// talk is one session.
type talk struct {
	line  *servicetest.Line
	setup *setup // nil before it came
	tools []servicetest.Tool

	ear      servicetest.Ear
	heard    int  // bytes of this turn
	quiet    int  // of silence since the last voice
	speaking bool // the server, or the client's own mark, says that the user speaks

	calls map[string]string // names of those that wait for their results, by id
	count int               // of calls
	queue []step
	due   time.Time
}

// run answers until the session is over.
func (t *talk) run() {
	for {
		wait := time.Duration(0)
		if len(t.queue) > 0 {
			if wait = time.Until(t.due); wait <= 0 {
				next := t.queue[0]
				t.queue = t.queue[1:]
				t.due = time.Now().Add(pace)
				if next.result && !t.line.Result(frame(next.o), servicetest.Binary([]byte(`{"serverContent":{"mod`))) || !next.result && !t.line.Say(frame(next.o)) {
					return
				}
				continue
			}
		}
		m, err := t.line.Next(wait)
		if errors.Is(err, servicetest.ErrIdle) {
			continue
		}
		if err != nil || !t.take(m) {
			return
		}
	}
}

// frame is JSON in a binary frame.
func frame(o object) servicetest.Message { return servicetest.Binary(servicetest.JSON(o).Data) }

func (t *talk) say(o object) bool { return t.line.Say(frame(o)) }

// send puts frames behind those that are to be sent.
func (t *talk) send(steps ...step) {
	if len(t.queue) == 0 {
		t.due = time.Now().Add(pace)
	}
	t.queue = append(t.queue, steps...)
}

// end closes the session with a code and the reason.
func (t *talk) end(code int, reason string) bool {
	t.line.End(code, reason)
	return false
}

// wrong ends the session for a message that is not as it has to be.
func (t *talk) wrong(reason string) bool {
	return t.end(websocket.CloseInvalidFramePayloadData, reason)
}

// message is one of a client: of its members exactly one is there.
type message struct {
	Setup    *setup         `json:"setup"`
	Realtime *input         `json:"realtimeInput"`
	Content  *content       `json:"clientContent"`
	Results  *results       `json:"toolResponse"`
	Update   map[string]any `json:"contextUpdate"`
}

type setup struct {
	Model      string `json:"model"`
	Generation struct {
		Modalities []string `json:"responseModalities"`
	} `json:"generationConfig"`
	Tools []struct {
		Functions []struct {
			Name   string          `json:"name"`
			Plain  json.RawMessage `json:"parametersJsonSchema"`
			Subset json.RawMessage `json:"parameters"`
		} `json:"functionDeclarations"`
	} `json:"tools"`
	Input struct {
		Detection struct {
			Disabled bool `json:"disabled"`
			Silence  int  `json:"silenceDurationMs"`
		} `json:"automaticActivityDetection"`
		Handling string `json:"activityHandling"`
	} `json:"realtimeInputConfig"`
	Heard  *object `json:"inputAudioTranscription"`
	Spoken *object `json:"outputAudioTranscription"`
	Resume *struct {
		Handle string `json:"handle"`
	} `json:"sessionResumption"`
}

// take answers a message. It reports false when the session is over.
func (t *talk) take(m servicetest.Message) bool {
	var got message
	if err := json.Unmarshal(m.Data, &got); err != nil {
		return t.wrong("Invalid JSON payload received. " + err.Error())
	}
	if t.line.Fault() == servicetest.Odd && t.setup != nil && !t.say(object{"unknownMember": object{"x": 1}}) {
		return false
	}
	switch {
	case t.setup == nil && got.Setup == nil:
		return true // what comes before is not heeded
	case got.Setup != nil && t.setup != nil:
		return t.wrong("setup must be the first message and only the first")
	case got.Setup != nil:
		return t.begin(got.Setup)
	case got.Realtime != nil:
		return t.hear(got.Realtime)
	case got.Content != nil:
		return t.read(got.Content)
	case got.Results != nil:
		return t.resume(got.Results)
	case got.Update != nil:
		return true
	}
	return t.wrong("Invalid JSON payload received. Unknown name")
}

// begin takes the settings.
func (t *talk) begin(s *setup) bool {
	switch f := t.line.Fault(); {
	case f == servicetest.NoMoney:
		return t.end(websocket.CloseInternalServerErr, "Your prepayment credits are depleted. Please go to AI Studio to manage your project and billing.")
	case f == servicetest.RateLimited:
		return t.end(websocket.CloseInternalServerErr, "You exceeded your current quota, please check your plan and billing details. RESOURCE_EXHAUSTED")
	case f == servicetest.WrongVoice:
		return t.wrong("Requested voice api_name is not available for model " + s.Model)
	case f == servicetest.WrongModel || !strings.HasPrefix(s.Model, "models/"):
		return t.end(notFound, s.Model+" is not found for API version v1beta, or is not supported for bidiGenerateContent.")
	case len(s.Generation.Modalities) > 1:
		return t.wrong("At most one response modality can be specified in the setup request.")
	case s.Resume != nil && s.Resume.Handle != "" && s.Resume.Handle != handle:
		return t.end(notFound, "BidiGenerateContent session not found")
	}
	t.setup = s
	for _, group := range s.Tools {
		for _, f := range group.Functions {
			if f.Name == "" || len(f.Plain) > 0 && len(f.Subset) > 0 || strings.Contains(string(f.Subset), "additionalProperties") || strings.Contains(string(f.Subset), "$schema") {
				return t.wrong("Invalid JSON payload received. Unknown name in 'setup.tools[0].function_declarations[0].parameters'")
			}
			schema := f.Plain
			if len(schema) == 0 {
				schema = f.Subset
			}
			t.tools = append(t.tools, servicetest.Tool{Name: f.Name, Schema: schema})
		}
	}
	if !t.say(object{"setupComplete": object{}}) {
		return false
	}
	return s.Resume == nil || t.say(object{"sessionResumptionUpdate": object{"newHandle": handle, "resumable": true}})
}
