package providertest

import (
	"cmp"
	"context"
	"iter"
	"math"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"xiaozhi/providers"
)

// Speech is the script of one sentence.
type Speech struct {
	Delay      time.Duration // before the first sound
	PerLetter  time.Duration // of sound for each letter; 60 ms if this and Length are 0
	Length     time.Duration // of sound for the whole sentence, in place of PerLetter
	Piece      time.Duration // of sound in one piece; 60 ms if 0
	EveryPiece time.Duration // of waiting between two pieces
	StallAt    time.Duration // of sound, after which nothing comes for Stall; never if Stall is 0
	Stall      time.Duration
	FailAt     time.Duration // of sound, after which Err comes
	Err        error
	Silent     bool // no sound at all
}

// Spoken is one sentence as a fake voice saw it.
type Spoken struct {
	Request   providers.TTSRequest
	Sound     time.Duration // given out
	Left      bool          // the consumer left the loop
	Cancelled bool          // the context ended before the end
	Ended     bool          // the loop is over, in whatever way
}

// TTS is a fake voice: a tone for every sentence.
type TTS struct {
	Label  string   // its name; "fake-tts" if empty
	Rate   int      // Hz; 24000 if 0
	Script []Speech // one for each sentence in order; the last one for all further ones

	mu     sync.Mutex
	spoken []*Spoken
}

// Name returns the label.
func (t *TTS) Name() string { return cmp.Or(t.Label, "fake-tts") }

// Spoken returns all sentences so far, as they stand now.
func (t *TTS) Spoken() []Spoken {
	t.mu.Lock()
	defer t.mu.Unlock()
	return copies(t.spoken)
}

// Synthesize plays the next script.
func (t *TTS) Synthesize(ctx context.Context, req providers.TTSRequest) iter.Seq2[providers.Sound, error] {
	return func(yield func(providers.Sound, error) bool) {
		t.mu.Lock()
		spoken := &Spoken{Request: req}
		script := pick(t.Script, len(t.spoken))
		t.spoken = append(t.spoken, spoken)
		t.mu.Unlock()
		defer t.note(func() { spoken.Ended = true })
		if err := t.speak(ctx, script, spoken, yield); err != nil {
			if ctx.Err() != nil {
				t.note(func() { spoken.Cancelled = true })
			}
			yield(providers.Sound{}, err)
		}
	}
}

// speak yields the sound, piece by piece.
func (t *TTS) speak(ctx context.Context, script Speech, spoken *Spoken, yield func(providers.Sound, error) bool) error {
	if err := pause(ctx, script.Delay); err != nil {
		return err
	}
	rate := cmp.Or(t.Rate, 24000)
	total := script.length(spoken.Request.Text)
	stalled := script.Stall <= 0
	for at := time.Duration(0); ; {
		if script.Err != nil && at >= script.FailAt {
			return script.Err
		}
		if !stalled && at >= script.StallAt {
			stalled = true
			if err := pause(ctx, script.Stall); err != nil {
				return err
			}
		}
		if at >= total {
			return nil
		}
		if at > 0 {
			if err := pause(ctx, script.EveryPiece); err != nil {
				return err
			}
		} else if err := ctx.Err(); err != nil {
			return err
		}
		next := min(at+cmp.Or(script.Piece, 60*time.Millisecond), total)
		t.note(func() { spoken.Sound = next })
		if !yield(providers.Sound{Rate: rate, PCM: tone(rate, at, next)}, nil) {
			t.note(func() { spoken.Left = true })
			return nil
		}
		at = next
	}
}

// length returns the length of a sentence's sound.
func (s Speech) length(text string) time.Duration {
	text = strings.TrimSpace(text)
	if s.Silent || text == "" {
		return 0
	}
	if s.Length > 0 {
		return s.Length
	}
	return time.Duration(utf8.RuneCountInString(text)) * cmp.Or(s.PerLetter, 60*time.Millisecond)
}

// note changes a record.
func (t *TTS) note(change func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change()
}

// tone returns the part of a tone of 440 Hz between two times; its phase goes on.
func tone(rate int, from, to time.Duration) []int16 {
	first := int(int64(from) * int64(rate) / int64(time.Second))
	last := int(int64(to) * int64(rate) / int64(time.Second))
	pcm := make([]int16, last-first)
	for i := range pcm {
		pcm[i] = int16(12000 * math.Sin(2*math.Pi*440*float64(first+i)/float64(rate)))
	}
	return pcm
}

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
