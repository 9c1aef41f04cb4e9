package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"strings"
	"sync"

	gopenai "github.com/sashabaranov/go-openai"

	"xiaozhi/providers"
)

// TTS is a voice behind POST audio/speech.
type TTS struct {
	o       Options
	players sync.Pool // of *player
}

// NewTTS checks the settings and makes the voice. It asks the server nothing.
func NewTTS(o Options) (*TTS, error) {
	o, err := o.prepare(o.TTSModel)
	if err != nil {
		return nil, err
	}
	return &TTS{o: o}, nil
}

// Name returns the provider's name.
func (t *TTS) Name() string { return t.o.Name }

// Synthesize streams the sound of one sentence as PCM, in pieces of at most
// 100 ms, each as soon as it has come. A server that answers a sentence with no
// sound at all, or with less than it announced, is an error.
func (t *TTS) Synthesize(ctx context.Context, req providers.TTSRequest) iter.Seq2[providers.Sound, error] {
	return func(yield func(providers.Sound, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(providers.Sound{}, err)
			return
		}
		if strings.TrimSpace(req.Text) == "" {
			return
		}
		reqCtx, g, cancel := newGuard(ctx)
		defer cancel()
		p := t.player(yield)
		defer t.done(p)
		if err := t.play(reqCtx, req, g, p); err != nil && !p.left {
			yield(providers.Sound{}, t.o.wrap(ctx, reqCtx, "speak", err))
		}
	}
}

// play makes the request and hands its sound to p. Its errors are not yet wrapped.
func (t *TTS) play(ctx context.Context, req providers.TTSRequest, g *guard, p *player) error {
	speech := t.request(req)
	raw, err := t.withExtra(speech)
	if err != nil {
		return &statusError{kind: providers.BadRequest, text: "make the request: " + err.Error()}
	}
	g.arm(t.o.Timeouts.FirstSound)
	resp, err := t.o.library(&sender{o: t.o, raw: raw}).CreateSpeech(ctx, speech)
	g.disarm()
	if err != nil {
		return err
	}
	defer func() { _ = resp.Close() }()
	sound := &guardedReader{r: resp, guard: g, first: t.o.Timeouts.FirstSound, next: t.o.Timeouts.NextSound}
	if err := decode(sound, resp.Header().Get("Content-Type"), t.o, p); err != nil {
		return err
	}
	if !p.heard && !p.left {
		return errors.New("the server sent no sound")
	}
	return nil
}

// request returns the request for a sentence.
func (t *TTS) request(req providers.TTSRequest) gopenai.CreateSpeechRequest {
	return gopenai.CreateSpeechRequest{
		Model: gopenai.SpeechModel(t.o.Model), Input: req.Text, Voice: gopenai.SpeechVoice(t.voice(req)),
		ResponseFormat: gopenai.SpeechResponseFormat(t.o.Format), Speed: t.o.Speed,
	}
}

// withExtra returns the body of a request with the configured extra keys, or nil
// if there are none.
func (t *TTS) withExtra(req gopenai.CreateSpeechRequest) ([]byte, error) {
	if len(t.o.SpeechExtra) == 0 {
		return nil, nil
	}
	raw, err := json.Marshal(req)
	if err != nil {
		return nil, err
	}
	var merged map[string]any
	if err := json.Unmarshal(raw, &merged); err != nil {
		return nil, err
	}
	maps.Copy(merged, t.o.SpeechExtra)
	if raw, err = json.Marshal(merged); err != nil {
		return nil, fmt.Errorf("extra body keys: %w", err)
	}
	return raw, nil
}

// voice returns the voice asked for, else the language's, else the one for all.
func (t *TTS) voice(req providers.TTSRequest) string {
	return orDefault(req.Voice, orDefault(t.o.Voices[req.Language], t.o.Voice))
}
