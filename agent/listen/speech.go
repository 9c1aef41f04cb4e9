package listen

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"xiaozhi/agent/turn"
	"xiaozhi/audio"
	"xiaozhi/internal/text"
	"xiaozhi/internal/timeline"
	"xiaozhi/providers"
)

const (
	// keepsFor is how long an utterance may be whose sound is kept, for a
	// recogniser that has to hear all of it again.
	keepsFor     = 10 * time.Second
	interimEvery = 400 * time.Millisecond // more voice before the next interim text
	maxInterims  = 5
)

// speech is one utterance at work: its sound so far, and the recognisers that
// hear it. Each pause may be its end, so the recogniser is asked for its text
// there. If the user goes on, that text is void, and another recogniser hears all
// of it. It is for the listener's goroutine.
type speech struct {
	o    *Options
	id   uint64
	lang string
	ctx  func() (context.Context, context.CancelCauseFunc) // a context that ends with the utterance

	tap     Tap // nil: nobody listens in
	attempt *attempt
	failed  error // why it cannot be recognised

	said     []int16       // its sound so far, while keeps
	keeps    bool          // it is still short enough
	recent   []int16       // the end of its sound, for self-echo
	foreign  bool          // it is not what the device plays: that was not heard before either
	sounds   bool          // its sound is answered: no recogniser hears it, but for interim texts
	asks     int           // how often its text was asked for at a pause
	pausedAt time.Duration // where the last pause began, on the endpointer's timeline
	interims int
	next     time.Duration // the next interim text, by how much voice there is
	long     bool          // it was reported to be long
	asking   asking
}

// attempt is one recogniser at work on an utterance.
type attempt struct {
	n      int                 // of the utterance, from 1
	stream providers.ASRStream // nil: it could not be opened
	cancel context.CancelCauseFunc
	asked  bool                                 // its text was asked for: it hears no more
	echo   atomic.Bool                          // what it has heard is what the device plays
	partly atomic.Pointer[providers.Transcript] // what it has understood so far; nil: nothing, or it does not say

	drafting sync.Mutex // of whoever reports a draft
	drafts   bool       // at a pause: what it understands is reported
}

// asking holds whom the attempts of an utterance have asked, and what came of it. Its
// methods may be called at the same time.
type asking struct {
	mu  sync.Mutex
	all []timeline.Attempt
}

// noter returns the function that keeps what came of asking a recogniser for an attempt; void: for
// the text so far, of which nothing stays.
func (a *asking) noter(void bool) func(timeline.Attempt) {
	return func(asked timeline.Attempt) {
		a.mu.Lock()
		defer a.mu.Unlock()
		asked.Void = void || asked.Outcome == timeline.Left // the user went on
		a.all = append(a.all, asked)
	}
}

// list returns what is known by now.
func (a *asking) list() []timeline.Attempt {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.all)
}

// newSpeech begins an utterance. keeps: it may be asked for its text more than
// once. foreign: it is known not to be the device's own sound.
func newSpeech(o *Options, lang string, keeps, foreign bool) *speech {
	ctx, cancel := o.Child()
	s := &speech{o: o, id: o.Book.add(cancel), lang: lang, keeps: keeps, foreign: foreign, next: o.BargeIn}
	s.ctx = func() (context.Context, context.CancelCauseFunc) { return context.WithCancelCause(ctx) }
	if o.Tap != nil {
		s.tap = o.Tap(ctx, s.id)
	}
	s.warm()
	if s.sounds = o.Sounds != nil && o.Sounds.Begin(s.id); s.sounds {
		s.attempt = &attempt{n: 1}
	} else {
		s.hear(1)
	}
	return s
}

// release lets go of the utterance.
func (s *speech) release(cause error) {
	if s.tap != nil {
		s.tap.Drop(cause)
	}
	if s.sounds {
		s.o.Sounds.Release(s.id)
	}
}

// warm gets the engines ready that the utterance will need soon.
func (s *speech) warm() {
	ctx, cancel := s.ctx()
	s.o.Go(func() {
		defer cancel(turn.ErrDone)
		for _, engine := range s.o.Warm {
			w, ok := engine.(providers.Warmer)
			if !ok {
				continue
			}
			if err := w.Warm(ctx); err != nil {
				s.o.Log.Debug("engine is not warm", "err", err)
			}
		}
	})
}

// hear opens a recogniser.
func (s *speech) hear(n int) {
	s.failed = nil
	ctx, cancel := s.ctx()
	a := &attempt{n: n, cancel: cancel}
	s.attempt = a
	stream, err := s.recogniser(timeline.WithAttempts(ctx, s.asking.noter(false)))
	if err != nil {
		s.failed = err
		return
	}
	a.stream = stream
	s.o.Go(func() { s.o.Report(s.read(a)) })
}

