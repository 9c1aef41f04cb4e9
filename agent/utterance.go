package agent

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"xiaozhi/agent/turn"

	"xiaozhi/audio"
	"xiaozhi/internal/wire"
	"xiaozhi/providers"
)

const (
	// maxDraft is how long an utterance may be whose text is asked for on trial:
	// so much of its sound is kept, for whoever has to hear all of it again.
	maxDraft = 10 * time.Second
	// guessAgain is how much more voice there is before the next guess.
	guessAgain = 400 * time.Millisecond
	maxGuesses = 5
)

// utterance is what the user said once. Each pause may be its end, so the
// recogniser that hears it is asked for its text there. If the user goes on,
// that text is void, and another recogniser hears all of it.
type utterance struct {
	id     uint64
	cancel context.CancelCauseFunc                           // of all that is done for it
	branch func() (context.Context, context.CancelCauseFunc) // a context below that
}

// hearing is one recogniser at work on an utterance.
type hearing struct {
	n      int                 // of the utterance, from 1
	stream providers.ASRStream // nil: it could not be opened
	cancel context.CancelCauseFunc
	asked  bool        // its text was asked for: it hears no more
	own    atomic.Bool // what it has heard is what the device plays
}

// open begins an utterance with the sound that came before it was noticed.
func (e *ears) open(before []int16) {
	ctx, cancel := e.child()
	u := &utterance{id: e.utterances.add(cancel), cancel: cancel}
	u.branch = func() (context.Context, context.CancelCauseFunc) { return context.WithCancelCause(ctx) }
	e.current, e.said, e.recent, e.keeps = u, nil, e.recent[:0], e.mode != wire.Manual
	e.drafts, e.guesses, e.guessAt = 0, 0, e.o.BargeIn
	begins := e.o.Endpoint.WithDefaults().MinSpeech
	e.foreign, e.quiet = e.loopback.Unheard(e.quiet-begins, begins, time.Now()), 0
	e.warm(u)
	e.hear(u, 1)
	e.write(before)
}

// own reports whether the utterance so far is what the device plays.
func (e *ears) own() bool { return !e.foreign && e.loopback.Is(e.recent, time.Now()) }

// warm gets the engines ready that the utterance will need soon.
func (e *ears) warm(u *utterance) {
	ctx, cancel := u.branch()
	e.wg.Go(func() {
		defer cancel(turn.ErrDone)
		for _, engine := range []any{e.o.ASR, e.o.LLM, e.o.TTS} {
			w, ok := engine.(providers.Warmer)
			if !ok {
				continue
			}
			if err := w.Warm(ctx); err != nil {
				e.log.Debug("engine is not warm", "err", err)
			}
		}
	})
}

// hear opens a recogniser for the utterance.
func (e *ears) hear(u *utterance, n int) {
	e.failed = nil
	ctx, cancel := u.branch()
	h := &hearing{n: n, cancel: cancel}
	e.now = h
	stream, err := e.listener(ctx)
	if err != nil {
		e.failed = err
		return
	}
	h.stream = stream
	e.wg.Go(func() { e.report(e.read(u, h)) })
}

func (e *ears) listener(ctx context.Context) (providers.ASRStream, error) {
	return e.o.ASR.Open(ctx, providers.ASRRequest{
		Rate: audio.Recognition.Rate, Language: e.lang, Phrases: e.phrases(),
	})
}

// write passes sound to the recogniser, and keeps it while it may have to be
// heard again.
func (e *ears) write(pcm []int16) {
	h := e.now
	if e.keeps && (h.asked || len(e.said)+len(pcm) <= audio.Recognition.Rate*int(maxDraft/time.Second)) {
		e.said = append(audio.Grow(e.said, len(pcm)), pcm...)
	} else {
		e.said, e.keeps = nil, false
	}
	e.recent = e.loopback.Keep(e.recent, pcm)
	if h.stream == nil || e.failed != nil || h.asked || len(pcm) == 0 {
		return
	}
	if err := h.stream.Write(pcm); err != nil {
		e.failed = err
		if e.mode == wire.Manual { // pressed for longer than anybody buffers: take what there is
			e.muted = true
			e.commit(0)
		}
	}
}

// pause asks for the text of what was said so far: it may be all.
func (e *ears) pause() {
	h := e.now
	e.paused = e.endpoint.LastVoice()
	if e.keeps && e.drafts < e.o.Drafts && h.stream != nil && e.failed == nil {
		e.drafts++
		h.own.Store(e.own())
		e.ask(e.current, h)
	}
	e.report(turn.SpeechPaused{ID: e.current.id})
}

