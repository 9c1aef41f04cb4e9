package connection

import (
	"log/slog"
	"time"

	"golang.org/x/time/rate"

	"xiaozhi/audio"
)

// Limits of one device. They are far above what any device does: a microphone
// records in real time, and what a stalled network held back comes as a burst of
// seconds; only tests send a whole utterance at once. What is over a limit is
// dropped and counted. A device that goes on ends, because parsing and decoding
// it would delay the others.
const (
	soundRate  = 16_000                // ms of sound in a second
	soundBurst = 60_000                // ms of sound at once
	leastSound = 20 * time.Millisecond // the shortest frame that devices send
	textRate   = 500                   // messages in a second, where 1 KiB more counts as one more
	textBurst  = 16 << 10              // messages at once
	maxExcess  = 0.25                  // of a burst may be dropped; then the session ends
	excessOver = 10 * time.Second      // without any excess: it is forgotten
	warnEvery  = time.Second           // between two warnings
)

// limits holds what one device may still send, how far it is beyond that, and
// the warnings about it. It is for one goroutine.
type limits struct {
	sound   *rate.Limiter // ms
	text    *rate.Limiter // messages
	excess  float64       // in bursts
	last    time.Time     // of excess
	dropped func()
	end     func(error)

	warned     time.Time
	suppressed int // warnings since then
}

// newLimits makes the limits of a device. dropped is called for each packet or
// message over them, end when the device goes on.
func newLimits(dropped func(), end func(error)) *limits {
	return &limits{
		sound: rate.NewLimiter(soundRate, soundBurst), text: rate.NewLimiter(textRate, textBurst),
		dropped: dropped, end: end,
	}
}

// allowSound reports whether a packet may be heard. One that says it is short, or
// is none, counts as the shortest that devices send; 1500 bytes more count as one
// more. A message of PCM is as long as its samples.
func (l *limits) allowSound(packet []byte, pcm bool) bool {
	if pcm {
		return l.allow(l.sound, int(max(pcmLength(packet), leastSound).Milliseconds()))
	}
	length, err := audio.PacketDuration(packet)
	if err != nil {
		length = 0
	}
	length = max(length, leastSound) + time.Duration(len(packet)/1500)*leastSound
	return l.allow(l.sound, int(length.Milliseconds()))
}

// allowText reports whether a text message of so many bytes may be read.
func (l *limits) allowText(size int) bool { return l.allow(l.text, 1+size>>10) }

func (l *limits) allow(bucket *rate.Limiter, cost int) bool {
	now := time.Now()
	if bucket.AllowN(now, cost) {
		return true
	}
	if now.Sub(l.last) > excessOver {
		l.excess = 0
	}
	l.excess, l.last = l.excess+float64(cost)/float64(bucket.Burst()), now
	l.dropped()
	if l.excess > maxExcess {
		l.end(errFlooding)
	}
	return false
}

// warn logs a warning, at most one a second, so that a device cannot fill the
// log. The next one says how many were suppressed.
func (l *limits) warn(log *slog.Logger, msg string, args ...any) {
	now := time.Now()
	if !l.warned.IsZero() && now.Sub(l.warned) < warnEvery {
		l.suppressed++
		return
	}
	if l.suppressed > 0 {
		args = append(args, "suppressed", l.suppressed)
	}
	l.suppressed, l.warned = 0, now
	log.Warn(msg, args...)
}
