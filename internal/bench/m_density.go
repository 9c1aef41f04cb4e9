package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"xiaozhi/audio"
	"xiaozhi/internal/devicetest"
)

const (
	jitterLimit = 20.0 // ms: the p99 of the jitter up to which a number of speakers counts (M11)
	levelTries  = 3    // attempts at one number of speakers while the machine is busy
)

// crowd is a number of devices that are being spoken to, which can be changed.
type crowd struct {
	r       *rig
	options devicetest.Options
	uplink  [][]byte // that each says without end; nil: nothing
	all     []*client
}

func density(ctx context.Context, r *rig) ([]Figure, error) {
	c := &crowd{r: r, options: devicetest.Options{Mode: devicetest.Manual, NoMCP: true}}
	return c.measure(ctx, "speakers at once", 80)
}

// densityOpen is M11 with open microphones: a quiet room is heard all the time.
func densityOpen(ctx context.Context, r *rig) ([]Figure, error) {
	const some = 10 * time.Second
	noise, err := room(some)
	if err != nil {
		return nil, err
	}
	c := &crowd{r: r, options: devicetest.Options{Mode: devicetest.Realtime, OpenListen: true, NoMCP: true}}
	c.uplink = slices.Repeat(noise, int(time.Hour/some))
	return c.measure(ctx, "speakers at once, open uplink and VAD", 60)
}

// measure looks for the largest crowd that hears well.
func (c *crowd) measure(ctx context.Context, what string, goal int) ([]Figure, error) {
	defer func() { c.leave(slices.Clone(c.all)) }()
	c.r.stubs.Set(c.r.endless())
	var levels []Figure
	fits := func(n int) (bool, error) {
		level, ok, err := c.level(ctx, n, what)
		levels = append(levels, level)
		return ok, err
	}
	n, err := search(c.r.density.least, min(goal, c.r.density.most), c.r.density.most, c.r.density.step, c.r.density.fine, fits)
	found := single("M11", what, "", len(levels), float64(n), least(Value, float64(goal)))
	found.Note = fmt.Sprintf("p99 jitter under %g ms, no underrun, for %v each", jitterLimit, c.r.window)
	if n == c.r.density.most {
		found.Note += "; more were not tried"
	}
	if c.r.density.most < goal {
		found.Goals = nil // too few to say
	}
	if n >= goal {
		found = found.untimed() // it was reached, however busy the machine was
	} else if len(levels) > 0 {
		found.Control = worst(levels)
	}
	return append(levels, found), err
}

func (c *crowd) level(ctx context.Context, n int, what string) (level Figure, ok bool, err error) {
	for try := 1; try == 1 || (!ok && level.Control.Void && try <= levelTries); try++ {
		if err := c.resize(ctx, n); err != nil {
			return level, false, err
		}
		control := c.r.target.watch(ctx)
		heard, err := listenTo(ctx, c.all, c.r.window)
		watched := control()
		if err != nil {
			return level, false, err
		}
		c.leave(heard.deaf) // others take their places
		level = sampled("M11", fmt.Sprintf("jitter, %d %s", n, what), ms(heard.jitter)).noted("%d underruns, %d heard nothing; try %d", heard.underruns, len(heard.deaf), try).asJitter()
		level.Control = watched
		ok = level.Numbers != nil && level.Numbers.P99 < jitterLimit && heard.underruns == 0 && len(heard.deaf) == 0
	}
	return level, ok, nil
}

// search gives a number between low and high that fits while the next larger one that was tried does not; 0 if none
// fits. It begins at aim, goes up or down by step, and then halves what is left until that is no more than fine.
func search(low, aim, high, step, fine int, fits func(int) (bool, error)) (int, error) {
	best, fails := 0, high+1 // fails: the least that was found not to fit
	n := aim
	for n > best && n < fails && n >= low {
		ok, err := fits(n)
		if err != nil {
			return best, err
		}
		if ok {
			best = n
		} else {
			fails = n
		}
		switch gap := fails - best; {
		case best == 0:
			n -= step
		case fails > high:
			n += step
		case gap > fine:
			n = best + gap/2
		}
	}
	return best, nil
}

func (c *crowd) resize(ctx context.Context, n int) error {
	if n < len(c.all) {
		c.leave(slices.Clone(c.all[n:]))
	}
	more, err := c.r.speaking(ctx, n-len(c.all), c.options)
	if err != nil {
		return err
	}
	for _, d := range more {
		c.all = append(c.all, d)
		if c.uplink != nil {
			d.hush = d.speak(ctx, time.Now(), c.uplink)
		}
	}
	return pause(ctx, time.Second) // until the last has its lead
}

