package pocketsphinx

import (
	"context"
	"slices"
	"sync"
	"time"
)

const (
	// pauseFor is how long an utterance is remembered after its end, in case that was only a pause.
	pauseFor = 4 * time.Second
	// maxHeard is the number of utterances that are remembered; the oldest goes.
	maxHeard = 8
	// maxHeardSamples is the longest that is remembered, 12 s.
	maxHeardSamples = 12 * sampleRate
	// quietFrames is the silence at its end, in frames of 10 ms, that makes it a pause
	// and not the middle of a word.
	quietFrames = 8
)

// memory holds what was recognised of utterances that ended a moment ago. The text
// of an utterance is asked for at each pause in it; when the speaker goes on, another stream
// begins with all of that sound again, and need not be searched twice. Sound is known
// again only if every sample is the same. It is safe for many goroutines.
type memory struct {
	mu    sync.Mutex
	heard []*heard // oldest first
}

// heard is the sound of one utterance and what is known at its end.
type heard struct {
	pcm  []int16
	at   time.Time     // when it was kept, later when it was settled
	done chan struct{} // closed when past is set
	past *past         // nil: nothing to go on from
}

// keep begins to remember the sound of an utterance that is being finished. What is
// known of it follows by settle.
func (m *memory) keep(pcm []int16) *heard {
	h := &heard{pcm: pcm, at: time.Now(), done: make(chan struct{})}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forget()
	if len(m.heard) == maxHeard {
		m.heard = slices.Delete(m.heard, 0, 1)
	}
	m.heard = append(m.heard, h)
	return h
}

// settle says what is known of the sound; nil lets it be forgotten. It is called once.
func (m *memory) settle(h *heard, p *past) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p != nil && p.level.quiet >= quietFrames {
		h.past, h.at = p, time.Now()
	} else {
		m.heard = slices.DeleteFunc(m.heard, func(other *heard) bool { return other == h })
	}
	close(h.done)
}

// find returns what is known of the longest sound that pcm begins with, and how many
// samples that is. It waits for one that is being finished.
func (m *memory) find(ctx context.Context, pcm []int16) (*past, int) {
	m.mu.Lock()
	m.forget()
	var best *heard
	for _, h := range m.heard {
		if len(h.pcm) <= len(pcm) && (best == nil || len(h.pcm) > len(best.pcm)) && slices.Equal(h.pcm, pcm[:len(h.pcm)]) {
			best = h
		}
	}
	m.mu.Unlock()
	if best == nil {
		return nil, 0
	}
	select {
	case <-best.done:
	case <-ctx.Done():
		return nil, 0
	}
	if best.past == nil {
		return nil, 0
	}
	return best.past, len(best.pcm)
}

// forget drops what was heard too long ago. The caller holds mu.
func (m *memory) forget() {
	m.heard = slices.DeleteFunc(m.heard, func(h *heard) bool { return time.Since(h.at) > pauseFor })
}

// clear forgets everything.
func (m *memory) clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.heard = nil
}
