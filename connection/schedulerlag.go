package connection

import (
	"context"
	"log/slog"
	"runtime"
	"slices"
	"sync/atomic"
	"time"
)

// fewDevices is how many are admitted however late the process is: so few do not
// make it late, and to turn them away would help no other.
const fewDevices = 8

// The heartbeat.
const (
	heartbeat  = 60 * time.Millisecond
	beatWindow = 84 // heartbeats that are judged together: 5 s, and more when some are swallowed
)

// leastShare is how much of the processors this process itself must have used for lateness to be of its own making.
// Beside other programs that keep the machine busy it is late too, and to turn devices away would help nobody.
const leastShare = 0.25

// lagMeter judges how late the last heartbeats were. It is for one goroutine.
type lagMeter struct {
	limit time.Duration
	beats [beatWindow]time.Duration
	next  int
	full  bool // beats holds a whole window
	busy  bool
}

// add takes in one heartbeat that came so late while the process used a share of the processors, and returns the time
// that nine in ten of the window did not exceed. Trouble begins when that is over the limit and the process has a part in
// it, and ends when it is not over half of the limit, or the process has hardly a part, so that one device more or less
// does not decide.
func (l *lagMeter) add(late time.Duration, share float64) time.Duration {
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
		l.busy = p90 > l.limit/2 && share > leastShare/2
	} else {
		l.busy = p90 > l.limit && share > leastShare
	}
	return p90
}

// shareMeter tells how much of the processors the process has used lately. It is for one goroutine.
type shareMeter struct {
	used func() (time.Duration, bool) // processor time of the process; false: not known
	now  func() time.Time
	at   [beatWindow]time.Time
	had  [beatWindow]time.Duration
	next int
}

// share is that of the last [beatWindow] times it was asked: 1 if all processors that Go may use worked for this process
// alone, and also if it is not known.
func (m *shareMeter) share() float64 {
	now := m.now()
	used, known := m.used()
	since, before := m.at[m.next], m.had[m.next]
	m.at[m.next], m.had[m.next] = now, used
	m.next = (m.next + 1) % beatWindow
	if !known || since.IsZero() || !now.After(since) {
		return 1
	}
	return float64(used-before) / float64(now.Sub(since)) / float64(runtime.GOMAXPROCS(0))
}

// SchedulerLag measures how late the process is, with a timer of a frame's length; it
// is the [Load] of a server. Speech is late before it is broken: long before frames
// miss their moment, all that is due in this process begins to run late. So new
// devices are told that the server is too busy while those that are here do not
// notice yet. All methods may be called at the same time, Watch once.
type SchedulerLag struct {
	limit time.Duration // 0: it may be any
	log   *slog.Logger

	busy atomic.Bool
	late atomic.Int64 // ns
	done atomic.Uint64
}

// NewSchedulerLag makes one. limit is how late the process may do what is due,
// nine times of ten in 5 s and by its own work, before new devices are turned away; 0: it may be any.
func NewSchedulerLag(limit time.Duration, log *slog.Logger) *SchedulerLag {
	return &SchedulerLag{limit: limit, log: log}
}

// Watch measures until ctx ends. devices is how many are connected, for the log.
func (l *SchedulerLag) Watch(ctx context.Context, devices func() int) {
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	meter, own := lagMeter{limit: l.limit}, shareMeter{used: processTime, now: time.Now}
	due := time.Now().Add(heartbeat)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if now := time.Now(); !due.After(now) {
			l.done.Add(1)
			l.beat(ctx, &meter, now.Sub(due), own.share(), devices)
			due = following(due, now)
		}
	}
}

// following is the time of the heartbeat after that of due, which came at now. A
// stall counts once, however many heartbeats it swallowed: a machine that stood
// still for a second is not too small, one that does so again and again is.
func following(due, now time.Time) time.Time {
	return due.Add((now.Sub(due)/heartbeat + 1) * heartbeat)
}

func (l *SchedulerLag) beat(ctx context.Context, meter *lagMeter, late time.Duration, share float64, devices func() int) {
	l.late.Store(int64(meter.add(late, share)))
	busy := meter.busy && l.limit > 0
	if l.busy.Swap(busy) == busy {
		return
	}
	if busy {
		l.log.WarnContext(ctx, "server is too busy for new devices", "lateness", l.Lag(), "max_lateness", l.limit, "devices", devices())
		return
	}
	l.log.InfoContext(ctx, "server takes new devices again", "lateness", l.Lag(), "devices", devices())
}

// Lag returns the lateness that nine in ten of the last 5 s' heartbeats did not
// exceed; 0 before 5 s are over.
func (l *SchedulerLag) Lag() time.Duration { return time.Duration(l.late.Load()) }

// Beats returns how many heartbeats there were: it grows all the time while [SchedulerLag.Watch] runs and the process does
// what is due.
func (l *SchedulerLag) Beats() uint64 { return l.done.Load() }

// TooBusy reports whether there is no capacity for one device more, beside so many.
func (l *SchedulerLag) TooBusy(devices int) bool { return l.busy.Load() && devices > fewDevices }
