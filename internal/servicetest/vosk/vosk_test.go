package vosk

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/servicetest"
)

// talk sends a config and sound, ends with the mark and returns the answers and the code
// with which the server closed.
func talk(t *testing.T, s *servicetest.Server, config, mark string, pcm []byte) (texts []string, partials, code int) {
	t.Helper()
	c, _, err := websocket.DefaultDialer.Dial(s.WS(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if config != "" {
		_ = c.WriteMessage(websocket.TextMessage, []byte(config))
	}
	for i, p := range append(servicetest.Pieces(pcm, 6400), nil) {
		if p == nil {
			_ = c.WriteMessage(websocket.TextMessage, []byte(mark))
		} else {
			_ = c.WriteMessage(websocket.BinaryMessage, p)
		}
		_, answer, err := c.ReadMessage()
		if closed, ok := errors.AsType[*websocket.CloseError](err); ok {
			return texts, partials, closed.Code
		}
		var m map[string]any
		if err := json.Unmarshal(answer, &m); err != nil {
			t.Fatalf("answer %d: %q: %v", i, answer, err)
		}
		if text, ok := m["text"].(string); ok {
			texts = append(texts, text)
		} else {
			partials++
		}
	}
	_, _, err = c.ReadMessage()
	if closed, ok := errors.AsType[*websocket.CloseError](err); ok {
		code = closed.Code
	}
	return texts, partials, code
}

func TestServerHearsSpeech(t *testing.T) {
	s := New(t)
	tone := servicetest.Speech("abcdefghijklmnopqrstuvwxy", 16000)
	config := `{"config":{"sample_rate":16000}}`
	first, second := servicetest.Halves()
	tests := map[string]struct {
		fault        servicetest.Fault
		config, mark string
		pcm          []byte
		want         []string
		code         int
	}{
		"speech":          {0, config, eof, tone, []string{blanks(servicetest.Words)}, 1000},
		"silence":         {0, config, eof, make([]byte, 32000), []string{""}, 1000},
		"nothing":         {0, config, eof, nil, []string{""}, 1000},
		"two sentences":   {servicetest.Parts, config, eof, tone, []string{blanks(first), second}, 1000},
		"no config":       {0, "", eof, tone, []string{""}, 1000},
		"another mark":    {0, config, `{"eof": 1}`, tone, nil, 1011},
		"a broken config": {0, `{"config":`, eof, nil, nil, 1011},
	}
	for name, test := range tests {
		s.Fail(test.fault)
		texts, partials, code := talk(t, s, test.config, test.mark, test.pcm)
		if !slices.Equal(texts, test.want) || code != test.code || (name == "speech" && partials != 5) {
			t.Errorf("%s: %q after %d partials, closed with %d, want %q and %d", name, texts, partials, code, test.want, test.code)
		}
	}
	if !strings.HasPrefix(blanks(servicetest.Words), first[:6]+" "+first[6:12]) {
		t.Errorf("Chinese without blanks: %q", blanks(servicetest.Words))
	}
}
