package agent

import (
	"sync"

	"xiaozhi/audio"
)

// monitored is one packet as a device plays it, at 16 kHz.
type monitored struct {
	stamp uint32
	pcm   []int16
}

// maxMonitored is how many packets wait for ears that hear nothing meanwhile
// (3.8 s); then the oldest is dropped.
const maxMonitored = 64

// monitor hears what a device plays whose microphone hears it too, and which
// leaves it to us to take that out (device-protocol 4.5). Its methods may be
// called at the same time.
type monitor struct {
	stamps Stamper

	mu      sync.Mutex
	decoder *audio.Decoder // made with the first packet
	waiting []monitored
	spare   [][]int16 // buffers of those that were taken; at most maxMonitored
}

// sent takes in a packet that was just handed to the outbox. A nil monitor hears
// nothing.
func (m *monitor) sent(packet []byte) {
	if m == nil {
		return
	}
	stamp := m.stamps.Stamped()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.decoder == nil {
		d, err := audio.NewDecoder(audio.Recognition.Rate)
		if err != nil {
			return // the echo stays
		}
		m.decoder = d
	}
	pcm := make([]int16, audio.MaxFrameSamples(audio.Recognition.Rate))
	if n := len(m.spare); n > 0 {
		pcm, m.spare = m.spare[n-1], m.spare[:n-1]
	}
	n, err := m.decoder.Receive(packet, pcm[:cap(pcm)])
	if err != nil {
		return
	}
	if len(m.waiting) >= maxMonitored {
		m.waiting = m.waiting[1:]
	}
	m.waiting = append(m.waiting, monitored{stamp, pcm[:n]})
}

// take gives everything that was sent since the last take, in its order.
func (m *monitor) take(f func(stamp uint32, pcm []int16)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.waiting {
		f(p.stamp, p.pcm)
		if len(m.spare) < maxMonitored {
			m.spare = append(m.spare, p.pcm)
		}
	}
	clear(m.waiting)
	m.waiting = m.waiting[:0]
}
