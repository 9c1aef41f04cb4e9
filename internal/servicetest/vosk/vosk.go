// Package vosk is a fake of vosk-server, the one in Python.
package vosk

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"unicode"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/servicetest"
)

const (
	eof         = `{"eof" : 1}` // byte for byte, or it is taken for sound
	reset       = `{"reset" : 1}`
	defaultRate = 8000
	model       = 16000 // the rate of the sound that clients have
	maxMessage  = 1 << 20
)

// New starts a server that listens at the root. It wants no key.
//
// It answers every message of sound with exactly one text, and writes Chinese with
// blanks between the words. Unless a config says 16000 Hz it takes the sound for
// another rate and understands nothing. Any other text than the end mark, to the byte,
// is taken for sound, which ends the connection with 1011.
func New(t testing.TB) *servicetest.Server {
	t.Helper()
	var s *servicetest.Server
	s = servicetest.New(t, func(w http.ResponseWriter, r *http.Request) {
		l, ok := s.Line(w, r, nil)
		if !ok {
			return
		}
		defer l.Close()
		c := client{line: l, rate: defaultRate}
		c.ear.Parts = l.Fault() == servicetest.Parts
		c.serve()
	}, servicetest.Slow, servicetest.Silent, servicetest.Cut, servicetest.Closed, servicetest.Broken, servicetest.Huge,
		servicetest.Odd, servicetest.Parts, servicetest.Late)
	return s
}

// client is one connection.
type client struct {
	line *servicetest.Line
	ear  servicetest.Ear
	rate float64 // as the config says
}

// serve answers until the client has gone or has sent the end mark.
func (c *client) serve() {
	for {
		m, err := c.line.Next(0)
		switch {
		case err != nil:
			return
		case len(m.Data) > maxMessage:
			c.line.End(websocket.CloseMessageTooBig, "")
			return
		case m.Type == websocket.TextMessage && !c.text(string(m.Data)):
			return
		case m.Type == websocket.BinaryMessage && !c.sound(m.Data):
			return
		}
	}
}

// text takes a message of text. It reports false when the connection ends.
func (c *client) text(text string) bool {
	switch {
	case strings.Contains(text, "config"):
		var m struct {
			Config struct {
				Rate *float64 `json:"sample_rate"`
			} `json:"config"`
		}
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			c.line.End(websocket.CloseInternalServerErr, "")
			return false
		}
		if m.Config.Rate != nil {
			c.rate = *m.Config.Rate
		}
		return true
	case text == reset:
		return c.say("text", c.ear.Rest())
	case text == eof:
		if c.line.Fault() == servicetest.Late {
			c.line.Hold()
			return false
		}
		if c.say("text", c.ear.Rest()) {
			c.line.End(websocket.CloseNormalClosure, "")
		}
		return false
	}
	c.line.End(websocket.CloseInternalServerErr, "")
	return false
}

// sound takes 16 bit sound and answers with what is understood of it.
func (c *client) sound(pcm []byte) bool {
	if c.rate == model {
		c.ear.Rate = model
	}
	sentence, ended := c.ear.Hear(pcm)
	if ended {
		return c.say("text", sentence)
	}
	return c.say("partial", sentence)
}

// say sends an answer as Kaldi writes it. An answer without words is no result.
func (c *client) say(key, words string) bool {
	words = blanks(words)
	answer := map[string]any{key: words}
	if key == "text" && words != "" {
		answer["result"] = []map[string]any{{"conf": 1, "start": 0, "end": 0.6, "word": strings.Fields(words)[0]}}
	}
	if c.line.Fault() == servicetest.Odd {
		answer["spk"], answer["note"] = []float64{0.5}, nil
	}
	text, _ := json.MarshalIndent(answer, "", "  ")
	m := servicetest.Text(string(text))
	if words == "" {
		return c.line.Say(m)
	}
	return c.line.Result(m, servicetest.Text("{\n  \"partial\" : \"\xe4"))
}

// blanks puts a blank after every second Chinese character, as the model's words are.
func blanks(s string) string {
	var out strings.Builder
	n := 0
	for _, r := range s {
		if unicode.Is(unicode.Han, r) {
			if n == 2 {
				out.WriteByte(' ')
				n = 0
			}
			n++
		} else {
			n = 0
		}
		out.WriteRune(r)
	}
	return out.String()
}
