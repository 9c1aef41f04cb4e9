package providertest

import (
	"context"
	"sync"
	"testing"
	"time"

	"xiaozhi/providers"
)

// TestTTS is the suite of voices. The voice made by open can speak req.
func TestTTS(t *testing.T, open func(t *testing.T) providers.TTS, req providers.TTSRequest) {
	t.Run("a sentence", func(t *testing.T) {
		v := open(t)
		if v.Name() == "" {
			t.Error("it has no name")
		}
		within(t, "the sentence", func() { wantSound(t, v, req) })
	})
	t.Run("nothing to say", func(t *testing.T) {
		empty := req
		empty.Text = " "
		within(t, "silence", func() {
			for sound, err := range open(t).Synthesize(t.Context(), empty) {
				t.Errorf("nothing was to be said, but %d samples and error %v came", len(sound.PCM), err)
			}
		})
	})
	t.Run("many at once", func(t *testing.T) {
		v := open(t)
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() { wantSound(t, v, req) })
		}
		within(t, "four sentences", all.Wait)
	})
	t.Run("cancelled before", func(t *testing.T) {
		within(t, "the sentence", func() { wantContextError(t, speakError(ended(t), open(t), req, func() {})) })
	})
	t.Run("cancelled in the middle", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		within(t, "the sentence", func() {
			// Sound that was complete already may end well.
			if err := speakError(ctx, open(t), req, cancel); err != nil {
				wantContextError(t, err)
			}
		})
	})
	t.Run("the loop is left", func(t *testing.T) {
		v := open(t)
		within(t, "leaving the loop", func() {
			for range v.Synthesize(t.Context(), req) {
				break
			}
			wantSound(t, v, req)
		})
	})
}

// speakError reads all sound, calls at each piece, and gives the error.
func speakError(ctx context.Context, v providers.TTS, req providers.TTSRequest, each func()) (last error) {
	for _, err := range v.Synthesize(ctx, req) {
		each()
		last = err
	}
	return last
}

// wantSound reads a sentence and checks its pieces. 50 ms are the least that any word takes.
func wantSound(t *testing.T, v providers.TTS, req providers.TTSRequest) {
	t.Helper()
	var total time.Duration
	for sound, err := range v.Synthesize(t.Context(), req) {
		if err != nil {
			t.Errorf("speak: %v", err)
			return
		}
		switch {
		case len(sound.PCM) > 0 && len(sound.Packets) > 0:
			t.Error("a piece with both PCM and packets")
		case len(sound.Packets) > 0:
			total += time.Duration(len(sound.Packets)) * 60 * time.Millisecond
		case sound.Rate < 8000 || sound.Rate > 48000:
			t.Errorf("a piece of %d Hz", sound.Rate)
			return
		default:
			total += time.Duration(len(sound.PCM)) * time.Second / time.Duration(sound.Rate)
		}
	}
	if total < 50*time.Millisecond {
		t.Errorf("only %v of sound for %q", total, req.Text)
	}
}
