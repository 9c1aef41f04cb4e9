package providertest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/providers"
)

// loud is half a second of what the fake detector takes for speech.
func loud() []int16 { return tone(16000, 0, time.Second) }

func TestFakesPassTheSuites(t *testing.T) {
	t.Run("asr", func(t *testing.T) {
		TestASR(t, func(*testing.T) providers.ASR {
			return &ASR{Script: []Hearing{{Partials: []string{"he"}, Delay: time.Millisecond}}}
		}, loud())
	})
	t.Run("llm", func(t *testing.T) {
		TestLLM(t, func(*testing.T) providers.LLM { return &LLM{Script: []Step{Say("a", "b").After(time.Millisecond)}} }, providers.LLMRequest{})
	})
	t.Run("tts", func(t *testing.T) {
		TestTTS(t, func(*testing.T) providers.TTS { return &TTS{} }, providers.TTSRequest{Text: "hello"})
	})
	t.Run("vad", func(t *testing.T) {
		TestVAD(t, func(*testing.T) providers.VAD { return &VAD{} }, loud())
	})
}

func TestFakeTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		at := func(want time.Duration, what string) {
			t.Helper()
			if got := time.Since(start); got != want {
				t.Errorf("%s at %v, want %v", what, got, want)
			}
		}
		llm := &LLM{Script: []Step{Say("a", "b").After(time.Second)}}
		for d, err := range llm.Generate(t.Context(), providers.LLMRequest{}) {
			if err != nil || d.Provider != "fake-llm" {
				t.Errorf("%+v, %v", d, err)
			}
		}
		at(2*time.Second, "the answer")
		tts := &TTS{Script: []Speech{{Delay: time.Second, Length: time.Second, Stall: 3 * time.Second, StallAt: 500 * time.Millisecond, Piece: 100 * time.Millisecond}}}
		samples := 0
		for s := range tts.Synthesize(t.Context(), providers.TTSRequest{Text: "x"}) {
			samples += len(s.PCM)
		}
		at(6*time.Second, "the sentence")
		if samples != 24000 || tts.Spoken()[0].Sound != time.Second || !tts.Spoken()[0].Ended {
			t.Errorf("%d samples, %+v", samples, tts.Spoken()[0])
		}
		asr := &ASR{Script: []Hearing{{Partials: []string{"a"}, Every: time.Second, Delay: time.Second, Text: "ab"}}}
		s := begin(t.Context(), t, asr)
		say(t, s, []int16{1, 2, 3})
		if err := drain(s); err != nil {
			t.Error(err)
		}
		at(8*time.Second, "the transcript")
		if h := asr.Utterances()[0]; h.Samples != 3 || h.Sum != 6 || !h.Closed || !h.Final || h.Cancelled || h.Request.Language != "en" {
			t.Errorf("heard %+v", h)
		}
	})
}

func TestFakesNoteHangUps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		llm := &LLM{Script: []Step{{{Hang: true}}, Say("a", "b"), Fail(errors.New("down"))}}
		if err := lastError(ctx, llm, providers.LLMRequest{}); err != context.DeadlineExceeded { //nolint:errorlint // unchanged
			t.Errorf("hang: %v", err)
		}
		for range llm.Generate(t.Context(), providers.LLMRequest{}) {
			break
		}
		if err := lastError(t.Context(), llm, providers.LLMRequest{}); err == nil || err.Error() != "down" {
			t.Errorf("failure: %v", err)
		}
		asked := llm.Asked()
		if !asked[0].Cancelled || !asked[1].Left || asked[2].Cancelled || asked[2].Left {
			t.Errorf("asked %+v", asked)
		}
		tts := &TTS{Script: []Speech{{Delay: time.Hour}, {FailAt: 120 * time.Millisecond, Err: errors.New("down")}}}
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_ = speakError(ctx, tts, providers.TTSRequest{Text: "x"}, func() {})
		if err := speakError(t.Context(), tts, providers.TTSRequest{Text: "long enough"}, func() {}); err == nil {
			t.Error("no failure")
		}
		if s := tts.Spoken(); !s[0].Cancelled || s[1].Sound != 120*time.Millisecond || s[1].Cancelled {
			t.Errorf("spoken %+v", s)
		}
		asr := &ASR{Script: []Hearing{{Hang: true}}}
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s := begin(ctx, t, asr)
		say(t, s, nil)
		_ = drain(s)
		if !asr.Utterances()[0].Cancelled {
			t.Error("the cancel was not noted")
		}
	})
}

func TestFakeVADCounts(t *testing.T) {
	v := &VAD{}
	d, err := v.NewDetector()
	if err != nil {
		t.Fatal(err)
	}
	d.Reset()
	if v.Open() != 1 {
		t.Errorf("open %d", v.Open())
	}
	_ = d.Close()
	_ = d.Close()
	if v.Open() != 0 {
		t.Errorf("open %d after two closes of one", v.Open())
	}
	if _, err := d.Probability(make([]int16, 512)); err == nil {
		t.Error("a closed detector judged")
	}
}
