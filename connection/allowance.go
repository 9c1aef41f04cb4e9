package connection

import (
	"errors"
	"log/slog"
	"time"

	"github.com/gorilla/websocket"

	"xiaozhi/audio"
)

// What one device may send. It is far more than any device does: a microphone
// records in real time, and what a stalled network held back comes as a burst of
// seconds; only tests send a whole utterance at once. What is over it is dropped
// and counted; who goes on is hung up on, for parsing and decoding it would cost
// the others their time.
const (
	soundBurst = time.Minute // of sound at once
	soundSpeed = 16          // seconds of sound in a second from then on
	leastSound = 20 * time.Millisecond
	messages   = 16 << 10          // at once, where 1 KiB more counts as one more
	messageGap = time.Second / 500 // between them from then on
	maxExcess  = 4                 // a burst's fourth part may be dropped; then the connection ends
	excessOver = 10 * time.Second  // without any of it: all is forgiven
)

// errFlood is the end of a message that is made of too many pieces.
var errFlood = errors.New("more than any device has to say")

// errFlooding is the end of a device that sends more than any device has to say.
var errFlooding error = &ending{
	reason: "device floods the connection", code: websocket.ClosePolicyViolation, level: slog.LevelWarn,
}

// allowance is a purse of time: what is done costs some, and it fills up with
// the clock, so many times as fast, up to size. It is for one goroutine.
type allowance struct {
	size  time.Duration
	speed time.Duration
	spent time.Duration
	at    time.Time // when spent was so much
}

// spend takes so much out of it; false: there is not enough, and nothing is taken.
func (a *allowance) spend(now time.Time, cost time.Duration) bool {
	past := min(now.Sub(a.at), a.size) // more than that makes no difference, and could overflow
	a.spent = max(0, a.spent-past*a.speed)
	a.at = now
	if a.spent+cost > a.size {
		return false
	}
	a.spent += cost
	return true
}

// dues are what a device may still send, and what it has sent beyond that. Of
// the reader.
type dues struct {
	sound  allowance
	words  allowance
	excess time.Duration // what it would have cost
	last   time.Time     // of excess
}

func newDues() dues {
	return dues{
		sound: allowance{size: soundBurst, speed: soundSpeed},
		words: allowance{size: messages * messageGap, speed: 1},
	}
}

// affords reports whether the device may be heard. If not, what it sent is to be
// dropped; too much of that ends the connection.
func (c *conn) affords(purse *allowance, cost time.Duration) bool {
	now := time.Now()
	if purse.spend(now, cost) {
		return true
	}
	if now.Sub(c.dues.last) > excessOver {
		c.dues.excess = 0
	}
	c.dues.excess, c.dues.last = c.dues.excess+cost, now
	c.counts.excess.Add(1)
	if c.dues.excess > purse.size/maxExcess {
		c.end(errFlooding)
	}
	return false
}

// affordsSound is affords for one packet. A packet that says it is short, or is
// none, costs as much as the shortest that devices send; a long one costs more.
func (c *conn) affordsSound(packet []byte) bool {
	length, err := audio.PacketDuration(packet)
	if err != nil {
		length = 0
	}
	return c.affords(&c.dues.sound, max(length, leastSound)+time.Duration(len(packet)/1500)*leastSound)
}

// affordsText is affords for one text message of so many bytes.
func (c *conn) affordsText(size int) bool {
	return c.affords(&c.dues.words, time.Duration(1+size>>10)*messageGap)
}
