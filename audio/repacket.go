package audio

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

const (
	maxOpusFrame  = 1275 // bytes of one frame (RFC 6716, section 3.4, R2)
	maxOpusFrames = 48   // frames of one packet (R5)
	tocStereo     = 4    // the bit of the table of contents that says stereo
	tocCode       = 3    // the bits that say how frames are packed
)

// ErrRepacket says that a packet cannot join those that are waiting: it is of
// another kind or length, stereo, too large, or broken. It was not taken.
var ErrRepacket = errors.New("opus: the packet cannot be merged")

// Repacketizer merges short Opus packets into longer ones by moving their bytes:
// nothing is decoded, and nothing is lost (RFC 6716, section 3.2). It is for one
// goroutine, and allocates nothing once its buffer has grown.
type Repacketizer struct {
	length time.Duration // of the packets it makes
	toc    byte          // of the packets that wait, without the code
	bytes  []byte        // their frames, one after the other
	sizes  []int         // of the frames
}

// NewRepacketizer makes packets of that length.
func NewRepacketizer(length time.Duration) *Repacketizer {
	return &Repacketizer{length: length}
}

// Waiting returns the length of the sound that was added and not taken.
func (r *Repacketizer) Waiting() time.Duration {
	return time.Duration(len(r.sizes)) * frameDuration(r.toc>>3)
}

// Full reports whether a packet of the wanted length can be taken.
func (r *Repacketizer) Full() bool { return len(r.sizes) > 0 && r.Waiting() == r.length }

// Clear forgets what waits.
func (r *Repacketizer) Clear() { r.bytes, r.sizes = r.bytes[:0], r.sizes[:0] }

// Add puts a mono packet behind those that wait. It copies it. If it cannot
// join them, the error is an ErrRepacket, and what waits stays as it was.
func (r *Repacketizer) Add(packet []byte) error {
	var frames [maxOpusFrames][]byte
	n, err := splitPacket(packet, &frames)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRepacket, err)
	}
	toc, bytes := packet[0]&^tocCode, 0
	for _, f := range frames[:n] {
		bytes += len(f)
	}
	length := time.Duration(n) * frameDuration(toc>>3)
	switch {
	case toc&tocStereo != 0:
		return fmt.Errorf("%w: it is stereo", ErrRepacket)
	case len(r.sizes) > 0 && toc != r.toc:
		return fmt.Errorf("%w: its kind is %#02x, theirs %#02x", ErrRepacket, toc, r.toc)
	case length > r.length || (len(r.sizes) > 0 && r.Waiting()+length > r.length):
		return fmt.Errorf("%w: it lasts %v", ErrRepacket, length)
	case len(r.bytes)+bytes+2+4*int(r.length/frameDuration(toc>>3)) > MaxPacket: // sizes, and what Pad adds
		return fmt.Errorf("%w: together they are larger than %d bytes", ErrRepacket, MaxPacket)
	}
	r.toc = toc
	for _, f := range frames[:n] {
		r.bytes = append(r.bytes, f...)
		r.sizes = append(r.sizes, len(f))
	}
	return nil
}

// Pad fills up what waits to a whole packet at the end of a stream, and says whether it could:
// with CELT's frame of silence, or empty SILK frames, over which the decoder fades out.
func (r *Repacketizer) Pad() bool {
	frame, left := frameDuration(r.toc>>3), r.length-r.Waiting()
	if len(r.sizes) == 0 || left%frame != 0 {
		return false
	}
	for range left / frame {
		before := len(r.bytes)
		if r.toc>>3 >= 16 {
			r.bytes = append(r.bytes, 0xff, 0xfe) // the silence flag, then nothing (section 4.3)
		}
		r.sizes = append(r.sizes, len(r.bytes)-before)
	}
	return true
}

