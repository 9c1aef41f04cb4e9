package openairealtime

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"xiaozhi/internal/servicetest"
)

// voices are those of the service.
var voices = strings.Fields("alloy ash ballad coral echo sage shimmer verse marin cedar")

// session holds the settings of a client in the shape of today.
type session struct {
	Type         string          `json:"type"`
	Model        string          `json:"model"`
	Instructions string          `json:"instructions"`
	Modalities   []string        `json:"output_modalities"`
	Tokens       json.RawMessage `json:"max_output_tokens"`
	Tools        json.RawMessage `json:"tools"`
	Choice       json.RawMessage `json:"tool_choice"`
	Truncation   json.RawMessage `json:"truncation"`
	Tracing      json.RawMessage `json:"tracing"`
	Reasoning    json.RawMessage `json:"reasoning"`
	Parallel     *bool           `json:"parallel_tool_calls"`
	Include      []string        `json:"include"`
	Prompt       json.RawMessage `json:"prompt"`
	Audio        struct {
		Input struct {
			Format        *format         `json:"format"`
			Transcription *transcription  `json:"transcription"`
			Noise         json.RawMessage `json:"noise_reduction"`
			Detection     json.RawMessage `json:"turn_detection"`
		} `json:"input"`
		Output struct {
			Format *format         `json:"format"`
			Voice  json.RawMessage `json:"voice"`
			Speed  *float64        `json:"speed"`
		} `json:"output"`
	} `json:"audio"`
}

type format struct {
	Type string `json:"type"`
	Rate int    `json:"rate"`
}

type transcription struct {
	Model    string `json:"model"`
	Language string `json:"language"`
	Prompt   string `json:"prompt"`
}

// settle takes the settings of today.
func settle(raw json.RawMessage, _ string, f servicetest.Fault) (*Settings, *Problem) {
	var s session
	if p := Strict(raw, &s); p != nil {
		return nil, p
	}
	in, out := s.Audio.Input, s.Audio.Output
	switch {
	case s.Type != "realtime":
		return nil, &Problem{Code: "missing_required_parameter", Message: "Missing required parameter: 'session.type'.", Param: "session.type"}
	case len(s.Modalities) > 1 || len(s.Modalities) == 1 && s.Modalities[0] != "audio" && s.Modalities[0] != "text":
		return nil, invalid("session.output_modalities", "supported combinations are ['text'] and ['audio']")
	case !known(in.Format):
		return nil, invalid("session.audio.input.format", "only audio/pcm at 24000 Hz, audio/pcmu and audio/pcma")
	case !known(out.Format):
		return nil, invalid("session.audio.output.format", "only audio/pcm at 24000 Hz, audio/pcmu and audio/pcma")
	case out.Speed != nil && (*out.Speed < 0.25 || *out.Speed > 1.5):
		return nil, invalid("session.audio.output.speed", "must be between 0.25 and 1.5")
	case f == servicetest.WrongVoice || !spoken(out.Voice):
		return nil, invalid("session.audio.output.voice", "supported values are: "+strings.Join(voices, ", "))
	}
	set := &Settings{Transcribe: in.Transcription != nil, Mute: slices.Equal(s.Modalities, []string{"text"})}
	if in.Transcription != nil && (in.Transcription.Model == "" || len(in.Transcription.Language) > 3) {
		return nil, invalid("session.audio.input.transcription", "a model, and a language of ISO-639-1")
	}
	return set.finish(s.Tools, in.Detection, "session.audio.input.turn_detection", 0, 1, false)
}

// finish takes what all dialects have: the tools, and who ends a turn.
func (set *Settings) finish(tools, detection json.RawMessage, param string, low, high float64, nested bool) (*Settings, *Problem) {
	var p *Problem
	if set.Tools, p = ReadTools(tools, nested); p != nil {
		return nil, p
	}
	return set, set.Detect(detection, param, low, high)
}

// Detect takes the detector of turns. Without one there is one that waits half a second.
func (set *Settings) Detect(raw json.RawMessage, param string, low, high float64) *Problem {
	set.Silence = 500 * time.Millisecond
	if set.Manual = string(raw) == "null"; set.Manual || len(raw) == 0 {
		return nil
	}
	var d struct {
		Type      string   `json:"type"`
		Threshold *float64 `json:"threshold"`
		Silence   *int     `json:"silence_duration_ms"`
		Create    *bool    `json:"create_response"`
	}
	if json.Unmarshal(raw, &d) != nil || d.Type != "server_vad" && d.Type != "semantic_vad" || d.Threshold != nil && (*d.Threshold < low || *d.Threshold > high) {
		return invalid(param, "expected server_vad or semantic_vad with a threshold in its range")
	}
	if d.Silence != nil {
		set.Silence = time.Duration(*d.Silence) * time.Millisecond
	}
	set.Waits = d.Create != nil && !*d.Create
	return nil
}

