// Package deepgram hears and speaks through Deepgram: nova and flux, and the Aura voices.
package deepgram

import (
	"encoding/json"
	"errors"
	"strings"

	"xiaozhi/providers"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

const cloud = "https://api.deepgram.com"

// Kind describes Deepgram.
func Kind() service.Kind {
	return service.Kind{
		Type: "deepgram", Title: "Deepgram", Address: cloud,
		Env: []service.Env{{Field: service.Key, Name: "DEEPGRAM_API_KEY"}}, Needs: []service.Field{service.Key},
		Models: map[service.Role][]string{service.ASR: {"nova-3", "nova-2", "flux-general-en", "flux-general-multi"}},
		Voices: voices(), Formats: []string{"linear16", "mp3", "opus"}, Extra: true, Lacks: []string{"speed"},
		More: []service.Setting{
			{Name: "language"}, {Name: "smart_format", Type: service.Flag}, {Name: "phrases", Type: service.Flag},
			{Name: "eot_threshold", Type: service.Number}, {Name: "eot_timeout_ms", Type: service.Number},
		},
		ASR: NewASR, TTS: NewTTS, ListVoices: listVoices,
	}
}

// voices are those of Aura 2 that stand for many, each the model of the same name.
func voices() []service.Voice {
	var out []service.Voice
	for _, v := range []struct{ name, language string }{
		{"aura-2-thalia-en", "en"}, {"aura-2-andromeda-en", "en"}, {"aura-2-helena-en", "en"}, {"aura-2-apollo-en", "en"},
		{"aura-2-arcas-en", "en"}, {"aura-2-celeste-es", "es"}, {"aura-2-nestor-es", "es"},
	} {
		out = append(out, service.Voice{Name: v.name, Language: []string{v.language}})
	}
	return out
}

// codes are the vendor's words for a failure that its status does not tell well enough.
var codes = map[string]providers.Kind{
	"INVALID_AUTH":             providers.Unauthorized,
	"INSUFFICIENT_PERMISSIONS": providers.Unauthorized,
	"ASR_PAYMENT_REQUIRED":     providers.NoCredit,
	"TTS_PAYMENT_REQUIRED":     providers.NoCredit,
	"PAYMENT_REQUIRED":         providers.NoCredit,
	"TOO_MANY_REQUESTS":        providers.RateLimited,
	"Bad Request":              providers.BadRequest,
	"INVALID_QUERY_PARAMETER":  providers.BadRequest,
}

// judge puts right a refusal by what its body or its close says.
func judge(r *transport.Refusal) {
	var body struct {
		Code     string `json:"err_code"`
		Words    string `json:"err_msg"`
		Category string `json:"category"`
		Message  string `json:"message"`
		Details  string `json:"details"`
		ID       string `json:"request_id"`
	}
	if json.Unmarshal([]byte(r.Text), &body) == nil {
		switch {
		case body.Words != "":
			r.Code, r.Text = body.Code, body.Words
		case body.Message != "":
			r.Code, r.Text = body.Category, strings.TrimSpace(body.Message+" "+body.Details)
		}
		if r.LogID == "" {
			r.LogID = body.ID
		}
	}
	if kind, ok := codes[r.Code]; ok {
		r.Kind = kind
	}
	words := strings.ToLower(r.Text)
	switch {
	case strings.HasPrefix(r.Code, "close ") && strings.Contains(r.Text, "DATA-0001"):
		r.Kind = providers.RateLimited
	case strings.HasPrefix(r.Code, "close ") && strings.Contains(r.Text, "DATA-"):
		r.Kind = providers.BadRequest
	case r.Kind == providers.Unauthorized && strings.Contains(words, "model"):
		r.Kind = providers.BadRequest // the key is good, but not for this model
	case r.Kind == providers.Unauthorized && (strings.Contains(words, "credit") || strings.Contains(words, "balance")):
		r.Kind = providers.NoCredit
	}
}

// judged is err with a refusal in it put right.
func judged(err error) error {
	if r, ok := errors.AsType[*transport.Refusal](err); ok {
		judge(r)
	}
	return err
}
