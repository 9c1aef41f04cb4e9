package connection

import (
	"encoding/json"
	"unicode/utf8"

	"xiaozhi/internal/wire"
	"xiaozhi/mcp/rawjson"
)

// maxShown is how many bytes of text a device is shown at once: its messages
// stay below 8 KiB (section 2.5).
const maxShown = 4000

// The messages to devices of section 3.3. Each carries the session's id.
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

// textOf gives the wire's JSON for a message. nil: there is none in the
// standard dialect (chunk, final and thought are words of the light one).
func textOf(sessionID string, m wire.Message) ([]byte, error) {
	switch m.Kind {
	case wire.MessageSTT:
		return encode(sttMessage{sessionID, "stt", clip(m.Text, maxShown)})
	case wire.MessageTTSStart:
		return encode(ttsMessage{sessionID, "tts", "start", ""})
	case wire.MessageSentenceStart:
		return encode(ttsMessage{sessionID, "tts", "sentence_start", clip(m.Text, maxShown)})
	case wire.MessageTTSStop:
		return encode(ttsMessage{sessionID, "tts", "stop", ""})
	case wire.MessageEmotion:
		return encode(llmMessage{sessionID, "llm", m.Emotion, clip(m.Text, maxShown)})
	case wire.MessageKeepAlive:
		return encode(llmMessage{sessionID, "llm", "neutral", ""})
	default:
		return nil, nil
	}
}

// encode is json.Marshal without escapes for HTML: devices show the text as it
// is, and every byte counts on theirs.
func encode(v any) ([]byte, error) { return rawjson.Marshal(v) }

// clip cuts text to at most limit bytes and an ellipsis, between two runes.
func clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit] + "…"
}