// ask asks the recogniser for its text, once.
func (e *ears) ask(u *utterance, h *hearing) {
	if h.asked {
		return
	}
	h.asked = true
	if err := h.stream.CloseWrite(); err != nil {
		e.report(turn.Transcript{ID: u.id, Attempt: h.n, Text: transcript(providers.Transcript{}, fmt.Errorf("end the utterance: %w", err))})
	}
}

// resume goes on with an utterance after a pause.
func (e *ears) resume(window time.Duration) {
	h := e.now
	gap := e.fed - window - e.paused
	if !h.asked {
		e.report(turn.SpeechResumed{ID: e.current.id, Attempt: h.n, Gap: gap})
		return
	}
	h.cancel(turn.ErrResumed)
	e.report(turn.SpeechResumed{ID: e.current.id, Attempt: h.n + 1, Gap: gap})
	e.hear(e.current, h.n+1)
	said := e.said
	e.said, e.recent = nil, e.recent[:0]
	e.write(said)
}

// guess asks another recogniser what was said so far, while the utterance goes on.
func (e *ears) guess() {
	u := e.current
	if !e.keeps || e.guesses >= maxGuesses || len(e.said) == 0 {
		return
	}
	e.guesses++
	e.guessAt = e.endpoint.Voiced() + guessAgain
	ctx, cancel := u.branch()
	stream, err := e.listener(ctx)
	if err != nil {
		cancel(turn.ErrFailed)
		e.log.Debug("no guess", "err", err)
		return
	}
	if err := errors.Join(stream.Write(e.said), stream.CloseWrite()); err != nil {
		e.log.Debug("no guess", "err", err)
		cancel(turn.ErrFailed)
	}
	h := &hearing{stream: stream, cancel: cancel, asked: true}
	h.own.Store(e.own())
	e.wg.Go(func() {
		if got := e.read(u, h); got.Text.Status != turn.Failed {
			e.report(turn.Interim{ID: u.id, Words: got.Text.Words, Rejected: got.Text.Status == turn.Rejected, Echo: got.Echo})
		}
	})
}

// commit ends the utterance; silence is how long nobody has spoken.
func (e *ears) commit(silence time.Duration) {
	u := e.current
	if u == nil {
		if e.mode != wire.Manual {
			return
		}
		u = &utterance{id: e.utterances.add(nil), cancel: func(error) {}} // pressed and let go without a sound
		e.failed, e.now = nil, &hearing{n: 1}
	}
	h := e.now
	ended := time.Now()
	if !h.asked {
		h.own.Store(e.own())
	}
	echoed := h.own.Load()
	e.current, e.now, e.said, e.barged = nil, nil, nil, false
	e.endpoint.Reset()
	e.fed = 0
	e.report(turn.SpeechEnded{ID: u.id, Epoch: e.stretch, Attempt: h.n, Spoken: ended.Add(-silence), Ended: ended, Echo: echoed})
	if h.stream == nil {
		e.report(turn.Transcript{ID: u.id, Attempt: h.n, Text: transcript(providers.Transcript{Final: true}, e.failed), Echo: echoed})
		return
	}
	e.ask(u, h)
}

// drop forgets the utterance that is going on.
func (e *ears) drop(cause error) {
	if e.current != nil {
		e.utterances.release(e.current.id, cause)
		e.current, e.now, e.said = nil, nil, nil
	}
}

// read waits for the text of an utterance.
func (e *ears) read(u *utterance, h *hearing) (got turn.Transcript) {
	got = turn.Transcript{ID: u.id, Attempt: h.n}
	failed := func(err error) turn.Text { return transcript(providers.Transcript{}, err) }
	defer func() {
		got.Echo = h.own.Load()
		if p := recover(); p != nil {
			e.log.Error("panic in recogniser", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			got.Text = failed(fmt.Errorf("%w: panic in recogniser: %v", turn.ErrFailed, p))
		}
		h.cancel(turn.ErrDone)
	}()
	for t, err := range h.stream.Transcripts() {
		if err != nil {
			got.Text = failed(err)
			return got
		}
		if t.Final {
			got.Text = transcript(t, nil)
			return got
		}
		e.log.Debug("partial transcript", "chars", len([]rune(t.Text)))
	}
	got.Text = failed(fmt.Errorf("%w: the recogniser gave no final transcript", turn.ErrFailed))
	return got
}
