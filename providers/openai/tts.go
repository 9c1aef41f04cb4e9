package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"

	"xiaozhi/internal/text"
	"xiaozhi/providers"
	"xiaozhi/providers/sound"
	"xiaozhi/providers/transport"
)

// TTS is a voice behind POST audio/speech.
type TTS struct {
	o       Options
	players sound.Pool
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
		reqCtx, g, cancel := transport.NewGuard(ctx)
		defer cancel()
		p := t.players.Get(yield)
		defer t.players.Put(p)
		if err := t.play(reqCtx, req, g, p); err != nil && !p.Left() {
			yield(providers.Sound{}, t.o.wrap(ctx, reqCtx, "speak", err))
		}
	}
}

// play makes the request and hands its sound to p. Its errors are not yet wrapped.
func (t *TTS) play(ctx context.Context, req providers.TTSRequest, g *transport.Guard, p *sound.Player) error {
	own, _ := text.Find(t.o.Voices, text.Lang(req.Language))
	voice := cmp.Or(req.Voice, own, t.o.Voice)
	g.Arm(t.o.Timeouts.FirstSound)
	body, err := json.Marshal(map[string]string{"model": t.o.Model, "input": req.Text, "voice": voice, "response_format": t.o.Format})
	if err != nil {
		return fmt.Errorf("write request: %w", err)
	}
	resp, err := t.o.post(ctx, "/audio/speech", "application/json", body)
	g.Disarm()
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	guarded := &transport.GuardedReader{R: resp.Body, Guard: g, First: t.o.Timeouts.FirstSound, Next: t.o.Timeouts.NextSound}
	expected := sound.Expected{Format: t.o.Format, Rate: t.o.Rate, MediaType: resp.Header.Get("Content-Type")}
	if err := p.Decode(guarded, expected); err != nil {
		return err
	}
	if !p.Heard() && !p.Left() {
		return errors.New("the server sent no sound")
	}
	return nil
}
