package servicetest

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// lined is a server that answers each message with a result.
func lined(t *testing.T) *Server {
	t.Helper()
	var s *Server
	s = New(t, func(w http.ResponseWriter, r *http.Request) {
		l, ok := s.Line(w, r, nil)
		if !ok {
			return
		}
		defer l.Close()
		for {
			m, err := l.Next(time.Minute)
			if err != nil || !l.Result(m, Text("{broken")) {
				return
			}
		}
	}, Silent, Slow, Cut, Closed, Broken, Huge, Odd)
	return s
}

func TestLineLetsItsClientDown(t *testing.T) {
	s := lined(t)
	for f := range Ends {
		if !s.Knows(f) {
			continue
		}
		s.Fail(f)
		began := time.Now()
		c, _, err := websocket.DefaultDialer.Dial(s.WS()+"/x?y=z", nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetReadDeadline(time.Now().Add(8 * slowness))
		if f == Silent {
			_ = c.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		}
		_ = c.WriteMessage(websocket.TextMessage, []byte("hello"))
		size, err := message(c)
		if f == Huge {
			size, err = message(c)
		}
		took := time.Since(began)
		switch f {
		case Silent:
			if err == nil {
				t.Errorf("%v: %d bytes, want none", f, size)
			}
		case Huge:
			if size != enough {
				t.Errorf("%v: %d bytes, error %v, want no end", f, size, err)
			}
			_ = c.Close()
		case Slow:
			if took < 2*slowness || size != 5 {
				t.Errorf("%v: %d bytes after %v, want 5 late", f, size, took)
			}
		default:
			if err != nil || (size != 5 && f != Broken) {
				t.Errorf("%v: %d bytes, error %v", f, size, err)
			}
		}
		_ = c.WriteMessage(websocket.TextMessage, []byte("again"))
		if f == Broken {
			_ = c.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		}
		_, _, err = c.ReadMessage()
		if closed := new(websocket.CloseError); f == Closed && (!errors.As(err, &closed) || closed.Code != 1011) || f == Cut && err == nil {
			t.Errorf("%v: then error %v", f, err)
		}
		_ = c.Close()
	}
	last := s.Requests()[0]
	if got := string(last.Body); last.Path != "/x?y=z" || !strings.HasPrefix(got, "hello\n") {
		t.Errorf("noted %s with %q", last.Path, got)
	}
}

// enough is as much of a message as the tests read.
const enough = 8 << 20

// message reads a message and counts its bytes.
func message(c *websocket.Conn) (int, error) {
	_, r, err := c.NextReader()
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(io.Discard, io.LimitReader(r, enough))
	return int(n), err
}

func TestLineKnowsWhenNothingComes(t *testing.T) {
	idle := make(chan error, 2)
	var s *Server
	s = New(t, func(w http.ResponseWriter, r *http.Request) {
		l, ok := s.Line(w, r, nil)
		if !ok {
			return
		}
		defer l.Close()
		_, err := l.Next(time.Millisecond)
		idle <- err
		_, err = l.Next(0)
		idle <- err
	})
	c, _, err := websocket.DefaultDialer.Dial(s.WS(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := <-idle; !errors.Is(err, ErrIdle) {
		t.Errorf("error %v, want %v", err, ErrIdle)
	}
	_ = c.Close()
	if err := <-idle; !errors.Is(err, ErrLeft) {
		t.Errorf("error %v, want %v", err, ErrLeft)
	}
}
