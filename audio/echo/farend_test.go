package echo

import (
	"testing"

	"xiaozhi/audio"
)

// TestFarEndBounds: the newest packets are kept while none is taken, and
// nothing at all while it is closed.
func TestFarEndBounds(t *testing.T) {
	enc, err := audio.NewEncoder(audio.Reply)
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, audio.MaxPacket)
	n, err := enc.Encode(make([]int16, audio.Reply.Samples()), buf)
	if err != nil {
		t.Fatal(err)
	}
	m, stamp := &FarEnd{}, uint32(0)
	send := func(packets int) {
		for range packets {
			stamp++
			m.Sent(buf[:n], stamp)
		}
	}
	taken := func() (stamps []uint32) {
		m.Take(func(stamp uint32, pcm []int16) {
			if len(pcm) != audio.Recognition.Samples() {
				t.Errorf("packet %d has %d samples", stamp, len(pcm))
			}
			stamps = append(stamps, stamp)
		})
		return stamps
	}
	send(10)
	if got := taken(); len(got) != 0 || m.decoder != nil {
		t.Errorf("decoded while the microphone is closed: %v", got)
	}
	m.Open(true)
	send(maxWaiting + 36)
	if got := taken(); len(got) != maxWaiting || got[0] != 47 || got[maxWaiting-1] != 110 {
		t.Errorf("kept %v", got)
	}
	if cap(m.waiting) > maxSpare {
		t.Errorf("%d buffers are kept", cap(m.waiting))
	}
	if allocs := testing.AllocsPerRun(20, func() { send(1); m.Take(func(uint32, []int16) {}) }); allocs > 0 {
		t.Errorf("%v allocations for a packet", allocs)
	}
	send(3)
	m.Open(false)
	if got := taken(); len(got) != 0 || m.waiting != nil {
		t.Errorf("kept after the microphone was closed: %v", got)
	}
	m = nil
	m.Open(true)
	send(1)
	if got := taken(); len(got) != 0 {
		t.Errorf("a nil far end gives %v", got)
	}
}
