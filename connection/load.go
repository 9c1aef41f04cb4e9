package connection

import (
	"context"
	"slices"
	"time"
)

// Speech is late before it is broken: long before frames miss their moment, all
// that is due in this process begins to run late. So a heartbeat of a frame's
// length measures by how much, and new devices are told that the server is too
// busy while those that are here still hear nothing of it.

// fewDevices is how many are let in however late the process is: so few do not
// make it late, and who turns them away helps nobody.
const fewDevices = 8

// The heartbeat.
const (
	heartbeat  = 60 * time.Millisecond
	beatWindow = 84 // heartbeats that are judged together: 5 s, and more when some are swallowed
)

// lateness judges how late the last heartbeats were. It is for one goroutine.
type lateness struct {
	limit time.Duration
	beats [beatWindow]time.Duration
	next  int
	full  bool // beats holds a whole window
	busy  bool
}

// add takes in one heartbeat that came so late, and gives the time that nine in
// ten of the window did not exceed. Trouble begins when that is over the limit,
// and ends when it is not over half of it, so that one device more or less does
// not decide.
func (l *lateness) add(late time.Duration) time.Duration {
	l.beats[l.next] = late
	if l.next++; l.next == beatWindow {
		l.next, l.full = 0, true
	}
	if !l.full {
		return 0
	}
	sorted := l.beats
	slices.Sort(sorted[:])
	p90 := sorted[beatWindow*9/10]
	if l.busy {
		l.busy = p90 > l.limit/2
	} else {
		l.busy = p90 > l.limit
	}
	return p90
}

// Watch measures how late the process is until ctx ends. It is called once; who
// does not call it has a server that is never too busy.
func (s *Server) Watch(ctx context.Context) {
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	meter := lateness{limit: s.opts.MaxLateness}
	due := time.Now().Add(heartbeat)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if now := time.Now(); !due.After(now) {
			s.beat(ctx, &meter, now.Sub(due))
			due = following(due, now)
		}
	}
}

// following is when the next heartbeat is due after that of due came at now. What
// one stall swallowed counts once, however long it was: a machine that stood still
// for a second is not too small, one that stands still again and again is.
func following(due, now time.Time) time.Time {
	return due.Add((now.Sub(due)/heartbeat + 1) * heartbeat)
}

// beat takes in one heartbeat.
func (s *Server) beat(ctx context.Context, meter *lateness, late time.Duration) {
	s.late.Store(int64(meter.add(late)))
	busy := meter.busy && s.opts.MaxLateness > 0
	if s.busy.Swap(busy) == busy {
		return
	}
	if busy {
		s.log.WarnContext(ctx, "server is too busy for new devices", "lateness", s.Lateness(), "max_lateness", s.opts.MaxLateness, "devices", s.Connected())
		return
	}
	s.log.InfoContext(ctx, "server takes new devices again", "lateness", s.Lateness(), "devices", s.Connected())
}

// Lateness is what nine in ten of the last 5 s' heartbeats did not exceed; 0
// before that can be said.
func (s *Server) Lateness() time.Duration { return time.Duration(s.late.Load()) }

// tooBusy reports whether a device must be turned away. One that comes back in
// the place of its own connection is no device more.
func (s *Server) tooBusy(c *conn) bool {
	return s.busy.Load() && !c.returns && s.Connected() > s.few
}

// notice is what is said to a device of a language; false: nothing.
func (s *Server) notice(kind NoticeKind, language string) (Notice, bool) {
	if s.opts.Notice == nil {
		return Notice{}, false
	}
	return s.opts.Notice(kind, language), true
}
