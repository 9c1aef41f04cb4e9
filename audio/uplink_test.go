package audio

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"
)

// mic sends packets to an uplink and counts what it thinks of them.
type mic struct {
	*testing.T
	u           Uplink
	frame       time.Duration
	now         time.Time
	sent        uint32
	twins, lost int
}

func newMic(t *testing.T, frame time.Duration) *mic {
	t.Helper()
	return &mic{T: t, frame: frame, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
}

// packet is one that differs from all others.
func (m *mic) packet() []byte {
	m.sent++
	toc := byte(8+m.frame/(20*ms)) << 3 // SILK: 20, 40, 60 ms
	return binary.BigEndian.AppendUint32([]byte{toc, 0, 0, 0, 0, 0, 0}, m.sent)
}

func (m *mic) give(packet []byte) Arrival {
	a := m.u.Arrived(packet, m.now)
	if a.Twin {
		m.twins++
	}
	m.lost += a.Lost
	return a
}

// talk sends n packets in real time.
func (m *mic) talk(n int) {
	for range n {
		m.now = m.now.Add(m.frame)
		m.give(m.packet())
	}
}

// expect compares the counts since the last time.
func (m *mic) expect(what string, twins, lost int) {
	m.Helper()
	if m.twins != twins || m.lost != lost {
		m.Errorf("%v frames, %s: %d twins, %d lost; want %d, %d", m.frame, what, m.twins, m.lost, twins, lost)
	}
	m.twins, m.lost = 0, 0
}

func TestUplinkFindsLosses(t *testing.T) {
	for _, frame := range []time.Duration{20 * ms, 40 * ms, 60 * ms} {
		m := newMic(t, frame)
		m.talk(50)
		m.expect("nothing happens", 0, 0)
		for lost := 1; lost <= mostLost; lost++ {
			m.now = m.now.Add(time.Duration(lost) * frame) // so many never come
			m.talk(20)
			m.expect("a loss", 0, lost)
		}
		m.now = m.now.Add(time.Duration(mostLost+1) * frame)
		m.talk(20)
		m.expect("a pause of the sender", 0, 0)
		m.now = m.now.Add(10 * time.Second)
		m.talk(20)
		m.expect("a long pause", 0, 0)
	}
}

func TestUplinkDelayIsNotLoss(t *testing.T) {
	for _, frame := range []time.Duration{20 * ms, 60 * ms} {
		m := newMic(t, frame)
		m.talk(20)
		for _, stall := range []int{2, 3, 5, 10, 60} { // TCP: a stall, then all at once
			m.now = m.now.Add(time.Duration(stall) * frame)
			for range stall {
				m.now = m.now.Add(ms / 4)
				m.give(m.packet())
			}
			m.now = m.now.Add(-time.Duration(stall) * ms / 4)
			m.talk(30)
		}
		m.expect("stalls and bursts", 0, 0)
		m.now = m.now.Add(10 * frame)
		for range 40 { // a slow line catches up by a quarter
			m.now = m.now.Add(frame * 3 / 4)
			m.give(m.packet())
		}
		m.talk(30)
		m.expect("a line that catches up slowly", 0, 0)
		random := rand.New(rand.NewPCG(3, 4))
		begin := m.now
		last := begin
		for i := range 2000 { // jitter up to two frames
			at := begin.Add(time.Duration(i+1)*frame + time.Duration(random.Int64N(int64(2*frame))))
			if at.Before(last) {
				at = last // TCP keeps the order
			}
			m.now, last = at, at
			m.give(m.packet())
		}
		m.expect("jitter", 0, 0)
		m.now = m.now.Add(3 * frame)
		for range 20 { // pairs, as some clients send
			m.give(m.packet())
			m.now = m.now.Add(2 * frame)
			m.give(m.packet())
		}
		m.expect("pairs", 0, 0)
	}
}

func TestUplinkDropsTwins(t *testing.T) {
	m := newMic(t, 60*ms)
	for range 50 {
		m.now = m.now.Add(60 * ms)
		p := m.packet()
		m.give(p)
		m.now = m.now.Add(2 * ms)
		if a := m.give(append([]byte(nil), p...)); !a.Twin {
			t.Error("a packet was heard twice")
		}
		m.now = m.now.Add(-2 * ms)
	}
	m.expect("every packet twice", 50, 0)
	m.talk(20)
	m.expect("then none", 0, 0)
}

// TestUplinkKeepsSilence: a coder without DTX makes equal packets of digital
// silence, and clients send files in a burst. That is no doubling.
func TestUplinkKeepsSilence(t *testing.T) {
	silence := append([]byte{11 << 3}, make([]byte, 20)...)
	m := newMic(t, 60*ms)
	for range 100 {
		m.now = m.now.Add(60 * ms)
		m.give(silence)
	}
	m.expect("silence in real time", 0, 0)
	m.talk(5)
	for range 100 {
		m.now = m.now.Add(ms)
		m.give(silence)
	}
	if m.twins > 1 {
		t.Errorf("%d frames of silence were thrown away", m.twins)
	}
	m.twins = 0
	for range 100 { // DTX
		m.now = m.now.Add(ms)
		m.give([]byte{11 << 3})
	}
	m.expect("pauses in a burst", 0, 0)
}

func TestUplinkCountsPausesAsTime(t *testing.T) {
	m := newMic(t, 60*ms)
	m.talk(10)
	for range 50 { // DTX packets whose TOC says 20 ms stand for 60
		m.now = m.now.Add(60 * ms)
		m.give([]byte{9 << 3})
	}
	m.talk(10)
	m.expect("DTX", 0, 0)
	for range 20 { // broken packets too
		m.now = m.now.Add(60 * ms)
		m.give([]byte{3})
	}
	m.talk(10)
	m.expect("broken packets", 0, 0)
	m.u.Reset()
	m.now = m.now.Add(150 * ms)
	m.talk(20)
	m.expect("after Reset", 0, 0)
}

func TestUplinkDoesNotAllocate(t *testing.T) {
	m := newMic(t, 60*ms)
	m.talk(3)
	a, b := m.packet(), m.packet()
	if n := testing.AllocsPerRun(100, func() {
		m.now = m.now.Add(60 * ms)
		m.u.Arrived(a, m.now)
		m.now = m.now.Add(60 * ms)
		m.u.Arrived(b, m.now)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzUplink(f *testing.F) {
	f.Add([]byte{11 << 3, 1, 2, 3, 4, 5, 6, 7, 8, 9}, uint16(60))
	f.Fuzz(func(t *testing.T, packet []byte, gap uint16) {
		var u Uplink
		now := time.Unix(0, 0)
		for i := range 50 {
			now = now.Add(time.Duration(gap) * ms)
			if a := u.Arrived(packet[:len(packet)*(i%5+1)/5], now); a.Lost < 0 || a.Lost > mostLost || (a.Twin && a.Lost > 0) {
				t.Fatalf("%+v", a)
			}
		}
	})
}