func (s *speech) recogniser(ctx context.Context) (providers.ASRStream, error) {
	var phrases []string
	if s.o.Phrases != nil {
		phrases = s.o.Phrases()
	}
	return s.o.ASR.Open(ctx, providers.ASRRequest{Rate: audio.Recognition.Rate, Language: s.lang, Phrases: phrases})
}

// isEcho reports whether the utterance so far is what the device plays.
func (s *speech) isEcho() bool { return !s.foreign && s.o.SelfEcho.Is(s.recent, time.Now()) }

// write passes sound to the recogniser, and keeps it while it may have to be heard
// again. False: the recogniser takes no more.
func (s *speech) write(pcm []int16) bool {
	a := s.attempt
	if s.keeps && (a.asked || len(s.said)+len(pcm) <= audio.Recognition.Rate*int(keepsFor/time.Second)) {
		s.said = append(audio.Grow(s.said, len(pcm)), pcm...)
	} else {
		s.said, s.keeps = nil, false
	}
	s.recent = s.o.SelfEcho.Keep(s.recent, pcm)
	if s.sounds {
		return s.o.Sounds.Write(s.id, pcm)
	}
	if a.stream == nil || s.failed != nil || a.asked || len(pcm) == 0 {
		return true
	}
	s.failed = a.stream.Write(pcm)
	return s.failed == nil
}

// pause asks for the text of what was said so far, and reports the pause.
func (s *speech) pause(at time.Duration) {
	a := s.attempt
	s.pausedAt = at
	if s.tap != nil {
		s.tap.Pause()
	}
	if s.keeps && s.asks < s.o.Attempts && a.stream != nil && s.failed == nil {
		s.asks++
		a.echo.Store(s.isEcho())
		s.ask(a)
	}
	s.o.Report(turn.SpeechPaused{ID: s.id})
	if a.asked {
		s.draft(a, true)
	}
}

// draft reports what a recogniser has understood, if that is wanted: from a pause on, as it
// lags behind the voice. It is called by the listener's goroutine and by the reader's.
func (s *speech) draft(a *attempt, pause bool) {
	a.drafting.Lock()
	defer a.drafting.Unlock()
	a.drafts = a.drafts || pause
	if t := a.partly.Load(); t != nil && a.drafts && !a.echo.Load() {
		s.o.Report(turn.Draft{ID: s.id, Attempt: a.n, Words: t.Text, Lang: text.LangNamed(t.Language), Provider: t.Provider})
	}
}

// ask asks the recogniser for its text, once.
func (s *speech) ask(a *attempt) {
	if a.asked {
		return
	}
	a.asked = true
	if err := a.stream.CloseWrite(); err != nil {
		s.o.Report(turn.Transcript{ID: s.id, Attempt: a.n, Text: failed(fmt.Errorf("end the utterance: %w", err))})
	}
}

// resume goes on after a pause, at a place on the endpointer's timeline.
func (s *speech) resume(at time.Duration) {
	a := s.attempt
	gap := at - s.pausedAt
	if !a.asked {
		s.o.Report(turn.SpeechResumed{ID: s.id, Attempt: a.n, Gap: gap})
		return
	}
	a.cancel(turn.ErrResumed)
	s.o.Report(turn.SpeechResumed{ID: s.id, Attempt: a.n + 1, Gap: gap})
	s.hear(a.n + 1)
	said := s.said
	s.said, s.recent = nil, s.recent[:0]
	s.write(said)
}

// voiced acts on how much voice there is: it is reported to be long, and interim
// texts are asked for where somebody wants them.
func (s *speech) voiced(length time.Duration, watched bool) {
	if !s.long && length >= s.o.BargeIn {
		s.long = true
		s.o.Report(turn.SpeechLong{ID: s.id, Echo: s.isEcho()})
	}
	if !watched || length < s.next {
		return
	}
	if t := s.attempt.partly.Load(); t != nil {
		s.next = length + interimEvery
		s.o.Report(turn.Interim{ID: s.id, Words: t.Text, Lang: text.LangNamed(t.Language), Echo: s.isEcho()})
		return
	}
	if s.keeps && s.interims < maxInterims && len(s.said) > 0 && (s.sounds || !s.streams()) {
		s.interims++
		s.next = length + interimEvery
		s.interim()
	}
}

