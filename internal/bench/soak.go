package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"xiaozhi/internal/devicetest"
)

const (
	soakLine      = time.Minute            // period of the lines that a soak prints
	soakTolerance = 500 * time.Millisecond // in rules about time: a soak looks for what breaks, not for what a busy machine delays
	kept          = 20                     // faults that are printed in full
)

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
	rules, excused                          int            // breaches that count, and those that a busy machine explains
	broken                                  map[string]int // rules, by name
	jitter                                  []time.Duration
}

// Soak lets devices talk until the time is over. Each minute it writes a line.
// A device that got stuck, and a broken rule of the device protocol, are an error.
func Soak(ctx context.Context, o Options, out io.Writer) (err error) {
	o = o.withDefaults()
	o.Devices = cmp.Or(o.Devices, 50)
	b, err := newBench(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.stubs.Close()) }()
	r, err := b.rig(ctx, scenario{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.end()) }()
	r.tolerance = soakTolerance
	r.stubs.Set(Plan{
		ASR: 50 * time.Millisecond, LLM: 100 * time.Millisecond, TTS: 80 * time.Millisecond, Rate: 40, Sound: 1500 * time.Millisecond,
		Replies: append(chineseReplies(), story(1), story(2), story(3)),
	})
	s := &soak{r: r, out: out}
	fmt.Fprintf(out, "%s\nsoak of %v, %d devices; %s, %d cores; %s\n", o.Command, o.Soak, o.Devices, b.machine.CPU, b.machine.Cores, b.machine.Pinned)
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

func (s *soak) verdict() error {
	t := &s.total
	fmt.Fprintf(s.out, "in all: %d connections, %d turns, %d interrupted, %d dropped, %d underruns, %d turned away, %d stuck, %d rules broken, %d excused by a busy machine\n",
		t.connects, t.turns, t.cuts, t.drops, t.underruns, t.away, t.stuck, t.rules, t.excused)
	for _, f := range s.faults {
		fmt.Fprintln(s.out, "fault:", f)
	}
	switch {
	case t.turns == 0:
		return errors.New("the soak saw no turn")
	case t.stuck > 0 || t.rules > 0:
		return fmt.Errorf("the soak saw %d stuck devices and %d broken rules (%s)", t.stuck, t.rules, strings.Join(slices.Sorted(maps.Keys(t.broken)), ", "))
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
	if kib, err := s.r.target.pid.memory(); err == nil {
		server = fmt.Sprintf("rss %.1f MiB, ", float64(kib)/1024)
	}
	if n, err := s.r.target.prof.goroutines(ctx); err == nil {
		server += fmt.Sprintf("goroutines %d, ", n)
	}
	jitter := "-"
	if n := describe(ms(t.jitter)); n != nil {
		jitter = number(n.P99) + " ms"
	}
	fmt.Fprintf(s.out, "%7s  %sturns %d, cut %d, dropped %d, underruns %d, jitter p99 %s, turned away %d, broken rules %d (excused %d), stuck %d; control p99 %s / %s ms, load %s\n",
		at.Round(time.Second), server, t.turns, t.cuts, t.drops, t.underruns, jitter, t.away, t.rules, t.excused, t.stuck, number(c.P99), number(c.Core), loads(loadAverage()))
}

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
		if excused(b.Violation, s.busy) {
			s.count(func(t *tally) { t.excused++ })
			continue
		}
		s.count(func(t *tally) {
			if t.broken == nil {
				t.broken = make(map[string]int)
			}
			t.broken[string(b.Rule)]++
			t.rules++
		})
		if told != b.last {
			s.fault("%s: its last messages:\n%s", b.device, b.last)
			told = b.last
		}
		s.fault("%s: %s", b.device, b.Violation)
	}
}

// live is one device's life: it connects, talks for some turns, drops, rests, and comes back, until ctx ends.
func (s *soak) live(ctx context.Context, id string) {
	longest := 3 * time.Second // so that not all come at once
	for rested(ctx, longest) {
		longest = 2 * time.Second
		c, err := s.r.dial(ctx, s.options(id))
		if err != nil {
			s.trouble(ctx, id, err)
			continue
		}
		s.count(func(t *tally) { t.connects++ })
		err = s.talk(ctx, c)
		s.r.drop(c)
		last := c.last(40)
		if c.turnedAway() {
			s.count(func(t *tally) { t.away++ })
		} else if s.trouble(ctx, id, err) {
			s.fault("%s: its last messages:\n%s", id, last)
		}
		s.mu.Lock()
		for _, v := range c.Violations() {
			s.pending = append(s.pending, breach{id, v, last})
		}
		s.mu.Unlock()
	}
}

