package funasr

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/servicetest"
)

type answer struct {
	Mode, Text string
	Name       string `json:"wav_name"`
	Final      bool   `json:"is_final"`
	End        bool   `json:"is_end"`
}

const first = `{"mode":"2pass","chunk_size":[5,5,5],"chunk_interval":10,"wav_name":"u1","wav_format":"pcm","is_speaking":true}`

// talk sends an utterance and returns what comes until nothing more does.
func talk(t *testing.T, url string, sound []byte, begin, end string) (got []answer) {
	t.Helper()
	c, _, err := websocket.DefaultDialer.Dial(url, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_ = c.WriteMessage(websocket.TextMessage, []byte(begin))
	for _, p := range servicetest.Pieces(sound, 3200) {
		_ = c.WriteMessage(websocket.BinaryMessage, p)
	}
	_ = c.WriteMessage(websocket.TextMessage, []byte(end))
	_ = c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	for {
		_, data, err := c.ReadMessage()
		if err != nil {
			return got
		}
		var a answer
		if err := json.Unmarshal(data, &a); err != nil {
			t.Fatalf("%q: %v", data, err)
		}
		got = append(got, a)
	}
}

func TestVariants(t *testing.T) {
	t.Parallel()
	const stop = `{"is_speaking": false, "is_end": true}`
	sound, silence := servicetest.Speech(strings.Repeat("a", 26), rate), make([]byte, 2*rate)
	for name, test := range map[string]struct {
		variant       Variant
		last          answer
		partials      bool
		partialsFinal bool
		silence       int // answers
	}{
		"two pass":   {TwoPass, answer{Mode: "2pass-offline", Text: servicetest.Words, Name: "u1", Final: true}, true, false, 1},
		"offline":    {Offline, answer{Mode: "offline", Text: servicetest.Words, Name: "u1"}, false, false, 1},
		"python":     {Python, answer{Final: true, End: true}, true, false, 1},
		"old python": {OldPython, answer{Mode: "2pass-offline", Text: servicetest.Words, Name: "u1"}, true, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := Serve(t, test.variant)
			got := talk(t, s.WS(), sound, first, stop)
			if len(got) == 0 || got[len(got)-1] != test.last {
				t.Fatalf("got %+v, want %+v at the end", got, test.last)
			}
			if (len(got) > 2) != test.partials || got[0].Final != test.partialsFinal {
				t.Errorf("partials %+v", got)
			}
			if got := talk(t, s.WS(), silence, first, stop); len(got) != test.silence || len(got) > 0 && got[0].Text != "" {
				t.Errorf("of silence %+v", got)
			}
		})
	}
}

func TestNonsenseIsNotAnswered(t *testing.T) {
	t.Parallel()
	s := New(t)
	sound := servicetest.Speech(strings.Repeat("a", 26), rate)
	for name, begin := range map[string]string{
		"no sizes": `{"mode":"2pass","is_speaking":true}`,
		"no JSON":  `{"mode"`,
		"hotwords": strings.Replace(first, "{", `{"hotwords":{"a":1},`, 1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := talk(t, s.WS(), sound, begin, `{"is_speaking": false}`); len(got) != 0 {
				t.Errorf("answered %+v", got)
			}
		})
	}
}

func TestSentences(t *testing.T) {
	t.Parallel()
	s := New(t)
	s.Fail(servicetest.Parts)
	one, two := servicetest.Halves()
	var texts []string
	for _, a := range talk(t, s.WS(), servicetest.Speech(strings.Repeat("a", 26), rate), first, `{"is_speaking": false}`) {
		if a.Mode == "2pass-offline" {
			texts = append(texts, a.Text)
		}
	}
	if len(texts) != 2 || texts[0] != one || texts[1] != two {
		t.Errorf("sentences %q", texts)
	}
}
