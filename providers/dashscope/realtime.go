package dashscope

import (
	"errors"
	"maps"

	"github.com/google/uuid"

	"xiaozhi/providers/transport"
)

// event is a message of the realtime protocol, as far as it is read here.
type event struct {
	Type       string `json:"type"`
	Text       string `json:"text"`
	Stash      string `json:"stash"`
	Transcript string `json:"transcript"`
	Language   string `json:"language"`
	Delta      string `json:"delta"`
	Item       string `json:"item_id"`
	Error      *struct {
		Type    string         `json:"type"`
		Code    transport.Code `json:"code"`
		Message string         `json:"message"`
	} `json:"error"`
}

var errNoType = errors.New("a message names no type")

// failure is the error that an event holds, or nil.
func (e event) failure() error {
	if e.Error == nil {
		return nil
	}
	code := string(e.Error.Code)
	if code == "" {
		code = e.Error.Type
	}
	return refusal(code, e.Error.Message, "")
}

// sendEvent sends an event. Each has an id of its own.
func sendEvent(s *transport.Socket, kind string, fields map[string]any) error {
	m := map[string]any{"event_id": "event_" + uuid.NewString(), "type": kind}
	maps.Copy(m, fields)
	return s.WriteJSON(m)
}
