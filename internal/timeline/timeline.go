// Package timeline holds the times of a turn, from the end of speech to the first
// frame, and its one line in the log. docs/behaviours.md defines the figures.
package timeline

import (
	"log/slog"
	"slices"
	"sync"
	"time"
)

// Times are the moments of the utterance that a turn answers; zero: not known.
type Times struct {
	EndOfSpeech time.Time     // the last voiced sample, listen stop, or when text was typed
	End         End           // which of these
	Delay       time.Duration // how long it had to be silent; 0: as long as is set
	Endpoint    time.Time     // the utterance was taken to be over
	Silent      time.Time     // from when on the user waits to hear something
	Transcript  time.Time     // its text was there
	ASR         string        // the recogniser
	Discarded   int           // speculations that were discarded before it
	Attempts    []Attempt     // of recognisers
}

// Turn collects the times of one turn. Its methods may be called at the same time.
type Turn struct {
	mu          sync.Mutex
	of          Times
	speculation string // how the answer came about: none or used

	llmAsked   time.Time // the first model call of the turn
	firstToken time.Time
	ttsAsked   time.Time // the first segment was given to the synthesiser
	firstSound time.Time
	steps      int
	tokens     Tokens
	llm, tts   string // the providers that answered
	sentences  int
	tools      []Called
	attempts   []Attempt // of models and voices
}

// New makes the timeline of a turn that answers such an utterance.
func New(of Times) *Turn { return &Turn{of: of, speculation: "none"} }

// Commit takes over the times of the utterance that a speculation answers after all.
func (t *Turn) Commit(of Times) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of, t.speculation = of, "used"
}

// first sets at to now if it is not set.
func first(at *time.Time) {
	if at.IsZero() {
		*at = time.Now()
	}
}

// ModelAsked notes a model call, and returns which of the turn it is, from one.
func (t *Turn) ModelAsked() (step int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.steps++
	first(&t.llmAsked)
	return t.steps
}

// Token notes that the model answered, and who it was.
func (t *Turn) Token(provider string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	first(&t.firstToken)
	if provider != "" {
		t.llm = provider
	}
}

// Tokens counts what models were sent and have made, in tokens, as they say themselves.
type Tokens struct{ Prompt, Completion int }

// Spent adds what a step has cost.
func (t *Turn) Spent(s Tokens) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tokens.Prompt += s.Prompt
	t.tokens.Completion += s.Completion
}

// VoiceAsked notes that a segment was given to the synthesiser, and returns which of the turn it is, from one.
func (t *Turn) VoiceAsked(provider string) (sentence int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sentences++
	if t.tts == "" { // else who has answered before
		t.tts = provider
	}
	first(&t.ttsAsked)
	return t.sentences
}

// VoiceHeard notes that there is sound.
func (t *Turn) VoiceHeard() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ttsAsked.IsZero() {
		first(&t.firstSound)
	}
}

// Playback describes what play-out measured.
type Playback interface {
	// Counters are the frames that were sent, those that came too late for the
	// device, and the least that it had left to play.
	Counters() (frames, underruns int, minLead time.Duration)
	// Sent is what went to the device when.
	Sent() Sent
}

// Figures hold what a turn's one log line says, and what is kept of it.
type Figures struct {
	EOU, ASR, TTFT, TTFS, TTFB, Added, E2E, LeadMin time.Duration
	Underruns, Frames, Steps                        int
	Speculation                                     string
	Discarded                                       int
	ASRName, LLMName, TTSName                       string // the providers that answered; "": none was asked
	Tokens                                          Tokens // zero: no model has said
	Tools                                           []Called
	Attempts                                        []Attempt
	Marks                                           Marks
}

// Figures returns the figures of the turn as they are now.
func (t *Turn) Figures(p Playback) Figures {
	frames, underruns, minLead := p.Counters()
	sent := p.Sent()
	attempts := t.Attempts()
	t.mu.Lock()
	defer t.mu.Unlock()
	w := wait{at: t.of.EndOfSpeech, end: sent.First}
	eou, asr := w.stage(t.of.EndOfSpeech, t.of.Endpoint), w.stage(t.of.Endpoint, t.of.Transcript)
	ttfs, ttfb := w.stage(t.llmAsked, t.ttsAsked), w.stage(t.ttsAsked, t.firstSound)
	e2e := between(t.of.EndOfSpeech, sent.First)
	return Figures{
		EOU: eou, ASR: asr, TTFT: between(t.llmAsked, t.firstToken), TTFS: ttfs, TTFB: ttfb,
		Added: max(0, e2e-eou-asr-ttfs-ttfb), E2E: e2e, LeadMin: minLead,
		Underruns: underruns, Frames: frames, Steps: t.steps, Speculation: t.speculation, Discarded: t.of.Discarded,
		ASRName: t.of.ASR, LLMName: t.llm, TTSName: t.tts, Tokens: t.tokens, Tools: slices.Clone(t.tools), Attempts: attempts,
		Marks: t.marks(sent),
	}
}

// Attrs are the turn's one log line.
func (f *Figures) Attrs() []any {
	out := []any{
		slog.Duration("eou_delay", f.EOU),
		slog.Duration("asr_delay", f.ASR),
		slog.Duration("llm_ttft", f.TTFT),
		slog.Duration("llm_ttfs", f.TTFS),
		slog.Duration("tts_ttfb", f.TTFB),
		slog.Duration("server_added", f.Added),
		slog.Duration("e2e", f.E2E),
		slog.Duration("lead_min", f.LeadMin),
		slog.Int("underruns", f.Underruns),
		slog.Int("frames", f.Frames),
		slog.Int("steps", f.Steps),
		slog.String("speculation", f.Speculation),
	}
	if f.Discarded > 0 {
		out = append(out, slog.Int("discarded", f.Discarded))
	}
	for _, p := range []slog.Attr{slog.String("asr", f.ASRName), slog.String("llm", f.LLMName), slog.String("tts", f.TTSName)} {
		if p.Value.String() != "" {
			out = append(out, p)
		}
	}
	if f.Tokens != (Tokens{}) {
		out = append(out, slog.Int("prompt_tokens", f.Tokens.Prompt), slog.Int("completion_tokens", f.Tokens.Completion))
	}
	if len(f.Tools) > 0 {
		if awaited := toolAttrs(f.Tools); len(awaited) > 0 {
			out = append(out, slog.Attr{Key: "tools", Value: slog.GroupValue(awaited...)})
		}
	}
	return out
}

// wait is the way from the end of speech to the first frame, which is cut into stages that follow one another, so that
//
//	e2e = eou_delay + asr_delay + llm_ttfs + tts_ttfb + server_added
//
// server_added is what remains: our own work, the wait for the turn before, and what of the guard after tts start the
// synthesiser did not cover. Of a stage counts what lies after the one before: what a speculation did before the words
// were final cost nothing. What comes after the first frame is not waited for: a phrase was heard about how long it takes.
type wait struct {
	at  time.Time // so far
	end time.Time // the first frame; zero: none was sent
}

// stage returns how much of the way lies between two moments, one of which may not be known.
func (w *wait) stage(from, to time.Time) time.Duration {
	if from.IsZero() || to.IsZero() {
		return 0
	}
	if from.Before(w.at) {
		from = w.at
	}
	if !w.end.IsZero() && to.After(w.end) {
		to = w.end
	}
	if !to.After(from) {
		return 0
	}
	w.at = to
	return to.Sub(from)
}

func between(a, b time.Time) time.Duration {
	if a.IsZero() || b.IsZero() {
		return 0
	}
	return max(0, b.Sub(a))
}
