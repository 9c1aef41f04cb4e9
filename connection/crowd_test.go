package connection

import (
	"math/rand/v2"
	"testing"
	"time"

	"xiaozhi/audio"
)

// A crowd is a model of a server that fills up: one more device is spoken to
// each second, and each makes all that the process does later. How late anything
// is, heartbeat or frame, is drawn at random, mostly little and now and then
// much, as with all that queues for a processor.
type crowd struct {
	rnd   *rand.Rand
	each  time.Duration // mean lateness that a device adds
	meter lagMeter
	all   []*listener
}

// listener is a device that is spoken to without end.
type listener struct {
	pacer *audio.Pacer
	at    time.Time // of its last frame
}

// late draws how late something is.
func (c *crowd) late() time.Duration {
	return time.Duration(c.rnd.ExpFloat64() * float64(len(c.all)) * float64(c.each))
}

// live lets one heartbeat pass.
func (c *crowd) live(now time.Time) {
	c.meter.add(c.late(), 1)
	for _, l := range c.all {
		for {
			due := l.pacer.Due(l.at)
			if due.Before(l.at) {
				due = l.at
			}
			if due.After(now) {
				break
			}
			late := c.late()
			l.at = due.Add(late)
			l.pacer.Sent(l.at)
			l.pacer.Late(late)
		}
	}
}

// underruns is how often a device fell silent.
func (c *crowd) underruns() (n int) {
	for _, l := range c.all {
		n += l.pacer.Underruns()
	}
	return n
}

// fill lets a model fill up for two minutes, which admits no more devices over a limit.
func (c *crowd) fill(limit time.Duration) (closed bool) {
	c.meter.limit = limit
	now := time.Unix(0, 0)
	for beat := range 2 * time.Minute / heartbeat {
		now = now.Add(heartbeat)
		closed = closed || c.meter.busy && len(c.all) > fewDevices
		if !closed && beat*heartbeat%time.Second < heartbeat {
			c.all = append(c.all, &listener{audio.NewPacer(audio.Reply.Frame, 0), now})
		}
		c.live(now)
	}
	return closed
}

// TestTooBusyBeforeUnderruns: as a server fills up, new devices are turned
// away before any that is spoken to falls silent, and as long as it stays so
// full none does. Without a limit they do.
func TestTooBusyBeforeUnderruns(t *testing.T) {
	model := func(seed uint64, each time.Duration) *crowd {
		return &crowd{rnd: rand.New(rand.NewPCG(seed, 7)), each: each}
	}
	for seed := range uint64(4) {
		for _, each := range []time.Duration{200 * time.Microsecond, time.Millisecond} {
			c := model(seed, each)
			if closed, n := c.fill(20*time.Millisecond), c.underruns(); !closed || n > 0 {
				t.Errorf("seed %d, %v each: closed %v at %d devices, %d underruns", seed, each, closed, len(c.all), n)
			}
		}
	}
	c := model(1, time.Millisecond)
	if closed, n := c.fill(time.Hour), c.underruns(); closed || n == 0 {
		t.Errorf("no limit: closed %v at %d devices, %d underruns", closed, len(c.all), n)
	}
}
