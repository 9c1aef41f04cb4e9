package chain

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/providers"
	pt "xiaozhi/providers/providertest"
)

// TestStates walks a member through its breaker: used, failing, left out, tried, used again.
func TestStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := pt.Speech{Err: unavailable("first")}
		first := &pt.TTS{Label: "first", Script: []pt.Speech{{Delay: 200 * time.Millisecond}, down, down, down, {Delay: 300 * time.Millisecond}}}
		v, err := NewTTS([]providers.TTS{first, &pt.TTS{Label: "second"}}, Options{About: map[string]string{"first": "a voice"}})
		if err != nil {
			t.Fatal(err)
		}
		if s := v.States(); len(s) != 2 || s[0] != (State{Name: "first", About: "a voice", Condition: Closed}) {
			t.Errorf("at first: %+v", s)
		}
		_, _ = speak(t.Context(), v)
		if s := v.States()[0]; s.Condition != Closed || s.First != 200*time.Millisecond || !s.Given.Equal(time.Now()) || s.Fault != nil {
			t.Errorf("after a sentence: %+v", s)
		}
		_, _ = speak(t.Context(), v)
		if s := v.States()[0]; s.Condition != Closed || s.Failures != 1 || s.Fault == nil || s.First != 200*time.Millisecond {
			t.Errorf("after a failure: %+v", s)
		}
		for range 2 {
			_, _ = speak(t.Context(), v)
		}
		time.Sleep(10 * time.Second)
		if s := v.States(); s[0].Condition != Open || s[0].Rest != rest-10*time.Second || s[0].Failures != 3 || time.Since(s[0].Failed) != 10*time.Second || s[1].Condition != Closed || s[1].First == 0 {
			t.Errorf("left out: %+v", s)
		}
		time.Sleep(rest)
		if s := v.States()[0]; s.Condition != HalfOpen || s.Rest != 0 {
			t.Errorf("after its rest: %+v", s)
		}
		_, _ = speak(t.Context(), v)
		if s := v.States()[0]; s.Condition != Closed || s.Failures != 0 || s.First != 300*time.Millisecond || s.Fault == nil {
			t.Errorf("used again: %+v", s)
		}
	})
}

// TestStatesOfRecogniser: its result is the final text, and counts from the end of the sound.
func TestStatesOfRecogniser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newASR(t, &pt.ASR{Label: "quick", Script: []pt.Hearing{{Partials: []string{"a"}, Every: 30 * time.Millisecond, Delay: 400 * time.Millisecond, Text: "a b"}}})
		stream, err := a.Open(t.Context(), providers.ASRRequest{Rate: 16000})
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			_ = stream.Write(make([]int16, 1600))
			time.Sleep(2 * time.Second)
			_ = stream.CloseWrite()
		}()
		for range stream.Transcripts() {
		}
		if s := a.States()[0]; s.First != 400*time.Millisecond {
			t.Errorf("%+v", s)
		}
	})
}

// TestStateOfOvertaken: who is overtaken is told apart from who fails.
func TestStateOfOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newTTS(t, &pt.TTS{Label: "slow", Script: []pt.Speech{{Delay: time.Minute}}}, &pt.TTS{Label: "next"})
		_, _ = speak(t.Context(), v)
		if s := v.States()[0]; !errors.Is(s.Fault, ErrLate) || s.Failures != 1 {
			t.Errorf("%+v", s)
		}
	})
}

// TestStateOfDuplex: one failure leaves it out.
func TestStateOfDuplex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDuplex(t, Options{}, &pt.Duplex{Label: "first", Script: [][]pt.DuplexPart{
			append([]pt.DuplexPart{{Delay: 300 * time.Millisecond}}, pt.Reply("a", time.Second, "b")...), {{Err: unavailable("first")}},
		}})
		s := openTalk(t, d)
		_ = say(t.Context(), t, s, 0)
		if s := d.States()[0]; s.Condition != Closed || s.First != 300*time.Millisecond {
			t.Errorf("after an answer: %+v", s)
		}
		_ = say(t.Context(), t, s, 0)
		if s := d.States()[0]; s.Condition != Open || s.Rest != rest || s.Fault == nil {
			t.Errorf("after a failure: %+v", s)
		}
	})
}

// TestSharedBreakers: what was seen of a member in one chain counts in all that it is in.
func TestSharedBreakers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var breaker Breaker
		shared := map[string]*Breaker{"first": &breaker}
		first, second := &pt.TTS{Label: "first", Script: []pt.Speech{{Err: unavailable("first")}, {Err: unavailable("first")}, {Err: unavailable("first")}}}, &pt.TTS{Label: "second"}
		one, err := NewTTS([]providers.TTS{first, second}, Options{Breakers: shared})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			_, _ = speak(t.Context(), one)
		}
		other, err := NewTTS([]providers.TTS{second, first}, Options{Breakers: shared})
		if err != nil {
			t.Fatal(err)
		}
		if s := other.States(); s[1].Condition != Open || s[1].Failures != 3 || s[0].Given != (time.Time{}) {
			t.Errorf("%+v", s)
		}
	})
}
