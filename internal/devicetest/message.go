package devicetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// Limits of what a device can take (2.5).
const (
	maxText   = 8 << 10
	maxBinary = 1536
	maxDepth  = 16
)

type audioParams struct {
	Format        string  `json:"format,omitempty"`
	SampleRate    int     `json:"sample_rate,omitempty"`
	Channels      int     `json:"channels,omitempty"`
	FrameDuration float64 `json:"frame_duration,omitempty"` // ms
}

type features struct {
	AEC bool `json:"aec,omitempty"`
	MCP bool `json:"mcp,omitempty"`
}

type clientHello struct {
	Type        string       `json:"type"`
	Version     int          `json:"version"`
	Features    *features    `json:"features,omitempty"`
	Transport   string       `json:"transport"`
	AudioParams *audioParams `json:"audio_params,omitempty"`
}

// control is a text message of the device other than hello and mcp.
type control struct {
	SessionID string `json:"session_id"`
	Type      string `json:"type"`
	State     string `json:"state,omitempty"`
	Mode      Mode   `json:"mode,omitempty"`
	Text      string `json:"text,omitempty"`
	Reason    string `json:"reason,omitempty"`
}

// inbound is a text message of the server, as far as it could be read.
type inbound struct {
	kind, state, text, emotion string
	hasSession                 bool
	session                    string
	fields                     map[string]json.RawMessage
	reply                      *Reply // the reply that a tts message opens or closes
}

// parseText reads a message as the device's JSON reader would. Whatever it
// finds wrong is returned as (rule, error) pairs; a nil message is unusable.
func parseText(raw []byte) (*inbound, []Violation) {
	var found []Violation
	bad := func(rule Rule, err error) { found = append(found, Violation{Rule: rule, Detail: err.Error()}) }
	if len(raw) > maxText {
		bad(RuleTooLong, fmt.Errorf("text message of %d bytes, at most %d", len(raw), maxText))
	}
	if n := depth(raw); n >= maxDepth {
		bad(RuleTooDeep, fmt.Errorf("JSON of %d levels", n))
	}
	m := &inbound{}
	if err := json.Unmarshal(raw, &m.fields); err != nil || m.fields == nil {
		bad(RuleJSON, fmt.Errorf("not a JSON object: %s", shorten(raw)))
		return nil, found
	}
	if err := m.stringField("type", &m.kind, true); err != nil {
		bad(RuleType, err)
		return nil, found
	}
	if _, m.hasSession = m.fields["session_id"]; m.hasSession {
		if err := m.stringField("session_id", &m.session, true); err != nil {
			bad(RuleSessionID, err)
		}
	}
	for _, f := range m.needed() {
		if err := m.stringField(f.name, f.into, f.must); err != nil {
			bad(RuleType, fmt.Errorf("%s message: %w", m.kind, err))
		}
	}
	if rule, err := m.meaning(); err != nil {
		bad(rule, err)
	}
	return m, found
}

// meaning judges members that are there and of the right type.
func (m *inbound) meaning() (Rule, error) {
	switch {
	case m.kind == "tts" && m.state == "sentence_start" && m.text == "":
		return RuleType, errors.New("sentence_start without a text shows nothing")
	case m.kind == "llm" && m.emotion != "" && !slices.Contains(faces(), m.emotion):
		return RuleEmotion, fmt.Errorf("emotion %q is not one of the %d that every display knows", m.emotion, len(faces()))
	case m.kind == "system" && m.state != "" && m.state != "reboot":
		return RuleCommand, fmt.Errorf("system command %q", m.state)
	case m.kind == "custom" && !bytes.HasPrefix(m.fields["payload"], []byte("{")):
		return RuleType, fmt.Errorf("custom message: payload is not an object: %s", shorten(m.fields["payload"]))
	}
	if _, ok := m.fields["glyph_push"]; ok { // no profile's hello offers it
		return RuleGlyphs, errors.New("glyph_push to a device whose hello does not offer it")
	}
	return "", nil
}

// faces returns the emotions that all displays know (3.3.11).
func faces() []string {
	return []string{
		"neutral", "happy", "laughing", "funny", "sad", "angry", "crying", "loving", "embarrassed", "surprised", "shocked",
		"thinking", "winking", "cool", "relaxed", "delicious", "kissy", "confident", "sleepy", "silly", "confused",
	}
}

