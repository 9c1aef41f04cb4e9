package think

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"xiaozhi/agent/speak"
	"xiaozhi/internal/idle"
	"xiaozhi/internal/text"
	"xiaozhi/internal/timeline"
	"xiaozhi/internal/wire"
	"xiaozhi/prompts"
	"xiaozhi/providers"
)

// The first sound of an answer waits so long for the user's words, which are shown before it, and so
// long for more of them where a service tells them in pieces. Later ones are only kept.
const (
	wordsWithin = 200 * time.Millisecond
	wordsSettle = 40 * time.Millisecond
)

// errNoSound marks an answer of which there is nothing to hear.
var errNoSound = errors.New("an answer without a sound")

// Talker answers what it has heard, with sound: an utterance, or the results of the calls
// that it has made for it.
type Talker interface {
	// Name is the provider's name in logs.
	Name() string
	// Respond streams the answer. An error is the last thing yielded.
	Respond(ctx context.Context, results []providers.ToolResult) iter.Seq2[providers.DuplexDelta, error]
}

// Aloud has a [Talker] answer a turn's utterance, with tools between. It belongs to the goroutine
// of its [Responder]; Owes is for who waits for that.
type Aloud struct {
	r     *Responder
	t     Talker
	user  userWords
	begun bool // something with its own sound went to the ear
	owes  bool // there are calls whose results were not told
}

// NewAloud prepares the answer.
func NewAloud(r *Responder, t Talker) *Aloud {
	return &Aloud{r: r, t: t, user: userWords{read: r.turn.Words != "", known: make(chan struct{}, 1)}}
}

// Begun reports whether something of the answer went to the ear.
func (a *Aloud) Begun() bool { return a.begun }

// Owes reports whether there are calls whose results were not told to who made them.
func (a *Aloud) Owes() bool { return a.owes }

// Answer takes the answer to its end. While it has not begun, another way to answer may be taken
// after an error.
func (a *Aloud) Answer(ctx context.Context) error {
	r := a.r
	ctx, giveUp := context.WithCancelCause(r.withInfo(ctx))
	defer r.calling.Wait()
	defer giveUp(nil)
	var results []providers.ToolResult
	for n := 0; ; n++ {
		st := &step{index: len(r.steps), split: r.splitter()}
		r.steps = append(r.steps, st)
		part := &answer{a: a, r: r, st: st, last: n > r.o.MaxSteps}
		if err := part.hear(ctx, a.t, results); err != nil {
			return err
		}
		a.owes = len(st.calls) > 0
		again, err := a.finish(ctx, st)
		switch {
		case err != nil:
			return err
		case again:
			results = st.results(part.ids)
		case len(st.calls) > 0 || a.begun:
			return r.ask(ctx)
		case controlled(r.steps):
			return r.Say(ctx, r.o.Prompts.Phrase(prompts.OK, r.lang()))
		default:
			return fmt.Errorf("%w: %s: %w", errModel, a.t.Name(), errNoSound)
		}
	}
}

// finish waits for a step's calls, and reports whether their results are to be told: that is so
// unless the user is asked to allow one. What a tool would have said is told too, for the same
// voice says it.
func (a *Aloud) finish(ctx context.Context, st *step) (again bool, err error) {
	again = len(st.calls) > 0
	for _, c := range st.calls {
		if err := a.r.await(ctx, c.done); err != nil {
			return false, err
		}
		a.r.quoted = a.r.quoted || c.quotes
		if c.outcome.Handler != nil {
			if err := a.r.handle(ctx, c, false); err != nil {
				return false, err
			}
		}
		again = again && !c.asks
	}
	return again, nil
}

// Instead prepares to answer words of that language in another way, after an error before the
// answer has begun. They are shown, if they were not.
func (a *Aloud) Instead(words string, lang text.Lang) {
	if n := len(a.r.steps); n > 0 {
		a.r.steps[n-1].text.Reset() // nobody has heard it
	}
	a.r.turn.Words, a.r.turn.Lang = words, lang
	if !a.user.read && !a.user.shown {
		a.r.out.Player.Send(wire.Message{Kind: wire.MessageSTT, Text: words})
	}
}

// controlled reports whether calls were made, and all of them are taken to have succeeded.
func controlled(steps []*step) bool {
	controls := 0
	for _, s := range steps {
		for _, c := range s.calls {
			if !c.control {
				return false
			}
			controls++
		}
	}
	return controls > 0
}

// results are those of all calls of a step, by the ids that its model gave them.
func (s *step) results(ids []string) (out []providers.ToolResult) {
	for i, c := range s.calls {
		said := text.Join(c.result(), c.outcome.Say)
		out = append(out, providers.ToolResult{ID: ids[i], Name: c.call.Name, Output: said, Failed: c.outcome.Failed})
	}
	return out
}

// userWords are the words of the user as who answers aloud understands them.
type userWords struct {
	read  bool          // a recogniser has read them: what others understand does not count
	known chan struct{} // holds one when there are others than before

	mu    sync.Mutex
	words string
	whole time.Time // when they are taken for whole
	shown bool
}

