package echo

import (
	"slices"
	"sync"

	"xiaozhi/audio"
)

// Limits of a [FarEnd].
const (
	maxWaiting = 64 // packets (3.8 s) that wait to be taken: then the oldest is dropped
	maxSpare   = 8  // buffers that are kept
)

// FarEnd decodes what is sent to a device whose microphone hears it, for the
// [Canceller] of that microphone. It decodes only while it is open. A nil FarEnd
// does nothing.
//
// # Concurrency
//
// Its methods may be called at the same time.
type FarEnd struct {
	mu      sync.Mutex
	open    bool
	decoder *audio.Decoder // made with the first packet
	waiting []farPacket
	spare   [][]int16 // buffers of packets that were taken; at most maxSpare
}

// farPacket is one packet as a device plays it, at 16 kHz.
type farPacket struct {
	stamp uint32
	pcm   []int16
}

// Open sets whether the microphone is open while the device plays. If it is not,
// the packets that wait are dropped.
func (f *FarEnd) Open(open bool) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open = open; !open {
		f.decoder, f.waiting, f.spare = nil, nil, nil
	}
}

// Sent takes in a packet that was sent with that timestamp. A packet that cannot
// be decoded is left out: its echo stays.
func (f *FarEnd) Sent(packet []byte, stamp uint32) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.open {
		return
	}
	if f.decoder == nil {
		d, err := audio.NewDecoder(audio.Recognition.Rate)
		if err != nil {
			return
		}
		f.decoder = d
	}
	pcm := f.buffer()
	n, err := f.decoder.Receive(packet, pcm)
	if err != nil {
		f.keep(pcm)
		return
	}
	f.waiting = append(f.waiting, farPacket{stamp, pcm[:n]})
}

// Take calls to with everything that was sent since the last call, in order. to
// must not keep pcm.
func (f *FarEnd) Take(to func(stamp uint32, pcm []int16)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.waiting {
		to(p.stamp, p.pcm)
		f.keep(p.pcm)
	}
	clear(f.waiting)
	f.waiting = f.waiting[:0]
}

// buffer returns room for a packet's sound: that of the oldest one, if too many
// wait. The caller holds mu.
func (f *FarEnd) buffer() []int16 {
	if len(f.waiting) >= maxWaiting {
		oldest := f.waiting[0].pcm
		f.waiting = slices.Delete(f.waiting, 0, 1)
		return oldest[:cap(oldest)]
	}
	if n := len(f.spare); n > 0 {
		pcm := f.spare[n-1]
		f.spare = f.spare[:n-1]
		return pcm[:cap(pcm)]
	}
	return make([]int16, audio.MaxFrameSamples(audio.Recognition.Rate))
}

// keep takes a buffer back. The caller holds mu.
func (f *FarEnd) keep(pcm []int16) {
	if len(f.spare) < maxSpare {
		f.spare = append(f.spare, pcm)
	}
}
