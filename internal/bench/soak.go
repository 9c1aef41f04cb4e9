package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"xiaozhi/internal/devicetest"
)

// soakLine is the period of the lines that a soak prints.
const soakLine = time.Minute

// soakTolerance is forgiven in rules about time: a soak looks for what breaks,
// not for what a busy machine delays.
const soakTolerance = 500 * time.Millisecond

// kept is the number of faults that are printed in full.
const kept = 20

// soak has devices talk, interrupt, drop and come back for a long time.
type soak struct {
	r   *rig
	out io.Writer

	busy []lateness // over excuseLate; of the goroutine that writes the lines

	mu      sync.Mutex
	since   tally // since the last line
	total   tally
	pending []breach // not yet judged
	faults  []string
}

// breach is a rule that the server broke, as one device saw it.
type breach struct {
	device string
	devicetest.Violation
	last string // messages of the device
}

// tally counts what happened.
type tally struct {
	connects, turns, cuts, drops, underruns int
	stuck                                   int
	away                                    int            // connections that the server refused because it was too busy
	excused                                 int            // breaches of rules about time while the machine was busy
	broken                                  map[string]int // rules, by name
	jitter                                  []time.Duration
}

func (t *tally) rules() int {
	n := 0
	for _, k := range t.broken {
		n += k
	}
	return n
}

// Soak lets devices talk until the time is over. Each minute it writes a line.
// A device that got stuck, and a broken rule of the device protocol, are an error.
func Soak(ctx context.Context, o Options, out io.Writer) (err error) {
	o = o.withDefaults()
	b, err := newBench(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.stubs.Close()) }()
	r, err := b.rig(ctx, scenario{})
	if err != nil {
		return err
	}
	defer func() {
		if r.own != nil {
			err = errors.Join(err, r.own.stop())
		}
	}()
	r.tolerance = soakTolerance
	r.stubs.Set(Plan{
		ASR: 50 * time.Millisecond, LLM: 100 * time.Millisecond, TTS: 80 * time.Millisecond, Rate: 40, Sound: 1500 * time.Millisecond,
		Replies: append(chineseReplies(), story(1), story(2), story(3)),
	})
	s := &soak{r: r, out: out}
	fmt.Fprintf(out, "%s\nsoak of %v, %d devices; %s, %d cores; %s\n", o.Command, o.Soak, o.Devices, b.machine.CPU, b.machine.Cores, b.machine.Pinned)
	if r.target.prof.dir == "" {
		return s.run(ctx, o)
	}
	begun := make(chan error, 1)
	go func() { begun <- r.target.prof.take(ctx, "soak-begin", r.profile) }()
	err = s.run(ctx, o)
	return errors.Join(err, <-begun, r.target.prof.take(ctx, "soak-end", time.Second)) // what is left when all have gone
}

func (s *soak) run(ctx context.Context, o Options) error {
	began := time.Now()
	timed, cancel := context.WithTimeout(ctx, o.Soak)
	defer cancel()
	var devices sync.WaitGroup
	for i := range o.Devices {
		devices.Go(func() { s.live(timed, deviceID(i)) })
	}
	for timed.Err() == nil {
		timers := startControls(timed, s.r.target.core)
		_ = pause(timed, soakLine) // it is cut short by the end
		s.line(context.WithoutCancel(ctx), time.Since(began), timers)
	}
	timers := startControls(context.WithoutCancel(ctx), s.r.target.core)
	devices.Wait()
	s.line(context.WithoutCancel(ctx), time.Since(began), timers)
	return s.verdict()
}

// verdict sums up the whole soak.
func (s *soak) verdict() error {
	t := &s.total
	fmt.Fprintf(s.out, "in all: %d connections, %d turns, %d interrupted, %d dropped, %d underruns, %d turned away, %d stuck, %d rules broken, %d excused by a busy machine\n",
		t.connects, t.turns, t.cuts, t.drops, t.underruns, t.away, t.stuck, t.rules(), t.excused)
	for _, f := range s.faults {
		fmt.Fprintln(s.out, "fault:", f)
	}
	switch {
	case t.turns == 0:
		return errors.New("the soak saw no turn")
	case t.stuck > 0 || t.rules() > 0:
		return fmt.Errorf("the soak saw %d stuck devices and %d broken rules (%s)", t.stuck, t.rules(), strings.Join(slices.Sorted(maps.Keys(t.broken)), ", "))
	}
	return nil
}

// line prints what happened since the last line.
func (s *soak) line(ctx context.Context, at time.Duration, timers *controls) {
	c := timers.stop()
	s.judge(append(timers.load, timers.core...))
	s.mu.Lock()
	t := s.since
	s.since = tally{}
	s.mu.Unlock()
	server := ""
	if s.r.target.pid != 0 {
		if kib, err := s.r.target.pid.memory(); err == nil {
			server = fmt.Sprintf("rss %.1f MiB, ", float64(kib)/1024)
		}
	}
	if s.r.target.prof.url != "" {
		if n, err := s.r.target.prof.goroutines(ctx); err == nil {
			server += fmt.Sprintf("goroutines %d, ", n)
		}
	}
	jitter := "-"
	if n := describe(ms(t.jitter)); n != nil {
		jitter = number(n.P99) + " ms"
	}
	fmt.Fprintf(s.out, "%7s  %sturns %d, cut %d, dropped %d, underruns %d, jitter p99 %s, turned away %d, broken rules %d (excused %d), stuck %d; control p99 %s / %s ms, load %s\n",
		at.Round(time.Second), server, t.turns, t.cuts, t.drops, t.underruns, jitter, t.away, t.rules(), t.excused, t.stuck, number(c.P99), number(c.Core), loads(loadAverage()))
}

// count changes both tallies.
func (s *soak) count(change func(*tally)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.since)
	change(&s.total)
	s.total.jitter = nil // it would fill the memory in hours
}

// fault notes one in full, if there are not too many yet.
func (s *soak) fault(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.faults) < kept {
		s.faults = append(s.faults, fmt.Sprintf(format, args...))
	}
}

// A breach of a rule about time does not count if a control timer was late by
// excuseLate: from excuseBefore before that until excuseAfter after it.
const (
	excuseLate   = 100 * time.Millisecond
	excuseBefore = time.Second
	excuseAfter  = 5 * time.Second
)

// excused reports whether the machine, not the server, explains a breach.
func excused(v devicetest.Violation, late []lateness) bool {
	return v.Rule.Timed() && slices.ContainsFunc(late, func(l lateness) bool {
		return v.At.After(l.at.Add(-l.by-excuseBefore)) && v.At.Before(l.at.Add(excuseAfter))
	})
}

// judge counts what was broken since the last time.
func (s *soak) judge(late []lateness) {
	s.mu.Lock()
	pending := s.pending
	s.pending = nil
	s.mu.Unlock()
	s.busy = append(s.busy, slices.DeleteFunc(late, func(l lateness) bool { return l.by <= excuseLate })...)
	told := ""
	for _, b := range pending {
		ok := excused(b.Violation, s.busy)
		s.count(func(t *tally) {
			if ok {
				t.excused++
				return
			}
			if t.broken == nil {
				t.broken = make(map[string]int)
			}
			t.broken[string(b.Rule)]++
		})
		if ok {
			continue
		}
		if told != b.last {
			s.fault("%s: its last messages:\n%s", b.device, b.last)
			told = b.last
		}
		s.fault("%s: %s", b.device, b.Violation)
	}
}
