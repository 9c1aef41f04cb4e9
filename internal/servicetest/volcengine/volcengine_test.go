package volcengine

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/servicetest"
)

// client is as little of a client as shows the fake.
type client struct {
	t *testing.T
	*websocket.Conn
}

func header(resource string) http.Header {
	return http.Header{"X-Api-Key": {servicetest.Key}, "X-Api-Resource-Id": {resource}}
}

func dial(t *testing.T, s *servicetest.Server, path, resource string) client {
	t.Helper()
	c, _, err := websocket.DefaultDialer.Dial(s.WS()+path, header(resource))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
	return client{t, c}
}

func (c client) send(f frame) {
	c.t.Helper()
	b := f.message().Data
	if f.event == startConnection || f.event == finishConnection {
		b = append(b[:8:8], b[12:]...) // these have no id
	}
	if err := c.WriteMessage(websocket.BinaryMessage, b); err != nil {
		c.t.Fatal(err)
	}
}

// answer reads a frame; that of an error comes with its code as event.
func (c client) answer() (f frame) {
	c.t.Helper()
	_, b, err := c.ReadMessage()
	if err != nil {
		c.t.Fatal(err)
	}
	if b[1]>>4 == failure {
		return frame{event: int32(binary.BigEndian.Uint32(b[4:])), payload: b[12:]}
	}
	at := 4
	f = frame{kind: b[1] >> 4, flags: b[1] & 15, pack: b[2] & 15}
	if f.flags&evented != 0 {
		f.event = int32(binary.BigEndian.Uint32(b[4:]))
		n := int(binary.BigEndian.Uint32(b[8:]))
		f.id, at = string(b[12:12+n]), 12+n
	} else if f.flags&sequenced != 0 {
		at = 8
	}
	f.payload = b[at+4:]
	if f.pack == zipped {
		f.payload, _ = unzip(f.payload)
	}
	return f
}

const request = `{"audio":{"format":"pcm","rate":16000},"request":{"model_name":"bigmodel","show_utterances":true}}`

// recognise sends a second of sound in packets of 200 ms and reads until the last answer.
func recognise(t *testing.T, s *servicetest.Server, pack byte, sound []byte) (texts []string, code int32) {
	t.Helper()
	c := dial(t, s, "/api/v3/sauc/bigmodel_async", "volc.bigasr.sauc.duration")
	c.send(frame{kind: fullRequest, flags: sequenced, sequence: 1, form: inJSON, pack: pack, payload: []byte(request)})
	for i, p := range servicetest.Pieces(sound, 6400) {
		c.send(frame{kind: audioRequest, flags: sequenced, sequence: int32(i + 2), pack: pack, payload: p})
	}
	last := len(servicetest.Pieces(sound, 6400)) + 2
	c.send(frame{kind: audioRequest, flags: sequenced | ended, sequence: -int32(last), pack: pack})
	for {
		f := c.answer()
		if f.event != 0 {
			return texts, f.event
		}
		var a struct{ Result struct{ Text string } }
		if err := json.Unmarshal(f.payload, &a); err != nil {
			t.Fatal(err)
		}
		if texts = append(texts, a.Result.Text); f.flags&ended != 0 {
			return texts, 0
		}
	}
}

func TestItHears(t *testing.T) {
	t.Parallel()
	s := New(t)
	for _, pack := range []byte{plain, zipped} {
		texts, code := recognise(t, s, pack, servicetest.Speech(strings.Repeat("x", 25), 16000))
		if n := len(texts); code != 0 || n < 4 || texts[0] != "" || texts[n-1] != servicetest.Words || texts[1] == texts[n-1] {
			t.Errorf("heard %q, code %d", texts, code)
		}
	}
	if texts, code := recognise(t, s, plain, make([]byte, 6400)); code != 0 || texts[len(texts)-1] != "" {
		t.Errorf("heard %q in silence, code %d", texts, code)
	}
	if _, code := recognise(t, s, plain, nil); code != noSound {
		t.Errorf("no sound: code %d", code)
	}
	s.Fail(servicetest.RateLimited)
	if _, code := recognise(t, s, zipped, nil); code != overQuota {
		t.Errorf("rate limited: code %d", code)
	}
}

