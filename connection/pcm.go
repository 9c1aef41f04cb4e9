package connection

import (
	"encoding/binary"
	"fmt"
	"log/slog"
	"time"

	"xiaozhi/audio"
)

// Sizes of the two directions of PCM, in bytes (docs/protocol.md 4.6).
const (
	pcmUp   = 16000 * 60 / 1000 * pcmSample // a frame of the microphone
	pcmMost = 2 * pcmUp                     // of one message
	pcmDown = 24000 * 60 / 1000 * pcmSample // a frame of the reply

	pcmSample = 2
)

// pcmCoding is that of sound from the microphone on its way to the conversation: a computer has room for more than a
// device sends.
var pcmCoding = audio.Coding{Bitrate: 40000, Complexity: 3}

// The ends of a session that says PCM and does not keep to it.
var (
	errPCMFormat error = &Reason{
		Text: "pcm is 16000 Hz, 1 channel, frames of 60 ms, framing 1 (docs/protocol.md 4.6)",
		Kind: Policy, Level: slog.LevelWarn,
	}
	errPCMFrame = func(size int) error {
		return &Reason{
			Text: "a message of pcm is 2 to 3840 bytes, an even number (docs/protocol.md 4.6)",
			Kind: Policy, Level: slog.LevelWarn, Err: fmt.Errorf("%d bytes", size),
		}
	}
)

// pcmCodec stands at the edge of a session whose client speaks PCM. Everybody behind it knows Opus only, so that pacing,
// cuts, echo and recordings are those of any device.
//
// # Concurrency
//
// encode is for the reader, decode for the writer.
type pcmCodec struct {
	up      *audio.Encoder
	waiting []int16 // of the microphone, less than a frame
	packet  []byte

	down  *audio.Decoder
	sound []int16
	bytes []byte
}

func newPCMCodec() (*pcmCodec, error) {
	up, err := audio.NewEncoderOf(audio.Recognition, pcmCoding)
	if err != nil {
		return nil, err
	}
	down, err := audio.NewDecoder(audio.Reply.Rate)
	if err != nil {
		return nil, err
	}
	return &pcmCodec{
		up: up, waiting: make([]int16, 0, pcmUp/pcmSample), packet: make([]byte, audio.MaxPacket),
		down: down, sound: make([]int16, audio.MaxFrameSamples(audio.Reply.Rate)),
	}, nil
}

// encode gives the packets of a message, one after the other, to hear, which must not keep them. What is less than a
// frame waits for the next message.
func (c *pcmCodec) encode(message []byte, hear func(packet []byte)) error {
	if len(message)%pcmSample != 0 || len(message) > pcmMost {
		return errPCMFrame(len(message))
	}
	for ; len(message) > 0; message = message[pcmSample:] {
		c.waiting = append(c.waiting, int16(binary.LittleEndian.Uint16(message)))
		if len(c.waiting) < cap(c.waiting) {
			continue
		}
		n, err := c.up.Encode(c.waiting, c.packet)
		if err != nil {
			return failed("sound of the microphone cannot be encoded", err)
		}
		c.waiting = c.waiting[:0]
		hear(c.packet[:n])
	}
	return nil
}

// decode returns the sound of a packet of the reply, or what stands for that of a broken one. It is good until the next.
func (c *pcmCodec) decode(packet []byte) []byte {
	n, _ := c.down.Receive(packet, c.sound)
	c.bytes = c.bytes[:0]
	for _, sample := range c.sound[:n] {
		c.bytes = binary.LittleEndian.AppendUint16(c.bytes, uint16(sample))
	}
	return c.bytes
}

// pcmLength returns the time that a message of PCM plays.
func pcmLength(message []byte) time.Duration {
	return audio.Recognition.Duration(len(message) / pcmSample)
}
