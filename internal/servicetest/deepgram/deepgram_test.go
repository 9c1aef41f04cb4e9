package deepgram

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/servicetest"
)

var (
	token = http.Header{"Authorization": {"Token " + servicetest.Key}}
	tone  = servicetest.Speech(strings.Repeat("a", 26), 16000)
)

func dial(t *testing.T, s *servicetest.Server, path string) *websocket.Conn {
	t.Helper()
	c, _, err := websocket.DefaultDialer.Dial(s.WS()+path, token)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
	return c
}

type answer struct {
	Type, Event, Transcript string
	Final                   bool `json:"is_final"`
	Finalized               bool `json:"from_finalize"`
	Channel                 struct {
		Alternatives []struct{ Transcript string }
	}
}

// talk sends messages and sound, and returns what comes before the socket closes, and why it did.
func talk(t *testing.T, c *websocket.Conn, messages ...string) (got []answer, sound []byte, err error) {
	t.Helper()
	for _, m := range messages {
		if m == "tone" {
			for _, p := range servicetest.Pieces(tone, 3200) {
				_ = c.WriteMessage(websocket.BinaryMessage, p)
			}
			continue
		}
		_ = c.WriteMessage(websocket.TextMessage, []byte(`{"type":`+m+`}`))
	}
	for {
		kind, data, err := c.ReadMessage()
		if err != nil {
			return got, sound, err
		}
		if kind == websocket.BinaryMessage {
			sound = append(sound, data...)
			continue
		}
		var a answer
		if err := json.Unmarshal(data, &a); err != nil {
			t.Fatalf("%q: %v", data, err)
		}
		got = append(got, a)
	}
}

const listen = "/v1/listen?model=nova-3&encoding=linear16&sample_rate=16000&interim_results=true"

func TestNova(t *testing.T) {
	t.Parallel()
	s := New(t)
	for _, fault := range []servicetest.Fault{servicetest.None, servicetest.Parts} {
		s.Fail(fault)
		got, _, err := talk(t, dial(t, s, listen), "tone", `"CloseStream"`)
		var finals []string
		for _, a := range got {
			if a.Final && a.Channel.Alternatives[0].Transcript != "" {
				finals = append(finals, a.Channel.Alternatives[0].Transcript)
			}
		}
		if strings.Join(finals, " ") != servicetest.Words || len(got) < 8 || got[len(got)-1].Type != "Metadata" || !websocket.IsCloseError(err, 1000) {
			t.Errorf("%v: finals %q among %d, %v", fault, finals, len(got), err)
		}
	}
	s.Fail(servicetest.None)
	got, _, err := talk(t, dial(t, s, listen), "tone", `"Finalize"`)
	if last := got[len(got)-1]; !last.Finalized || !websocket.IsCloseError(err, 1011) {
		t.Errorf("after Finalize %+v, %v", last, err)
	}
}

func TestFlux(t *testing.T) {
	t.Parallel()
	got, _, err := talk(t, dial(t, New(t), "/v2/listen?model=flux-general-en&encoding=linear16&sample_rate=16000&eager_eot_threshold=0.4"), "tone", `"CloseStream"`)
	var events []string
	for _, a := range got {
		events = append(events, a.Type+a.Event)
	}
	want := "Connected TurnInfoStartOfTurn TurnInfoUpdate TurnInfoEagerEndOfTurn TurnInfoTurnResumed TurnInfoUpdate"
	if !strings.HasPrefix(strings.Join(events, " "), want) || got[len(got)-1].Event != "EndOfTurn" || got[len(got)-1].Transcript != servicetest.Words || !websocket.IsCloseError(err, 1000) {
		t.Errorf("events %q, %v", events, err)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	s := New(t)
	for path, header := range map[string]http.Header{
		listen: nil, "/v1/listen?model=nova-3": token, "/v2/listen?model=nova-3&encoding=linear16&sample_rate=16000": token,
		"/v2/listen?model=flux-general-en&encoding=linear16&sample_rate=16000&eot_threshold=0.2": token,
	} {
		_, resp, err := websocket.DefaultDialer.Dial(s.WS()+path, header)
		if err == nil || resp.Header.Get("dg-error") == "" {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestVoices(t *testing.T) {
	t.Parallel()
	s := New(t)
	want := servicetest.Speech("hello", 24000)
	const speak = "/v1/speak?model=aura-2-thalia-en&encoding=linear16&sample_rate=24000"
	req, _ := http.NewRequest(http.MethodPost, s.URL()+speak+"&container=none", strings.NewReader(`{"text":"hello"}`))
	req.Header = token
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK || !bytes.Equal(body, want) {
		t.Errorf("status %s, %d bytes", resp.Status, len(body))
	}
	got, sound, err := talk(t, dial(t, s, speak), `"Speak","text":"never"`, `"Clear"`, `"Speak","text":"hello"`, `"Flush"`, `"Close"`)
	if len(got) != 3 || got[1].Type != "Cleared" || got[2].Type != "Flushed" || !bytes.Equal(sound, want) || !websocket.IsCloseError(err, 1000) {
		t.Errorf("%+v, %d bytes, %v", got, len(sound), err)
	}
	many := []string{}
	for range flushes + 1 {
		many = append(many, `"Flush"`)
	}
	if got, _, _ := talk(t, dial(t, s, speak), append(many, `"Close"`)...); got[len(got)-1].Type != "Warning" {
		t.Errorf("after too many: %+v", got[len(got)-1])
	}
}
