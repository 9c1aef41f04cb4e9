// Package timeline holds the times of a turn, from the end of speech to the first
// frame, and its one line in the log. docs/behaviours.md defines the figures.
package timeline

import (
	"log/slog"
	"sync"
	"time"
)

// Times are the moments of the utterance that a turn answers; zero: not known.
type Times struct {
	EndOfSpeech time.Time // the last voiced sample, listen stop, or when text was typed
	Endpoint    time.Time // the utterance was taken to be over
	Silent      time.Time // from when on the user waits to hear something
	Transcript  time.Time // its text was there
	ASR         string    // the recogniser
	Discarded   int       // speculations that were discarded before it
	Attempts    []Attempt // of recognisers
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
	tools      []slog.Attr
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

// ModelAsked notes a model call.
func (t *Turn) ModelAsked() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.steps++
	first(&t.llmAsked)
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

// VoiceAsked notes that a segment was given to the synthesiser.
func (t *Turn) VoiceAsked(provider string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tts = provider
	first(&t.ttsAsked)
}

// VoiceHeard notes that there is sound.
func (t *Turn) VoiceHeard() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ttsAsked.IsZero() {
		first(&t.firstSound)
	}
}

// Tool notes how long an awaited tool took.
func (t *Turn) Tool(name string, d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tools = append(t.tools, slog.Duration(name, d))
}

// Playback describes what play-out measured.
type Playback interface {
	// Counters are the frames that were sent, those that came too late for the
	// device, and the least that it had left to play.
	Counters() (frames, underruns int, minLead time.Duration)
	// FirstFrame is when the first frame left; zero: none has.
	FirstFrame() time.Time
}

// Figures hold what a turn's one log line says, and what is kept of it.
type Figures struct {
	EOU, ASR, TTFT, TTFS, TTFB, Added, E2E, LeadMin time.Duration
	Underruns, Frames, Steps                        int
	Speculation                                     string
	Discarded                                       int
	ASRName, LLMName, TTSName                       string // the providers that answered; "": none was asked
	Tokens                                          Tokens // zero: no model has said
	Tools                                           []slog.Attr
	Attempts                                        []Attempt
}

// Figures returns the figures of the turn as they are now.
func (t *Turn) Figures(p Playback) Figures {
	frames, underruns, minLead := p.Counters()
	frame := p.FirstFrame()
	attempts := t.Attempts()
	t.mu.Lock()
	defer t.mu.Unlock()
	return Figures{
		EOU: between(t.of.EndOfSpeech, t.of.Endpoint), ASR: t.waited(t.of.Endpoint, t.of.Transcript),
		TTFT: between(t.llmAsked, t.firstToken), TTFS: t.waited(t.llmAsked, until(t.ttsAsked, frame)), TTFB: t.waited(t.ttsAsked, until(t.firstSound, frame)),
		Added: t.added(frame), E2E: between(t.of.EndOfSpeech, frame), LeadMin: minLead,
		Underruns: underruns, Frames: frames, Steps: t.steps, Speculation: t.speculation, Discarded: t.of.Discarded,
		ASRName: t.of.ASR, LLMName: t.llm, TTSName: t.tts, Tokens: t.tokens, Tools: t.tools, Attempts: attempts,
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
		out = append(out, slog.Attr{Key: "tools", Value: slog.GroupValue(f.Tools...)})
	}
	return out
}

// added returns what remains of the way from the end of speech to the first frame
// when the stages before it are taken away, so that
//
//	e2e = eou_delay + asr_delay + llm_ttfs + tts_ttfb + server_added
//
// It is our own work, the wait for the turn before, and what of the guard after
// tts start the synthesiser did not cover. 0 when no frame was sent.
func (t *Turn) added(frame time.Time) time.Duration {
	return max(0, between(t.of.EndOfSpeech, frame)-between(t.of.EndOfSpeech, t.of.Endpoint)-t.waited(t.of.Endpoint, t.of.Transcript)-
		t.waited(t.llmAsked, until(t.ttsAsked, frame))-t.waited(t.ttsAsked, until(t.firstSound, frame)))
}

// until is the end of a stage for the ear: its own, or the first frame, if that was
// earlier, because a phrase was heard about how long it takes.
func until(end, frame time.Time) time.Time {
	if !frame.IsZero() && end.After(frame) {
		return frame
	}
	return end
}

// waited returns how long the user has waited from a to b: what a speculation did
// before the utterance was taken to be over cost nothing.
func (t *Turn) waited(a, b time.Time) time.Duration {
	if a.IsZero() || b.IsZero() {
		return 0
	}
	if a.Before(t.of.Endpoint) {
		a = t.of.Endpoint
	}
	return between(a, b)
}

func between(a, b time.Time) time.Duration {
	if a.IsZero() || b.IsZero() {
		return 0
	}
	return max(0, b.Sub(a))
}
