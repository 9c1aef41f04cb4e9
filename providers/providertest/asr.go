// Package providertest holds fakes of all providers, for tests in fake or real
// time without any socket, and the suites that every real provider must pass.
//
// A fake is a struct of scripts whose zero value works. Its script fields are
// set before it is used; its methods may be called at any time by any goroutine.
package providertest

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"xiaozhi/providers"
)

// Hearing is the script of one utterance.
type Hearing struct {
	Partials []string // each one is yielded Every after the one before
	Every    time.Duration
	Delay    time.Duration // from the end of the sound to the final transcript
	Text     string
	Language string
	Rejected bool
	Err      error // in place of the final transcript
	Hang     bool  // in place of the final transcript, until the context ends
}

// Heard is one utterance as a fake recogniser saw it.
type Heard struct {
	Request   providers.ASRRequest
	Samples   int
	Sum       int64 // of all samples: tells whether the same sound came
	Closed    bool  // CloseWrite was called
	Cancelled bool  // its context ended before its transcript was yielded
	Final     bool  // the final transcript was yielded
}

// ASR is a fake recogniser.
type ASR struct {
	Label   string    // its name; "fake-asr" if empty
	Script  []Hearing // one for each utterance in order; the last one for all further ones
	OpenErr error     // of every Open

	mu         sync.Mutex
	utterances []*Heard
}

// Name returns the label.
func (a *ASR) Name() string { return cmp.Or(a.Label, "fake-asr") }

// Utterances returns all utterances so far, as they stand now.
func (a *ASR) Utterances() []Heard {
	a.mu.Lock()
	defer a.mu.Unlock()
	return copies(a.utterances)
}

// Open begins an utterance with the next script.
func (a *ASR) Open(ctx context.Context, req providers.ASRRequest) (providers.ASRStream, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if a.OpenErr != nil {
		return nil, a.OpenErr
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	req.Phrases = slices.Clone(req.Phrases)
	heard := &Heard{Request: req}
	s := &fakeStream{
		asr: a, heard: heard, script: pick(a.Script, len(a.utterances)),
		limit: providers.MaxUtterance * max(req.Rate, 1), complete: make(chan struct{}),
		pause: func(d time.Duration) error { return pause(ctx, d) }, ended: ctx.Done(), cause: ctx.Err,
	}
	a.utterances = append(a.utterances, heard)
	return s, nil
}

// fakeStream is one utterance of a fake recogniser.
type fakeStream struct {
	asr      *ASR
	heard    *Heard // under asr.mu
	script   Hearing
	limit    int
	complete chan struct{}
	pause    func(time.Duration) error
	ended    <-chan struct{}
	cause    func() error
}

// Write counts the sound.
func (s *fakeStream) Write(pcm []int16) error {
	s.asr.mu.Lock()
	defer s.asr.mu.Unlock()
	if s.heard.Closed {
		return providers.ErrUtteranceClosed
	}
	if s.heard.Samples+len(pcm) > s.limit {
		return providers.ErrUtteranceFull
	}
	s.heard.Samples += len(pcm)
	for _, v := range pcm {
		s.heard.Sum += int64(v)
	}
	return nil
}

// CloseWrite lets the final transcript come.
func (s *fakeStream) CloseWrite() error {
	s.asr.mu.Lock()
	defer s.asr.mu.Unlock()
	if !s.heard.Closed {
		s.heard.Closed = true
		close(s.complete)
	}
	return nil
}

// Transcripts plays the script.
func (s *fakeStream) Transcripts() iter.Seq2[providers.Transcript, error] {
	return func(yield func(providers.Transcript, error) bool) {
		name := s.asr.Name()
		for _, text := range s.script.Partials {
			if err := s.pause(s.script.Every); err != nil {
				s.cancelled()
				yield(providers.Transcript{}, err)
				return
			}
			if !yield(providers.Transcript{Text: text, Provider: name}, nil) {
				s.cancelled()
				return
			}
		}
		if err := s.wait(); err != nil {
			s.cancelled()
			yield(providers.Transcript{}, err)
			return
		}
		if s.script.Err != nil {
			yield(providers.Transcript{}, s.script.Err)
			return
		}
		s.asr.mu.Lock()
		s.heard.Final = true
		s.asr.mu.Unlock()
		yield(providers.Transcript{
			Text: s.script.Text, Final: true, Language: s.script.Language, Rejected: s.script.Rejected, Provider: name,
		}, nil)
	}
}

// wait waits for the end of the sound and for the recogniser's own time.
func (s *fakeStream) wait() error {
	select {
	case <-s.complete:
	case <-s.ended:
		return s.cause()
	}
	if s.script.Hang {
		<-s.ended
		return s.cause()
	}
	return s.pause(s.script.Delay)
}

// cancelled notes that the transcript is not wanted any more.
func (s *fakeStream) cancelled() {
	s.asr.mu.Lock()
	defer s.asr.mu.Unlock()
	s.heard.Cancelled = true
}

// pause waits in fake or real time. It gives the context's error if that ends first.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pick returns the i-th script, or the last, or the zero one.
func pick[S any](script []S, i int) (s S) {
	if len(script) > 0 {
		s = script[min(i, len(script)-1)]
	}
	return s
}

// copies returns records as they stand now.
func copies[R any](records []*R) []R {
	all := make([]R, 0, len(records))
	for _, r := range records {
		all = append(all, *r)
	}
	return all
}
