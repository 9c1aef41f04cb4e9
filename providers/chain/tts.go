package chain

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"

	"xiaozhi/providers"
)

// packetLength is the length of a packet of [providers.Sound].
const packetLength = 60 * time.Millisecond

// TTS is a chain of voices.
type TTS struct {
	list[providers.TTS]
	paces []pace // of the members
}

// NewTTS makes a chain. It has no members of its own: at least one is needed.
func NewTTS(members []providers.TTS, o Options) (*TTS, error) {
	l, err := newList(members, o, "speak")
	if err != nil {
		return nil, err
	}
	return &TTS{list: l, paces: make([]pace, len(members))}, nil
}

// Synthesize streams the sound of the first member that gives any. When one is
// late the next is asked beside it, the first sound wins, and the requests of
// the others are closed. After the first sound there is no switch, but for a
// member that breaks off: the next then says the rest of the sentence. How far
// the sentence was is estimated from the length of the sound; the estimate is
// early, so that rather a word is said twice than not at all.
func (t *TTS) Synthesize(ctx context.Context, req providers.TTSRequest) iter.Seq2[providers.Sound, error] {
	return func(yield func(providers.Sound, error) bool) {
		walk := t.walk()
		var dead []int // they have failed with this sentence
		for {
			s := &speech{req: req, yield: yield}
			r := newRace(walk, s.pass)
			r.ask = func(ctx context.Context, i int) iter.Seq2[providers.Sound, error] {
				return t.members[i].Synthesize(ctx, req)
			}
			r.weigh = func(_ int, sound providers.Sound) weight {
				if lengthOf(sound) > 0 {
					return answer
				}
				return nothing
			}
			r.name = func(sound *providers.Sound, who string) { sound.Provider = cmp.Or(sound.Provider, who) }
			r.empty = nil // of a sentence with nothing to say
			err := r.run(ctx, nil)
			switch {
			case err == nil:
				if r.winner >= 0 && !s.left { // the sentence was said whole
					t.paces[r.winner].learn(s.req, s.passed)
				}
				return
			case ctx.Err() != nil || r.winner < 0:
				yield(providers.Sound{}, err)
				return
			}
			dead = append(dead, r.dead...)
			if walk = t.after(walk, r.winner, dead, err); len(walk.order) == 0 {
				yield(providers.Sound{}, err)
				return
			}
			if req.Text = t.paces[r.winner].rest(req, s.passed); req.Text == "" {
				return
			}
		}
	}
}

// after returns the walk for the rest of a sentence: those after the member that
// broke off, then those before it, without the dead.
func (t *TTS) after(walk *run[providers.TTS], broken int, dead []int, err error) *run[providers.TTS] {
	next := &run[providers.TTS]{list: walk.list, last: broken, errs: walk.errs}
	next.note(broken, err)
	n := len(t.members)
	for i := range n - 1 {
		if member := (broken + 1 + i) % n; !slices.Contains(dead, member) {
			next.order = append(next.order, member)
		}
	}
	return next
}

// speech passes on the sound of one race for a sentence.
type speech struct {
	req    providers.TTSRequest
	yield  func(providers.Sound, error) bool
	passed time.Duration // of sound
	left   bool          // the consumer has left the loop
}

// pass hands a piece of sound to the consumer.
func (s *speech) pass(sound providers.Sound, err error) bool {
	s.passed += lengthOf(sound)
	s.left = !s.yield(sound, err)
	return !s.left
}

// lengthOf returns the length of a piece of sound.
func lengthOf(sound providers.Sound) time.Duration {
	if len(sound.PCM) > 0 && sound.Rate > 0 {
		return time.Duration(len(sound.PCM)) * time.Second / time.Duration(sound.Rate)
	}
	return time.Duration(len(sound.Packets)) * packetLength
}
