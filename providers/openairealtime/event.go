package openairealtime

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"xiaozhi/providers"
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
			Error json.RawMessage `json:"error"`
		} `json:"status_details"`
	} `json:"response"`
	Error struct {
		EventID string `json:"event_id"`
		Code    any    `json:"code"`
	} `json:"error"`
}

// parse reads an event.
func parse(raw []byte, e *event) error {
	if err := json.Unmarshal(raw, e); err != nil {
		return fmt.Errorf("a message is not the JSON expected: %w", err)
	}
	return nil
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
		{providers.NoCredit, []string{"quota", "balance", "billing", "arrear", "insufficient"}},
		{providers.Unauthorized, []string{"invalid_api_key", "api key", "api-key", "unauthorized"}},
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
