package openairealtime

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"xiaozhi/providers"
	"xiaozhi/providers/duplex"
	"xiaozhi/providers/generation"
	"xiaozhi/providers/transport"
)

// event is a message of the service.
type event struct {
	Type       string `json:"type"`
	Response   string `json:"response_id"`
	Item       string `json:"item_id"`
	Delta      string `json:"delta"`
	Transcript string `json:"transcript"`
	CallID     string `json:"call_id"`
	Name       string `json:"name"`
	Arguments  string `json:"arguments"`
	Thing      struct {
		ID        string `json:"id"`
		Type      string `json:"type"`
		CallID    string `json:"call_id"`
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"item"`
	Whole struct {
		ID      string `json:"id"`
		Status  string `json:"status"`
		Details struct {
			Reason string          `json:"reason"`
			Error  json.RawMessage `json:"error"`
		} `json:"status_details"`
		Usage json.RawMessage `json:"usage"`
	} `json:"response"`
	Error struct {
		EventID string `json:"event_id"`
		Code    any    `json:"code"`
	} `json:"error"`
}

// parse reads an event. Of one that is not known it reads the type only: its members may be anything.
func parse(raw []byte, e *event) error {
	err := json.Unmarshal(raw, e)
	if err == nil {
		return nil
	}
	var only struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(raw, &only) == nil && only.Type != "" && !known(only.Type) {
		*e = event{Type: only.Type}
		return nil
	}
	return fmt.Errorf("a message is not the JSON expected: %w", err)
}

// known reports whether an event of a type tells something.
func known(kind string) bool {
	switch kind {
	case "error", "session.created", "session.updated", "session.finished", "input_audio_buffer.committed",
		"conversation.item.input_audio_transcription.delta", "conversation.item.input_audio_transcription.completed",
		"conversation.item.input_audio_transcription.updated", "response.created", "response.done",
		"response.output_audio.delta", "response.audio.delta", "response.output_audio_transcript.delta", "response.audio_transcript.delta",
		"response.output_text.delta", "response.text.delta", "response.output_item.added", "response.output_item.done",
		"response.function_call_arguments.done":
		return true
	}
	return false
}

// usage returns what an answer has cost.
func usage(raw json.RawMessage) providers.Usage {
	return providers.Usage{
		Prompt: duplex.Count(raw, "input_tokens"), Cached: duplex.Count(raw, "input_token_details.cached_tokens"), Completion: duplex.Count(raw, "output_tokens"),
	}
}

// fault is the refusal in a message.
func fault(raw []byte) error {
	f := generation.FaultOf(raw)
	if f == nil {
		return transport.Refused(providers.Unavailable, "", "the service has failed, and does not say why")
	}
	return judged(f.Refusal())
}

// judged puts right the kind of a refusal by its words.
func judged(err error) error {
	r, ok := errors.AsType[*transport.Refusal](err)
	if !ok || r.Status == http.StatusUnauthorized {
		return err
	}
	words := strings.ToLower(r.Code + " " + r.Text)
	for _, k := range []struct {
		kind  providers.Kind
		parts []string
	}{
		{providers.RateLimited, []string{"rate_limit", "rate limit", "throttl", "too many"}},
		{providers.NoCredit, []string{"quota", "balance", "billing", "arrear", "credit"}},
		{providers.Unauthorized, []string{"invalid_api_key", "api key", "api-key", "unauthorized", "permission"}},
		{providers.BadRequest, []string{"model_not_found", "model not", "modelnot", "voice", "invalidparameter"}},
	} {
		for _, part := range k.parts {
			if strings.Contains(words, part) {
				r.Kind = k.kind
				return err
			}
		}
	}
	return err
}

// failure returns why an answer that is over has failed; nil: it has not, or only broke off after some words.
func (w *wire) failure(e event, called bool) error {
	reason := e.Whole.Details.Reason
	switch {
	case e.Whole.Status == "failed":
		if raw := e.Whole.Details.Error; len(raw) > 0 && string(raw) != "null" {
			return fault([]byte(`{"error":` + string(raw) + `}`))
		}
		return transport.Refused(providers.Unavailable, "", "the answer has failed, and the service does not say why")
	case w.said || called:
		return nil
	case reason == "content_filter": // which says nothing of the service's health
		return transport.Refused(providers.BadRequest, reason, "the service gives no answer to this: its filter of contents")
	case e.Whole.Status == "incomplete" || e.Whole.Status == "cancelled":
		return transport.Refused(providers.Unavailable, reason, "the answer is "+e.Whole.Status+" before it has begun")
	}
	return nil
}
