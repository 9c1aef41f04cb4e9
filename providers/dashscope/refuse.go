package dashscope

import (
	"cmp"
	"encoding/json"
	"strings"

	"xiaozhi/providers"
	"xiaozhi/providers/transport"
)

// refusal makes the error of a code and words that the service sends on a socket or in
// a stream.
func refusal(code, words, logID string) *transport.Refusal {
	if words == "" {
		words = "the service gave no reason"
	}
	return &transport.Refusal{Kind: kindOf(code, words), Code: code, Text: words, LogID: logID}
}

// judged reads the code and the words of a refusal of HTTP, which come as JSON.
func judged(r *transport.Refusal) *transport.Refusal {
	var body struct {
		Code      string `json:"code"`
		Message   string `json:"message"`
		RequestID string `json:"request_id"`
	}
	if json.Unmarshal([]byte(r.Text), &body) != nil || body.Code == "" {
		return r
	}
	r.Code, r.Text, r.LogID = body.Code, cmp.Or(body.Message, body.Code), cmp.Or(body.RequestID, r.LogID)
	if kind := kindOf(r.Code, r.Text); kind != providers.Unavailable {
		r.Kind = kind
	}
	return r
}

// kindOf judges by the code, and where that is a general one by the words.
func kindOf(code, words string) providers.Kind {
	all := strings.ToLower(code + " " + words)
	has := func(parts ...string) bool {
		for _, p := range parts {
			if strings.Contains(all, p) {
				return true
			}
		}
		return false
	}
	switch {
	case has("arrearage", "overdue", "allocationquota", "free tier", "insufficient_quota", "good standing"):
		return providers.NoCredit
	case has("throttling", "rate limit", "ratequota", "too many requests", "limit_requests"):
		return providers.RateLimited
	case has("invalidapikey", "invalid_api_key", "accessdenied", "access denied", "unauthorized", "invalid api-key", "not authorized"):
		return providers.Unauthorized
	case has("timeout", "timed out"):
		return providers.Unavailable
	case has("invalidparameter", "invalid_request", "invalid_value", "modelnotfound", "model_not_found", "model not exist", "unsupported",
		"418", "decode audio", "bad request", "client_error", "invalid parameter", "text is null"):
		return providers.BadRequest
	}
	return providers.Unavailable
}

// nothingHeard says whether a code only means that there was no speech in the sound.
func nothingHeard(code, words string) bool {
	return strings.Contains(code+words, "NO_VALID_AUDIO_ERROR")
}
