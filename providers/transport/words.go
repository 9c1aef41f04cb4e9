package transport

import (
	"encoding/json"
	"strings"

	"xiaozhi/providers"
)

// wordMembers are the members in which services put their words, those that say most first.
var wordMembers = []string{"message", "msg", "error_msg", "error_message", "err_msg", "errmsg", "status_msg", "status_text", "detail", "error", "reason"}

// maxDepth is how deep words are looked for.
const maxDepth = 3

// Words finds what a service says in JSON of a shape that is not known.
func Words(body []byte) (string, bool) {
	var all any
	if json.Unmarshal(body, &all) != nil {
		return "", false
	}
	words := wordsIn(all, maxDepth)
	return words, words != ""
}

// wordsIn looks for words in a value, and then in what is in it.
func wordsIn(v any, depth int) string {
	object, ok := v.(map[string]any)
	if !ok || depth == 0 {
		return ""
	}
	lower := make(map[string]any, len(object))
	for name, value := range object {
		lower[strings.ToLower(name)] = value
	}
	for _, name := range wordMembers {
		if words, ok := lower[name].(string); ok && words != "" {
			return words
		}
	}
	for _, name := range append(wordMembers, "base_resp", "header", "response") {
		if words := wordsIn(lower[name], depth-1); words != "" {
			return words
		}
	}
	return ""
}

// KindOfWords judges the kind of a failure by words alone, where a service gives no status.
func KindOfWords(words string) providers.Kind {
	words = strings.ToLower(words)
	has := func(parts ...string) bool {
		for _, p := range parts {
			if strings.Contains(words, p) {
				return true
			}
		}
		return false
	}
	switch {
	case has("quota", "balance", "credit", "arrear", "billing", "overdue"):
		return providers.NoCredit
	case has("rate limit", "too many", "concurren", "throttl"):
		return providers.RateLimited
	case has("api key", "api_key", "api-key", "unauthorized", "authentication", "invalid token", "permission", "forbidden"):
		return providers.Unauthorized
	case has("voice", "speaker", "model", "parameter", "format", "input") && has("not found", "not exist", "unknown", "invalid", "unsupported", "not support", "no such", "required", "too long"):
		return providers.BadRequest
	}
	return providers.Unavailable
}