// ReadTools reads tools: flat, or nested as in chat completions.
func ReadTools(raw json.RawMessage, nested bool) ([]servicetest.Tool, *Problem) {
	type function struct {
		Name       string          `json:"name"`
		Parameters json.RawMessage `json:"parameters"`
	}
	var list []struct {
		Type     string    `json:"type"`
		Function *function `json:"function"`
		function
	}
	if len(raw) > 0 && json.Unmarshal(raw, &list) != nil {
		return nil, invalid("session.tools", "expected an array of objects")
	}
	var out []servicetest.Tool
	for i, t := range list {
		f := &t.function
		if nested {
			f = t.Function
		}
		if t.Type != "function" || f == nil || f.Name == "" || nested != (t.Function != nil) {
			return nil, &Problem{Code: "missing_required_parameter", Message: fmt.Sprintf("Missing required parameter: 'session.tools[%d].name'.", i), Param: fmt.Sprintf("session.tools[%d].name", i)}
		}
		out = append(out, servicetest.Tool{Name: f.Name, Schema: f.Parameters})
	}
	return out, nil
}

// settleOld takes the settings of the beta.
func settleOld(raw json.RawMessage, _ string, f servicetest.Fault) (*Settings, *Problem) {
	var s struct {
		Modalities    []string        `json:"modalities"`
		Instructions  string          `json:"instructions"`
		Voice         json.RawMessage `json:"voice"`
		In            string          `json:"input_audio_format"`
		Out           string          `json:"output_audio_format"`
		Transcription *transcription  `json:"input_audio_transcription"`
		Noise         json.RawMessage `json:"input_audio_noise_reduction"`
		Detection     json.RawMessage `json:"turn_detection"`
		Tools         json.RawMessage `json:"tools"`
		Choice        json.RawMessage `json:"tool_choice"`
		Temperature   *float64        `json:"temperature"`
		Tokens        json.RawMessage `json:"max_response_output_tokens"`
		Speed         *float64        `json:"speed"`
		Tracing       json.RawMessage `json:"tracing"`
	}
	if p := Strict(raw, &s); p != nil {
		return nil, p
	}
	formats := []string{"", "pcm16", "g711_ulaw", "g711_alaw"}
	switch {
	case slices.Equal(s.Modalities, []string{"audio"}):
		return nil, invalid("session.modalities", "supported combinations are ['text'] and ['audio', 'text']")
	case !slices.Contains(formats, s.In) || !slices.Contains(formats, s.Out):
		return nil, invalid("session.input_audio_format", "supported values are: pcm16, g711_ulaw, g711_alaw")
	case f == servicetest.WrongVoice:
		return nil, invalid("session.voice", "supported values are: "+strings.Join(voices, ", "))
	}
	set := &Settings{Transcribe: s.Transcription != nil, Mute: slices.Equal(s.Modalities, []string{"text"})}
	return set.finish(s.Tools, s.Detection, "session.turn_detection", 0, 1, false)
}

// Strict reads an object that holds nothing unknown.
func Strict(raw json.RawMessage, into any) *Problem {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		return nil
	}
	if _, name, found := strings.Cut(err.Error(), "unknown field "); found {
		name = "session." + strings.Trim(name, `"`)
		return &Problem{Code: "unknown_parameter", Message: "Unknown parameter: '" + name + "'.", Param: name}
	}
	return invalid("session", err.Error())
}

// known says whether a format is one, or none.
func known(f *format) bool {
	return f == nil || f.Type == "audio/pcm" && f.Rate == 24000 || f.Rate == 0 && (f.Type == "audio/pcmu" || f.Type == "audio/pcma")
}

// spoken says whether a voice is one of the service, one of the user's own, or none.
func spoken(voice json.RawMessage) bool {
	var name string
	return len(voice) == 0 || json.Unmarshal(voice, &name) != nil || slices.Contains(voices, name)
}

func invalid(param, why string) *Problem {
	return &Problem{Code: "invalid_value", Message: "Invalid value: '" + param + "': " + why + ".", Param: param}
}
