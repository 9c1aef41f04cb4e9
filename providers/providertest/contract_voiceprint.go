package providertest

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"xiaozhi/internal/servicetest"
	"xiaozhi/providers"
)

// VoiceOf is a voice for tests: a tone of that pitch, in Hz, and its overtone. Tones that are an octave apart are two people.
func VoiceOf(pitch float64, d time.Duration) []int16 {
	pcm := make([]int16, int(providers.VoiceRate*d.Seconds()))
	for i := range pcm {
		at := 2 * math.Pi * pitch * float64(i) / providers.VoiceRate
		pcm[i] = int16(7000*math.Sin(at) + 2000*math.Sin(2*at))
	}
	return pcm
}

// TestVoiceprintContract holds a client of a service that knows voices against its fake, through every fault that the fake
// knows.
func TestVoiceprintContract(t *testing.T, c Case) {
	t.Helper()
	t.Attr(rowsOf, "voiceprint")
	c.each(t, func(tr *trial) {
		v := tr.voiceprint()
		_, err := v.Enrol(tr.Context(), "print-1", VoiceOf(150, 2*time.Second))
		if _, fails := usual(tr.f); fails {
			tr.wantKind(err)
			_, err = v.Identify(tr.Context(), VoiceOf(150, time.Second), []providers.Print{{ID: "print-1", Person: "anna", Model: v.Scale().Model}})
			tr.wantKind(err)
			tr.wantKind(v.Delete(tr.Context(), "print-1"))
			return
		}
		if err != nil {
			tr.Fatal(err)
		}
		KnowsVoices(t.Context(), tr, v)
	})
	t.Run("cancelled", func(t *testing.T) {
		t.Parallel()
		c.try(t, servicetest.Silent, func(tr *trial) {
			tr.f = servicetest.None // the limit is to be a long one
			v := tr.voiceprint()
			ctx, cancel := context.WithCancel(tr.Context())
			defer cancel()
			var ended time.Time
			after(30*time.Millisecond, func() { ended = time.Now(); cancel() })
			_, err := v.Identify(ctx, VoiceOf(150, time.Second), []providers.Print{{ID: "print-1", Person: "anna", Model: v.Scale().Model}})
			tr.errs = append(tr.errs, err)
			tr.cancelled(err, time.Since(ended))
		})
	})
}

// TB takes the findings of [KnowsVoices]; testing.TB is one.
type TB interface {
	Helper()
	Error(args ...any)
	Errorf(format string, args ...any)
}

// KnowsVoices holds any provider that tells people apart against the contract, with voices of [VoiceOf].
func KnowsVoices(ctx context.Context, t TB, v providers.Voiceprint) {
	t.Helper()
	scale := v.Scale()
	if scale.Model == "" || scale.Threshold <= 0 || scale.Threshold > 1 || v.Name() == "" {
		t.Errorf("it is called %q and has the scale %+v", v.Name(), scale)
	}
	var prints []providers.Print
	for id, voice := range map[string]struct {
		person string
		pitch  float64
	}{"a-1": {"anna", 180}, "a-2": {"anna", 184}, "b-1": {"ben", 110}} {
		p, err := v.Enrol(ctx, id, VoiceOf(voice.pitch, 2*time.Second))
		if err != nil || p.ID != id || p.Model != scale.Model {
			t.Errorf("enrolled %+v, %v", p, err)
			return
		}
		p.Person = voice.person
		prints = append(prints, p)
	}
	slices.SortFunc(prints, func(a, b providers.Print) int { return len(a.Person) - len(b.Person) })
	for person, pitch := range map[string]float64{"anna": 182, "ben": 111} {
		match, err := v.Identify(ctx, VoiceOf(pitch, 1500*time.Millisecond), prints)
		if err != nil || match.Person != person || match.Score < scale.Threshold || match.Score > 1 {
			t.Errorf("%s was taken for %+v, %v", person, match, err)
		}
	}
	if match, err := v.Identify(ctx, VoiceOf(640, 1500*time.Millisecond), prints); err != nil || match.Score >= scale.Threshold {
		t.Errorf("a stranger was taken for %+v, %v", match, err)
	}
	old := slices.Clone(prints)
	for i := range old {
		old[i].Model = "another"
	}
	for name, among := range map[string][]providers.Print{"nobody": nil, "prints of another model": old} {
		if match, err := v.Identify(ctx, VoiceOf(182, time.Second), among); err != nil || match != (providers.VoiceMatch{}) {
			t.Errorf("among %s: %+v, %v", name, match, err)
		}
	}
	for name, d := range map[string]time.Duration{"short": 400 * time.Millisecond, "long": 31 * time.Second, "empty": 0} {
		pcm := make([]int16, int(providers.VoiceRate*d.Seconds()))
		_, err := v.Enrol(ctx, "c-1", pcm)
		_, other := v.Identify(ctx, pcm, prints)
		for _, err := range []error{err, other} {
			if failed, ok := errors.AsType[*providers.Error](err); !ok || failed.Kind != providers.BadRequest || !errors.Is(err, providers.ErrVoiceLength) {
				t.Errorf("%s sound: %v", name, err)
			}
		}
	}
	for _, id := range []string{"b-1", "b-1", "never"} { // what is gone is gone
		if err := v.Delete(ctx, id); err != nil {
			t.Errorf("delete %s: %v", id, err)
		}
	}
	left := slices.DeleteFunc(prints, func(p providers.Print) bool { return p.ID == "b-1" })
	if match, err := v.Identify(ctx, VoiceOf(110, time.Second), left); err != nil || match.Person == "ben" {
		t.Errorf("a person who was deleted: %+v, %v", match, err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := v.Identify(ended, VoiceOf(182, time.Second), prints); err != context.Canceled { //nolint:errorlint // the contract says unchanged
		t.Errorf("after the end: %v", err)
	}
}

func (tr *trial) voiceprint() providers.Voiceprint {
	tr.Helper()
	v, err := tr.c.Kind.Voiceprint(tr.section())
	if err != nil {
		tr.Fatal(err)
	}
	return v
}
