package providertest

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"xiaozhi/internal/servicetest"
	"xiaozhi/providers"
)

// TestRecogniserContract holds a client of a service that recognises against its fake,
// through every fault that the fake knows.
func TestRecogniserContract(t *testing.T, c Case) {
	t.Helper()
	t.Attr(rowsOf, "recogniser")
	c.each(t, func(tr *trial) {
		a := tr.recogniser()
		for range map[bool]int{false: 1, true: 2}[tr.f == servicetest.Stale || tr.f == servicetest.None] {
			partials, final, err := tr.recognise(a, speech(1200*time.Millisecond))
			tr.judge(partials, final, err)
		}
	})
	t.Run("nothing said", func(t *testing.T) {
		t.Parallel()
		c.try(t, servicetest.None, func(tr *trial) {
			if _, final, err := tr.recognise(tr.recogniser(), make([]int16, 16000)); err != nil || final.Text != "" {
				tr.Errorf("final %q, error %v", final.Text, err)
			}
		})
	})
	for name, when := range map[string]int{"while sound comes": 1, "after a partial text": 2, "after the end": 3} {
		t.Run("cancelled "+name, func(t *testing.T) {
			t.Parallel()
			if c.Uploads && when == 2 {
				t.Skip("there are no partial texts")
			}
			f := servicetest.None
			if probe := c.Fake(t); when == 3 && probe.Knows(servicetest.Late) {
				f = servicetest.Late
			}
			c.try(t, f, func(tr *trial) { tr.cancelASR(when) })
		})
	}
	manyUtterances(t, c)
}

// manyUtterances recognises several at once.
func manyUtterances(t *testing.T, c Case) {
	t.Helper()
	t.Run("many at once", func(t *testing.T) {
		t.Parallel()
		c.try(t, servicetest.None, func(tr *trial) {
			a := tr.recogniser()
			done := make(chan error)
			for range 3 {
				go func() {
					_, final, err := tr.recognise(a, speech(time.Second))
					if err == nil && !same(final.Text, c.words()) {
						tr.Errorf("final %q", final.Text)
					}
					done <- err
				}()
			}
			for range 3 {
				if err := <-done; err != nil {
					tr.Error(err)
				}
			}
		})
	})
}

// same says whether two texts are the same but for blanks: sentences are joined without
// one where either is Chinese.
func same(a, b string) bool { return letters(a) == letters(b) }

// letters is a text without blanks.
func letters(s string) string { return strings.ReplaceAll(s, " ", "") }

func (tr *trial) recogniser() providers.ASR {
	tr.Helper()
	a, err := tr.c.Kind.ASR(tr.section())
	if err != nil {
		tr.Fatal(err)
	}
	return a
}

// judge looks at what came of an utterance under a fault.
func (tr *trial) judge(partials []string, final providers.Transcript, err error) {
	tr.Helper()
	switch _, fails := usual(tr.f); {
	case fails:
		tr.wantKind(err)
	case tr.f == servicetest.Late:
		if err != nil {
			tr.f = servicetest.Silent // as if it had said nothing: of the same kind
			tr.wantKind(err)
		} else if final.Text == "" || !strings.HasPrefix(letters(tr.c.words()), letters(final.Text)) {
			tr.Errorf("final %q is not the beginning of what was said", final.Text)
		}
	case err != nil:
		tr.Error(err)
	case !same(final.Text, tr.c.words()):
		tr.Errorf("final %q, want %q", final.Text, tr.c.words())
	case final.Provider != "under-test":
		tr.Errorf("the provider is %q", final.Provider)
	case !tr.c.Uploads && len(partials) == 0:
		tr.Error("there was no partial text before the end of the sound")
	}
}

// recognise speaks, waits for a partial text if there are to be any, and ends the
// utterance.
func (tr *trial) recognise(a providers.ASR, pcm []int16) (partials []string, final providers.Transcript, err error) {
	tr.Helper()
	s, err := a.Open(tr.Context(), providers.ASRRequest{Rate: 16000, Language: "zh", Phrases: []string{"lamp"}})
	if err != nil {
		return nil, final, err
	}
	begun, heard := make(chan struct{}, 1), make(chan struct{}, 1)
	signal := func(c chan struct{}) {
		select {
		case c <- struct{}{}:
		default:
		}
	}
	first, _ := servicetest.Halves()
	var speaking sync.WaitGroup
	defer speaking.Wait()
	speaking.Go(func() { // it ends with the sound, or after the time limit of a service that gives no partial text
		for n := 0; n < len(pcm); n += 960 {
			if tr.f == servicetest.Ends && n == 9600 { // what is sent before the end is noticed is lost
				waitFor(begun, long)
				time.Sleep(50 * time.Millisecond)
			}
			_ = s.Write(pcm[n:min(n+960, len(pcm))])
		}
		if wait := tr.wait(pcm); wait > 0 {
			waitFor(heard, wait)
		}
		_ = s.CloseWrite()
	})
	defer signal(heard)
	defer signal(begun)
	finals := 0
	for t, err := range s.Transcripts() {
		switch {
		case err != nil:
			return partials, final, err
		case t.Final:
			finals++
			final = t
		default:
			partials = append(partials, t.Text)
			if len(letters(t.Text)) >= len(letters(first)) {
				signal(begun)
			}
			if tr.enough(t.Text) {
				signal(heard)
			}
		}
	}
	if finals != 1 {
		tr.Errorf("%d final transcripts", finals)
	}
	return partials, final, nil
}

// waitFor waits for a signal, for so long at most.
func waitFor(signal <-chan struct{}, limit time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-signal:
	case <-timer.C:
	}
}

// enough says whether the sound may end after this partial text. A service that ends sentences or sessions
// by itself must have done so: what follows the end of the sound is taken for its answer to that.
func (tr *trial) enough(partial string) bool {
	first, _ := servicetest.Halves()
	return tr.f != servicetest.Parts && tr.f != servicetest.Ends || tr.c.Text != "" || len(letters(partial)) > len(letters(first))
}

// wait returns the time for which a partial text is waited for before the sound is ended.
func (tr *trial) wait(pcm []int16) time.Duration {
	if silent := !slices.ContainsFunc(pcm, func(v int16) bool { return v != 0 }); tr.c.Uploads || silent {
		return 0
	}
	if _, fails := usual(tr.f); fails {
		return soon
	}
	return long / 2
}

// cancelASR ends the context while sound comes (1), after a partial text (2) or after the
// end of the sound (3).
func (tr *trial) cancelASR(when int) {
	ctx, cancel := context.WithCancel(tr.Context())
	defer cancel()
	a := tr.recogniser()
	s, err := a.Open(ctx, providers.ASRRequest{Rate: 16000, Language: "zh"})
	if err != nil {
		tr.Fatal(err)
	}
	if err := s.Write(speech(time.Second)); err != nil {
		tr.Error(err)
	}
	var begun time.Time
	end := func() { begun = time.Now(); cancel() }
	switch when {
	case 1:
		after(20*time.Millisecond, cancel)
	case 3:
		_ = s.CloseWrite()
		if tr.f == servicetest.Late {
			after(50*time.Millisecond, cancel)
		} else {
			end()
		}
	}
	for t, err := range s.Transcripts() {
		if err != nil {
			tr.errs = append(tr.errs, err)
			took := time.Duration(0)
			if !begun.IsZero() {
				took = time.Since(begun)
			}
			tr.cancelled(err, took)
			return
		}
		if when == 2 && begun.IsZero() {
			end()
		}
		if t.Final {
			return // it was faster
		}
	}
	tr.Error("neither a final text nor an error")
}
