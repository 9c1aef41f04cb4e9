// Package elevenlabs hears through Scribe and speaks with the voices of ElevenLabs.
package elevenlabs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"xiaozhi/providers"
	"xiaozhi/providers/httpvoice"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

const (
	cloud        = "https://api.elevenlabs.io"
	hearingModel = "scribe_v2_realtime"
	voiceModel   = "eleven_flash_v2_5"
	defaultVoice = "JBFqnCBsd6RMkjVDRZzb"
)

// regions are the hosts of the service.
var regions = map[string]string{"world": cloud, "us": "https://api.us.elevenlabs.io", "eu": "https://api.eu.residency.elevenlabs.io", "in": "https://api.in.residency.elevenlabs.io"}

// Kind describes ElevenLabs.
func Kind() service.Kind {
	return service.Kind{
		Type: "elevenlabs", Title: "ElevenLabs", Address: cloud, Regions: regions,
		Env: []service.Env{{Field: service.Key, Name: "ELEVENLABS_API_KEY"}}, Needs: []service.Field{service.Key},
		Models: map[service.Role][]string{
			service.ASR: {hearingModel},
			service.TTS: {voiceModel, "eleven_turbo_v2_5", "eleven_multilingual_v2", "eleven_v3"},
		},
		Voices: []service.Voice{
			{Name: defaultVoice, Title: "George"}, {Name: "EXAVITQu4vr4xnSDxMaL", Title: "Sarah"}, {Name: "XB0fDUnXU5powFXDhCwa", Title: "Charlotte"},
		},
		Formats: []string{"pcm", "mp3", "opus"}, Extra: true,
		More: []service.Setting{
			{Name: "wire", Values: []string{"websocket", "http"}},
			{Name: "stability", Type: service.Number}, {Name: "similarity_boost", Type: service.Number},
		},
		ASR: NewASR, TTS: NewTTS, ListVoices: listVoices,
	}
}

// modelOf returns the model for a role: a section's is that of both, and only one can have it.
func modelOf(s service.Section, r service.Role) string {
	model, hears := s.Model(r, ""), strings.HasPrefix(s.Model(r, ""), "scribe")
	switch {
	case r == service.ASR && !hears:
		return hearingModel
	case r == service.TTS && (hears || model == ""):
		return voiceModel
	}
	return model
}

// address returns that of the service for a section.
func address(s service.Section) string { return strings.TrimRight(s.Address(regions, cloud), "/") }

// auth are the headers by which the service knows who asks.
func auth(s service.Section) http.Header { return http.Header{"Xi-Api-Key": {s.Key.Reveal()}} }

// codes are the vendor's words for failures: in messages of recognition, in those of
// voices, and in the status of refusals.
var codes = map[string]providers.Kind{
	"auth_error":                   providers.Unauthorized,
	"invalid_api_key":              providers.Unauthorized,
	"missing_permissions":          providers.Unauthorized,
	"needs_authorization":          providers.Unauthorized,
	"unaccepted_terms_error":       providers.Unauthorized,
	"unaccepted_terms":             providers.Unauthorized,
	"quota_exceeded":               providers.NoCredit,
	"payment_required":             providers.NoCredit,
	"commit_throttled":             providers.RateLimited,
	"rate_limited":                 providers.RateLimited,
	"rate_limit_exceeded":          providers.RateLimited,
	"too_many_concurrent_requests": providers.RateLimited,
	"max_active_conversations":     providers.RateLimited,
	"queue_overflow":               providers.Unavailable,
	"resource_exhausted":           providers.Unavailable,
	"system_busy":                  providers.Unavailable,
	"session_time_limit_exceeded":  providers.Unavailable,
	"transcriber_error":            providers.Unavailable,
	"input_error":                  providers.BadRequest,
	"chunk_size_exceeded":          providers.BadRequest,
	"voice_not_found":              providers.BadRequest,
	"model_not_found":              providers.BadRequest,
	"invalid_voice_id":             providers.BadRequest,
	"voice_id_does_not_exist":      providers.BadRequest,
}

// judge puts right a refusal by the status in its body.
func judge(r *transport.Refusal) {
	var body struct {
		Detail struct {
			Status  string `json:"status"`
			Message string `json:"message"`
		} `json:"detail"`
		Error   string `json:"error"`
		Message string `json:"message"`
		Type    string `json:"message_type"`
	}
	if json.Unmarshal([]byte(r.Text), &body) == nil {
		switch {
		case body.Detail.Message != "":
			r.Code, r.Text = body.Detail.Status, body.Detail.Message
		case body.Message != "":
			r.Code, r.Text = body.Error, body.Message
		}
	}
	if kind, ok := codes[r.Code]; ok {
		r.Kind = kind
		return
	}
	words := strings.ToLower(r.Text)
	for code, kind := range codes { // the reason of a close may hold one
		if strings.Contains(words, code) {
			r.Kind = kind
			return
		}
	}
	unknown := strings.Contains(words, "not") || strings.Contains(words, "invalid") || strings.Contains(words, "unknown")
	switch {
	case strings.Contains(words, "quota") || strings.Contains(words, "credits"):
		r.Kind = providers.NoCredit
	case unknown && (strings.Contains(words, "voice") || strings.Contains(words, "model")):
		r.Kind = providers.BadRequest
	}
}

// judged is err with a refusal in it put right.
func judged(err error) error {
	if r, ok := errors.AsType[*transport.Refusal](err); ok {
		judge(r)
	}
	return err
}

// failed makes the error of a message that tells of one.
func failed(code, words string) error {
	r := transport.Refused(providers.Unavailable, code, words)
	judge(r)
	return r
}

// listVoices asks for the voices of the account.
func listVoices(ctx context.Context, s service.Section) ([]service.Voice, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, service.Join(address(s), "/v1/voices"), nil)
	if err != nil {
		return nil, fmt.Errorf("base_url: %w", err)
	}
	r.Header = auth(s)
	var reply struct {
		Voices []struct {
			ID     string            `json:"voice_id"`
			Name   string            `json:"name"`
			Labels map[string]string `json:"labels"`
		} `json:"voices"`
	}
	if err := httpvoice.Get(s, r, judge, &reply); err != nil {
		return nil, err
	}
	var out []service.Voice
	for _, v := range reply.Voices {
		voice := service.Voice{Name: v.ID, Title: v.Name}
		if tag := v.Labels["language"]; tag != "" {
			voice.Language = []string{tag}
		}
		out = append(out, voice)
	}
	return out, nil
}
