// Package probe tries a service as a user would: it lets a voice say a sentence, a
// recogniser hear it while it is spoken, and a model answer a question with a tool, and
// measures what somebody who waits would notice.
package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"xiaozhi/audio"
	"xiaozhi/providers"
)

// Spoken holds what came of a sentence.
type Spoken struct {
	First  time.Duration // to the first sound
	Total  time.Duration // to the end of the sound
	Length time.Duration // of the sound
	Opus   bool          // it came as packets that can be passed on
	PCM    []int16       // at the rate that was asked for
}

// Speak lets a voice say a sentence, which is recorded at 16 kHz.
func Speak(ctx context.Context, voice providers.TTS, req providers.TTSRequest) (Spoken, error) {
	return SpeakAt(ctx, voice, req, audio.Recognition.Rate)
}

// SpeakAt lets a voice say a sentence, which is recorded at a rate in Hz.
func SpeakAt(ctx context.Context, voice providers.TTS, req providers.TTSRequest, rate int) (s Spoken, err error) {
	begun := time.Now()
	into := &recorder{to: rate}
	for sound, failed := range voice.Synthesize(ctx, req) {
		if failed != nil {
			return s, failed
		}
		if s.First == 0 {
			s.First = time.Since(begun)
		}
		s.Opus = s.Opus || len(sound.Packets) > 0
		if err := into.add(sound); err != nil {
			return s, err
		}
	}
	s.Total = time.Since(begun)
	s.PCM = into.end()
	s.Length = time.Duration(len(s.PCM)) * time.Second / time.Duration(rate)
	if len(s.PCM) == 0 {
		return s, errors.New("the voice gave no sound")
	}
	return s, nil
}

// recorder collects sound of any rate at one.
type recorder struct {
	to        int // Hz
	rate      int
	resampler *audio.Resampler
	decoder   *audio.Decoder
	pcm       []int16
}

func (r *recorder) add(s providers.Sound) error {
	if len(s.Packets) == 0 {
		return r.pcmAt(s.Rate, s.PCM)
	}
	if r.decoder == nil {
		var err error
		if r.decoder, err = audio.NewDecoder(r.to); err != nil {
			return err
		}
	}
	frame := make([]int16, audio.MaxFrameSamples(r.to))
	for _, p := range s.Packets {
		n, err := r.decoder.Decode(p, frame)
		if err != nil {
			return err
		}
		r.pcm = append(r.pcm, frame[:n]...)
	}
	return nil
}

func (r *recorder) pcmAt(rate int, pcm []int16) error {
	if rate == r.to {
		r.pcm = append(r.pcm, pcm...)
		return nil
	}
	if r.resampler == nil || r.rate != rate {
		var err error
		if r.resampler, err = audio.NewResampler(rate, r.to); err != nil {
			return err
		}
		r.rate = rate
	}
	r.pcm = r.resampler.Write(r.pcm, pcm)
	return nil
}

func (r *recorder) end() []int16 {
	if r.resampler != nil {
		r.pcm = r.resampler.Flush(r.pcm)
	}
	return r.pcm
}

// Heard holds what came of an utterance.
type Heard struct {
	Partial time.Duration // from the beginning of the sound to the first text; 0: there was none before the end
	Final   time.Duration // from the end of the sound to the final text
	Text    string
	Wrong   float64 // the part of the signs that are wrong
}

// frame is the length of the pieces in which devices send sound.
const frame = 60 * time.Millisecond

// Hear plays sound at 16 kHz to a recogniser as fast as it is spoken. said is what it should
// understand.
func Hear(ctx context.Context, ears providers.ASR, pcm []int16, language, said string) (h Heard, err error) {
	var playing sync.WaitGroup
	defer playing.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := ears.Open(ctx, providers.ASRRequest{Rate: audio.Recognition.Rate, Language: language})
	if err != nil {
		return h, err
	}
	begun := time.Now()
	ended := make(chan time.Time, 1)
	playing.Go(func() { // it ends with the sound or with ctx
		defer func() { ended <- time.Now(); _ = stream.CloseWrite() }()
		tick := time.NewTicker(frame)
		defer tick.Stop()
		n := audio.Recognition.Rate * int(frame/time.Millisecond) / 1000
		for at := 0; at < len(pcm); at += n {
			if stream.Write(pcm[at:min(at+n, len(pcm))]) != nil { // the transcripts say why
				return
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	})
	for t, failed := range stream.Transcripts() {
		switch {
		case failed != nil:
			err = failed
		case t.Final:
			h.Final, h.Text = time.Since(<-ended), t.Text
		case h.Partial == 0 && t.Text != "":
			h.Partial = time.Since(begun)
		}
	}
	if err != nil {
		return h, err
	}
	h.Wrong = wrong(h.Text, said)
	return h, nil
}

// Thought holds what came of a question.
type Thought struct {
	First  time.Duration // to the first text or call
	Total  time.Duration // of both steps
	Called bool          // it called the tool
	Text   string        // its answer
	Usage  providers.Usage
}

// Question holds the words for a model, and the tool that answers them.
type Question struct {
	Text     string
	Language string
	Tool     providers.ToolSpec // without a name: there is none
	Result   string             // of the tool
}

// Thermometer returns a question for the temperature of a city, with its tool.
func Thermometer(words, language string) Question {
	return Question{
		Text: words, Language: language, Result: `{"celsius": 23}`,
		Tool: providers.ToolSpec{
			Name: "get_temperature", Description: "Returns the temperature outside in a city at this moment.",
			Parameters: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`),
		},
	}
}

// steps is how often a model may call the tool before it must answer.
const steps = 3

// Think asks a model and gives it the tool's result.
func Think(ctx context.Context, model providers.LLM, q Question) (t Thought, err error) {
	begun := time.Now()
	req := providers.LLMRequest{
		Messages: []providers.Message{
			{Role: providers.RoleSystem, Content: "You are a voice assistant. Answer in one short sentence. Use the tools."},
			{Role: providers.RoleUser, Content: q.Text},
		},
		Language: q.Language,
	}
	if q.Tool.Name != "" {
		req.Tools = []providers.ToolSpec{q.Tool}
	}
	for range steps {
		answer := providers.Message{Role: providers.RoleAssistant}
		for d, failed := range model.Generate(ctx, req) {
			if failed != nil {
				return t, failed
			}
			if t.First == 0 && (d.Text != "" || len(d.ToolCalls) > 0) {
				t.First = time.Since(begun)
			}
			answer.Content += d.Text
			answer.ToolCalls = append(answer.ToolCalls, d.ToolCalls...)
			if d.Echo.JSON != "" {
				answer.Echo = d.Echo
			}
			t.Usage.Prompt += d.Usage.Prompt
			t.Usage.Cached += d.Usage.Cached
			t.Usage.Completion += d.Usage.Completion
			t.Usage.Reasoning += d.Usage.Reasoning
		}
		t.Text, t.Total = answer.Content, time.Since(begun)
		if len(answer.ToolCalls) == 0 {
			return t, nil
		}
		t.Called = true
		req.Messages = append(req.Messages, answer)
		for _, call := range answer.ToolCalls {
			req.Messages = append(req.Messages, providers.Message{Role: providers.RoleTool, ToolCallID: call.ID, Content: q.Result})
		}
	}
	return t, fmt.Errorf("it called the tool %d times and gave no answer", steps)
}
