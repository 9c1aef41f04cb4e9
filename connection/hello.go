package connection

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	"xiaozhi/audio"
	"xiaozhi/mcp/rawjson"
)

// helloWire is a device's hello as it came: every field may be missing or of a
// wrong type (docs/protocol.md 2.2).
type helloWire struct {
	Version     json.RawMessage `json:"version,omitempty"`
	Features    json.RawMessage `json:"features,omitempty"`
	Transport   json.RawMessage `json:"transport,omitempty"`
	AudioParams json.RawMessage `json:"audio_params,omitempty"`
}

// Hello holds the offers of a device.
type Hello struct {
	Framing int          // of its binary messages: 1, 2 or 3
	AEC     bool         // the device gives its timestamps back (docs/protocol.md 4.5)
	MCP     bool         // the device has tools
	Uplink  audio.Format // said, not measured; the packets themselves decide
	PCM     bool         // both directions are PCM in the place of Opus (docs/protocol.md 4.6)
	Misfit  bool         // it asks for PCM of another kind than there is
	Odd     []string     // names of the fields that were not as they should be
}

// uplinkDefault is the format of firmware whose hello names none.
var uplinkDefault = audio.Format{Rate: 16000, Frame: 60 * time.Millisecond}

// read judges a hello field by field. The Protocol-Version of the peer counts when
// the hello names no known version.
func (w helloWire) read(p Peer) Hello {
	h := Hello{Framing: 1, Uplink: uplinkDefault}
	if v, err := strconv.Atoi(strings.TrimSpace(p.Protocol)); err == nil && v >= 1 && v <= 3 {
		h.Framing = v
	}
	if v, ok := h.number("version", w.Version, 1, 3); ok && v == math.Trunc(v) {
		h.Framing = int(v)
	} else if ok {
		h.odd("version")
	}
	if rawjson.Present(w.Transport) {
		if t, ok := rawjson.String(w.Transport); !ok || t != p.Transport {
			h.odd("transport")
		}
	}
	h.readFeatures(w.Features)
	h.readAudio(w.AudioParams)
	return h
}

func (h *Hello) readFeatures(raw json.RawMessage) {
	if !rawjson.Present(raw) {
		return
	}
	var f struct{ MCP, AEC json.RawMessage }
	if json.Unmarshal(raw, &f) != nil {
		h.odd("features")
		return
	}
	h.MCP = h.flag("features.mcp", f.MCP)
	h.AEC = h.flag("features.aec", f.AEC)
}

func (h *Hello) readAudio(raw json.RawMessage) {
	if !rawjson.Present(raw) {
		return
	}
	var a struct {
		Format    json.RawMessage `json:"format"`
		Rate      json.RawMessage `json:"sample_rate"`
		Channels  json.RawMessage `json:"channels"`
		FrameTime json.RawMessage `json:"frame_duration"`
	}
	if json.Unmarshal(raw, &a) != nil {
		h.odd("audio_params")
		return
	}
	odd := len(h.Odd)
	name, ok := rawjson.String(a.Format)
	if h.PCM = ok && name == "pcm"; !h.PCM && rawjson.Present(a.Format) && (!ok || name != "opus") {
		h.odd("audio_params.format")
	}
	_, mono := h.number("audio_params.channels", a.Channels, 1, 1)
	if n, ok := h.number("audio_params.sample_rate", a.Rate, 8000, 48000); ok {
		h.Uplink.Rate = int(n)
	}
	if n, ok := h.number("audio_params.frame_duration", a.FrameTime, 2.5, 120); ok {
		h.Uplink.Frame = time.Duration(n * float64(time.Millisecond))
	}
	h.Misfit = h.PCM && (h.Framing != 1 || rawjson.Present(a.Channels) && !mono || len(h.Odd) > odd || h.Uplink != uplinkDefault)
}

func (h *Hello) odd(field string) { h.Odd = append(h.Odd, field) }

// number reads a number between two bounds; one in a string is taken, and noted.
// What is there and no such number is noted too.
func (h *Hello) number(field string, raw json.RawMessage, low, high float64) (n float64, ok bool) {
	if !rawjson.Present(raw) {
		return 0, false
	}
	if json.Unmarshal(raw, &n) != nil {
		h.odd(field)
		text, _ := rawjson.String(raw)
		var err error
		if n, err = strconv.ParseFloat(strings.TrimSpace(text), 64); err != nil || math.IsNaN(n) {
			return 0, false
		}
	}
	if n < low || n > high {
		h.odd(field)
		return 0, false
	}
	return n, true
}

// flag reads a boolean; 1 and "true" are taken for true, and noted.
func (h *Hello) flag(field string, raw json.RawMessage) bool {
	if !rawjson.Present(raw) {
		return false
	}
	var b bool
	if json.Unmarshal(raw, &b) == nil {
		return b
	}
	h.odd(field)
	s, _ := rawjson.String(raw)
	return string(raw) == "1" || s == "true" || s == "1"
}

type audioParams struct {
	Format        string `json:"format"`
	SampleRate    int    `json:"sample_rate"`
	Channels      int    `json:"channels"`
	FrameDuration int    `json:"frame_duration"` // ms
}

// newHelloAnswer offers what devices will hear: [audio.Reply], always, as Opus or PCM.
func newHelloAnswer(transport, sessionID string, pcm bool) HelloAnswer {
	format := "opus"
	if pcm {
		format = "pcm"
	}
	return HelloAnswer{
		Type: "hello", Transport: transport, SessionID: sessionID,
		AudioParams: audioParams{
			Format: format, SampleRate: audio.Reply.Rate, Channels: 1,
			FrameDuration: int(audio.Reply.Frame / time.Millisecond),
		},
	}
}
