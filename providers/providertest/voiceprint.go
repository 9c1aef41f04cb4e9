package providertest

import (
	"context"
	"encoding/binary"
	"sync"
	"time"

	"xiaozhi/providers"
)

// Voiceprint tells people apart by the pitch of their voices, as [VoiceOf] makes them. Its zero value is ready.
type Voiceprint struct {
	Keeps bool                          // the prints, as services do
	Takes time.Duration                 // what it takes to look at a voice
	Fault error                         // of what is asked from now on; nil: none. It is not to be changed while it is asked
	Gone  func(id string) error         // decides what comes of Delete; nil: it works
	Heard func(pcm []int16) (p float64) // the pitch of sound, in Hz; nil: that of a tone

	mu    sync.Mutex
	asked int
	kept  map[string]float64 // pitches by id
}

// Name is "voices".
func (v *Voiceprint) Name() string { return "voices" }

// Scale says that half is enough.
func (v *Voiceprint) Scale() providers.Scale { return providers.Scale{Model: "pitch", Threshold: 0.5} }

// Asked counts how often it was asked for anything.
func (v *Voiceprint) Asked() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.asked
}

// Kept lists the ids that it keeps, in no order.
func (v *Voiceprint) Kept() (ids []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for id := range v.kept {
		ids = append(ids, id)
	}
	return ids
}

// begin counts a question, and waits as long as it takes.
func (v *Voiceprint) begin(ctx context.Context) error {
	v.mu.Lock()
	v.asked++
	v.mu.Unlock()
	if v.Takes > 0 {
		timer := time.NewTimer(v.Takes)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return v.Fault
}

func (v *Voiceprint) pitch(pcm []int16) float64 {
	if v.Heard != nil {
		return v.Heard(pcm)
	}
	rises := 0
	for i := 1; i < len(pcm); i++ {
		if pcm[i-1] < 0 && pcm[i] >= 0 {
			rises++
		}
	}
	return float64(rises) * providers.VoiceRate / float64(max(1, len(pcm)))
}

// Enrol makes a print of the pitch.
func (v *Voiceprint) Enrol(ctx context.Context, id string, pcm []int16) (providers.Print, error) {
	if err := v.begin(ctx); err != nil {
		return providers.Print{}, err
	}
	p := providers.Print{ID: id, Model: v.Scale().Model}
	pitch := v.pitch(pcm)
	if !v.Keeps {
		p.Data = binary.LittleEndian.AppendUint16(nil, uint16(pitch))
		return p, nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.kept == nil {
		v.kept = map[string]float64{}
	}
	v.kept[id] = pitch
	return p, nil
}

// Identify compares pitches: those that are a fifth apart have nothing in common.
func (v *Voiceprint) Identify(ctx context.Context, pcm []int16, among []providers.Print) (match providers.VoiceMatch, err error) {
	if len(among) == 0 {
		return match, ctx.Err()
	}
	if err := v.begin(ctx); err != nil {
		return match, err
	}
	heard := v.pitch(pcm)
	v.mu.Lock()
	defer v.mu.Unlock()
	best := map[string]float64{}
	for _, p := range among {
		pitch, there := v.kept[p.ID]
		if len(p.Data) >= 2 {
			pitch, there = float64(binary.LittleEndian.Uint16(p.Data)), true
		}
		if there && p.Model == v.Scale().Model {
			best[p.Person] = max(best[p.Person], alike(heard, pitch))
		}
	}
	for person, score := range best {
		switch {
		case score > match.Score:
			match = providers.VoiceMatch{Person: person, Score: score, Next: match.Score}
		case score > match.Next:
			match.Next = score
		}
	}
	return match, nil
}

// alike is 1 of one pitch, and 0 of two that are a fifth apart.
func alike(a, b float64) float64 {
	if a > b {
		a, b = b, a
	}
	if a <= 0 {
		return 0
	}
	return max(0, 1-2*(b/a-1))
}

// Delete forgets a print.
func (v *Voiceprint) Delete(ctx context.Context, id string) error {
	if err := v.begin(ctx); err != nil {
		return err
	}
	if v.Gone != nil {
		if err := v.Gone(id); err != nil {
			return err
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.kept, id)
	return nil
}
