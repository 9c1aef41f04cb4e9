package pocketsphinx

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/speechtest"
	"xiaozhi/internal/testall"
	"xiaozhi/providers"
)

// open makes a recogniser with one of the shared decoders, so that streams wait
// for one another.
func open(tb testing.TB) *Recognizer {
	tb.Helper()
	d, r := borrowDecoder(tb), openUnloaded(tb)
	r.pool.loaded = []*decoder{d}
	tb.Cleanup(func() { // before the recogniser is closed, which would free it
		<-r.pool.free
		r.pool.last()
		r.pool.free <- struct{}{}
	})
	return r
}

// openUnloaded makes a recogniser that loads its one decoder when it is needed.
func openUnloaded(tb testing.TB) *Recognizer {
	tb.Helper()
	r, err := New(Options{Decoders: 1})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { r.Close() })
	return r
}

// sample takes every nth clip of a set in make test-all, otherwise the few
// shortest of those that last a second, or of all where none does.
func sample(tb testing.TB, set func() ([]speechtest.Clip, error), nth, few int) []speechtest.Clip {
	tb.Helper()
	if testall.Running() {
		return clips(tb, set, nth)
	}
	all := clips(tb, set, 1)
	slices.SortFunc(all, func(a, b speechtest.Clip) int { return cmp.Compare(a.Duration(), b.Duration()) })
	first := max(0, slices.IndexFunc(all, func(c speechtest.Clip) bool { return c.Duration() >= time.Second }))
	return all[min(first, len(all)-few):][:few]
}

// clips takes every nth clip of a set.
func clips(tb testing.TB, set func() ([]speechtest.Clip, error), nth int) []speechtest.Clip {
	tb.Helper()
	all, err := set()
	if err != nil {
		tb.Fatal(err)
	}
	var some []speechtest.Clip
	for i := 0; i < len(all); i += nth {
		some = append(some, all[i])
	}
	return some
}

// inRoom puts a clip between the quiet that a device records before and after it.
func inRoom(pcm []int16) []int16 {
	quiet := func(n int) []int16 {
		out, random := make([]int16, n), uint32(1)
		for i := range out {
			random = random*1664525 + 1013904223
			out[i] = int16(int32(random) >> 28)
		}
		return out
	}
	return slices.Concat(quiet(sampleRate/2), pcm, quiet(sampleRate*7/10))
}

// say sends PCM in 60 ms pieces and ends the utterance.
func say(tb testing.TB, s providers.ASRStream, pcm []int16) {
	tb.Helper()
	for piece := range slices.Chunk(pcm, hearSamples) {
		if err := s.Write(piece); err != nil {
			tb.Fatal(err)
		}
	}
	if err := s.CloseWrite(); err != nil {
		tb.Fatal(err)
	}
}

// hear recognises one utterance and checks the shape of what comes.
func hear(tb testing.TB, r *Recognizer, pcm []int16, phrases []string, hint string) providers.Transcript {
	tb.Helper()
	s, err := r.Open(tb.Context(), providers.ASRRequest{Rate: sampleRate, Language: hint, Phrases: phrases})
	if err != nil {
		tb.Fatal(err)
	}
	say(tb, s, pcm)
	var final providers.Transcript
	for t, err := range s.Transcripts() {
		if err != nil {
			tb.Fatal(err)
		}
		if final.Final {
			tb.Fatalf("%+v after the final transcript", t)
		}
		if t.Provider != r.Name() {
			tb.Errorf("provider %q", t.Provider)
		}
		final = t
	}
	if !final.Final {
		tb.Fatal("no final transcript")
	}
	return final
}

func TestDictation(t *testing.T) {
	t.Parallel()
	var wrong, words, rejected int
	set := append(sample(t, speechtest.Prompts, 8, 2), sample(t, speechtest.Others, 2, 1)...)
	for _, c := range set {
		m := measured(t, c)
		m.command = nil
		got := m.judge("zh")
		e, n := speechtest.WER(c.Text, got.text)
		wrong, words = wrong+e, words+n
		if got.rejected {
			rejected++
		}
		t.Logf("%2d/%2d %-30s %s", e, n, c.Name, got.text)
	}
	if 100*wrong > 30*words {
		t.Errorf("%d of %d words wrong, over 30 %%", wrong, words)
	}
	if rejected > 0 {
		t.Errorf("%d of %d English utterances rejected", rejected, len(set))
	}
}

// phrasesOf makes a grammar of all command recordings and of some commands that no recording says.
func phrasesOf(tb testing.TB) []string {
	tb.Helper()
	phrases := []string{"what time is it", "set the volume to <number>", "turn (on | off) the light", "stop"}
	for _, c := range clips(tb, speechtest.Commands, 1) {
		phrases = append(phrases, c.Text)
	}
	return phrases
}

func TestCommands(t *testing.T) {
	t.Parallel()
	right := 0
	set := sample(t, speechtest.Commands, 3, 3)
	for _, c := range set {
		if got := measured(t, c).judge("zh"); got.text == c.Text && !got.rejected {
			right++
		} else {
			t.Logf("%s: heard %+v", c.Text, got)
		}
	}
	if 100*right < 85*len(set) {
		t.Errorf("%d of %d commands right, under 85 %%", right, len(set))
	}
}

func TestSentencesAreNoCommands(t *testing.T) {
	t.Parallel()
	phrases := phrasesOf(t)
	for _, c := range sample(t, speechtest.Prompts, 12, 2) {
		if got := measured(t, c).judge("zh"); slices.Contains(phrases, got.text) {
			t.Errorf("%q was heard as the command %q", c.Text, got.text)
		}
	}
}

