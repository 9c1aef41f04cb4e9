package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"strings"
	"sync"

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

// Name is the provider's name.
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
	body, err := t.body(req)
	if err != nil {
		return &statusError{kind: providers.BadRequest, text: "make the request: " + err.Error()}
	}
	g.arm(t.o.Timeouts.FirstSound)
	resp, err := t.o.send(ctx, http.MethodPost, "/audio/speech", "application/json", bytes.NewReader(body))
	g.disarm()
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	sound := &guardedReader{r: resp.Body, guard: g, first: t.o.Timeouts.FirstSound, next: t.o.Timeouts.NextSound}
	if err := decode(sound, resp.Header.Get("Content-Type"), t.o, p); err != nil {
		return err
	}
	if !p.heard && !p.left {
		return errors.New("the server sent no sound")
	}
	return nil
}

// speechRequest is the wire's request.
type speechRequest struct {
	Model  string  `json:"model"`
	Input  string  `json:"input"`
	Voice  string  `json:"voice"`
	Format string  `json:"response_format"`
	Speed  float64 `json:"speed,omitempty"`
}

// body is the request with the configured extra keys.
func (t *TTS) body(req providers.TTSRequest) ([]byte, error) {
	raw, err := json.Marshal(speechRequest{
		Model: t.o.Model, Input: req.Text, Voice: t.voice(req), Format: t.o.Format, Speed: t.o.Speed,
	})
	if err != nil || len(t.o.SpeechExtra) == 0 {
		return raw, err
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

// voice is the one asked for, else the language's, else the one for all.
func (t *TTS) voice(req providers.TTSRequest) string {
	return orDefault(req.Voice, orDefault(t.o.Voices[req.Language], t.o.Voice))
}