// streams reports whether the recogniser says by itself what it understands.
func (s *speech) streams() bool {
	streamer, ok := s.o.ASR.(providers.Streamer)
	return ok && streamer.Streams()
}

// interim asks another recogniser what was said so far, while the utterance goes on.
func (s *speech) interim() {
	ctx, cancel := s.ctx()
	stream, err := s.recogniser(timeline.WithAttempts(ctx, s.asking.noter(true)))
	if err != nil {
		cancel(turn.ErrFailed)
		s.o.Log.Debug("no interim text", "err", err)
		return
	}
	if err := errors.Join(stream.Write(s.said), stream.CloseWrite()); err != nil {
		s.o.Log.Debug("no interim text", "err", err)
		cancel(turn.ErrFailed)
	}
	a := &attempt{stream: stream, cancel: cancel, asked: true}
	a.echo.Store(s.isEcho())
	s.o.Go(func() {
		if got := s.read(a); got.Text.Status != turn.Failed {
			s.o.Report(turn.Interim{ID: s.id, Words: got.Text.Words, Lang: got.Text.Lang, Rejected: got.Text.Status == turn.Rejected, Echo: got.Echo})
		}
	})
}

// end reports that the utterance is over, in that opening of the microphone, after
// so much silence; its text follows, or was there before.
func (s *speech) end(epoch uint64, silence time.Duration) {
	a := s.attempt
	ended := time.Now()
	if !a.asked {
		a.echo.Store(s.isEcho())
	}
	echo := a.echo.Load()
	if s.tap != nil {
		s.tap.End(echo)
	}
	s.o.Report(turn.SpeechEnded{ID: s.id, Epoch: epoch, Attempt: a.n, Spoken: ended.Add(-silence), Ended: ended, Echo: echo})
	if a.stream != nil {
		s.ask(a)
		return
	}
	said := turn.Text{Status: turn.Final}
	switch {
	case s.sounds:
		said.Status = turn.Unread
	case s.failed != nil:
		said = failed(s.failed)
	}
	s.o.Report(turn.Transcript{ID: s.id, Attempt: a.n, Text: said, Echo: echo})
}

// read waits for the text of an attempt.
func (s *speech) read(a *attempt) (got turn.Transcript) {
	got = turn.Transcript{ID: s.id, Attempt: a.n}
	defer func() {
		got.Echo, got.Text.Attempts = a.echo.Load(), s.asking.list()
		if p := recover(); p != nil {
			s.o.Log.Error("panic in recogniser", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			got.Text = failed(fmt.Errorf("%w: panic in recogniser: %v", turn.ErrFailed, p))
		}
		a.cancel(turn.ErrDone)
	}()
	for t, err := range a.stream.Transcripts() {
		switch {
		case err != nil:
			got.Text = failed(err)
			return got
		case t.Final && t.Rejected:
			got.Text = turn.Text{Status: turn.Rejected, Words: t.Text, Lang: text.LangNamed(t.Language), Provider: t.Provider}
			return got
		case t.Final:
			got.Text = turn.Text{Status: turn.Final, Words: t.Text, Lang: text.LangNamed(t.Language), Provider: t.Provider}
			return got
		}
		if s.streams() { // others guess, and judge their guess only at the end
			a.partly.Store(&t)
			s.draft(a, false)
		}
		s.o.Log.Debug("partial transcript", "chars", len([]rune(t.Text)))
	}
	got.Text = failed(fmt.Errorf("%w: the recogniser gave no final transcript", turn.ErrFailed))
	return got
}

func failed(err error) turn.Text { return turn.Text{Status: turn.Failed, Err: err} }

// Book numbers the utterances of a conversation and holds what ends the work for
// each. Its zero value is ready. Its methods may be called at the same time.
type Book struct {
	mu      sync.Mutex
	last    uint64
	cancel  map[uint64]context.CancelCauseFunc
	garbled int64 // packets that are not Opus
}

// add takes in an utterance; a nil cancel means that nothing is done for it.
func (b *Book) add(cancel context.CancelCauseFunc) uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last++
	if cancel != nil {
		if b.cancel == nil {
			b.cancel = map[uint64]context.CancelCauseFunc{}
		}
		b.cancel[b.last] = cancel
	}
	return b.last
}

// Release ends all that is done for an utterance.
func (b *Book) Release(id uint64, cause error) {
	b.mu.Lock()
	cancel := b.cancel[id]
	delete(b.cancel, id)
	b.mu.Unlock()
	if cancel != nil {
		cancel(cause)
	}
}

// garble counts a packet that is not Opus, and gives how many there were.
func (b *Book) garble() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.garbled++
	return b.garbled
}