// Take appends all that waits to dst, as one packet of at most MaxPacket bytes, and begins anew.
func (r *Repacketizer) Take(dst []byte) []byte {
	switch {
	case len(r.sizes) == 0:
		return dst
	case len(r.sizes) == 1:
		dst = append(dst, r.toc)
	default:
		const code, vbr = 3, 0x80
		same := !slices.ContainsFunc(r.sizes, func(n int) bool { return n != r.sizes[0] })
		dst = append(dst, r.toc|code, byte(len(r.sizes)))
		if !same {
			dst[len(dst)-1] |= vbr
			for _, n := range r.sizes[:len(r.sizes)-1] {
				if n < 252 { // a frame's size is one or two bytes (section 3.2.1)
					dst = append(dst, byte(n))
				} else {
					dst = append(dst, byte(252+n&3), byte((n-(252+n&3))/4))
				}
			}
		}
	}
	dst = append(dst, r.bytes...)
	r.Clear()
	return dst
}

// readFrameSize reads a frame's size, as Take writes it, and what is behind it.
func readFrameSize(b []byte) (n int, rest []byte, err error) {
	switch {
	case len(b) == 0 || (b[0] >= 252 && len(b) < 2):
		return 0, nil, errors.New("it ends within its frame sizes")
	case b[0] < 252:
		return int(b[0]), b[1:], nil
	}
	return int(b[0]) + 4*int(b[1]), b[2:], nil
}

// splitPacket finds the frames of a packet (section 3.2) and says how many there are.
func splitPacket(packet []byte, frames *[maxOpusFrames][]byte) (int, error) {
	if _, err := PacketDuration(packet); err != nil {
		return 0, err
	}
	body := packet[1:]
	var n int
	var err error
	switch packet[0] & tocCode {
	case 0:
		n, frames[0] = 1, body
	case 1:
		n, err = equalFrames(body, 2, frames)
	case 2:
		n = 2
		var size int
		if size, body, err = readFrameSize(body); err == nil && size > len(body) {
			err = errors.New("its first frame is longer than the packet")
		}
		if err == nil {
			frames[0], frames[1] = body[:size], body[size:]
		}
	default:
		n, err = manyFrames(body, frames)
	}
	if err != nil {
		return 0, err
	}
	for _, f := range frames[:n] {
		if len(f) > maxOpusFrame {
			return 0, fmt.Errorf("a frame of %d bytes", len(f))
		}
	}
	return n, nil
}

// equalFrames cuts body into n frames of one size.
func equalFrames(body []byte, n int, frames *[maxOpusFrames][]byte) (int, error) {
	if len(body)%n != 0 {
		return 0, fmt.Errorf("%d bytes are not %d frames of one size", len(body), n)
	}
	size := len(body) / n
	for i := range n {
		frames[i] = body[i*size : (i+1)*size]
	}
	return n, nil
}

// manyFrames cuts the body of a packet of code 3, which begins with its frame count.
func manyFrames(body []byte, frames *[maxOpusFrames][]byte) (int, error) {
	const vbr, padded = 0x80, 0x40
	head, body := body[0], body[1:]
	n := int(head & 0x3f) // PacketDuration has looked at it
	padding := 0
	for more := head&padded != 0; more; {
		if len(body) == 0 {
			return 0, errors.New("it ends within its padding")
		}
		b := int(body[0])
		body = body[1:]
		if more = b == 255; more {
			b--
		}
		padding += b
	}
	if padding > len(body) {
		return 0, errors.New("it has more padding than bytes")
	}
	body = body[:len(body)-padding]
	if head&vbr == 0 {
		return equalFrames(body, n, frames)
	}
	var sizes [maxOpusFrames]int
	for i := range n - 1 {
		var err error
		if sizes[i], body, err = readFrameSize(body); err != nil {
			return 0, err
		}
	}
	for i := range n - 1 {
		if sizes[i] > len(body) {
			return 0, errors.New("a frame is longer than the packet")
		}
		frames[i], body = body[:sizes[i]], body[sizes[i]:]
	}
	frames[n-1] = body
	return n, nil
}
