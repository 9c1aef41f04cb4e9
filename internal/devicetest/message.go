package devicetest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"
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

// breach notes a rule that a message breaks.
type breach func(rule Rule, format string, args ...any)

// parseText reads a message as the device's JSON reader would, and tells of
// whatever it finds wrong. Nil: the message is unusable.
func parseText(raw []byte, bad breach) *inbound {
	if len(raw) > maxText {
		bad(RuleTooLong, "text message of %d bytes, at most %d", len(raw), maxText)
	}
	if n := depth(raw); n >= maxDepth {
		bad(RuleTooDeep, "JSON of %d levels", n)
	}
	m := &inbound{}
	if err := json.Unmarshal(raw, &m.fields); err != nil || m.fields == nil {
		bad(RuleJSON, "not a JSON object: %s", shorten(raw))
		return nil
	}
	if err := m.stringField("type", &m.kind, true); err != nil {
		bad(RuleType, "%s", err)
		return nil
	}
	if _, m.hasSession = m.fields["session_id"]; m.hasSession {
		if err := m.stringField("session_id", &m.session, true); err != nil {
			bad(RuleSessionID, "%s", err)
		}
	}
	m.readTexts(bad)
	m.judge(bad)
	return m
}

// judge judges members that are there and of the right type.
func (m *inbound) judge(bad breach) {
	_, glyphs := m.fields["glyph_push"]
	switch {
	case m.kind == "tts" && m.state == "sentence_start" && m.text == "":
		bad(RuleType, "sentence_start without a text shows nothing")
	case m.kind == "llm" && m.emotion != "" && !slices.Contains(faces(), m.emotion):
		bad(RuleEmotion, "emotion %q is not one of the %d that every display knows", m.emotion, len(faces()))
	case m.kind == "system" && m.state != "" && m.state != "reboot":
		bad(RuleCommand, "system command %q", m.state)
	case m.kind == "custom" && !bytes.HasPrefix(m.fields["payload"], []byte("{")):
		bad(RuleType, "custom message: payload is not an object: %s", shorten(m.fields["payload"]))
	case glyphs: // no profile's hello offers it
		bad(RuleGlyphs, "glyph_push to a device whose hello does not offer it")
	}
}

// faces returns the emotions that all displays know (3.3.11).
func faces() []string {
	return []string{
		"neutral", "happy", "laughing", "funny", "sad", "angry", "crying", "loving", "embarrassed", "surprised", "shocked",
		"thinking", "winking", "cool", "relaxed", "delicious", "kissy", "confident", "sleepy", "silly", "confused",
	}
}

// readTexts takes the string members of the message's type (3.3).
func (m *inbound) readTexts(bad breach) {
	read := func(name string, into *string, must bool) {
		if err := m.stringField(name, into, must); err != nil {
			bad(RuleType, "%s message: %s", m.kind, err)
		}
	}
	switch m.kind {
	case "tts":
		read("state", &m.state, true)
		read("text", &m.text, false)
	case "stt":
		read("text", &m.text, true)
	case "llm":
		read("emotion", &m.emotion, true)
		read("text", &m.text, false)
	case "alert":
		read("status", &m.state, true)
		read("message", &m.text, true)
		read("emotion", &m.emotion, true)
	case "system":
		read("command", &m.state, true)
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

type serverHello struct {
	session string
	format  string
	rate    int     // Hz
	frameMs float64 // ms
}

// packet is the length of a downlink packet.
func (h serverHello) packet() time.Duration {
	return time.Duration(h.frameMs * float64(time.Millisecond))
}

// errNoTransport stands for the null dereference that reboots a device.
var errNoTransport = errors.New(`hello without a string "transport": the device reboots`)

// parseHello checks the members of a hello. A non-nil error means that the device does not come up.
func parseHello(m *inbound, bad breach) (serverHello, error) {
	h := serverHello{session: m.session, rate: 24000, frameMs: 60}
	var transport string
	if err := m.stringField("transport", &transport, true); err != nil {
		return h, errNoTransport
	}
	if transport != "websocket" {
		return h, fmt.Errorf("hello with transport %q is ignored by the device", transport)
	}
	if !sessionID.MatchString(h.session) {
		bad(RuleSessionID, "hello with session_id %q: use 1 or more of [A-Za-z0-9_-]", h.session)
	}
	p := new(audioParams)
	if raw, ok := m.fields["audio_params"]; ok {
		if json.Unmarshal(raw, &p) != nil || p == nil {
			bad(RuleHelloAudio, "audio_params cannot be read: %s", shorten(raw))
			return h, nil //nolint:nilerr // the device comes up
		}
	}
	h.format = p.Format
	h.rate, h.frameMs = cmp.Or(p.SampleRate, h.rate), cmp.Or(p.FrameDuration, h.frameMs)
	switch { // what a device can decode (4.2)
	case !slices.Contains([]int{8000, 12000, 16000, 24000, 48000}, h.rate):
		bad(RuleHelloAudio, "sample_rate %d cannot be decoded", h.rate)
	case !slices.Contains([]float64{5, 10, 20, 40, 60, 80, 100, 120}, h.frameMs):
		bad(RuleHelloAudio, "frame_duration %g ms leaves the device mute", h.frameMs)
	}
	return h, nil
}

// sessionID is the form of a session id.
var sessionID = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// shorten cuts text of the server to a length that a person reads.
func shorten(raw []byte) string {
	const most = 120
	if len(raw) > most {
		return string(raw[:most]) + "…"
	}
	return string(raw)
}