// rested waits for a random time. It is false when the soak ended meanwhile.
func rested(ctx context.Context, longest time.Duration) bool {
	return pause(ctx, rand.N(longest)) == nil
}

// options returns the options of a device that prefers one of the modes.
func (s *soak) options(id string) devicetest.Options {
	o := devicetest.Options{DeviceID: id, Mode: devicetest.Manual, NoMCP: rand.N(2) == 0}
	switch rand.N(10) {
	case 0, 1, 2:
		o.Mode, o.OpenListen = devicetest.Auto, true
	case 3:
		o.Mode, o.OpenListen = devicetest.Realtime, true
	}
	if !o.NoMCP {
		o.Tools = devicetest.NewBoard().Tools()
	}
	return o
}

// trouble counts a device that waited in vain, unless the soak is over.
func (s *soak) trouble(ctx context.Context, id string, err error) bool {
	if err == nil || ctx.Err() != nil {
		return false
	}
	s.fault("%s: %v", id, err)
	s.count(func(t *tally) { t.stuck++ })
	return true
}

// talk makes the turns of one connection, between its hello and its end.
func (s *soak) talk(ctx context.Context, c *client) error {
	auto := c.State() == devicetest.Listening
	for range 1 + rand.N(12) {
		if !rested(ctx, 1500*time.Millisecond) {
			return nil // the soak is over
		}
		c.frames.forget()
		before := c.Stats().Underruns
		how, err := s.turn(ctx, c, auto)
		s.count(func(t *tally) {
			t.turns++
			t.underruns += c.Stats().Underruns - before
			if how == heardOut { // the silent frame that ends a cut is nobody's jitter
				t.jitter = append(t.jitter, play(c.frames.all(), c.packet).jitter...)
			}
		})
		if err != nil || how == dropped {
			return err
		}
	}
	return nil
}

// outcome is the end of a turn of the soak.
type outcome int

const (
	heardOut outcome = iota // the reply was listened to
	cutShort                // it was aborted
	dropped                 // the connection was
)

// turn asks, and then listens, interrupts, or drops the connection.
func (s *soak) turn(ctx context.Context, c *client, auto bool) (how outcome, err error) {
	asked := time.Now()
	hush := func() error { return nil }
	switch way := rand.N(10); {
	case auto && way < 5:
		if err := c.listens(ctx); err != nil {
			return cutShort, err
		}
		hush = c.speak(ctx, asked, slices.Concat(s.r.said.packets, pauses(40*uplink.Frame)))
	case !auto && way < 5:
		_, err = c.pressed(ctx, s.r.said.packets[:10+rand.N(30)])
	default:
		err = c.Detect("tell me something")
	}
	defer func() { err = errors.Join(err, hush()) }()
	if err != nil {
		return cutShort, err
	}
	return s.end(ctx, c, asked)
}

func (s *soak) end(ctx context.Context, c *client, asked time.Time) (outcome, error) {
	if rand.N(10) == 0 { // before there is an answer
		if !rested(ctx, 300*time.Millisecond) {
			return dropped, nil
		}
		return cutShort, s.cut(ctx, c)
	}
	if _, err := c.heard(ctx, asked); err != nil {
		return cutShort, err
	}
	switch rand.N(8) {
	case 0, 1, 2:
		if !rested(ctx, 2*time.Second) {
			return dropped, nil
		}
		return cutShort, s.cut(ctx, c)
	case 3:
		s.count(func(t *tally) { t.drops++ })
		_ = rested(ctx, time.Second) // it is cut short by the soak's end
		return dropped, nil
	}
	_, err := c.repliedSoon(ctx, asked)
	return heardOut, err
}

func (s *soak) cut(ctx context.Context, c *client) error {
	s.count(func(t *tally) { t.cuts++ })
	_, err := c.cut(ctx)
	return err
}

// turnedAway reports whether the server has closed the connection because it was too busy, having said so: by 1013,
// try again later (IANA's registry of WebSocket close codes).
func (c *client) turnedAway() bool {
	return slices.ContainsFunc(c.Events(), func(e devicetest.Event) bool {
		return e.Kind == devicetest.KindClosed && strings.Contains(e.Text, "close 1013")
	})
}

// last are the last messages of a device and what it made of them, one a line.
func (c *client) last(n int) string {
	events := c.Events()
	var b strings.Builder
	for _, e := range events[max(0, len(events)-n):] {
		fmt.Fprintf(&b, "    %s %-9s %s %s %.60s\n", e.At.Format("05.000"), e.Kind, e.Type, e.State, e.Text)
	}
	return b.String()
}
