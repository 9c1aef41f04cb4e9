package agent

import (
	"slices"
	"sync"

	"xiaozhi/audio"
)

// monitored is one packet as a device plays it, at 16 kHz.
type monitored struct {
	stamp uint32
	pcm   []int16
}

// maxMonitored is how many packets wait for ears that hear nothing meanwhile
// (3.8 s); then the oldest is dropped. maxSpare is how many buffers are kept:
// ears take what was sent with each frame that they hear.
const (
	maxMonitored = 64
	maxSpare     = 8
)

// monitor hears what a device plays whose microphone hears it too, and which
// leaves it to us to take that out (device-protocol 4.5). Its methods may be
// called at the same time.
type monitor struct {
	mu      sync.Mutex
	open    bool           // the microphone is, while we speak: else nothing has to be heard
	decoder *audio.Decoder // made with the first packet
	waiting []monitored
	spare   [][]int16 // buffers of those that were taken; at most maxSpare
}

// listen says whether the microphone is open while we speak. A nil monitor does
// not care.
func (m *monitor) listen(open bool) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.open = open; !open {
		m.decoder, m.waiting, m.spare = nil, nil, nil
	}
}

// sent takes in a packet that was just handed to the outbox, which gave it stamp. A nil monitor hears
// nothing.
func (m *monitor) sent(packet []byte, stamp uint32) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.open {
		return
	}
	if m.decoder == nil {
		d, err := audio.NewDecoder(audio.Recognition.Rate)
		if err != nil {
			return // the echo stays
		}
		m.decoder = d
	}
	pcm := m.buffer()
	n, err := m.decoder.Receive(packet, pcm)
	if err != nil {
		m.keep(pcm)
		return
	}
	m.waiting = append(m.waiting, monitored{stamp, pcm[:n]})
}

// buffer is room for a packet's sound: that of the oldest one, if too many wait.
// The caller holds mu.
func (m *monitor) buffer() []int16 {
	if len(m.waiting) >= maxMonitored {
		oldest := m.waiting[0].pcm
		m.waiting = slices.Delete(m.waiting, 0, 1)
		return oldest[:cap(oldest)]
	}
	if n := len(m.spare); n > 0 {
		pcm := m.spare[n-1]
		m.spare = m.spare[:n-1]
		return pcm[:cap(pcm)]
	}
	return make([]int16, audio.MaxFrameSamples(audio.Recognition.Rate))
}

// keep takes a buffer back. The caller holds mu.
func (m *monitor) keep(pcm []int16) {
	if len(m.spare) < maxSpare {
		m.spare = append(m.spare, pcm)
	}
}

// take gives everything that was sent since the last take, in its order.
func (m *monitor) take(f func(stamp uint32, pcm []int16)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.waiting {
		f(p.stamp, p.pcm)
		m.keep(p.pcm)
	}
	clear(m.waiting)
	m.waiting = m.waiting[:0]
}
