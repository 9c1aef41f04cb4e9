package services

import (
	"crypto/rand"
	"slices"
	"sync"
	"time"
)

// What is kept of the sound of tests.
const (
	maxClips = 24
	maxClip  = 40 * testRate // samples; what is longer is cut
)

// clip is sound that somebody has had made.
type clip struct {
	id, person string
	data       []byte
	at         time.Time
}

// clips keep the sound of the last tests in memory, so that pages can play it. They may be used at the same time.
type clips struct {
	mu  sync.Mutex
	all []clip
}

func newClips() *clips { return &clips{} }

// keep returns the id by which the person can fetch sound.
func (c *clips) keep(person string, pcm []int16, rate int) string {
	one := clip{id: rand.Text(), person: person, data: wave(pcm[:min(len(pcm), maxClip)], rate), at: time.Now()}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all = append(c.all, one); len(c.all) > maxClips {
		c.all = slices.Clone(c.all[len(c.all)-maxClips:])
	}
	return one.id
}

// Clip returns the sound that a test of a person made, as WAV.
func (s *Services) Clip(person, id string) (data []byte, made time.Time, ok bool) {
	s.clips.mu.Lock()
	defer s.clips.mu.Unlock()
	i := slices.IndexFunc(s.clips.all, func(c clip) bool { return c.id == id && c.person == person })
	if i < 0 {
		return nil, made, false
	}
	return s.clips.all[i].data, s.clips.all[i].at, true
}
