package dashscope

import (
	"context"
	"encoding/base64"
	"maps"
	"net/http"

	"xiaozhi/providers"
	"xiaozhi/providers/httpvoice"
	"xiaozhi/providers/service"
	"xiaozhi/providers/sound"
	"xiaozhi/providers/transport"
)

// plain makes a voice that is asked by plain requests and answers with a stream of events.
func (s *site) plain(model string) (providers.TTS, error) {
	return httpvoice.New(httpvoice.Options{
		Section: s.section, Text: sound.Longest{Most: longestPlain}, Format: "pcm", Rate: rate, // there is no other
		Request: func(ctx context.Context, req providers.TTSRequest) (*http.Request, error) {
			input := map[string]any{"text": req.Text, "voice": s.voiceOf(req, model), "language_type": languageType(req.Language)}
			maps.Copy(input, s.section.Extra)
			header := s.header()
			header.Set("X-DashScope-SSE", "enable")
			return httpvoice.PostJSON(ctx, service.Join(service.HTTP(s.address), httpPath), header, map[string]any{"model": model, "input": input})
		},
		Ping: func(ctx context.Context) (*http.Request, error) {
			return http.NewRequestWithContext(ctx, http.MethodHead, service.Join(service.HTTP(s.address), httpPath), nil)
		},
		Judge:  func(r *transport.Refusal) { _ = judged(r) },
		Events: func() httpvoice.Opener { return open },
	})
}

// open takes the sound out of an event.
func open(data []byte) (sound []byte, last bool, err error) {
	var e struct {
		Code      string `json:"code"`
		Message   string `json:"message"`
		RequestID string `json:"request_id"`
		Output    struct {
			FinishReason *string `json:"finish_reason"`
			Audio        struct {
				Data string `json:"data"`
			} `json:"audio"`
		} `json:"output"`
	}
	if err := transport.Decode(data, &e); err != nil {
		return nil, false, err
	}
	if e.Code != "" {
		return nil, false, refusal(e.Code, e.Message, e.RequestID)
	}
	sound, err = base64.StdEncoding.DecodeString(e.Output.Audio.Data)
	return sound, e.Output.FinishReason != nil && *e.Output.FinishReason == "stop", err
}