func TestMusicAndNoise(t *testing.T) {
	t.Parallel()
	r := open(t)
	for _, c := range sample(t, speechtest.Music, 3, 1) {
		pcm := c.PCM()
		if !testall.Running() {
			pcm = pcm[:2*sampleRate] // music takes as long as ten voices
		}
		if got := hear(t, r, inRoom(pcm), []string{"stop"}, "zh"); got.Text != "" && !got.Rejected {
			t.Errorf("music %s was heard as %q", c.Name, got.Text)
		}
	}
	for _, c := range clips(t, speechtest.Noise, 1) {
		if c.Name == "beep" || c.Name == "alsa-noise" {
			continue // one short sound proves no language: heard as one short word
		}
		if got := hear(t, r, inRoom(c.PCM()), nil, "zh"); got.Text != "" && !got.Rejected {
			t.Errorf("noise %s was heard as %q", c.Name, got.Text)
		}
	}
	if got := hear(t, r, nil, nil, "zh"); got != (providers.Transcript{Final: true, Provider: "pocketsphinx"}) {
		t.Errorf("nothing was heard as %+v", got)
	}
}

func TestRecognitionRepeatable(t *testing.T) {
	t.Parallel()
	set := sample(t, speechtest.Prompts, 25, 2)
	first := measured(t, set[0]).judge("zh")
	r := open(t)
	hear(t, r, set[1].PCM(), nil, "zh")
	again := hear(t, r, inRoom(set[0].PCM()), phrasesOf(t), "zh")
	if again.Text != first.text || again.Rejected != first.rejected || again.Language != "en" {
		t.Errorf("first %+v, after another speaker %+v", first, again)
	}
}

func TestStreamsShareDecoder(t *testing.T) {
	t.Parallel()
	r := open(t)
	if err := r.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	lent, err := r.pool.acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pcm := clips(t, speechtest.Commands, 40)[0].PCM()
	ctx, cancel := context.WithCancel(t.Context())
	waiting, err := r.Open(ctx, providers.ASRRequest{Rate: sampleRate})
	if err != nil {
		t.Fatal(err)
	}
	say(t, waiting, pcm)
	cancel()
	for _, err := range waiting.Transcripts() {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled while waiting: %v", err)
		}
	}
	r.pool.release(lent)
	if got := hear(t, r, pcm, nil, "zh"); got.Text == "" {
		t.Error("nothing heard once the decoder was free")
	}
}

func TestTranscriptsStopped(t *testing.T) {
	t.Parallel()
	r := open(t)
	pcm := clips(t, speechtest.Prompts, 45)[1].PCM()
	s, err := r.Open(t.Context(), providers.ASRRequest{Rate: sampleRate})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := s.Write(pcm); err != nil {
			t.Fatal(err)
		}
	}
	for got, err := range s.Transcripts() {
		if err != nil || got.Final || got.Text == "" {
			t.Errorf("first result %+v, %v; want a partial", got, err)
		}
		break
	}
	if err := s.Write(pcm); !errors.Is(err, context.Canceled) {
		t.Errorf("write after leaving: %v", err)
	}
	if got := hear(t, r, pcm[:2*sampleRate], nil, "zh"); !got.Final {
		t.Errorf("next stream: %+v", got)
	}
}

func TestWriteLimits(t *testing.T) {
	r := openUnloaded(t)
	r.pool = poolOf(1) // no decoder is needed
	lent, err := r.pool.acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer r.pool.release(lent)
	ctx, cancel := context.WithCancel(t.Context())
	s, err := r.Open(ctx, providers.ASRRequest{Rate: sampleRate})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Write(make([]int16, 64*sampleRate)); err != nil {
		t.Fatal(err)
	}
	// What may be known from an utterance before is taken at once, the rest waits.
	if err := s.Write(make([]int16, 2*sampleRate+maxHeardSamples)); err == nil {
		t.Error("66 s of waiting sound were taken")
	}
	s.CloseWrite()
	if err := s.Write(make([]int16, 1)); err == nil {
		t.Error("sound after the end was taken")
	}
	cancel()
	for got, err := range s.Transcripts() {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("without a decoder: %+v, %v", got, err)
		}
	}
}

func TestCloseEndsStreams(t *testing.T) {
	r := openUnloaded(t)
	s, err := r.Open(t.Context(), providers.ASRRequest{Rate: sampleRate})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	for _, err := range s.Transcripts() {
		if e, ok := errors.AsType[*providers.Error](err); !ok || e.Kind != providers.Unavailable {
			t.Errorf("stream ended with %v", err)
		}
	}
	if _, err := r.Open(t.Context(), providers.ASRRequest{Rate: sampleRate}); err == nil {
		t.Error("opened after Close")
	}
	if err := r.Warm(t.Context()); err == nil {
		t.Error("warmed after Close")
	}
}

func TestNewMissingParts(t *testing.T) {
	for _, c := range []struct {
		opts Options
		name string
	}{
		{Options{ModelDir: t.TempDir()}, "pocketsphinx-en-us"},
		{Options{Library: "libno-such-thing.so.9"}, "libpocketsphinx3"},
		{Options{Decoders: -1}, "-1 decoders"},
	} {
		_, err := New(c.opts)
		if e, ok := errors.AsType[*providers.Error](err); !ok || e.Kind != providers.Unavailable || !strings.Contains(err.Error(), c.name) {
			t.Errorf("%+v: %v", c.opts, err)
		}
	}
}

func TestOpenWrongRate(t *testing.T) {
	_, err := openUnloaded(t).Open(t.Context(), providers.ASRRequest{Rate: 8000})
	if e, ok := errors.AsType[*providers.Error](err); !ok || e.Kind != providers.BadRequest {
		t.Errorf("rate 8000: %v", err)
	}
}
