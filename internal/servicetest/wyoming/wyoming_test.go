package wyoming

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/servicetest"
)

// client is as little of a client as shows the fake.
type client struct {
	t *testing.T
	c net.Conn
	r *bufio.Reader
}

func dial(t *testing.T, s *servicetest.Server) client {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(s.URL(), "tcp://"))
	if err != nil {
		t.Fatal(err)
	}
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	t.Cleanup(func() { _ = c.Close() })
	return client{t, c, bufio.NewReader(c)}
}

func (c client) say(kind string, data map[string]any, payload []byte) {
	_, _ = c.c.Write(event{kind, data, payload}.write(kind != "synthesize"))
}

// until reads events up to one kind or an error.
func (c client) until(kind string) (texts []string, sound []byte) {
	c.t.Helper()
	for {
		e, err := read(c.r)
		if err != nil {
			c.t.Fatalf("%s did not come: %v", kind, err)
		}
		if text, ok := e.Data["text"].(string); ok {
			texts = append(texts, text)
		}
		if e.Type == "audio-chunk" {
			sound = append(sound, e.Payload...)
		}
		if e.Type == kind || e.Type == "error" {
			return texts, sound
		}
	}
}

var format = map[string]any{"rate": 16000, "width": 2, "channels": 1}

func TestItHears(t *testing.T) {
	t.Parallel()
	s := New(t)
	for _, f := range []servicetest.Fault{servicetest.None, servicetest.Odd} {
		s.Fail(f)
		for want, sound := range map[string][]byte{servicetest.Words: servicetest.Speech("0123456789", 16000), "": make([]byte, 3200)} {
			c := dial(t, s)
			c.say("transcribe", map[string]any{"language": "zh"}, nil)
			c.say("audio-start", format, nil)
			c.say("audio-chunk", format, sound)
			c.say("audio-stop", nil, nil)
			texts, _ := c.until("transcript")
			if n := len(texts); texts[n-1] != want || strings.Join(texts[:n-1], "") != want {
				t.Errorf("%v: heard %q, want %q", f, texts, want)
			}
			if _, err := io.ReadAll(c.r); err != nil {
				t.Errorf("%v: it does not close the connection: %v", f, err)
			}
		}
	}
	s.Fail(servicetest.None)
	c := dial(t, s)
	c.say("audio-chunk", format, []byte{1, 2})
	if texts, _ := c.until("error"); len(texts) != 1 {
		t.Errorf("sound before the start: %q", texts)
	}
}

func TestItSpeaks(t *testing.T) {
	t.Parallel()
	s := New(t)
	c := dial(t, s)
	for _, text := range []string{"one", "two"} {
		c.say("synthesize", map[string]any{"text": text, "voice": map[string]any{"name": Voice}}, nil)
		if _, sound := c.until("audio-stop"); !bytes.Equal(sound, servicetest.Speech(text, rate)) {
			t.Errorf("%s: %d bytes of sound", text, len(sound))
		}
	}
	c.say("synthesize-start", nil, nil)
	c.say("synthesize-chunk", map[string]any{"text": "three"}, nil)
	c.say("synthesize", map[string]any{"text": "three"}, nil)
	c.say("synthesize-stop", nil, nil)
	if _, sound := c.until("synthesize-stopped"); !bytes.Equal(sound, servicetest.Speech("three", rate)) {
		t.Errorf("in pieces: %d bytes of sound", len(sound))
	}
	c.say("describe", nil, nil)
	c.until("info")
	s.Fail(servicetest.WrongVoice)
	c = dial(t, s)
	c.say("synthesize", map[string]any{"text": "x"}, nil)
	if texts, _ := c.until("error"); len(texts) != 1 {
		t.Errorf("a wrong voice: %q", texts)
	}
}

func TestPiperSpeaks(t *testing.T) {
	t.Parallel()
	s := NewPiper(t)
	for body, want := range map[string]int{`{"text":"hello"}`: 200, `{"text":"hello","voice":"other"}`: 500, `hello`: 500} {
		resp, err := http.Post(s.URL()+"/synthesize", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != want || want == 200 && !bytes.Equal(got[44:], servicetest.Speech("hello", rate)) {
			t.Errorf("%s: status %d, %d bytes", body, resp.StatusCode, len(got))
		}
	}
}
