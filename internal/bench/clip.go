package bench

import (
	_ "embed" // for the speech and the replies
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"xiaozhi/audio"
	"xiaozhi/internal/devicetest"
)

//go:embed speech.opus60
var speechFile []byte

//go:embed replies.zh.txt
var repliesFile string

// chineseReplies are thirty replies as a language model gives them (M17):
// openings with and without an early pause, numbers, names, and questions.
func chineseReplies() []string { return strings.Split(strings.TrimSpace(repliesFile), "\n") }

// uplink is the format of what the devices say.
var uplink = audio.Format{Rate: 16000, Frame: 60 * time.Millisecond}

// clip is something that a device can say: Opus packets of 60 ms. Voiced sound begins with the first sample of the
// first packet and ends at voiced; the rest is silence.
type clip struct {
	packets [][]byte
	voiced  time.Duration
}

// speech is the recording of NOTICE: a person who says one sentence of 2.5 s.
func speech() clip {
	c := clip{voiced: uplink.Duration(int(binary.LittleEndian.Uint32(speechFile)))}
	for data := speechFile[4:]; len(data) > 0; {
		n := 2 + int(binary.LittleEndian.Uint16(data)) // the packet's length stands before it
		c.packets, data = append(c.packets, data[2:n]), data[n:]
	}
	return c
}

func (c clip) pcm(rate int) ([]int16, error) {
	dec, err := audio.NewDecoder(rate)
	if err != nil {
		return nil, err
	}
	var all []int16
	buf := make([]int16, audio.MaxFrameSamples(rate))
	for _, p := range c.packets {
		n, err := dec.Decode(p, buf)
		if err != nil {
			return nil, err
		}
		all = append(all, buf[:n]...)
	}
	return all, nil
}

// pauses are packets of so much silence, as devices send it.
func pauses(length time.Duration) [][]byte {
	return slices.Repeat([][]byte{devicetest.Pause(int(uplink.Frame / time.Millisecond))}, int(length/uplink.Frame))
}

// room is the noise of a quiet room, which no detector takes for speech and
// none can skip: white noise 50 dB under full scale, the same each time.
func room(length time.Duration) ([][]byte, error) {
	enc, err := audio.NewEncoderOf(uplink, audio.Device())
	if err != nil {
		return nil, err
	}
	random := rand.New(rand.NewPCG(1, 2))
	frame := make([]int16, uplink.Samples())
	var out [][]byte
	for range int(length / uplink.Frame) {
		for i := range frame {
			frame[i] = int16(random.NormFloat64() * 100)
		}
		packet := make([]byte, audio.MaxPacket)
		n, err := enc.Encode(frame, packet)
		if err != nil {
			return nil, err
		}
		out = append(out, packet[:n:n])
	}
	return out, nil
}
