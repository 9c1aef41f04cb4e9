package geminilive

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/servicetest"
)

type client struct {
	*testing.T
	*websocket.Conn
}

func dial(t *testing.T, s *servicetest.Server, messages ...string) client {
	t.Helper()
	c, _, err := websocket.DefaultDialer.DialContext(t.Context(), s.WS()+method, http.Header{"X-Goog-Api-Key": {servicetest.Key}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	ws := client{t, c}
	ws.say(messages...)
	return ws
}

func (c client) say(messages ...string) {
	c.Helper()
	for _, m := range messages {
		if err := c.WriteMessage(websocket.TextMessage, []byte(m)); err != nil {
			c.Fatal(err)
		}
	}
}

// until reads frames up to one that holds a text.
func (c client) until(what string) (all string, sound []byte) {
	c.Helper()
	for {
		kind, raw, err := c.ReadMessage()
		if err != nil {
			return all + err.Error(), sound
		}
		var f struct {
			ServerContent struct {
				ModelTurn struct {
					Parts []struct{ InlineData struct{ Data []byte } }
				}
			}
		}
		if err := json.Unmarshal(raw, &f); err != nil || kind != websocket.BinaryMessage {
			c.Fatalf("%d %v", kind, err)
		}
		for _, p := range f.ServerContent.ModelTurn.Parts {
			sound = append(sound, p.InlineData.Data...)
		}
		if all += string(raw); strings.Contains(string(raw), what) {
			return all, sound
		}
	}
}

const (
	begin = `{"setup":{"model":"models/gemini-live","generationConfig":{"responseModalities":["AUDIO"]},"realtimeInputConfig":{"automaticActivityDetection":{"disabled":true}},"inputAudioTranscription":{},"outputAudioTranscription":{},"sessionResumption":{},"tools":[TOOL]}}`
	tool  = `{"functionDeclarations":[{"name":"lamp","parametersJsonSchema":{"type":"object","properties":{"on":{"type":"boolean"}},"required":["on"],"additionalProperties":false}}]}`
	start = `{"realtimeInput":{"activityStart":{}}}`
	stop  = `{"realtimeInput":{"activityEnd":{}}}`
)

func sound() string {
	data, _ := json.Marshal(servicetest.Speech("wwwwwwwwwwwwwwwwwwwwwwwwwwwww", inRate))
	return `{"realtimeInput":{"audio":{"data":` + string(data) + `,"mimeType":"audio/pcm;rate=16000"}}}`
}

func TestTalk(t *testing.T) {
	s := New(t)
	ws := dial(t, s, sound(), strings.Replace(begin, "TOOL", "", 1), start, sound(), stop)
	all, got := ws.until("turnComplete")
	if want := servicetest.Speech(servicetest.Answer(servicetest.Words), outRate); !bytes.Equal(got, want) || !strings.Contains(all, "setupComplete") || !strings.Contains(all, "inputTranscription") {
		t.Errorf("%d of %d bytes", len(got), len(want))
	}
	ws.say(start, sound(), stop)
	ws.until("modelTurn")
	ws.say(start)
	if all, _ := ws.until("turnComplete"); !strings.Contains(all, "interrupted") || strings.Contains(all, "generationComplete") {
		t.Error(all)
	}
	ws = dial(t, s, strings.Replace(begin, "TOOL", tool, 1), start, sound(), stop)
	if all, _ := ws.until("toolCall"); !strings.Contains(all, `"args":{"on":true}`) {
		t.Error(all)
	}
	ws.say(`{"toolResponse":{"functionResponses":[{"id":"function-call-1","name":"lamp","response":{"output":"the lamp is on"}}]}}`)
	if _, got := ws.until("turnComplete"); !bytes.Equal(got, servicetest.Speech(servicetest.Answer("the lamp is on"), outRate)) {
		t.Errorf("%d bytes", len(got))
	}
	ws.say(`{"toolResponse":{"functionResponses":[{"id":"x","name":"lamp","response":{}}]}}`)
	if all, _ := ws.until("no such"); !strings.Contains(all, "1007") {
		t.Error(all)
	}
}

func TestDetectorAndEnds(t *testing.T) {
	s := New(t)
	quiet, _ := json.Marshal(make([]byte, inRate))
	own := strings.NewReplacer("TOOL", "", `"disabled":true`, `"silenceDurationMs":200`).Replace(begin)
	ws := dial(t, s, own, sound(), `{"realtimeInput":{"audio":{"data":`+string(quiet)+`,"mimeType":"audio/pcm;rate=16000"}}}`)
	if _, got := ws.until("turnComplete"); len(got) == 0 {
		t.Error("no answer")
	}
	for fault, want := range map[servicetest.Fault]string{
		servicetest.Ends: "goAway", servicetest.NoMoney: "credits", servicetest.WrongModel: "not found", servicetest.WrongVoice: "voice", servicetest.RateLimited: "quota",
	} {
		s.Fail(fault)
		if all, _ := dial(t, s, own, sound()).until("no such"); !strings.Contains(all, want) {
			t.Errorf("%s: %s", fault, all)
		}
	}
	s.Fail(servicetest.WrongKey)
	if _, resp, err := websocket.DefaultDialer.DialContext(t.Context(), s.WS()+method+"?key=x", nil); err == nil || resp.StatusCode != 400 {
		t.Error(err)
	}
}
