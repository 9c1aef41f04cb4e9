package agent

import (
	"testing"

	"xiaozhi/audio"
)

// A monitor keeps the newest packets while ears hear nothing, and nothing at all
// while the microphone is closed.
func TestMonitorIsBounded(t *testing.T) {
	enc, err := audio.NewEncoder(audio.Reply)
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, audio.MaxPacket)
	n, err := enc.Encode(make([]int16, audio.Reply.Samples()), buf)
	if err != nil {
		t.Fatal(err)
	}
	m, stamp := &monitor{}, uint32(0)
	send := func(packets int) {
		for range packets {
			stamp++
			m.sent(buf[:n], stamp)
		}
	}
	taken := func() (stamps []uint32) {
		m.take(func(stamp uint32, pcm []int16) {
			if len(pcm) != audio.Recognition.Samples() {
				t.Errorf("packet %d has %d samples", stamp, len(pcm))
			}
			stamps = append(stamps, stamp)
		})
		return stamps
	}
	send(10)
	if got := taken(); len(got) != 0 || m.decoder != nil {
		t.Errorf("heard while the microphone is closed: %v", got)
	}
	m.listen(true)
	send(maxMonitored + 36)
	if got := taken(); len(got) != maxMonitored || got[0] != 47 || got[maxMonitored-1] != 110 {
		t.Errorf("kept %v", got)
	}
	if len(m.spare) > maxSpare {
		t.Errorf("%d buffers are kept", len(m.spare))
	}
	if allocs := testing.AllocsPerRun(20, func() { send(1); m.take(func(uint32, []int16) {}) }); allocs > 0 {
		t.Errorf("%v allocations for a packet", allocs)
	}
	send(3)
	m.listen(false)
	if got := taken(); len(got) != 0 || m.spare != nil {
		t.Errorf("kept after the microphone was closed: %v", got)
	}
	(*monitor)(nil).listen(true)
}
