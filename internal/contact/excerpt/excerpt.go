// Package excerpt keeps the last seconds that the microphones of a few devices have sent, so that a person can hear why no voice is
// found in them. It keeps them in memory alone, and not for long.
package excerpt

import (
	"bytes"
	"slices"
	"sync"
	"time"

	"xiaozhi/audio"
	"xiaozhi/audio/file"
)

// Limits of what is kept.
const (
	Span     = 15 * time.Second // of sound of a device
	AskedFor = 5 * time.Minute  // that sound is kept after somebody has asked for it
	KeptFor  = 15 * time.Minute // after its last part
	most     = 16               // devices; who asks has the place of the one that has sent nothing for longest
)

// Excerpts holds those of all devices. Its methods may be called at the same time; none of them waits.
type Excerpts struct {
	mu  sync.Mutex
	all map[string]*excerpt
}

// excerpt is the sound of one device.
type excerpt struct {
	ring  []int16 // of Span at most, the oldest sample at next once it is full
	next  int
	until time.Time // somebody wants to hear what comes before that; zero: nobody
	owner string    // whose the device was when that was asked for
	asked bool
	last  time.Time // something came, or was asked for
	gone  *time.Timer
}

// New returns an empty collection.
func New() *Excerpts { return &Excerpts{all: map[string]*excerpt{}} }

// State says what there is of a device.
type State struct {
	Length time.Duration // of the sound; 0: there is none
	Last   time.Time     // when the last of it came
	Until  time.Time     // what comes before is kept because somebody has asked for it; zero: nobody has
}

// Ask has the sound of a device be kept for [AskedFor] from now on, while it is the owner's. What was there before goes.
func (s *Excerpts) Ask(device, owner string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(device)
	if len(s.all) >= most {
		oldest := ""
		for id, e := range s.all {
			if oldest == "" || e.last.Before(s.all[oldest].last) {
				oldest = id
			}
		}
		s.drop(oldest)
	}
	e := s.add(device)
	e.until, e.owner, e.asked = time.Now().Add(AskedFor), owner, true
}

// Add keeps a part of the sound of a device, at the rate of [audio.Recognition], if somebody has asked for it or if it is kept anyway and
// there is room. It keeps no reference to pcm.
func (s *Excerpts) Add(device string, pcm []int16, anyway bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, e := time.Now(), s.all[device]
	asked := e != nil && now.Before(e.until)
	if !asked && (!anyway || e == nil && len(s.all) >= most) {
		return
	}
	if e == nil {
		e = s.add(device)
	}
	e.last = now
	e.put(pcm)
}

// add makes an excerpt. The caller holds mu.
func (s *Excerpts) add(device string) *excerpt {
	e := &excerpt{last: time.Now()}
	s.all[device] = e
	e.gone = time.AfterFunc(KeptFor, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.all[device] != e {
			return
		}
		if left := KeptFor - time.Since(e.last); left > 0 {
			e.gone.Reset(left)
			return
		}
		delete(s.all, device)
	})
	return e
}

// put writes samples over the oldest ones.
func (e *excerpt) put(pcm []int16) {
	size := audio.Recognition.Rate * int(Span/time.Second)
	pcm = pcm[max(0, len(pcm)-size):]
	grows := min(len(pcm), size-len(e.ring))
	e.ring = append(e.ring, pcm[:grows]...)
	for pcm = pcm[grows:]; len(pcm) > 0; {
		n := copy(e.ring[e.next:], pcm)
		e.next, pcm = (e.next+n)%size, pcm[n:]
	}
}

// Belongs forgets the sound of a device that was asked for while it was not the owner's, as it is now.
func (s *Excerpts) Belongs(device, owner string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.all[device]; e != nil && e.asked && e.owner != owner {
		s.drop(device)
	}
}

// Drop forgets the sound of a device, and that somebody wants to hear more.
func (s *Excerpts) Drop(device string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(device)
}

func (s *Excerpts) drop(device string) {
	if e := s.all[device]; e != nil {
		e.gone.Stop()
		delete(s.all, device)
	}
}

// Of says what there is of a device.
func (s *Excerpts) Of(device string) (now State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.all[device]
	if e == nil {
		return now
	}
	if now.Length = audio.Recognition.Duration(len(e.ring)); now.Length > 0 {
		now.Last = e.last
	}
	if time.Now().Before(e.until) {
		now.Until = e.until
	}
	return now
}

// WAV returns the sound of a device as a file, with when its last part came. Not ok: there is none.
func (s *Excerpts) WAV(device string) (wav []byte, last time.Time, ok bool) {
	s.mu.Lock()
	e := s.all[device]
	if e == nil || len(e.ring) == 0 {
		s.mu.Unlock()
		return nil, last, false
	}
	pcm, last := slices.Concat(e.ring[e.next:], e.ring[:e.next]), e.last
	s.mu.Unlock()
	var out bytes.Buffer
	if err := file.WriteWAV(&out, pcm, audio.Recognition.Rate); err != nil {
		return nil, last, false
	}
	return out.Bytes(), last, true
}
