package cartesia

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/servicetest"
)

// text is a piece of text for a context.
func text(context, words string, more bool) string {
	return fmt.Sprintf(`{"model_id":"sonic-3","transcript":%q,"voice":{"mode":"id","id":"v"},"language":"zh","context_id":%q,"continue":%v,`+
		`"output_format":{"container":"raw","encoding":"pcm_s16le","sample_rate":16000}}`, words, context, more)
}

// talk sends messages and returns the kinds of answers by context, and the sound of each.
func talk(t *testing.T, s *servicetest.Server, messages ...string) (log string, sound map[string]int) {
	t.Helper()
	c, _, err := websocket.DefaultDialer.Dial(s.WS()+"/tts/websocket?cartesia_version=2025-04-16", http.Header{"X-Api-Key": {servicetest.Key}})
	if err != nil {
		return err.Error(), nil
	}
	defer func() { _ = c.Close() }()
	for _, m := range messages {
		_ = c.WriteMessage(websocket.TextMessage, []byte(m))
	}
	sound = map[string]int{}
	for {
		var m struct {
			Type, Data string
			Context    string `json:"context_id"`
			Status     int    `json:"status_code"`
		}
		if err := c.ReadJSON(&m); err != nil {
			return log, sound
		}
		b, _ := base64.StdEncoding.DecodeString(m.Data)
		sound[m.Context] += len(b)
		log += fmt.Sprintf("%s %s %d;", m.Type, m.Context, m.Status)
	}
}

func TestFake(t *testing.T) {
	s := New(t)
	log, sound := talk(t, s, text("a", "你好世界", true), text("b", "你好世界", false), text("a", "", false), text("c", "", false))
	if sound["a"] != 4*640*2 || sound["b"] != sound["a"] || !strings.Contains(log, "done a 200") || !strings.Contains(log, "error c 400") {
		t.Errorf("%s %v", log, sound)
	}
	if i, j := strings.Index(log, "chunk b"), strings.LastIndex(log, "chunk a"); i < 0 || j < i {
		t.Errorf("the contexts are not interleaved: %s", log)
	}
	if log, _ := talk(t, s, text("a", "你好", true), `{"context_id":"a","cancel":true}`); strings.Contains(log, "done") {
		t.Errorf("a cancelled context is done: %s", log)
	}
	s.Fail(servicetest.RateLimited)
	if log, _ := talk(t, s, text("a", "你好", false)); log != "error a 429;" {
		t.Error(log)
	}
	s.Fail(servicetest.WrongKey)
	if log, _ := talk(t, s); !strings.Contains(log, "bad handshake") {
		t.Error(log)
	}
}
