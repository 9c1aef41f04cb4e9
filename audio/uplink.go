package audio

import (
	"bytes"
	"cmp"
	"time"
)

const (
	twinBytes  = 8                      // shorter packets may well be alike: pauses
	steadyFor  = 230 * time.Millisecond // how long packets come evenly before one counts as lost
	calmUplink = 64                     // how many packets take away a part e of the lateness that counts as usual
	mostLost   = 5                      // frames; more missing at once is a pause of the sender
)

// Arrival is the judgement of an [Uplink] on a packet.
type Arrival struct {
	// Twin: it is the packet before once more. Throw it away.
	Twin bool
	// Lost is the number of packets before it that never came: give each to
	// Decoder.Lost before this packet is decoded.
	Lost int
}

// Uplink judges the packets of a microphone by their bytes and by when they come: devices drop
// frames when their queue is full, and networks in between may drop or double them. It reads
// no clock and is for one goroutine; its zero value is ready.
//
// A wrong guess is worse than none. A packet is a twin only if it equals the one right before,
// which came less than half a frame earlier; of a run of equal packets (encoded silence) at
// most one is. Packets are lost only if the sender's clock proves it: after a gap they have
// come evenly for 230 ms and are still late by what is missing. So a delay is never a loss,
// nor is a pause of more than five frames; a loss is known some frames after it happened.
type Uplink struct {
	last    []byte        // the packet before
	length  time.Duration // of the last packet that was more than a pause
	came    time.Time     // the packet before
	twins   bool          // the packet before was one of a run of equal ones
	started time.Time     // the first packet
	audio   time.Duration // of all packets
	late    time.Duration // by how much packets come later than the first one's clock says

	even        time.Time     // since when packets come evenly, later than they should; zero: they do not
	least, most time.Duration // how late they were since
	peak        time.Duration // the largest lateness since packets were last in time
	usual       time.Duration // the largest lateness that was made good, fading
}

// Arrived judges a packet that came at that time. It copies what it keeps.
func (u *Uplink) Arrived(packet []byte, at time.Time) Arrival {
	length := u.duration(packet)
	same := bytes.Equal(packet, u.last)
	if same && len(packet) > twinBytes && !u.twins && at.Sub(u.came) < length/2 {
		u.twins = true
		return Arrival{Twin: true}
	}
	u.twins = same
	u.last, u.came = append(u.last[:0], packet...), at
	if u.started.IsZero() {
		u.started = at
	}
	late := at.Sub(u.started) - u.audio
	u.audio += length
	return Arrival{Lost: u.missing(at, late)}
}

// Reset forgets the packets so far: others follow that have nothing to do with them.
func (u *Uplink) Reset() { *u = Uplink{last: u.last[:0], length: u.length} }

// duration returns the length of a packet's sound, by the rules of [Decoder.Receive].
func (u *Uplink) duration(packet []byte) time.Duration {
	d, err := PacketDuration(packet)
	switch {
	case err != nil:
		return cmp.Or(u.length, Recognition.Frame)
	case len(packet) <= dtxBytes:
		return max(d, u.length)
	}
	u.length = d
	return d
}

// missing notes how late a packet was and tells how many are lost.
func (u *Uplink) missing(at time.Time, late time.Duration) int {
	frame := max(u.length, 10*time.Millisecond)
	u.usual -= u.usual / calmUplink
	if late <= u.late+frame/4 { // about as early as any before: nothing is missing
		u.late, u.even = min(u.late, late), time.Time{}
		u.usual, u.peak = max(u.usual, u.peak), 0
		return 0
	}
	u.peak = max(u.peak, late-u.late)
	least, most := min(u.least, late), max(u.most, late)
	if u.even.IsZero() || most-least > frame/2 { // they do not come evenly: begin again
		u.even, u.least, u.most = at, late, late
		return 0
	}
	u.least, u.most = least, most
	if at.Sub(u.even) < steadyFor {
		return 0
	}
	lost := int((least - u.late + frame/4) / frame)
	if lost <= mostLost && least-u.late < u.usual+frame/2 {
		return 0 // packets have been as late as that, and came
	}
	u.even, u.peak = time.Time{}, 0
	if lost > mostLost {
		u.late = least
		return 0
	}
	u.late += time.Duration(lost) * frame
	return lost
}
