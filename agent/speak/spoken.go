package speak

import (
	"context"
	"slices"
	"sync"
	"time"

	"xiaozhi/internal/text"
	"xiaozhi/providers"
)

const (
	// mostSpoken is how much sound waits to be cut into frames; then Add waits. It is much: a service
	// whose connection nobody reads takes it for dead.
	mostSpoken = time.Minute
	lastWords  = 60 * time.Millisecond // of silence under words whose sound has ended already
)

// Spoken carries an answer that comes as sound, with its words beside it, from who speaks by
// itself to the speaker. The words are shown and counted as heard where their sound is taken
// to be: by the usual pace of the language, and in proportion once all is there.
//
// # Concurrency
//
// One goroutine adds, one takes.
type Spoken struct {
	more chan struct{} // size 1: there is something to take
	room chan struct{} // size 1: something was taken

	mu      sync.Mutex
	sounds  []providers.Sound
	waiting time.Duration // of sounds
	total   time.Duration // of all sound so far
	texts   []Segment     // whose sound has not begun
	ended   bool
	broken  bool // it has ended too early

	now   Segment       // what is being said; of the taker
	begun time.Duration // where that began
	at    time.Duration // of sound taken
	opens bool          // something was taken
}

// NewSpoken makes one whose words are said in the language and step of first, a segment without text.
func NewSpoken(first Segment) *Spoken {
	first.Keep, first.aloud = true, true
	return &Spoken{more: make(chan struct{}, 1), room: make(chan struct{}, 1), now: first}
}

// Add adds a copy of sound. It waits while much is waiting.
func (s *Spoken) Add(ctx context.Context, sound providers.Sound) error {
	length := durationOf(sound)
	for {
		s.mu.Lock()
		if s.waiting < mostSpoken {
			sound.PCM, sound.Packets = slices.Clone(sound.PCM), slices.Clone(sound.Packets)
			s.sounds = append(s.sounds, sound)
			s.waiting += length
			s.total += length
			s.mu.Unlock()
			poke(s.more)
			return nil
		}
		s.mu.Unlock()
		if err := await(ctx, s.room); err != nil {
			return err
		}
	}
}

// Caption adds words of what is said.
func (s *Spoken) Caption(words Segment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	words.Keep, words.aloud = true, true
	s.texts = append(s.texts, words)
}

// End says that there is no more. broken: there ought to be, and words whose sound has not come are
// not said.
func (s *Spoken) End(broken bool) {
	s.mu.Lock()
	s.broken = s.broken || broken && !s.ended
	s.ended = true
	s.mu.Unlock()
	poke(s.more)
}

// next waits for a piece of sound, and gives the words that begin with it; nil: those before go on.
// False: there is no more.
func (s *Spoken) next(ctx context.Context) (sound providers.Sound, begins *Segment, ok bool, err error) {
	for {
		s.mu.Lock()
		sound, begins, ok = s.take()
		ended := s.ended
		s.mu.Unlock()
		if ok || ended {
			poke(s.room)
			return sound, begins, ok, nil
		}
		if err := await(ctx, s.more); err != nil {
			return sound, nil, false, err
		}
	}
}

// take takes a piece, if there is one. Its caller holds the lock.
func (s *Spoken) take() (sound providers.Sound, begins *Segment, ok bool) {
	switch {
	case len(s.sounds) > 0:
		sound, s.sounds = s.sounds[0], s.sounds[1:]
	case s.ended && !s.broken && s.opens && len(s.texts) > 0:
		for _, rest := range s.texts[1:] { // the sound was quicker than the words
			s.texts[0].Display = text.Join(s.texts[0].Display, rest.Display)
		}
		s.now, s.texts = Segment{}, s.texts[:1]
		sound = providers.Sound{Rate: 16000, PCM: make([]int16, int(lastWords*16000/time.Second))}
		s.total += lastWords
		s.waiting += lastWords
	default:
		return sound, nil, false
	}
	if begins = s.begin(); begins == nil && !s.opens {
		begins = &s.now // without words, as yet
	}
	s.opens = true
	length := durationOf(sound)
	s.at += length
	s.waiting -= length
	return sound, begins, true
}

// begin goes on to the next words, if they are due; nil: they are not. Its caller holds the lock.
func (s *Spoken) begin() *Segment {
	if len(s.texts) == 0 || s.now.Display != "" && s.at-s.begun < s.expected() {
		return nil
	}
	s.now, s.texts, s.begun = s.texts[0], s.texts[1:], s.at
	next := s.now
	return &next
}

// expected returns how long what is being said takes. Its caller holds the lock.
func (s *Spoken) expected() time.Duration {
	runes := len([]rune(s.now.Display))
	if !s.ended || s.broken {
		return time.Duration(runes) * runeTime(s.now.Language)
	}
	all := runes
	for _, t := range s.texts {
		all += len([]rune(t.Display))
	}
	if all == 0 {
		return 0
	}
	return (s.total - s.begun) * time.Duration(runes) / time.Duration(all)
}

// poke wakes who waits for a channel of size 1.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// NewAloud prepares a segment that is all that s carries.
func NewAloud(s *Spoken) Segment { return Segment{Keep: true, Step: s.now.Step, spoken: s} }

// spoken passes on what comes with its own sound and words.
func (w *segmentWriter) spoken(ctx context.Context, from *Spoken) error {
	for {
		sound, begins, ok, err := from.next(ctx)
		switch {
		case err != nil:
			return err
		case !ok:
			if w.level != nil {
				w.s.o.Levels.Keep(w.level.key, w.level.meter)
			}
			return w.finish(ctx)
		case begins != nil:
			w.turnTo(*begins)
		}
		w.u.progress.add(durationOf(sound))
		w.level = w.s.level(sound.Provider, lang(w.u.Language))
		if len(sound.Packets) > 0 {
			err = w.passthrough(ctx, sound.Packets)
		} else {
			err = w.pcm(ctx, sound.PCM, sound.Rate)
		}
		if err != nil {
			return err
		}
	}
}

// turnTo has the next frame begin other words.
func (w *segmentWriter) turnTo(next Segment) {
	w.u.progress.whole.Store(true)
	next.progress = new(progress)
	w.u, w.begins = next, &next
	w.s.face(next)
}