type field struct {
	name string
	into *string
	must bool
}

// needed lists the string members of the message's type (3.3).
func (m *inbound) needed() []field {
	switch m.kind {
	case "tts":
		return []field{{"state", &m.state, true}, {"text", &m.text, false}}
	case "stt":
		return []field{{"text", &m.text, true}}
	case "llm":
		return []field{{"emotion", &m.emotion, true}, {"text", &m.text, false}}
	case "alert":
		return []field{{"status", &m.state, true}, {"message", &m.text, true}, {"emotion", &m.emotion, true}}
	case "system":
		return []field{{"command", &m.state, true}}
	default:
		return nil
	}
}

func (m *inbound) stringField(name string, into *string, must bool) error {
	raw, ok := m.fields[name]
	if !ok {
		if must {
			return fmt.Errorf("no %s", name)
		}
		return nil
	}
	// A null would unmarshal into a string without an error.
	if len(raw) == 0 || raw[0] != '"' {
		return fmt.Errorf("%s is not a string: %s", name, shorten(raw))
	}
	return json.Unmarshal(raw, into)
}

// depth returns the levels of nesting of a JSON text, strings aside.
func depth(raw []byte) int {
	level, most := 0, 0
	inString, escaped := false, false
	for _, c := range raw {
		switch {
		case escaped:
			escaped = false
		case inString:
			escaped = c == '\\'
			inString = c != '"'
		case c == '"':
			inString = true
		case c == '{' || c == '[':
			level++
			most = max(most, level)
		case c == '}' || c == ']':
			level--
		}
	}
	return most
}

// serverHello is the answer to the device's hello (2.3).
type serverHello struct {
	session string
	rate    int     // Hz
	frameMs float64 // ms
}

// errNoTransport stands for the null dereference that reboots a device.
var errNoTransport = errors.New(`hello without a string "transport": the device reboots`)

// parseHello checks the members of a hello. A non-nil error means that the device does not come up.
func parseHello(m *inbound) (serverHello, []Violation, error) {
	h := serverHello{rate: 24000, frameMs: 60}
	var transport string
	if err := m.stringField("transport", &transport, true); err != nil {
		return h, nil, errNoTransport
	}
	if transport != "websocket" {
		return h, nil, fmt.Errorf("hello with transport %q is ignored by the device", transport)
	}
	var found []Violation
	h.session = m.session
	if !validSession(h.session) {
		found = append(found, Violation{Rule: RuleSessionID, Detail: fmt.Sprintf("hello with session_id %q: use 1 or more of [A-Za-z0-9_-]", h.session)})
	}
	if raw, ok := m.fields["audio_params"]; ok {
		p, ok := parseAudioParams(raw)
		if !ok {
			found = append(found, Violation{Rule: RuleHelloAudio, Detail: "audio_params cannot be read: " + shorten(raw)})
			return h, found, nil
		}
		h.rate, h.frameMs = or(p.SampleRate, h.rate), or(p.FrameDuration, h.frameMs)
	}
	if err := checkDownlink(h.rate, h.frameMs); err != nil {
		found = append(found, Violation{Rule: RuleHelloAudio, Detail: err.Error()})
	}
	return h, found, nil
}

// parseAudioParams reads the member of that name; null is none.
func parseAudioParams(raw []byte) (audioParams, bool) {
	var p audioParams
	err := json.Unmarshal(raw, &p)
	return p, err == nil && !bytes.Equal(raw, []byte("null"))
}

// checkDownlink holds the rates and lengths that a device can decode (4.2).
func checkDownlink(rate int, frameMs float64) error {
	switch rate {
	case 8000, 12000, 16000, 24000, 48000:
	default:
		return fmt.Errorf("sample_rate %d cannot be decoded", rate)
	}
	switch frameMs {
	case 5, 10, 20, 40, 60, 80, 100, 120:
		return nil
	default:
		return fmt.Errorf("frame_duration %g ms leaves the device mute", frameMs)
	}
}

func validSession(id string) bool {
	for _, c := range []byte(id) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return id != ""
}

// shorten cuts text of the server to a length that a person reads.
func shorten(raw []byte) string {
	const most = 120
	if len(raw) > most {
		return string(raw[:most]) + "…"
	}
	return string(raw)
}
