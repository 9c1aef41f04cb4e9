package probe

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/internal/scene"
	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
)

func TestSpeakMeasuresTheVoice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &scene.TTS{Label: "v", Delay: 250 * time.Millisecond, Sound: func(string) []providers.Sound {
			return []providers.Sound{{Rate: 24000, PCM: make([]int16, 12000)}, {Rate: 24000, PCM: make([]int16, 12000)}}
		}}
		s, err := Speak(t.Context(), v, providers.TTSRequest{Text: "hello"})
		if err != nil || s.First != 250*time.Millisecond || s.Opus || math.Abs(s.Length.Seconds()-1) > 0.01 {
			t.Errorf("first %v, length %v, opus %v, error %v", s.First, s.Length, s.Opus, err)
		}
	})
}

func TestSpeakWithoutSoundIsAnError(t *testing.T) {
	v := &scene.TTS{Label: "v", Sound: func(string) []providers.Sound { return nil }}
	if _, err := Speak(t.Context(), v, providers.TTSRequest{Text: "hello"}); err == nil {
		t.Error("silence was taken for speech")
	}
}

func TestHearMeasuresTheRecogniser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &providertest.ASR{Script: []providertest.Hearing{{
			Partials: []string{"turn"}, Every: 300 * time.Millisecond, Delay: 400 * time.Millisecond, Text: "Turn on the lamb.",
		}}}
		h, err := Hear(t.Context(), a, make([]int16, 16000), "en", "Turn on the lamp!")
		if err != nil || h.Final != 400*time.Millisecond || h.Partial != 300*time.Millisecond {
			t.Errorf("partial %v, final %v, error %v", h.Partial, h.Final, err)
		}
		if want := 1.0 / float64(len("turn on the lamp")); h.Wrong == 0 || h.Wrong > 2*want {
			t.Errorf("%.3f of the signs are wrong, want about %.3f", h.Wrong, want)
		}
	})
}

func TestThinkRunsTheTool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &providertest.LLM{Script: []providertest.Step{
			providertest.Call(providers.ToolCall{ID: "1", Name: "get_temperature", Arguments: `{"city":"x"}`}).After(300 * time.Millisecond),
			providertest.Say("It is 23 degrees.").After(200 * time.Millisecond),
		}}
		got, err := Think(t.Context(), l, Thermometer("How warm is it?", "en"))
		if err != nil || !got.Called || got.Text != "It is 23 degrees." || got.First != 300*time.Millisecond || got.Total != 500*time.Millisecond {
			t.Errorf("%+v, error %v", got, err)
		}
		if asked := l.Asked(); len(asked) != 2 {
			t.Errorf("%d steps", len(asked))
		}
	})
}

func TestConverseRunsTheTool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		call := []providertest.DuplexPart{{Delta: providers.DuplexDelta{
			Heard: "how warm", ToolCalls: []providers.ToolCall{{ID: "1", Name: "get_temperature"}}, Usage: providers.Usage{Prompt: 5},
		}}}
		d := &providertest.Duplex{Script: [][]providertest.DuplexPart{
			append([]providertest.DuplexPart{{Delay: 300 * time.Millisecond}}, providertest.Reply("hello", time.Second, "hi")...), call, providertest.Reply("", time.Second, "23"),
		}}
		got, err := Converse(t.Context(), d, Thermometer("", "en"), Utterance{"hallo", make([]int16, 16000)}, Utterance{"how warm", make([]int16, 8000)})
		if err != nil || len(got) != 2 {
			t.Fatal(got, err)
		}
		if c := got[0]; c.First != 300*time.Millisecond || c.Length != time.Second || c.Heard != "hello" || c.Wrong == 0 || c.Called {
			t.Errorf("the first: %+v", c)
		}
		if c := got[1]; !c.Called || c.Text != "23" || c.Wrong != 0 || c.Usage.Prompt != 5 || d.Did() != `open, respond 1s, respond 500ms, respond get_temperature={"celsius": 23}, close` {
			t.Errorf("the second: %+v, and it did %s", c, d.Did())
		}
	})
}
