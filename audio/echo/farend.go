package echo

import (
	"slices"
	"sync"

	"xiaozhi/audio"
)

// Limits of a [FarEnd].
const (
	maxWaiting = 64 // packets (3.8 s) that wait to be taken: then the oldest is dropped
	maxSpare   = 8  // packets that may have waited if their buffers are kept
)

// FarEnd decodes what is sent to a device whose microphone hears it, for the [Canceller] of that
// microphone, while it is open. A nil FarEnd does nothing. Its methods may be called at the same
// time.
type FarEnd struct {
	mu      sync.Mutex
	open    bool
	decoder *audio.Decoder // made with the first packet
	waiting []farPacket    // a taken one leaves its buffer behind, in the capacity
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
		f.decoder, f.waiting = nil, nil
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
	if n := len(f.waiting); n == maxWaiting {
		oldest := f.waiting[0]
		copy(f.waiting, f.waiting[1:])
		f.waiting[n-1] = oldest
		f.waiting = f.waiting[:n-1]
	}
	n := len(f.waiting)
	f.waiting = slices.Grow(f.waiting, 1)[:n+1]
	next := &f.waiting[n]
	if next.pcm == nil {
		next.pcm = make([]int16, audio.MaxFrameSamples(audio.Recognition.Rate))
	}
	samples, err := f.decoder.Receive(packet, next.pcm[:cap(next.pcm)])
	if err != nil {
		f.waiting = f.waiting[:n]
		return
	}
	next.stamp, next.pcm = stamp, next.pcm[:samples]
}

// Take calls to with everything that was sent since the last call, in order. to must not keep pcm.
func (f *FarEnd) Take(to func(stamp uint32, pcm []int16)) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.waiting {
		to(p.stamp, p.pcm)
	}
	if len(f.waiting) > maxSpare {
		f.waiting = nil
	}
	f.waiting = f.waiting[:0]
}
