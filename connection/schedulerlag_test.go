package connection

import (
	"bytes"
	"context"
	"log/slog"
	"math"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestLateness(t *testing.T) {
	const limit = 20 * time.Millisecond
	var l lagMeter
	l.limit = limit
	beat := func(n int, late time.Duration) (p90 time.Duration) {
		for range n {
			p90 = l.add(late, 1)
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

// TestLatenessOfOthers: a process that is late because other programs keep the machine busy turns nobody away.
func TestLatenessOfOthers(t *testing.T) {
	l := lagMeter{limit: 20 * time.Millisecond}
	for _, tc := range []struct {
		share float64
		busy  bool
	}{{0.05, false}, {0.3, true}, {0.2, true}, {0.1, false}, {0.2, false}} {
		for range beatWindow {
			l.add(time.Second, tc.share)
		}
		if l.busy != tc.busy {
			t.Errorf("with %v of the processors: busy is %v", tc.share, l.busy)
		}
	}
}

// TestShare: the share counts what the process used in the last heartbeats, of all processors, and is 1 where nobody knows.
func TestShare(t *testing.T) {
	now, used, known := time.Unix(0, 0), time.Duration(0), true
	m := shareMeter{used: func() (time.Duration, bool) { return used, known }, now: func() time.Time { return now }}
	var share float64
	pass := func(n int, each time.Duration) {
		for range n {
			now, used = now.Add(heartbeat), used+each
			share = m.share()
		}
	}
	if pass(1, 0); share != 1 {
		t.Errorf("at first: %v", share)
	}
	cores := float64(runtime.GOMAXPROCS(0))
	if pass(2*beatWindow, heartbeat/2); math.Abs(share*cores-0.5) > 0.01 {
		t.Errorf("half a core of %v: %v", cores, share)
	}
	if pass(beatWindow, 0); share != 0 {
		t.Errorf("idle: %v", share)
	}
	known = false
	if pass(1, 0); share != 1 {
		t.Errorf("not known: %v", share)
	}
	if was, ok := processTime(); ok {
		for from := time.Now(); time.Since(from) < 30*time.Millisecond; {
		}
		if is, _ := processTime(); is <= was {
			t.Errorf("processor time went from %v to %v", was, is)
		}
	}
}

// The server says once that it is too busy, and once that it is not any more. A
// few devices do not make it late: they are always admitted.
func TestSchedulerLagLogsOnce(t *testing.T) {
	for _, off := range []bool{false, true} {
		var log bytes.Buffer
		limit := 20 * time.Millisecond
		if off {
			limit = 0
		}
		h := NewSchedulerLag(limit, slog.New(slog.NewTextHandler(&log, nil)))
		meter := lagMeter{limit: limit}
		devices := func() int { return 1 }
		for _, late := range []time.Duration{50 * time.Millisecond, 0, 50 * time.Millisecond} {
			for range 2 * beatWindow {
				h.beat(t.Context(), &meter, late, 1, devices)
			}
			if h.TooBusy(fewDevices+1) != (late > 0 && !off) || h.TooBusy(fewDevices) {
				t.Errorf("off %v, %v late: busy is %v", off, late, h.busy.Load())
			}
			if h.Lag() != late {
				t.Errorf("lateness %v, want %v", h.Lag(), late)
			}
		}
		want := 2
		if off {
			want = 0
		}
		if n := strings.Count(log.String(), "too busy"); n != want {
			t.Errorf("off %v: log:\n%s", off, &log)
		}
	}
}

// However long the machine stands still, it is one late heartbeat; when it stands
// still all the time, each is.
func TestLatenessOneStall(t *testing.T) {
	start := time.Unix(0, 0)
	for _, tc := range []struct {
		name  string
		every int // heartbeats from one stall to the next
		busy  bool
	}{
		{"now and then", beatWindow / 6, false},
		{"all the time", 1, true},
	} {
		meter := lagMeter{limit: 20 * time.Millisecond}
		due := start
		for i := range 3 * beatWindow {
			now := due
			if i%tc.every == 0 {
				now = due.Add(17*heartbeat + heartbeat/2)
			}
			meter.add(now.Sub(due), 1)
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
func TestSchedulerLagWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		h := NewSchedulerLag(time.Millisecond, slog.New(slog.DiscardHandler))
		over := make(chan struct{})
		go func() { defer close(over); h.Watch(ctx, func() int { return 100 }) }()
		time.Sleep(time.Minute)
		if h.TooBusy(100) || h.Lag() != 0 {
			t.Errorf("busy %v, lateness %v", h.TooBusy(100), h.Lag())
		}
		cancel()
		<-over
	})
}
