package bench

import (
	_ "embed" // for the speech
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"xiaozhi/audio"
	"xiaozhi/internal/devicetest"
)

//go:embed speech.opus60
var speechFile []byte

// uplink is the format of what the devices say.
var uplink = audio.Format{Rate: 16000, Frame: 60 * time.Millisecond}

// clip is something that a device can say: Opus packets of 60 ms. Voiced sound
// begins with the first sample of the first packet and ends at voiced; the rest
// is silence.
type clip struct {
	packets [][]byte
	voiced  time.Duration
}

// speech is the recording of NOTICE: a person who says one sentence of 2.5 s.
func speech() (clip, error) { return readClip(speechFile) }

// readClip reads what makeclip writes.
func readClip(data []byte) (clip, error) {
	if len(data) < 4 {
		return clip{}, errors.New("clip: too short")
	}
	c := clip{voiced: uplink.Duration(int(binary.LittleEndian.Uint32(data)))}
	for data = data[4:]; len(data) > 0; {
		if len(data) < 2 {
			return clip{}, errors.New("clip: half a length at its end")
		}
		n := int(binary.LittleEndian.Uint16(data))
		if n == 0 || n > len(data)-2 {
			return clip{}, fmt.Errorf("clip: a packet of %d bytes, %d are left", n, len(data)-2)
		}
		c.packets = append(c.packets, data[2:2+n])
		data = data[2+n:]
	}
	if c.voiced > time.Duration(len(c.packets))*uplink.Frame {
		return clip{}, fmt.Errorf("clip: %d packets cannot hold %v", len(c.packets), c.voiced)
	}
	return c, nil
}

// pcm decodes the clip at a rate.
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

// pauses are n packets of silence, as devices send it.
func pauses(n int) [][]byte {
	out := make([][]byte, n)
	for i := range out {
		out[i] = devicetest.Pause(int(uplink.Frame / time.Millisecond))
	}
	return out
}

// room is the noise of a quiet room, which no detector takes for speech and
// none can skip: white noise 50 dB under full scale, the same each time.
func room(length time.Duration) ([][]byte, error) {
	enc, err := audio.NewEncoder(uplink)
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
