package connection

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/wire"
	"xiaozhi/mcp"
)

// So few devices do not make a server late: each is let in.
func TestFewDevicesAreNeverTooMany(t *testing.T) {
	bubble(t, func(o *Options) { o.Notice = tonal(t) }, func(t *testing.T, r *rig) {
		r.server.busy.Store(true)
		for i := range fewDevices {
			r.greet(fmt.Sprint("d", i)).alive(r.talk(i))
		}
		p := r.greet("one more")
		p.send(`{"type":"listen","state":"start","mode":"auto"}`)
		<-p.done
		if n := len(p.of(websocket.BinaryMessage)); n != noticeFrames {
			t.Errorf("one more heard %d frames of %d", n, noticeFrames)
		}
	})
}

func TestLateness(t *testing.T) {
	const limit = 20 * time.Millisecond
	var l lateness
	l.limit = limit
	beat := func(n int, late time.Duration) (p90 time.Duration) {
		for range n {
			p90 = l.add(late)
		}
		return p90
	}
	for _, tc := range []struct {
		name string
		n    int
		late time.Duration
		busy bool
	}{
		{"less than a window says nothing", beatWindow - 1, time.Second, false},
		{"a whole window of it", 1, time.Second, true},
		{"nine in ten must be well again", beatWindow * 8 / 10, 0, true},
		{"well again", beatWindow * 2 / 10, 0, false},
		{"a few that are late say nothing", beatWindow / 12, time.Second, false},
		{"forgotten", beatWindow, 0, false},
		{"at the limit", beatWindow, limit, false},
		{"just over it", beatWindow, limit + 1, true},
		{"not yet under half of it", beatWindow, limit/2 + 1, true},
		{"half of it", beatWindow, limit / 2, false},
		{"back at the limit", beatWindow, limit, false},
	} {
		beat(tc.n, tc.late)
		if l.busy != tc.busy {
			t.Fatalf("%s: busy is %v", tc.name, l.busy)
		}
	}
	if got := beat(beatWindow, 7*time.Millisecond); got != 7*time.Millisecond {
		t.Errorf("lateness %v, want 7ms", got)
	}
}

// The server says once that it is too busy, and once that it is not any more.
func TestBusyIsLoggedOnce(t *testing.T) {
	for _, off := range []bool{false, true} {
		log := &logBuffer{}
		o := Options{
			NewTalk: func(wire.Session, wire.Outbox, []mcp.Source) (Talk, error) { return nil, errors.New("none") },
			Log:     slog.New(slog.NewTextHandler(log, nil)),
		}
		if !off {
			o.MaxLateness = 20 * time.Millisecond
		}
		s, err := NewServer(o)
		if err != nil {
			t.Fatal(err)
		}
		s.few = -1
		meter := lateness{limit: o.MaxLateness}
		for _, late := range []time.Duration{50 * time.Millisecond, 0, 50 * time.Millisecond} {
			for range 2 * beatWindow {
				s.beat(t.Context(), &meter, late)
			}
			if s.tooBusy(&conn{}) != (late > 0 && !off) {
				t.Errorf("off %v, %v late: busy is %v", off, late, s.busy.Load())
			}
			if s.Lateness() != late {
				t.Errorf("lateness %v, want %v", s.Lateness(), late)
			}
		}
		want := 2
		if off {
			want = 0
		}
		if n := len(log.lines("too busy")); n != want {
			t.Errorf("off %v: log:\n%s", off, log)
		}
	}
}

// However long the machine stands still, it is one late heartbeat; when it stands
// still all the time, each is.
func TestOneStallIsNoOverload(t *testing.T) {
	start := time.Unix(0, 0)
	for _, tc := range []struct {
		name  string
		every int // heartbeats from one stall to the next
		busy  bool
	}{
		{"now and then", beatWindow / 6, false},
		{"all the time", 1, true},
	} {
		meter := lateness{limit: 20 * time.Millisecond}
		due := start
		for i := range 3 * beatWindow {
			now := due
			if i%tc.every == 0 {
				now = due.Add(17*heartbeat + heartbeat/2)
			}
			meter.add(now.Sub(due))
			next := following(due, now)
			if next.Sub(now) <= 0 || next.Sub(now) > heartbeat || next.Sub(start)%heartbeat != 0 {
				t.Fatalf("due at %v, came at %v, the next at %v", due, now, next)
			}
			due = next
		}
		if meter.busy != tc.busy {
			t.Errorf("%s: busy is %v", tc.name, meter.busy)
		}
	}
}

// A calm process is never late, and Watch ends with its context.
func TestWatch(t *testing.T) {
	bubble(t, func(o *Options) { o.MaxLateness = time.Millisecond }, func(t *testing.T, r *rig) {
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() { defer close(over); r.server.Watch(ctx) }()
		time.Sleep(time.Minute)
		if r.server.busy.Load() || r.server.Lateness() != 0 {
			t.Errorf("busy %v, lateness %v", r.server.busy.Load(), r.server.Lateness())
		}
		cancel()
		<-over
	})
}

func TestNegativeLatenessIsRefused(t *testing.T) {
	_, err := NewServer(Options{
		NewTalk:     func(wire.Session, wire.Outbox, []mcp.Source) (Talk, error) { return nil, errors.New("none") },
		MaxLateness: -time.Second,
	})
	if err == nil {
		t.Error("taken")
	}
}
