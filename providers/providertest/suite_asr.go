package providertest

import (
	"context"
	"sync"
	"testing"
	"time"

	"xiaozhi/providers"
)

// TestASR is the suite of recognisers. clip is 16 kHz speech that the recogniser
// made by open understands as anything but nothing; what it understands is not
// looked at.
func TestASR(t *testing.T, open func(t *testing.T) providers.ASR, clip []int16) {
	t.Run("one final transcript at the end", func(t *testing.T) {
		a := open(t)
		if a.Name() == "" {
			t.Error("it has no name")
		}
		within(t, "recognition", func() { wantFinal(t, a, clip) })
	})
	t.Run("nothing said", func(t *testing.T) {
		a := open(t)
		within(t, "recognition", func() {
			if final := wantFinal(t, a, nil); final.Text != "" && !final.Rejected {
				t.Errorf("nothing was said, but %q was understood", final.Text)
			}
		})
	})
	t.Run("many at once", func(t *testing.T) {
		a := open(t)
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() { wantFinal(t, a, clip) })
		}
		within(t, "recognition of four", all.Wait)
	})
	t.Run("write after the end", func(t *testing.T) {
		s := begin(t.Context(), t, open(t))
		if err := s.CloseWrite(); err != nil {
			t.Errorf("CloseWrite: %v", err)
		}
		if err := s.Write(clip); err == nil {
			t.Error("sound was taken after CloseWrite")
		}
		within(t, "recognition", func() { drain(s) })
	})
	t.Run("more than it may hold", func(t *testing.T) { tooLong(t, open(t)) })
	t.Run("cancelled", func(t *testing.T) { cancelASR(t, open(t), clip) })
	t.Run("the loop is left", func(t *testing.T) {
		s := begin(t.Context(), t, open(t))
		say(t, s, clip)
		within(t, "leaving the loop", func() {
			for range s.Transcripts() {
				break
			}
		})
	})
}

// tooLong checks that an utterance cannot grow for ever.
func tooLong(t *testing.T, a providers.ASR) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := begin(ctx, t, a)
	second := make([]int16, 16000)
	var refused bool
	within(t, "writing", func() {
		for range 2 * providers.MaxUtterance {
			if s.Write(second) != nil {
				refused = true
				return
			}
		}
	})
	cancel()
	within(t, "recognition", func() { drain(s) })
	if !refused {
		t.Logf("%s took %d s of sound: it must have read it as fast as it came", a.Name(), 2*providers.MaxUtterance)
	}
}

// cancelASR ends the context before, in and after the sound.
func cancelASR(t *testing.T, a providers.ASR, clip []int16) {
	t.Run("before", func(t *testing.T) {
		s, err := a.Open(ended(t), providers.ASRRequest{Rate: 16000})
		if err == nil {
			within(t, "recognition", func() { err = drain(s) })
		}
		wantContextError(t, err)
	})
	t.Run("while sound comes", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := begin(ctx, t, a)
		if err := s.Write(clip[:len(clip)/2]); err != nil {
			t.Errorf("write: %v", err)
		}
		cancel()
		within(t, "recognition", func() { wantContextError(t, drain(s)) })
	})
}

// begin opens an utterance.
func begin(ctx context.Context, t *testing.T, a providers.ASR) providers.ASRStream {
	t.Helper()
	s, err := a.Open(ctx, providers.ASRRequest{Rate: 16000, Language: "en", Phrases: []string{"turn on the light"}})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return s
}

// say writes the clip in frames of 60 ms and ends the utterance.
func say(t *testing.T, s providers.ASRStream, clip []int16) {
	t.Helper()
	for len(clip) > 0 {
		n := min(960, len(clip))
		if err := s.Write(clip[:n]); err != nil {
			t.Errorf("write: %v", err)
			return
		}
		clip = clip[n:]
	}
	if err := s.CloseWrite(); err != nil {
		t.Errorf("CloseWrite: %v", err)
	}
}

// drain reads all transcripts and gives the error.
func drain(s providers.ASRStream) (last error) {
	for _, err := range s.Transcripts() {
		last = err
	}
	return last
}

// wantFinal speaks the clip and checks the order of the transcripts.
func wantFinal(t *testing.T, a providers.ASR, clip []int16) (final providers.Transcript) {
	t.Helper()
	s, err := a.Open(t.Context(), providers.ASRRequest{Rate: 16000, Language: "en"})
	if err != nil {
		t.Errorf("open: %v", err)
		return final
	}
	var writing sync.WaitGroup
	writing.Go(func() { say(t, s, clip) })
	defer writing.Wait()
	finals := 0
	for transcript, err := range s.Transcripts() {
		if err != nil {
			t.Errorf("transcripts: %v", err)
			return final
		}
		if finals > 0 {
			t.Errorf("%+v came after the final transcript", transcript)
		}
		if transcript.Final {
			finals++
			final = transcript
		}
		if transcript.Provider != a.Name() {
			t.Errorf("a transcript of %q, not of %q", transcript.Provider, a.Name())
		}
	}
	if finals != 1 {
		t.Errorf("%d final transcripts, not one", finals)
	}
	return final
}

// watchdog ends a test whose provider does not come back. It is far above any
// bound of the contracts: a slow machine must not fail, a stuck one must.
const watchdog = 30 * time.Second

// within runs do and fails the test if it does not come back. Inside a synctest
// bubble the time is the bubble's.
func within(t *testing.T, what string, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	timer := time.NewTimer(watchdog)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		t.Fatalf("%s did not come back", what)
	}
}

// ended returns a context that has ended already.
func ended(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// wantContextError checks that err is the context's own error, unchanged.
func wantContextError(t *testing.T, err error) {
	t.Helper()
	if err != context.Canceled { //nolint:errorlint // the contract says unchanged
		t.Errorf("after the context has ended: got error %v, want %v", err, context.Canceled)
	}
}
