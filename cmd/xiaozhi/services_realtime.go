package main

import (
	"context"
	"fmt"
	"os"

	"xiaozhi/audio"
	"xiaozhi/audio/file"
	"xiaozhi/internal/app"
	"xiaozhi/internal/config"
	"xiaozhi/internal/probe"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/providers"
	"xiaozhi/providers/service"
)

// converse says the sentence to a service that hears and speaks by itself, then asks it a question with a tool.
func (t *trier) converse(ctx context.Context, one app.Tried, price config.Price, said string) error {
	question := message.In(text.Lang(t.f.language), "services/question")
	sentence, err := t.recording(ctx, &said)
	if err != nil {
		return err
	}
	asked, err := t.local(ctx, question)
	if err != nil {
		return err
	}
	all, err := probe.Converse(ctx, one.Duplex, probe.Thermometer(question, t.f.language), probe.Utterance{Said: said, PCM: sentence}, probe.Utterance{Said: question, PCM: asked})
	for i, c := range all {
		tool := ""
		switch {
		case i == 0:
		case providers.CapabilitiesOf(one.Duplex).OwnTools:
			tool = "; " + message.Both("services/no-tools")
		case c.Called:
			tool = "; " + message.Both("services/tool-called")
		default:
			tool = "; " + message.Both("services/tool-not-called")
		}
		length := audio.Recognition.Duration(len([][]int16{sentence, asked}[i]))
		fmt.Fprintf(t.out, "  %q → %q: %s%s%s\n", plainText(c.Heard), plainText(c.Text),
			message.Both("services/conversed", ms(c.First), ms(c.Total), ms(c.Length), c.Wrong*100), tool, cost(price.Tokens(c.Usage)+price.Hearing(length)))
	}
	return err
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
