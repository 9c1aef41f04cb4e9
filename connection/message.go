package connection

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"xiaozhi/internal/text"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp/rawjson"
)

// maxShown is how many bytes of text a device is shown at once: its messages
// stay below 8 KiB (docs/protocol.md 2.5).
const maxShown = 4000

// The messages to devices of docs/protocol.md 3.3. Each carries the session's id.
type (
	sttMessage struct {
		SessionID string `json:"session_id"`
		Type      string `json:"type"`
		Text      string `json:"text"`
	}
	ttsMessage struct {
		SessionID string `json:"session_id"`
		Type      string `json:"type"`
		State     string `json:"state"`
		Text      string `json:"text,omitempty"`
	}
	llmMessage struct {
		SessionID string `json:"session_id"`
		Type      string `json:"type"`
		Emotion   string `json:"emotion"`
		Text      string `json:"text"`
	}
	mcpMessage struct {
		SessionID string          `json:"session_id"`
		Type      string          `json:"type"`
		Payload   json.RawMessage `json:"payload"`
	}
	iotMessage struct {
		SessionID string          `json:"session_id"`
		Type      string          `json:"type"`
		Commands  json.RawMessage `json:"commands"`
	}
)

// textOf gives the JSON of a message; nil if the standard dialect has none (chunk,
// final and thought are words of the light one).
func textOf(sessionID string, m wire.Message) ([]byte, error) {
	switch m.Kind {
	case wire.MessageSTT:
		return rawjson.Marshal(sttMessage{sessionID, "stt", text.Cut(m.Text, maxShown)})
	case wire.MessageTTSStart:
		return rawjson.Marshal(ttsMessage{sessionID, "tts", "start", ""})
	case wire.MessageSentenceStart:
		return rawjson.Marshal(ttsMessage{sessionID, "tts", "sentence_start", text.Cut(m.Text, maxShown)})
	case wire.MessageTTSStop:
		return rawjson.Marshal(ttsMessage{sessionID, "tts", "stop", ""})
	case wire.MessageEmotion:
		return rawjson.Marshal(llmMessage{sessionID, "llm", m.Emotion, text.Cut(m.Text, maxShown)})
	case wire.MessageKeepAlive:
		return rawjson.Marshal(llmMessage{sessionID, "llm", "neutral", ""})
	default:
		return nil, nil
	}
}

// Limits of one text message.
const (
	maxDepth     = 32       // levels of JSON; devices send fewer than 10
	maxPlainText = 64 << 10 // bytes, of every type but mcp
)

// inbound is one text message of a device, as far as its type was readable.
type inbound struct {
	members
	kind string // the type
	bare bool   // a JSON-RPC frame without the envelope: kind is mcp, Payload all of it
}

// members is the union of all messages' members; every one is judged later, so
// that a wrong type in one costs that one only.
type members struct {
	Type    json.RawMessage `json:"type"`
	State   json.RawMessage `json:"state"`
	Mode    json.RawMessage `json:"mode"`
	Text    json.RawMessage `json:"text"`
	Reason  json.RawMessage `json:"reason"`
	Payload json.RawMessage `json:"payload"`
	JSONRPC json.RawMessage `json:"jsonrpc"`
	thingsWire
	helloWire
}

// thingsWire are the members of an iot message (docs/protocol.md 6).
type thingsWire struct {
	Descriptors json.RawMessage `json:"descriptors"`
	States      json.RawMessage `json:"states"`
}

// parseText reads one text message. Devices paste strings into JSON as they
// are, so control characters are forgiven. The result shares nothing with data.
func parseText(data []byte) (inbound, error) {
	if depth := rawjson.Depth(data); depth > maxDepth {
		return inbound{}, fmt.Errorf("json is %d levels deep, the limit is %d", depth, maxDepth)
	}
	var w members
	if err := json.Unmarshal(data, &w); err != nil {
		data, w = withoutControls(data), members{}
		if err := json.Unmarshal(data, &w); err != nil {
			return inbound{}, fmt.Errorf("broken json: %w", err)
		}
	}
	if !rawjson.Present(w.Type) && rawjson.Present(w.JSONRPC) {
		return inbound{members{Payload: bytes.Clone(data)}, "mcp", true}, nil
	}
	kind, ok := rawjson.String(w.Type)
	if !ok || kind == "" {
		return inbound{}, errors.New("type is missing or not a string")
	}
	if len(data) > maxPlainText && kind != "mcp" {
		return inbound{}, fmt.Errorf("%d bytes are too much for a message of type %q, the limit is %d", len(data), text.Cut(kind, 32), maxPlainText)
	}
	return inbound{w, kind, false}, nil
}

// mode reads a listen mode. A missing or unknown one is auto; ok is false for an
// unknown one.
func (m inbound) mode() (mode wire.Mode, ok bool) {
	name, _ := rawjson.String(m.Mode)
	switch mode = wire.Mode(name); mode {
	case wire.Auto, wire.Manual, wire.Realtime:
		return mode, true
	}
	return wire.Auto, !rawjson.Present(m.Mode)
}

// payloadIn gives the JSON-RPC payload of an mcp message: an object, or (some
// clients) a string that holds one.
func payloadIn(raw json.RawMessage) (json.RawMessage, error) {
	if !rawjson.Present(raw) {
		return nil, errors.New("mcp message without payload")
	}
	if text, ok := rawjson.String(raw); ok {
		if !json.Valid([]byte(text)) {
			return nil, errors.New("mcp payload is a string that holds no json")
		}
		raw = json.RawMessage(text)
	}
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '{' {
		return nil, errors.New("mcp payload is not an object")
	}
	return raw, nil
}

// withoutControls gives a copy of data with a space for every control character.
func withoutControls(data []byte) []byte {
	mended := bytes.Clone(data)
	for i, b := range mended {
		if b < ' ' {
			mended[i] = ' '
		}
	}
	return mended
}
