package main

import (
	"context"
	"fmt"
	"os"

	"xiaozhi/audio"
	"xiaozhi/audio/file"
	"xiaozhi/internal/config"
	"xiaozhi/internal/engines"
	"xiaozhi/internal/probe"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/providers"
	"xiaozhi/providers/service"
)

// converse says the sentence to a service that hears and speaks by itself, then asks it a question with a tool.
func (t *trier) converse(ctx context.Context, one engines.Tried, price config.Price, said string) ([]outcome, error) {
	question := message.In(text.Lang(t.f.language), "services/question")
	sentence, err := t.recording(ctx, &said)
	if err != nil {
		return nil, err
	}
	asked, err := t.local(ctx, question)
	if err != nil {
		return nil, err
	}
	all, err := probe.Converse(ctx, one.Duplex, probe.Thermometer(question, t.f.language), probe.Utterance{Said: said, PCM: sentence}, probe.Utterance{Said: question, PCM: asked})
	var out []outcome
	for i, c := range all {
		o := outcome{
			Heard: c.Heard, Text: c.Text, First: inMS(c.First), Total: inMS(c.Total), Sound: inMS(c.Length), Wrong: c.Wrong,
			Cost: price.Hearing(audio.Recognition.Duration(len([][]int16{sentence, asked}[i]))),
			times: func(o outcome) string {
				return message.Both("services/conversed", ms(o.First), ms(o.Total), ms(o.Sound), o.Wrong*100)
			},
		}
		o.used(c.Usage, price)
		switch {
		case i == 0:
		case providers.CapabilitiesOf(one.Duplex).OwnTools:
			o.Tool = silent
		default:
			o.Tool = toolUse(c.Called)
		}
		out = append(out, o)
	}
	return out, err
}

// recording reads the sound of --sound, in which --text is said, or has the local voice speak what is said.
func (t *trier) recording(ctx context.Context, said *string) ([]int16, error) {
	if t.f.sound == "" {
		return t.local(ctx, *said)
	}
	f, err := os.Open(t.f.sound)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	pcm, rate, err := file.ReadWAV(f)
	if err != nil {
		return nil, err
	}
	*said = t.f.text
	return at16k(pcm, rate)
}

// local has the voice of this machine say words.
func (t *trier) local(ctx context.Context, words string) ([]int16, error) {
	voice := t.s.Try(ctx, "local", service.TTS)
	if voice.Err != nil {
		return nil, fmt.Errorf("local: %w", voice.Err)
	}
	spoken, err := probe.Speak(ctx, voice.TTS, providers.TTSRequest{Text: words, Language: t.f.language})
	return spoken.PCM, err
}
