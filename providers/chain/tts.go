package chain

import (
	"context"
	"iter"

	"xiaozhi/providers"
)

// TTS is a chain of voices.
type TTS struct{ list[providers.TTS] }

// NewTTS makes a chain. It has no members of its own: at least one is needed.
func NewTTS(members []providers.TTS, o Options) (*TTS, error) {
	l, err := newList(members, o, "speak")
	if err != nil {
		return nil, err
	}
	return &TTS{l}, nil
}

// Synthesize streams the sound of the first member that gives any. After the
// first sound its error is passed on: the same sentence must not be heard twice.
func (t *TTS) Synthesize(ctx context.Context, req providers.TTSRequest) iter.Seq2[providers.Sound, error] {
	return func(yield func(providers.Sound, error) bool) {
		r := t.walk()
		for {
			before := r.last
			i, ok := r.next(anyMember)
			if !ok {
				yield(providers.Sound{}, r.err())
				return
			}
			if before >= 0 {
				t.takeOver(ctx, before, i, r.lastError())
			}
			if t.speak(ctx, r, i, req, yield) {
				return
			}
		}
	}
}

// speak tries one member. It is false when the next should.
func (t *TTS) speak(ctx context.Context, r *run[providers.TTS], i int, req providers.TTSRequest,
	yield func(providers.Sound, error) bool,
) (over bool) {
	heard := false
	for sound, err := range t.members[i].Synthesize(ctx, req) {
		switch {
		case err == nil:
			heard = true
			if !yield(sound, nil) {
				t.report(i, nil)
				return true
			}
			continue
		case ctx.Err() != nil:
			t.breakers[i].released()
			yield(providers.Sound{}, ctx.Err())
			return true
		case heard:
			t.report(i, err)
			yield(providers.Sound{}, err)
			return true
		}
		r.fail(i, err)
		return false
	}
	t.report(i, nil)
	return true
}
