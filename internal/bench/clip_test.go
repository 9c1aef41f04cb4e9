package bench

import (
	"encoding/binary"
	"os"
	"slices"
	"testing"
	"time"

	"xiaozhi/audio"
	"xiaozhi/internal/speechtest"
)

// The speech is a sentence that a volunteer of LibriVox reads, without what lies
// before the first and behind the last 10 ms whose power is within 15 dB of the
// loudest. So the end of the last voiced sample is the end of what is left. With
// -update it is made anew.
func TestSpeechFromRecording(t *testing.T) {
	clips, err := speechtest.Others()
	if err != nil {
		t.Skip(err)
	}
	i := slices.IndexFunc(clips, func(c speechtest.Clip) bool { return c.Text == recorded })
	pcm := voiced(clips[i].PCM())
	if *update {
		data, err := encoded(pcm)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("speech.opus60", data, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got, want := speech().voiced, audio.Recognition.Duration(len(pcm)); got != want {
		t.Errorf("%v of voice, the recording has %v", got, want)
	}
}

func TestClip(t *testing.T) {
	c := speech()
	if c.voiced != 2500*time.Millisecond || len(c.packets) != 46 {
		t.Errorf("%v of voice in %d packets", c.voiced, len(c.packets))
	}
	pcm, err := c.pcm(replyRate)
	if err != nil || len(pcm) != 46*replyRate*6/100 {
		t.Errorf("%d samples, %v", len(pcm), err)
	}
}

// voiced is pcm from its first to its last 10 ms that are loud enough.
func voiced(pcm []int16) []int16 {
	const window, within = speechtest.Rate / 100, 32 // 15 dB of power
	var power []int64
	for part := range slices.Chunk(pcm[:len(pcm)/window*window], window) {
		sum := int64(0)
		for _, s := range part {
			sum += int64(s) * int64(s)
		}
		power = append(power, sum)
	}
	loud := func(p int64) bool { return p*within >= slices.Max(power) }
	first, last := slices.IndexFunc(power, loud), len(power)-1
	for !loud(power[last]) {
		last--
	}
	return pcm[first*window : (last+1)*window]
}

// encoded writes how many samples there are, and each packet behind its length:
// all numbers 16 bit, little endian, but the first, which has 32. Zeros stand
// behind the sound for as long as a device's encoder takes to send pauses.
func encoded(pcm []int16) ([]byte, error) {
	enc, err := audio.NewEncoderOf(uplink, audio.Device())
	if err != nil {
		return nil, err
	}
	out := binary.LittleEndian.AppendUint32(nil, uint32(len(pcm)))
	packet := make([]byte, audio.MaxPacket)
	pcm = append(slices.Clip(pcm), make([]int16, 4*uplink.Samples())...)
	for len(pcm) > 0 {
		frame := make([]int16, uplink.Samples())
		pcm = pcm[copy(frame, pcm):]
		n, err := enc.Encode(frame, packet)
		if err != nil {
			return nil, err
		}
		out = binary.LittleEndian.AppendUint16(out, uint16(n))
		out = append(out, packet[:n]...)
	}
	return out, nil
}
