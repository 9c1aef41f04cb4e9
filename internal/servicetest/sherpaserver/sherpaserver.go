// Package sherpaserver is a fake of the WebSocket servers of sherpa-onnx: the streaming
// one in C++, the streaming one in Python, and the one for whole utterances.
package sherpaserver

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/servicetest"
)

const rate = 16000

// faults are those that all three can have.
var faults = []servicetest.Fault{
	servicetest.Slow, servicetest.Silent, servicetest.Cut, servicetest.Closed, servicetest.Broken, servicetest.Huge, servicetest.Odd, servicetest.Late,
}

// New starts a streaming server in C++, which listens at the root and wants no key. It
// hears frames of float32 samples between -1 and 1: louder ones are none, and nothing is
// understood of them. "Done" gives the last result and then "Done!", which is no JSON,
// and the connection stays. With [servicetest.Parts] an endpoint divides the speech.
func New(t testing.TB) *servicetest.Server {
	t.Helper()
	return serve(t, func(l *servicetest.Line) { (&stream{line: l}).run() }, servicetest.Parts)
}

// NewPython starts the streaming server of the Python examples: its results have only
// text and segment, and it closes after the last one.
func NewPython(t testing.TB) *servicetest.Server {
	t.Helper()
	return serve(t, func(l *servicetest.Line) { (&stream{line: l, python: true}).run() }, servicetest.Parts)
}

// NewOffline starts the server for whole utterances: 8 bytes of header with the rate and
// the number of bytes, then the samples. It answers each utterance with one result and
// closes with 1000 at "Done", at other texts and at a first frame of less than 8 bytes.
func NewOffline(t testing.TB) *servicetest.Server {
	t.Helper()
	return serve(t, func(l *servicetest.Line) { (&utterances{line: l}).run() })
}

func serve(t testing.TB, run func(*servicetest.Line), more ...servicetest.Fault) *servicetest.Server {
	t.Helper()
	var s *servicetest.Server
	s = servicetest.New(t, func(w http.ResponseWriter, r *http.Request) {
		l, ok := s.Line(w, r, nil)
		if !ok {
			return
		}
		defer l.Close()
		run(l)
	}, append(more, faults...)...)
	return s
}

// samples turns float32 samples into 16 bit sound. Whatever is no sound becomes silence.
func samples(b []byte) []byte {
	out := make([]byte, 0, len(b)/2)
	for ; len(b) >= 4; b = b[4:] {
		v := math.Float32frombits(binary.LittleEndian.Uint32(b))
		if !(v >= -1.01 && v <= 1.01) {
			return make([]byte, len(out)+len(b)/2)
		}
		out = binary.LittleEndian.AppendUint16(out, uint16(int16(max(-1, min(1, v))*32767)))
	}
	return out
}

// stream is a connection to a streaming server.
type stream struct {
	line    *servicetest.Line
	python  bool
	ear     servicetest.Ear
	segment int
	last    string // the result that was sent last
}

func (c *stream) run() {
	c.ear = servicetest.Ear{Rate: rate, Parts: c.line.Fault() == servicetest.Parts}
	for {
		m, err := c.line.Next(0)
		if err != nil {
			return
		}
		switch {
		case m.Type == websocket.BinaryMessage:
			sentence, ended := c.ear.Hear(samples(m.Data))
			if sentence != c.last && !c.say(sentence, ended, false) {
				return
			}
			c.last = sentence
			if ended {
				c.segment++
			}
		case string(m.Data) != "Done":
			// Other texts are nothing to it.
		case c.line.Fault() == servicetest.Late:
			c.line.Hold()
			return
		case !c.end():
			return
		}
	}
}

// end sends the last result. It reports false when the connection ends.
func (c *stream) end() bool {
	if !c.say(c.ear.Rest(), true, true) {
		return false
	}
	c.segment, c.last = 0, ""
	if c.python {
		c.line.End(websocket.CloseNormalClosure, "")
		return false
	}
	return c.line.Say(servicetest.Text("Done!"))
}

// say sends a result: the text of the segment so far.
func (c *stream) say(text string, final, eof bool) bool {
	result := map[string]any{"text": text, "segment": c.segment}
	if !c.python {
		result["is_final"], result["is_eof"], result["start_time"] = final, eof, 0.0
		for _, name := range []string{"tokens", "timestamps", "ys_probs", "lm_probs", "context_scores", "words"} {
			result[name] = []string{}
		}
	}
	if c.line.Fault() == servicetest.Odd {
		result["model"] = map[string]any{"name": nil}
	}
	m := servicetest.JSON(result)
	if text == "" {
		return c.line.Say(m)
	}
	return c.line.Result(m, servicetest.Text(`{"text": "`+"\xe4\xbb"))
}

const (
	header  = 8
	longest = 300 * rate * 4 // bytes of an utterance
)

// utterances is a connection to the server for whole utterances.
type utterances struct {
	line *servicetest.Line
	rate int
	want int // bytes that the header announced
	got  []byte
}

func (c *utterances) run() {
	for {
		m, err := c.line.Next(0)
		switch {
		case err != nil:
			return
		case m.Type == websocket.TextMessage && string(m.Data) == "Done":
			c.line.End(websocket.CloseNormalClosure, "Done")
			return
		case m.Type == websocket.TextMessage:
			c.line.End(websocket.CloseNormalClosure, "Invalid payload: "+string(m.Data[:min(len(m.Data), 40)]))
			return
		case !c.take(m.Data):
			return
		}
	}
}

// take adds a frame to the utterance. It reports false when the connection ends.
func (c *utterances) take(frame []byte) bool {
	if c.want == 0 {
		if len(frame) < header {
			c.line.End(websocket.CloseNormalClosure, "Payload is too short")
			return false
		}
		c.rate, c.want = int(int32(binary.LittleEndian.Uint32(frame))), int(int32(binary.LittleEndian.Uint32(frame[4:])))
		if c.want > longest || c.want < 0 {
			c.line.End(websocket.CloseMessageTooBig, fmt.Sprintf("Max utterance length is %d bytes", longest))
			return false
		}
		c.got, frame = nil, frame[header:]
	}
	c.got = append(c.got, frame...)
	if len(c.got) > c.want {
		// The real server writes beyond its buffer: whoever sends more than it announced meets anything.
		c.line.End(websocket.CloseInternalServerErr, "")
		return false
	}
	if len(c.got) < c.want {
		return true
	}
	c.want = 0
	return c.answer()
}

// answer sends the result of the utterance.
func (c *utterances) answer() bool {
	if c.line.Fault() == servicetest.Late {
		c.line.Hold()
		return false
	}
	ear := servicetest.Ear{Rate: c.rate}
	ear.Hear(samples(c.got))
	text := ear.Rest()
	result := map[string]any{"text": text, "timestamps": []float64{}, "durations": []float64{}, "tokens": strings.Fields(text), "words": []string{}}
	if text != "" {
		result["lang"], result["emotion"], result["event"] = "<|zh|>", "<|NEUTRAL|>", "<|Speech|>"
	}
	if c.line.Fault() == servicetest.Odd {
		result["more"] = []any{nil}
	}
	b, _ := json.Marshal(result)
	return c.line.Result(servicetest.Text(string(b)), servicetest.Text(`{"lang": "<|zh`))
}