func (c *crowd) leave(gone []*client) {
	for _, d := range gone {
		if d.hush != nil {
			_ = d.hush() // what it says of the end of a connection is seen elsewhere
		}
		d.Close()
	}
	c.all = slices.DeleteFunc(c.all, func(d *client) bool { return slices.Contains(gone, d) })
}

// listened holds the measurements of all devices in one window.
type listened struct {
	jitter    []time.Duration
	underruns int
	deaf      []*client // those that heard nothing
}

// listenTo gives the jitter and the underruns of devices in the middle of their replies, during the time to come.
func listenTo(ctx context.Context, all []*client, window time.Duration) (heard listened, err error) {
	before := make([]int, len(all))
	for i, d := range all {
		d.frames.forget()
		before[i] = d.Stats().Underruns
	}
	if err := pause(ctx, window); err != nil {
		return heard, err
	}
	for i, d := range all {
		arrivals := d.frames.all()
		if len(arrivals) < 2 {
			heard.deaf = append(heard.deaf, d)
			continue
		}
		heard.jitter = append(heard.jitter, apart(arrivals, d.packet)...)
		heard.underruns += d.Stats().Underruns - before[i]
	}
	return heard, nil
}

// packetsOfMinute is how many packets of a reply a minute of sound is.
const packetsOfMinute = float64(time.Minute / (60 * time.Millisecond))

// work is M13: what a minute of speech costs the server's processor, beside
// the bare encoding of the same sound on the same core.
func work(ctx context.Context, r *rig) ([]Figure, error) {
	const what = "CPU per session-minute"
	if r.target.pid == 0 {
		return []Figure{unmeasured("M13", what, "no process id (--pid)")}, nil
	}
	r.stubs.Set(r.endless())
	err1 := pause(ctx, 3*time.Second) // a server that has just started has things to do first
	devices, err2 := r.speaking(ctx, r.speakers, devicetest.Options{Mode: devicetest.Manual, NoMCP: true})
	if err := cmp.Or(err1, err2, pause(ctx, time.Second)); err != nil {
		return nil, err
	}
	used, err := r.target.pid.used(func() error { return pause(ctx, r.window) })
	if err != nil {
		return nil, err
	}
	minutes := used.during.Minutes() * float64(len(devices))
	packets := minutes * packetsOfMinute
	bare, err1 := r.bareEncode(10*time.Second, 1)
	turns, err2 := r.bareEncode(30*time.Second, len(devices))
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	perMinute := (used.user + used.kernel).Seconds() / minutes
	codec := turns / packetsOfMinute // of a packet, in seconds
	micro := func(seconds float64) float64 { return 1e6 * seconds }
	return []Figure{
		single("M13", what, "s", len(devices), perMinute, most(Value, 0.6)).untimed(),
		single("M13", "bare libopus encode of a minute of the same sound", "s", 1, bare).untimed(),
		single("M13", "the same where as many voices take turns", "s", len(devices), turns).
			noted("%.2f × the bare encode of one voice: each voice finds the processor's caches full of the others", turns/bare).untimed(),
		single("M13", "CPU as a multiple of the bare encode", "×", len(devices), perMinute/bare, most(Value, 1.3)).untimed(),
		single("M13", "CPU per packet: libopus, as many voices taking turns", "µs", len(devices), micro(codec)).untimed(),
		single("M13", "CPU per packet: kernel", "µs", len(devices), micro(used.kernel.Seconds()/packets)).untimed(),
		single("M13", "CPU per packet: the rest, Go", "µs", len(devices), micro(used.user.Seconds()/packets-codec)).untimed(),
		single("M13", "thread switches per packet", "", len(devices), float64(used.switches)/packets).untimed(),
	}, nil
}

// bareEncode is the processor time in seconds that encoding a minute of the stub voice's sound takes, in frames and
// settings of a reply, measured by encoding some of it on the server's core: of one voice, or of many that take turns
// frame by frame, as in a server.
func (r *rig) bareEncode(some time.Duration, voices int) (float64, error) {
	pcm, err := r.said.pcm(replyRate)
	if err != nil {
		return 0, err
	}
	encoders := make([]*audio.Encoder, voices)
	for i := range encoders {
		if encoders[i], err = audio.NewEncoder(audio.Reply); err != nil {
			return 0, err
		}
	}
	var used time.Duration
	err = onCore(r.target.core, func() error {
		packet := make([]byte, audio.MaxPacket)
		size := audio.Reply.Samples()
		starts := len(pcm)/size - 1 // where a voice is in the sound
		from := threadTime()
		for i := range int(some / audio.Reply.Frame) {
			voice := i % voices
			at := (voice*7 + i/voices) % starts * size // each somewhere else
			if _, err := encoders[voice].Encode(pcm[at:at+size], packet); err != nil {
				return err
			}
		}
		used = threadTime() - from
		return nil
	})
	return used.Seconds() * float64(time.Minute) / float64(some), err
}
