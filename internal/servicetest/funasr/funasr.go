// Package funasr is a fake of the FunASR runtime servers, which people run at home: the
// two C++ ones and the Python one speak dialects of one protocol.
package funasr

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/servicetest"
)

// Variant is one of the servers.
type Variant int

// The servers.
const (
	TwoPass   Variant = iota // C++, streaming with correction
	Offline                  // C++, whole utterances
	Python                   // the demo server of 2026
	OldPython                // that of the years before, whose is_final is the wrong way round
)

const (
	rate = 16000
	tags = "<|zh|><|NEUTRAL|><|Speech|><|withitn|>" // of SenseVoice
)

// New starts the two-pass server.
func New(tb testing.TB) *servicetest.Server { return Serve(tb, TwoPass) }

// Serve starts one of the servers.
func Serve(tb testing.TB, v Variant) *servicetest.Server {
	tb.Helper()
	var s *servicetest.Server
	s = servicetest.New(tb, func(w http.ResponseWriter, r *http.Request) {
		l, ok := s.Line(w, r, nil)
		if !ok {
			return
		}
		defer l.Close()
		(&session{Line: l, variant: v}).run()
	}, servicetest.Slow, servicetest.Silent, servicetest.Cut, servicetest.Closed, servicetest.Broken, servicetest.Huge,
		servicetest.Odd, servicetest.Stale, servicetest.Parts, servicetest.Late)
	return s
}

// request holds the members of the first message of an utterance, and of the end mark.
type request struct {
	Mode       string          `json:"mode"`
	ChunkSize  []int           `json:"chunk_size"`
	WavName    string          `json:"wav_name"`
	WavFormat  string          `json:"wav_format"`
	AudioFS    int             `json:"audio_fs"`
	IsSpeaking *bool           `json:"is_speaking"`
	IsFinished bool            `json:"is_finished"`
	IsEnd      bool            `json:"is_end"`
	Hotwords   json.RawMessage `json:"hotwords"`
}

// session is one connection.
type session struct {
	*servicetest.Line
	variant  Variant
	request  request
	ear      servicetest.Ear
	begun    bool   // the first message of an utterance has come, and can be worked with
	dead     bool   // it hears nothing any more
	told     string // increments of the sentence that is being spoken
	waiting  int    // bytes of sound since the last increment
	previous string // wav_name of the utterance before
	sentence int
}

// run serves until the client has gone.
func (c *session) run() {
	for {
		m, err := c.Next(0)
		switch {
		case err != nil:
			return
		case c.dead:
		case m.Type == websocket.TextMessage && !c.control(m.Data):
			return
		case m.Type == websocket.BinaryMessage && c.begun && !c.sound(m.Data):
			return
		}
	}
}

// control takes a text message.
func (c *session) control(data []byte) bool {
	var r request
	if json.Unmarshal(data, &r) != nil || len(r.Hotwords) > 0 && r.Hotwords[0] != '"' {
		c.dead = true
		return true
	}
	if c.begun && (r.IsFinished || r.IsSpeaking != nil && !*r.IsSpeaking) {
		return c.end(r)
	}
	if !c.begun {
		c.request = r
		c.ear = servicetest.Ear{Rate: rate, Parts: c.Fault() == servicetest.Parts && c.variant != Offline}
		if r.AudioFS != 0 {
			c.ear.Rate = r.AudioFS
		}
		// Without sizes of chunks there is no decoder, and nothing says so.
		c.begun = c.variant == Offline || len(r.ChunkSize) == 3 && r.ChunkSize[1] > 0
		if c.variant == TwoPass && r.WavFormat != "" && r.WavFormat != "pcm" {
			return c.Say(servicetest.JSON(map[string]any{"text": "ERROR. Real-time transcription service ONLY SUPPORT PCM stream.", "is_final": true}))
		}
		if c.Fault() == servicetest.Stale && c.previous != "" {
			return c.Say(servicetest.JSON(map[string]any{"mode": "2pass-offline", "text": "stale", "wav_name": c.previous, "is_final": true}))
		}
	}
	return true
}

// sound takes a binary message.
func (c *session) sound(data []byte) bool {
	c.waiting += len(data)
	if len(data) == 0 {
		return true
	}
	text, ended := c.ear.Hear(data)
	if ended {
		return c.offline(text, c.variant == Python, c.variant == OldPython)
	}
	if c.variant == Offline || c.request.Mode == "offline" || c.waiting < c.request.ChunkSize[1]*60*c.ear.Rate/1000*2 {
		return true
	}
	c.waiting = 0
	more := strings.TrimPrefix(text, c.told)
	if more == "" || !utf8.ValidString(more) {
		return true
	}
	c.told = text
	mode := "2pass-online"
	if c.request.Mode == "online" && c.variant != TwoPass {
		mode = "online"
	}
	m := map[string]any{"mode": mode, "text": more, "wav_name": c.request.WavName, "is_final": c.variant == OldPython}
	if c.variant == TwoPass {
		m["slice_type"], m["timestamp"] = 1, 1700000000123
	}
	return c.result(m)
}

// result sends a result.
func (c *session) result(v map[string]any) bool {
	if c.Fault() == servicetest.Odd {
		v["unknown"] = []any{1, nil}
	}
	return c.Result(servicetest.JSON(v), servicetest.Text(`{"mode":"2pass-onl`))
}

// offline gives a sentence as the second pass has it.
func (c *session) offline(text string, final ...bool) bool {
	is := false
	for _, f := range final {
		is = is || f
	}
	c.told = ""
	c.sentence++
	m := map[string]any{
		"mode": "2pass-offline", "text": text, "wav_name": c.request.WavName, "is_final": is, "timestamp": "[[100,200],[200,300]]",
	}
	switch c.variant {
	case TwoPass:
		m["index"], m["start_time"], m["end_time"] = c.sentence, 0, 1000
	case Python, OldPython:
		m["timestamp"] = [][]int{{100, 200}, {200, 300}}
	case Offline:
	}
	switch { // the C++ server names its passes, whatever was asked for
	case c.variant == TwoPass && c.request.Mode == "online":
		m["mode"] = "2pass-online"
	case c.variant == TwoPass:
	case c.variant == Offline || c.request.Mode == "offline":
		m["mode"] = "offline"
	case c.request.Mode == "online":
		m["mode"] = "online"
	}
	if c.Fault() == servicetest.Odd {
		m["timestamp"] = [][]int{{100, 200}}
		m["text"] = tags + text
	}
	return c.result(m)
}

// end answers the end mark.
func (c *session) end(r request) bool {
	told, text := c.told, c.ear.Rest()
	online := c.request.Mode == "online"
	if online {
		text = strings.TrimPrefix(text, told)
	}
	c.begun, c.told, c.waiting, c.previous = false, "", 0, c.request.WavName
	if c.Fault() == servicetest.Late {
		return true
	}
	switch c.variant {
	case Offline:
		return c.offline(text)
	case Python, OldPython:
		if text != "" && !c.offline(text, c.variant == Python) {
			return false
		}
		if c.variant == Python && r.IsEnd {
			return c.Say(servicetest.JSON(map[string]any{"is_end": true, "is_final": true}))
		}
		return true
	case TwoPass:
	}
	if text != "" && c.Fault() != servicetest.Odd {
		return c.offline(text, true)
	}
	if text != "" && !c.offline(text) {
		return false
	}
	return c.Say(servicetest.JSON(map[string]any{"text": "", "wav_name": c.request.WavName, "is_final": true, "timestamp": 1700000000123}))
}
