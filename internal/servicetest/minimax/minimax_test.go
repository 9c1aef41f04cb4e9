package minimax

import (
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/servicetest"
)

const start = `{"event":"task_start","model":"speech-2.8-turbo","voice_setting":{"voice_id":"v"},"audio_setting":{"sample_rate":16000,"format":"pcm"}}`

// talk sends steps, each after an answer without sound, and returns the names of the answers.
func talk(t *testing.T, s *servicetest.Server, steps ...string) (log string, sound int) {
	t.Helper()
	c, _, err := websocket.DefaultDialer.Dial(s.WS()+"/ws/v1/t2a_v2", http.Header{"Authorization": {"Bearer " + servicetest.Key}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	for {
		var m struct {
			Event string
			Data  struct{ Audio string }
			Final *bool `json:"is_final"`
			Base  struct {
				Code int `json:"status_code"`
			} `json:"base_resp"`
		}
		if err := c.ReadJSON(&m); err != nil {
			return log, sound
		}
		b, _ := hex.DecodeString(m.Data.Audio)
		if sound += len(b); m.Final != nil && !*m.Final {
			continue
		}
		code, _ := json.Marshal(m.Base.Code)
		log += m.Event + " " + string(code) + " "
		if len(steps) > 0 {
			_ = c.WriteMessage(websocket.TextMessage, []byte(steps[0]))
			steps = steps[1:]
		}
	}
}

func TestSocket(t *testing.T) {
	s := New(t)
	for _, c := range []struct {
		fault servicetest.Fault
		steps []string
		want  string
		sound int
	}{
		{servicetest.None, []string{start, `{"event":"task_continue","text":"你好"}`, `{"event":"task_continue","text":""}`, `{"event":"task_finish"}`},
			"connected_success 0 task_started 0 task_continued 0 task_continued 2203 task_finished 0 ", 2 * 640 * 2},
		{servicetest.None, []string{`{"event":"task_continue","text":"你好"}`}, "connected_success 0 task_failed 2202 ", 0},
		{servicetest.None, nil, "connected_success 0 task_failed 2201 ", 0},
		{servicetest.NoMoney, nil, "task_failed 1008 ", 0},
		{servicetest.WrongVoice, []string{start}, "connected_success 0 task_failed 2042 ", 0},
	} {
		s.Fail(c.fault)
		if log, sound := talk(t, s, c.steps...); log != c.want || sound != c.sound {
			t.Errorf("%v: %s with %d bytes, want %s", c.fault, log, sound, c.want)
		}
	}
}

func TestRequest(t *testing.T) {
	s := New(t)
	ask := func(body string) string {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+"/v1/t2a_v2", strings.NewReader(body))
		req.Header.Set("Authorization", "Bearer "+servicetest.Key)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		b, _ := io.ReadAll(resp.Body)
		return string(b)
	}
	whole := hex.EncodeToString(servicetest.Speech("你好", 16000))
	body := strings.Replace(start, "{", `{"stream":true,"text":"你好",`, 1)
	if got := ask(body); strings.Count(got, "data: ") != 2 || strings.Count(got, whole) != 2 {
		t.Errorf("the last event is not the whole sound again: %.200s", got)
	}
	s.Fail(servicetest.RateLimited)
	if got := ask(body); !strings.Contains(got, `"status_code":1002`) {
		t.Error(got)
	}
}
