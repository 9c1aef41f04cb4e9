package minimax

import (
	"context"
	"net/http"

	"xiaozhi/providers"
	"xiaozhi/providers/httpvoice"
	"xiaozhi/providers/service"
	"xiaozhi/providers/sound"
	"xiaozhi/providers/transport"
)

// plain makes the voice that speaks by plain requests.
func (v *speaker) plain() (providers.TTS, error) {
	return httpvoice.New(httpvoice.Options{
		Section: v.section, Text: sound.Longest{Most: longest}, Format: v.format(), Rate: v.rate(),
		Request: func(ctx context.Context, req providers.TTSRequest) (*http.Request, error) {
			body := v.settings(v.section.Voice(req, voice))
			body["text"], body["stream"] = unmarked(req.Text), true
			body["stream_options"] = map[string]any{"exclude_aggregated_audio": true}
			return httpvoice.PostJSON(ctx, service.Join(v.address, httpPath+v.group()), v.header(), body)
		},
		Ping: func(ctx context.Context) (*http.Request, error) {
			return http.NewRequestWithContext(ctx, http.MethodHead, service.Join(v.address, httpPath), nil)
		},
		Events: events,
	})
}

// events opens the events of one answer. The last one repeats all of the sound: it is
// taken only if none came before.
func events() httpvoice.Opener {
	heard := false
	return func(event []byte) ([]byte, bool, error) {
		var r report
		if err := transport.Decode(event, &r); err != nil {
			return nil, false, err
		}
		if err := r.failure(); err != nil {
			return nil, false, err
		}
		sound, err := r.sound()
		last := r.Data != nil && r.Data.Status == 2
		if last && heard {
			sound = nil
		}
		heard = heard || len(sound) > 0
		return sound, last, err
	}
}
