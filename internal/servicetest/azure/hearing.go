package azure

import (
	"bytes"
	"net/http"
	"time"

	"xiaozhi/internal/servicetest"
)

// listener is a socket of recognition: one turn after another.
type listener struct {
	f      *fake
	l      *servicetest.Line
	single bool // the server ends the turn after a phrase

	configured bool
	id         string // of the turn; "" between turns
	old        string // of the turn before
	context    string // for which a context has come
	ear        servicetest.Ear
	headed     bool // the header of the WAV has come
	last       string
	offset     int
}

// hearing is a socket of recognition.
func (f *fake) hearing(w http.ResponseWriter, r *http.Request) {
	if !f.allowed(w, r) {
		return
	}
	if r.URL.Query().Get("language") == "" {
		f.Refuse(w, http.StatusBadRequest, `{"error":{"code":"400","message":"language is missing"}}`)
		return
	}
	l, ok := f.Line(w, r, nil)
	if !ok {
		return
	}
	defer l.Close()
	s := &listener{f: f, l: l, single: r.PathValue("mode") == "interactive"}
	for s.next() {
	}
}

// next takes a message. It reports false when the socket is over.
func (s *listener) next() bool {
	m, err := s.l.Next(time.Minute)
	if err != nil {
		return false
	}
	x, err := parse(m)
	switch {
	case err != nil:
		return refuse(s.l, "the message has no headers")
	case x.path == "speech.config":
		s.configured = true
		return true
	case !hex32.MatchString(x.id):
		return refuse(s.l, "X-RequestId is not valid")
	case !s.configured:
		return refuse(s.l, "speech.config is missing")
	case x.path == "speech.context":
		s.context = x.id
		return true
	case x.path == "telemetry":
		return true
	case x.path != "audio":
		return refuse(s.l, "unknown path "+x.path)
	case x.id == s.old:
		return true // the rest of a turn that the server has ended
	case s.context != x.id:
		return refuse(s.l, "speech.context is missing")
	case s.id == "":
		return s.begin(x) && s.hear(x.body)
	case s.id != x.id:
		return refuse(s.l, "the turn before has not ended")
	}
	return s.hear(x.body)
}

// begin begins a turn.
func (s *listener) begin(x frame) bool {
	if x.kind != "audio/x-wav" {
		return refuse(s.l, "Content-Type is not supported")
	}
	fault := s.l.Fault()
	if fault == servicetest.Stale && s.old != "" {
		s.l.Say(message("speech.phrase", s.old, map[string]any{"RecognitionStatus": "Success", "DisplayText": "stale words"}))
	}
	s.id, s.headed, s.last = x.id, false, ""
	s.ear = servicetest.Ear{Rate: 16000, Parts: fault == servicetest.Parts && !s.single || fault == servicetest.Ends}
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	if fault == servicetest.Ends && s.f.ended%2 == 1 {
		s.f.ended++
		s.ear.Resume()
	}
	return s.say("turn.start", map[string]any{"context": map[string]any{"serviceTag": "a1b2"}})
}

// say sends a message that holds no words.
func (s *listener) say(path string, body any) bool {
	if s.l.Fault() == servicetest.Odd {
		s.l.Say(message("something.new", s.id, map[string]any{"é": []any{nil}}))
	}
	return s.l.Say(message(path, s.id, body))
}

// result sends words.
func (s *listener) result(path string, body any) bool {
	return s.l.Result(message(path, s.id, body), servicetest.Text("X-RequestId:"+s.id+"\r\nPath:"+path+"\r\n\r\n{\"Text\":"))
}

// hear takes sound; none is the end of it.
func (s *listener) hear(pcm []byte) bool {
	if len(pcm) == 0 {
		return s.finish()
	}
	if !s.headed {
		if len(pcm) < 44 || !bytes.HasPrefix(pcm, []byte("RIFF")) {
			return refuse(s.l, "the header of the WAV is missing")
		}
		s.headed = true
		pcm = pcm[44:]
	}
	words, ended := s.ear.Hear(pcm)
	switch {
	case words == "" || words == s.last && !ended:
		return true
	case s.last == "" && !s.say("speech.startDetected", map[string]any{"Offset": 1000000}):
		return false
	}
	s.last = words
	if !ended {
		return s.result("speech.hypothesis", map[string]any{"Text": words, "Offset": s.offset, "Duration": 5000000, "Id": "h"})
	}
	s.last = ""
	if !s.phrase("Success", words) {
		return false
	}
	if s.l.Fault() == servicetest.Ends {
		s.f.mu.Lock()
		s.f.ended++
		s.f.mu.Unlock()
		return s.end()
	}
	return true
}

// phrase gives a finished sentence.
func (s *listener) phrase(status, words string) bool {
	s.offset += 10000000
	return s.result("speech.phrase", map[string]any{
		"RecognitionStatus": status, "DisplayText": words, "Offset": s.offset, "Duration": 8000000,
		"NBest": []any{map[string]any{"Confidence": 0.9, "Lexical": words, "Display": words}},
	})
}

// finish answers the end of the sound.
func (s *listener) finish() bool {
	if s.l.Fault() == servicetest.Late {
		s.l.Hold()
		return false
	}
	words, status := s.ear.Rest(), "Success"
	if words == "" {
		status = "NoMatch"
	} else if !s.say("speech.endDetected", map[string]any{"Offset": s.offset}) {
		return false
	}
	if s.l.Fault() == servicetest.Odd && words != "" && !s.result("speech.hypothesis", map[string]any{"Text": words, "Offset": s.offset}) {
		return false
	}
	if !s.phrase(status, words) {
		return false
	}
	if status == "Success" && !s.single && !s.phrase("EndOfDictation", "") {
		return false
	}
	return s.end()
}

// end ends the turn.
func (s *listener) end() bool {
	ok := s.say("turn.end", map[string]any{})
	s.old, s.id = s.id, ""
	return ok
}
