package agent

import (
	"cmp"
	"log/slog"
	"sync"
	"time"

	"xiaozhi/agent/turn"
)

// timing collects the times of one turn (design.md section 8). The conversation
// sets the first part before the turn begins; the turn's goroutines mark the
// rest. The durations are those of voice.md 2.6; zero means it did not happen.
type timing struct {
	endOfSpeech time.Time // the last voiced sample, listen stop, or when text was typed
	endpoint    time.Time // the utterance was taken to be over
	silent      time.Time // from when on the user waits to hear something
	transcript  time.Time // its text was there

	mu         sync.Mutex
	llmAsked   time.Time // the first model call of the turn
	firstToken time.Time
	ttsAsked   time.Time // the first sentence was given to the synthesiser
	firstSound time.Time
	steps      int
	asr        string // the providers that answered
	llm, tts   string
	tools      []slog.Attr

	speculation string // how the answer came about: none or used
	discarded   int    // answers on trial that were undone
}

func newTiming(t turn.Times) *timing {
	return &timing{
		endOfSpeech: t.EndOfSpeech, endpoint: t.Endpoint, silent: t.Silent, transcript: t.Transcript, asr: t.ASR, discarded: t.Discarded,
	}
}

// commit takes over the times of the utterance that a speculation answers after all.
func (t *timing) commit(from turn.Times) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.endOfSpeech, t.endpoint, t.silent, t.transcript = from.EndOfSpeech, from.Endpoint, from.Silent, from.Transcript
	t.asr = from.ASR
	t.speculation, t.discarded = speculationUsed, from.Discarded
}

// How the answer to an utterance came about, for the turn's log line.
const (
	speculationNone = "none"
	speculationUsed = "used"
)

// first sets at to now if it is not set.
func first(at *time.Time) {
	if at.IsZero() {
		*at = time.Now()
	}
}

// silentSince is from when on the user waits to hear something.
func (t *timing) silentSince() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.silent.IsZero() {
		return t.endOfSpeech
	}
	return t.silent
}

// llmStart notes a model call.
func (t *timing) llmStart() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.steps++
	first(&t.llmAsked)
}

// llmToken notes that the model answered, and who it was.
func (t *timing) llmToken(provider string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	first(&t.firstToken)
	if provider != "" {
		t.llm = provider
	}
}

// ttsStart notes that a sentence was given to the synthesiser.
func (t *timing) ttsStart(provider string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tts = provider
	first(&t.ttsAsked)
}

// ttsSound notes that there is sound.
func (t *timing) ttsSound() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ttsAsked.IsZero() {
		first(&t.firstSound)
	}
}

// tool notes how long an awaited tool took.
func (t *timing) tool(name string, d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tools = append(t.tools, slog.Duration(name, d))
}

// attrs are the turn's one log line.
func (t *timing) attrs(f *floor) []any {
	t.mu.Lock()
	defer t.mu.Unlock()
	frames, underruns, minLead := f.counters()
	frame := f.firstFrame()
	out := []any{
		slog.Duration("eou_delay", between(t.endOfSpeech, t.endpoint)),
		slog.Duration("asr_delay", t.waited(t.endpoint, t.transcript)),
		slog.Duration("llm_ttft", between(t.llmAsked, t.firstToken)),
		slog.Duration("llm_ttfs", t.waited(t.llmAsked, until(t.ttsAsked, frame))),
		slog.Duration("tts_ttfb", t.waited(t.ttsAsked, until(t.firstSound, frame))),
		slog.Duration("server_added", t.added(frame)),
		slog.Duration("e2e", between(t.endOfSpeech, frame)),
		slog.Duration("lead_min", minLead),
		slog.Int("underruns", underruns),
		slog.Int("frames", frames),
		slog.Int("steps", t.steps),
		slog.String("speculation", cmp.Or(t.speculation, speculationNone)),
	}
	if t.discarded > 0 {
		out = append(out, slog.Int("discarded", t.discarded))
	}
	for _, p := range []slog.Attr{slog.String("asr", t.asr), slog.String("llm", t.llm), slog.String("tts", t.tts)} {
		if p.Value.String() != "" {
			out = append(out, p)
		}
	}
	if len(t.tools) > 0 {
		out = append(out, slog.Attr{Key: "tools", Value: slog.GroupValue(t.tools...)})
	}
	return out
}

// added is what remains of the way from the end of speech to the first frame
// when the stages before it are taken away, so that
//
//	e2e = eou_delay + asr_delay + llm_ttfs + tts_ttfb + server_added
//
// It is our own work, the wait for the turn before, and what of the guard after
// tts start the synthesiser did not cover. 0 when no frame was sent.
func (t *timing) added(frame time.Time) time.Duration {
	return max(0, between(t.endOfSpeech, frame)-between(t.endOfSpeech, t.endpoint)-t.waited(t.endpoint, t.transcript)-
		t.waited(t.llmAsked, until(t.ttsAsked, frame))-t.waited(t.ttsAsked, until(t.firstSound, frame)))
}

// until is the end of a stage for whoever listens: its own, or the first frame, if
// that was earlier, because a phrase was heard about how long it takes.
func until(end, frame time.Time) time.Time {
	if !frame.IsZero() && end.After(frame) {
		return frame
	}
	return end
}

// waited is how long the user has waited from a to b: what was done on trial,
// before the utterance was taken to be over, cost nothing.
func (t *timing) waited(a, b time.Time) time.Duration {
	if a.IsZero() || b.IsZero() {
		return 0
	}
	if a.Before(t.endpoint) {
		a = t.endpoint
	}
	return between(a, b)
}

func between(a, b time.Time) time.Duration {
	if a.IsZero() || b.IsZero() {
		return 0
	}
	return max(0, b.Sub(a))
}
