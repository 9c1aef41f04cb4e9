package devicetest

import (
	"encoding/binary"
	"fmt"
	"time"

	"xiaozhi/audio"
)

// pcmFrame is a frame of the reply as PCM, in bytes (4.6).
const pcmFrame = 24000 * 60 / 1000 * 2

// pcmBytes are samples as the wire has them.
func pcmBytes(pcm []int16) []byte {
	b := make([]byte, 0, 2*len(pcm))
	for _, sample := range pcm {
		b = binary.LittleEndian.AppendUint16(b, uint16(sample))
	}
	return b
}

// pcmSamples is the other way, into room.
func pcmSamples(b []byte, room []int16) []int16 {
	room = room[:0]
	for ; len(b) > 1; b = b[2:] {
		room = append(room, int16(binary.LittleEndian.Uint16(b)))
	}
	return room
}

// checkPCM holds a client of PCM to frames of one length. False: it cannot be played.
func (d *downlink) checkPCM(now time.Time, frame []byte) (time.Duration, bool) {
	if len(frame) != pcmFrame {
		d.journal.violate(now, RulePacket, "a frame of %d bytes of PCM, want %d", len(frame), pcmFrame)
		return 0, false
	}
	return audio.Reply.Frame, true
}

// checkPCM says what a device that speaks PCM cannot be.
func (o Options) checkPCM() error {
	switch {
	case !o.Sound.PCM:
		return nil
	case o.Protocol != 1, o.Sound.FrameMs != 60:
		return fmt.Errorf("pcm with framing %d and frames of %d ms: must be 1 and 60", o.Protocol, o.Sound.FrameMs)
	case o.Sound.AEC, o.Sound.Room != nil:
		return fmt.Errorf("pcm has no timestamps of what was played")
	}
	return nil
}
