package servicetest

import (
	"io"
	"net/http"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/gorilla/websocket"
)

func TestConnectionsAreCountedUntilTheyClose(t *testing.T) {
	s := New(t, nil)
	s.http.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := s.Socket(w, r, nil); ok {
			defer func() { _ = c.Close() }()
			s.Hold(c)
		}
	})
	c, _, err := websocket.DefaultDialer.Dial(s.WS(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if s.Open() != 1 || s.Conns() != 1 {
		t.Errorf("%d open of %d, want 1 of 1", s.Open(), s.Conns())
	}
	_ = c.Close()
	for end := time.Now().Add(5 * time.Second); s.Open() > 0 && time.Now().Before(end); time.Sleep(time.Millisecond) {
	}
	if s.Open() != 0 {
		t.Error("a closed connection is still counted")
	}
}

func TestDroppedRequestIsAnError(t *testing.T) {
	s := New(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "half")
		DropRequest(w)
	})
	resp, err := http.Get(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if body, err := io.ReadAll(resp.Body); err == nil || string(body) != "half" {
		t.Errorf("got %q and error %v, want half a body and an error", body, err)
	}
}

func TestFaultsAreNamed(t *testing.T) {
	s := New(t, func(http.ResponseWriter, *http.Request) {}, ClockAhead)
	for f := range Last {
		if f.String() == "" {
			t.Errorf("fault %d has no name", f)
		}
	}
	if !s.Knows(ClockAhead) || s.Knows(Cut) {
		t.Error("it knows other faults than it was told")
	}
	s.Fail(ClockAhead)
	if ahead := time.Until(s.Now()); ahead < Skew-time.Second {
		t.Errorf("its clock is %v ahead", ahead)
	}
}

func TestWordsGrowWithTheSound(t *testing.T) {
	last := ""
	for n := 0; n <= 16000; n += 1600 {
		words := Heard(n, 16000)
		if len(words) < len(last) || !utf8.ValidString(words) {
			t.Errorf("%q after %q", words, last)
		}
		last = words
	}
	first, second := Halves()
	if last != Words || first+" "+second != Words {
		t.Errorf("heard %q, halves %q and %q, want %q", last, first, second, Words)
	}
	if sound := Speech("ab", 1000); len(sound) != 160 || !Loud(sound) || Loud(make([]byte, 64)) {
		t.Errorf("%d bytes for two letters at 1 kHz, want 160", len(sound))
	}
}
