package connection

import (
	"encoding/json"

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