func TestItIsStrictWithItsClients(t *testing.T) {
	t.Parallel()
	s := New(t)
	c := dial(t, s, "/api/v3/sauc/bigmodel", "volc.seedasr.sauc.duration")
	c.send(frame{kind: fullRequest, form: inJSON, payload: []byte(request)})
	c.answer()
	if f := c.answer(); f.event != timedOut {
		t.Errorf("no packets: %+v", f)
	}
	for path, h := range map[string]http.Header{
		"401": {"X-Api-Key": {"sk-wrong"}, "X-Api-Resource-Id": {second}},
		"403": {"X-Api-App-Key": {servicetest.ID}, "X-Api-Access-Key": {servicetest.Key}, "X-Api-Resource-Id": {"mine"}},
	} {
		_, resp, err := websocket.DefaultDialer.Dial(s.WS()+"/api/v3/tts/bidirection", h)
		if err == nil || !strings.HasPrefix(resp.Status, path) || resp.Header.Get("X-Tt-Logid") == "" {
			t.Errorf("error %v with %v, want %s", err, resp, path)
		}
	}
}

const voice = `{"namespace":"BidirectionalTTS","req_params":{"speaker":"zh_female_x_uranus_bigtts","audio_params":{"format":"pcm","sample_rate":16000}}}`

// session speaks a text in a session and returns its sound and its last event.
func session(c client, id, text string) ([]byte, int32) {
	c.send(frame{kind: fullRequest, flags: evented, event: startSession, id: id, form: inJSON, payload: []byte(voice)})
	for {
		f := c.answer()
		if f.event == sessionFailed {
			return nil, f.event
		}
		if f.event == sessionStarted {
			break
		}
	}
	c.send(frame{kind: fullRequest, flags: evented, event: taskRequest, id: id, payload: []byte(`{"req_params":{"text":"` + text + `"}}`)})
	c.send(frame{kind: fullRequest, flags: evented, event: finishSession, id: id, payload: []byte(`{}`)})
	var sound []byte
	for {
		switch f := c.answer(); f.event {
		case response:
			sound = append(sound, f.payload...)
		case sessionFinished, sessionFailed:
			return sound, f.event
		}
	}
}

func TestItSpeaksSessionsInOneConnection(t *testing.T) {
	t.Parallel()
	s := New(t)
	c := dial(t, s, "/api/v3/tts/bidirection", second)
	c.send(frame{kind: fullRequest, flags: evented, event: startConnection, payload: []byte(`{}`)})
	if f := c.answer(); f.event != connectionStarted {
		t.Errorf("got %+v", f)
	}
	for _, id := range []string{"one", "two"} {
		if sound, last := session(c, id, "hello"); last != sessionFinished || !bytes.Equal(sound, servicetest.Speech("hello", 16000)) {
			t.Errorf("session %s: %d bytes, event %d", id, len(sound), last)
		}
	}
	if _, last := session(c, "one", "hello"); last != sessionFailed {
		t.Errorf("an id that is used again: event %d", last)
	}
	time.Sleep(Idle + 40*time.Millisecond)
	c.send(frame{kind: fullRequest, flags: evented, event: startSession, id: "three", payload: []byte(voice)})
	if _, _, err := c.ReadMessage(); !websocket.IsCloseError(err, 1000) {
		t.Errorf("a connection that was idle: %v", err)
	}
}

func TestItSpeaksInOneDirection(t *testing.T) {
	t.Parallel()
	s := New(t)
	c := dial(t, s, "/api/v3/tts/unidirectional/stream", second)
	body := strings.Replace(voice, `"speaker"`, `"text":"hi","speaker"`, 1)
	c.send(frame{kind: fullRequest, form: inJSON, payload: []byte(body)})
	n := 0
	for f := c.answer(); f.event != sessionFinished; f = c.answer() {
		if f.event == response {
			n += len(f.payload)
		}
	}
	if n != len(servicetest.Speech("hi", 16000)) {
		t.Errorf("%d bytes in one direction", n)
	}
	for path, want := range map[string]string{"": `{"code":0,`, "/sse": "event: 352\ndata: {"} {
		req, _ := http.NewRequest(http.MethodPost, s.URL()+"/api/v3/tts/unidirectional"+path, strings.NewReader(body))
		req.Header = header(second)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if !strings.HasPrefix(string(got), want) || !strings.Contains(string(got), "20000000") {
			t.Errorf("%s: %.200s", path, got)
		}
	}
}
