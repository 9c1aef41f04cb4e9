package chain

import (
	"context"
	"errors"
	"time"

	"xiaozhi/providers"
)

// Voiceprint is the first member of several that tell people apart: the prints of one are of no use to another, so none stands
// in for it. After failures it is not asked for a while, which is told at once.
type Voiceprint struct{ list[providers.Voiceprint] }

// NewVoiceprint makes a chain. It has no members of its own: at least one is needed.
func NewVoiceprint(members []providers.Voiceprint, o Options) (*Voiceprint, error) {
	l, err := newList(members[:min(1, len(members))], o, "identify")
	if err != nil {
		return nil, err
	}
	return &Voiceprint{l}, nil
}

var errRests = errors.New("left out after failures")

// Scale says what its scores mean.
func (v *Voiceprint) Scale() providers.Scale { return v.members[0].Scale() }

// Enrol makes a print. A person waits for it: it is asked in any case.
func (v *Voiceprint) Enrol(ctx context.Context, id string, pcm []int16) (providers.Print, error) {
	begun := time.Now()
	p, err := v.members[0].Enrol(ctx, id, pcm)
	return p, v.ended(begun, err)
}

// Identify says whose voice it is. While it rests the error is of kind Unavailable.
func (v *Voiceprint) Identify(ctx context.Context, pcm []int16, among []providers.Print) (providers.VoiceMatch, error) {
	if !v.breakers[0].allow() {
		return providers.VoiceMatch{}, &providers.Error{Provider: v.Name(), Op: v.op, Kind: providers.Unavailable, Err: errRests}
	}
	begun := time.Now()
	match, err := v.members[0].Identify(ctx, pcm, among)
	return match, v.ended(begun, err)
}

// Delete has a print forgotten. It is asked in any case.
func (v *Voiceprint) Delete(ctx context.Context, id string) error {
	begun := time.Now()
	return v.ended(begun, v.members[0].Delete(ctx, id))
}

// ended tells the breaker how a request ended that began then.
func (v *Voiceprint) ended(begun time.Time, err error) error {
	v.report(0, err)
	if err == nil {
		v.breakers[0].gave(time.Since(begun))
	}
	return err
}
