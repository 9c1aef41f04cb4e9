package doubaodialogue

import (
	"bytes"
	"encoding/binary"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/servicetest"
)

type client struct {
	*testing.T
	*websocket.Conn
}

func dial(t *testing.T, s *servicetest.Server, key string) (client, int) {
	t.Helper()
	c, resp, err := websocket.DefaultDialer.DialContext(t.Context(), s.WS()+path, http.Header{
		"X-Api-App-Id": {servicetest.ID}, "X-Api-Access-Key": {key}, "X-Api-Resource-Id": {resource}, "X-Api-App-Key": {appKey}, "X-Api-Connect-Id": {"c1"},
	})
	if err != nil {
		return client{}, resp.StatusCode
	}
	t.Cleanup(func() { _ = c.Close() })
	return client{t, c}, 101
}

// say sends an event. Its frame is written as the server's are, but for the id of a connection.
func (c client) say(event uint32, id, payload string) {
	c.Helper()
	f := frame{kind: fullRequest, form: inJSON, event: event, id: id, payload: []byte(payload)}
	if event == taskRequest {
		f.kind, f.form = audioRequest, raw
	}
	b := f.message().Data
	if event < startSession {
		b = slices.Delete(b, 8, 12)
	}
	if err := c.WriteMessage(websocket.BinaryMessage, b); err != nil {
		c.Fatal(err)
	}
}

// until reads up to an event and returns the events before, all payloads of JSON and the sound.
func (c client) until(event uint32) (events []uint32, all string, sound []byte) {
	c.Helper()
	for {
		_, b, err := c.ReadMessage()
		if err != nil {
			c.Fatalf("after %v %s: %v", events, all, err)
		}
		if b[1]>>4 == failure {
			return append(events, binary.BigEndian.Uint32(b[4:])), all + string(b[12:]), sound
		}
		n, size := binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:])
		payload := b[16+size:]
		if b[2]&15 == zipped {
			if payload, err = unzip(payload); err != nil {
				c.Fatal(err)
			}
		}
		if events = append(events, n); b[1]>>4 == audioAnswer {
			sound = append(sound, payload...)
		} else {
			all += string(payload)
		}
		if n == event {
			return events, all, sound
		}
	}
}

const push = `{"asr":{"audio_info":{"format":"pcm","sample_rate":16000,"channel":1}},"tts":{"speaker":"v","audio_config":{"channel":1,"format":"pcm_s16le","sample_rate":24000}},"dialog":{"bot_name":"b","extra":{"model":"1.2.1.1","input_mod":"push_to_talk"}}}`

func TestDialogue(t *testing.T) {
	for _, fault := range []servicetest.Fault{servicetest.None, servicetest.Odd} {
		s := New(t)
		s.Fail(fault)
		ws, _ := dial(t, s, servicetest.Key)
		ws.say(startConnection, "", "{}")
		ws.until(connectionStarted)
		ws.say(startSession, "s1", push)
		ws.until(sessionStarted)
		ws.say(taskRequest, "s1", string(servicetest.Speech("wwwwwwwwwwwwwwwwwwwwww", inRate)))
		ws.say(endASR, "s1", "{}")
		events, all, sound := ws.until(chatEnded)
		if want := servicetest.Speech(servicetest.Answer(servicetest.Words), outRate); !bytes.Equal(sound, want) || !strings.Contains(all, servicetest.Words) {
			t.Errorf("%d of %d bytes: %v", len(sound), len(want), events)
		}
		ws.say(ttsText, "s1", `{"start":true,"end":false,"content":"ours"}`)
		ws.say(ttsText, "s1", `{"start":false,"end":true,"content":" it is"}`)
		if _, _, sound := ws.until(ttsEnded); !bytes.Equal(sound, servicetest.Speech("ours it is", outRate)) {
			t.Errorf("%d bytes", len(sound))
		}
		ws.say(textQuery, "s1", `{"content":"why"}`)
		ws.until(ttsAudio)
		ws.say(taskRequest, "s1", string(servicetest.Speech("wwwwwwww", inRate)))
		if events, _, _ := ws.until(asrInfo); slices.Contains(events, ttsEnded) {
			t.Errorf("%v", events)
		}
		ws.say(finishSession, "s1", "{}")
		ws.until(sessionFinished)
		ws.say(startSession, "s2", strings.Replace(push, "pcm_s16le", "pcm", 1))
		ws.say(sayHello, "s2", `{"content":"hi"}`)
		if _, _, sound := ws.until(ttsEnded); len(sound) != 2*len(servicetest.Speech("hi", outRate)) {
			t.Errorf("%d bytes", len(sound))
		}
		ws.say(finishConnection, "", "{}")
		ws.until(connectionFinished)
	}
}

func TestRefusals(t *testing.T) {
	s := New(t)
	if _, status := dial(t, s, "wrong"); status != 401 {
		t.Error(status)
	}
	ws, _ := dial(t, s, servicetest.Key)
	ws.say(startSession, "s1", push)
	if events, _, _ := ws.until(0); !slices.Equal(events, []uint32{connectionFailed, 45000000}) {
		t.Errorf("%v", events)
	}
	open := strings.Replace(push, "push_to_talk", "", 1)
	ws, _ = dial(t, s, servicetest.Key)
	ws.say(startConnection, "", "{}")
	ws.say(startSession, "s1", open)
	ws.say(taskRequest, "s1", string(servicetest.Speech("wwww", inRate)))
	ws.say(taskRequest, "s1", string(make([]byte, 2*2*inRate)))
	ws.until(chatEnded)
	if events, all, _ := ws.until(0); events[len(events)-1] != 52000042 {
		t.Errorf("%v %s", events, all)
	}
	for fault, want := range map[servicetest.Fault]string{servicetest.NoMoney: "tokens_lifetime", servicetest.RateLimited: "qpm", servicetest.WrongVoice: "speaker", servicetest.WrongModel: "model"} {
		s.Fail(fault)
		ws, _ := dial(t, s, servicetest.Key)
		ws.say(startConnection, "", "{}")
		ws.say(startSession, "s1", open)
		if _, all, _ := ws.until(sessionFailed); !strings.Contains(all, want) {
			t.Error(all)
		}
	}
}