// take replaces what was understood so far. It reports whether it counts.
func (w *userWords) take(words string, hearing bool) bool {
	if words == "" || w.read {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.words, w.whole = words, time.Now()
	if hearing {
		w.whole = w.whole.Add(wordsSettle)
	}
	select {
	case w.known <- struct{}{}:
	default: // it is awaited
	}
	return true
}

// await waits a moment for them, and until they are taken for whole. There is nothing to wait for where a recogniser has read them.
func (w *userWords) await(ctx context.Context) {
	if w.read {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, wordsWithin)
	defer cancel()
	for {
		w.mu.Lock()
		known, left := w.words != "", time.Until(w.whole)
		w.mu.Unlock()
		if !known {
			left = wordsWithin
		}
		if left <= 0 {
			return
		}
		select {
		case <-w.known:
		case <-time.After(left):
		case <-ctx.Done():
			return
		}
	}
}

// show shows what is known, once.
func (w *userWords) show(p *speak.Player) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.words != "" && !w.shown && !w.read {
		w.shown = true
		p.Send(wire.Message{Kind: wire.MessageSTT, Text: w.words})
	}
}

// answer is one answer with its own sound. It is for one goroutine.
type answer struct {
	a    *Aloud
	r    *Responder
	st   *step
	ids  []string // of the calls, as its model named them
	last bool     // no more calls are made

	spoken *speak.Spoken   // nil: there is no sound yet
	held   []speak.Segment // words that came before the sound
	saying sync.WaitGroup  // has the speaker take spoken
	failed error           // of that; read after saying
}

// hear takes an answer to its end.
func (a *answer) hear(ctx context.Context, t Talker, results []providers.ToolResult) error {
	r := a.r
	stepCtx, limit := idle.WithTimeout(timeline.WithAttempts(ctx, r.out.Times.Of(r.out.Times.ModelAsked())), r.o.StepTimeout)
	defer limit.Close()
	defer a.end(true)
	answered := sync.OnceFunc(r.gate.AwaitsModel())
	defer answered()
	for d, err := range t.Respond(stepCtx, results) {
		if err != nil {
			if ctx.Err() == nil && stepCtx.Err() != nil {
				err = context.Cause(stepCtx)
			}
			return fmt.Errorf("%w: %w", errModel, err)
		}
		limit.Pause() // a long answer waits for the speaker
		if err := a.take(ctx, t.Name(), d); err != nil {
			return err
		}
		if a.spoken != nil {
			answered()
		}
		limit.Resume()
	}
	if stepCtx.Err() != nil {
		return fmt.Errorf("%w: %w", errModel, context.Cause(stepCtx))
	}
	a.end(false)
	return a.failed
}

// end ends the sound, with what is left of its words, and waits until the speaker has it.
func (a *answer) end(broken bool) {
	if a.spoken != nil {
		a.caption(a.st.split.Flush())
		a.spoken.End(broken)
	}
	a.saying.Wait()
}

// take takes in a piece of the answer.
func (a *answer) take(ctx context.Context, name string, d providers.DuplexDelta) error {
	if a.a.user.take(d.Heard, d.Hearing) {
		a.r.turn.Words = d.Heard
	}
	a.r.out.Times.Spent(timeline.Tokens{Prompt: d.Usage.Prompt, Completion: d.Usage.Completion})
	if d.Text != "" {
		a.st.text.WriteString(d.Text)
		a.caption(a.st.split.Feed(d.Text))
	}
	if len(d.Sound.PCM)+len(d.Sound.Packets) > 0 {
		d.Sound.Provider = cmp.Or(d.Sound.Provider, name)
		if said := a.st.text.String(); strings.HasSuffix(said, ".") || strings.HasSuffix(said, "!") || strings.HasSuffix(said, "?") {
			a.caption(a.st.split.Flush()) // it would wait for what follows, and its sound is here
		}
		if a.spoken == nil {
			a.say(ctx, d.Sound.Provider)
		}
		if err := a.spoken.Add(ctx, d.Sound); err != nil {
			return err
		}
	}
	if a.last {
		return nil
	}
	for _, call := range d.ToolCalls {
		a.a.owes = true
		a.a.user.show(a.r.out.Player)
		a.ids = append(a.ids, call.ID)
		if err := a.r.startCall(ctx, a.st, call); err != nil {
			return err
		}
	}
	return nil
}

// say gives the sound to the speaker, after the user's words, which are awaited for a moment.
func (a *answer) say(ctx context.Context, provider string) {
	r := a.r
	r.out.Times.Token(provider)
	r.out.Times.VoiceAsked(provider)
	r.out.Times.VoiceHeard()
	a.a.begun = true
	first := speak.NewSegment("", r.turn.Lang, a.st.index)
	a.spoken = speak.NewSpoken(first)
	a.add(a.held)
	a.held = nil
	a.saying.Go(func() {
		a.a.user.await(ctx)
		a.a.user.show(r.out.Player)
		a.failed = r.out.Speaker.Say(ctx, speak.NewAloud(a.spoken))
	})
}

// caption puts words to the sound; before there is any they are kept.
func (a *answer) caption(pieces []string) {
	var words []speak.Segment
	for _, piece := range pieces {
		s := speak.NewSegment(piece, a.r.turn.Lang, a.st.index)
		if s.Speech == "" {
			continue
		}
		if a.r.faced {
			s.Emotion, s.Emoji = "", ""
		} else {
			a.r.faced = true
			s.Face()
		}
		words = append(words, s)
	}
	if a.spoken == nil {
		a.held = append(a.held, words...)
	} else {
		a.add(words)
	}
}

func (a *answer) add(words []speak.Segment) {
	for _, s := range words {
		a.r.out.Player.Send(wire.Message{Kind: wire.MessageChunk, Text: s.Display})
		a.spoken.Caption(s)
	}
}
