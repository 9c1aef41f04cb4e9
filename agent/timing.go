package agent

import (
	"log/slog"
	"sync"
	"time"
)

// timing collects the times of one turn (design.md section 8). The conversation
// sets the first part before the turn begins; the turn's goroutines mark the
// rest. The durations are those of voice.md 2.6; zero means it did not happen.
type timing struct {
	endOfSpeech time.Time // the last voiced sample, listen stop, or when text was typed
	endpoint    time.Time // the utterance was taken to be over
	transcript  time.Time // its text was there

	mu       sync.Mutex
	llmAsked time.Time // the first model call of the turn
	ttft     time.Duration
	ttfs     time.Duration
	ttsAsked time.Time
	ttsTTFB  time.Duration
	steps    int
	llm, tts string
	tools    []slog.Attr
}

// llmStart notes a model call.
func (t *timing) llmStart() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.steps++
	if t.llmAsked.IsZero() {
		t.llmAsked = time.Now()
	}
}

// llmToken notes that the model answered, and who it was.
func (t *timing) llmToken(provider string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ttft == 0 {
		t.ttft = time.Since(t.llmAsked)
	}
	if provider != "" {
		t.llm = provider
	}
}

// ttsStart notes that a sentence was given to the synthesiser.
func (t *timing) ttsStart(provider string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tts = provider
	if !t.ttsAsked.IsZero() {
		return
	}
	t.ttsAsked = time.Now()
	if !t.llmAsked.IsZero() {
		t.ttfs = t.ttsAsked.Sub(t.llmAsked)
	}
}

// ttsSound notes the first sound.
func (t *timing) ttsSound() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ttsTTFB == 0 && !t.ttsAsked.IsZero() {
		t.ttsTTFB = time.Since(t.ttsAsked)
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
	out := []any{
		slog.Duration("eou_delay", between(t.endOfSpeech, t.endpoint)),
		slog.Duration("asr_delay", between(t.endpoint, t.transcript)),
		slog.Duration("llm_ttft", t.ttft),
		slog.Duration("llm_ttfs", t.ttfs),
		slog.Duration("tts_ttfb", t.ttsTTFB),
		slog.Duration("server_added", t.added(f)),
		slog.Duration("e2e", between(t.endOfSpeech, f.firstFrame())),
		slog.Duration("lead_min", minLead),
		slog.Int("underruns", underruns),
		slog.Int("frames", frames),
		slog.Int("steps", t.steps),
	}
	if t.llm != "" {
		out = append(out, slog.String("llm", t.llm))
	}
	if t.tts != "" {
		out = append(out, slog.String("tts", t.tts))
	}
	if len(t.tools) > 0 {
		out = append(out, slog.Attr{Key: "tools", Value: slog.GroupValue(t.tools...)})
	}
	return out
}

// added is the part of the way from the transcript to the first frame that no
// provider accounts for; the guard after tts start is in it.
func (t *timing) added(f *floor) time.Duration {
	first := f.firstFrame()
	from := t.transcript
	if from.IsZero() {
		from = t.endOfSpeech
	}
	if first.IsZero() || from.IsZero() {
		return 0
	}
	return max(0, first.Sub(from)-t.ttfs-t.ttsTTFB)
}

func between(a, b time.Time) time.Duration {
	if a.IsZero() || b.IsZero() {
		return 0
	}
	return max(0, b.Sub(a))
}
