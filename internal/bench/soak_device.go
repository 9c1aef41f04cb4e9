package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"xiaozhi/internal/devicetest"
)

// live is one device's life: it connects, talks for some turns, drops, rests,
// and comes back, until ctx ends.
func (s *soak) live(ctx context.Context, id string) {
	rest := rand.N(3 * time.Second) // so that not all come at once
	for rested(ctx, rest) {
		rest = rand.N(2 * time.Second)
		c, err := s.r.dial(ctx, s.options(id))
		if err != nil {
			s.trouble(ctx, id, err)
			continue
		}
		s.count(func(t *tally) { t.connects++ })
		err = s.talk(ctx, c)
		c.Close()
		s.r.forget(c)
		away := c.turnedAway()
		if away {
			s.count(func(t *tally) { t.away++ })
		} else {
			s.trouble(ctx, id, err)
		}
		last := c.last(40)
		if err != nil && ctx.Err() == nil && !away {
			s.fault("%s: its last messages:\n%s", id, last)
		}
		for _, v := range c.Violations() {
			s.mu.Lock()
			s.pending = append(s.pending, breach{id, v, last})
			s.mu.Unlock()
		}
	}
}

// rested is false when the soak ended meanwhile.
func rested(ctx context.Context, d time.Duration) bool { return pause(ctx, d) == nil }

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
func (s *soak) trouble(ctx context.Context, id string, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	s.fault("%s: %v", id, err)
	s.count(func(t *tally) { t.stuck++ })
}

// talk makes the turns of one connection, between its hello and its end.
func (s *soak) talk(ctx context.Context, c *client) error {
	auto := c.State() == devicetest.Listening
	for range 1 + rand.N(12) {
		if !rested(ctx, rand.N(1500*time.Millisecond)) {
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
		if _, err := until(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, c.WaitMic(ctx) }); err != nil {
			return cutShort, fmt.Errorf("wait for the microphone: %w", err)
		}
		hush = c.speak(ctx, asked, append(slices.Clone(s.r.said.packets), pauses(40)...))
	case !auto && way < 5:
		_, err = c.pressed(ctx, clip{packets: s.r.said.packets[:10+rand.N(30)]})
	default:
		err = c.Detect("tell me something")
	}
	defer func() { err = errors.Join(err, hush()) }()
	if err != nil {
		return cutShort, err
	}
	return s.end(ctx, c, asked)
}

// end lets a turn that was begun end in one way or another.
func (s *soak) end(ctx context.Context, c *client, asked time.Time) (outcome, error) {
	if rand.N(10) == 0 { // before there is an answer
		if !rested(ctx, rand.N(300*time.Millisecond)) {
			return dropped, nil
		}
		return cutShort, s.cut(ctx, c)
	}
	if _, err := c.heard(ctx, asked); err != nil {
		return cutShort, err
	}
	switch rand.N(8) {
	case 0, 1, 2:
		if !rested(ctx, rand.N(2*time.Second)) {
			return dropped, nil
		}
		return cutShort, s.cut(ctx, c)
	case 3:
		s.count(func(t *tally) { t.drops++ })
		_ = pause(ctx, rand.N(time.Second)) // it is cut short by the soak's end
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

// tryAgainLater is the status of a connection that is closed by a busy server
// (IANA's registry of WebSocket close codes).
const tryAgainLater = "1013"

// turnedAway reports whether the server has closed the connection because it was
// too busy, having said so.
func (c *client) turnedAway() bool {
	return slices.ContainsFunc(c.Events(), func(e devicetest.Event) bool {
		return e.Kind == devicetest.KindClosed && strings.Contains(e.Text, "close "+tryAgainLater)
	})
}

// last are the last messages of a device and what it made of them, one a line.
func (c *client) last(n int) string {
	events := c.Events()
	var b strings.Builder
	for _, e := range events[max(0, len(events)-n):] {
		text := []rune(e.Text)
		fmt.Fprintf(&b, "    %s %-9s %s %s %s\n", e.At.Format("05.000"), e.Kind, e.Type, e.State, string(text[:min(len(text), 60)]))
	}
	return b.String()
}
