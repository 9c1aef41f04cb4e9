package openairealtime

import (
	"encoding/json"
	"maps"
	"strings"

	"xiaozhi/internal/text"
	"xiaozhi/providers"
)

type object = map[string]any

// settings makes the message that sets a session up.
func (c *client) settings(req providers.DuplexRequest) object {
	instructions := req.Instructions
	if c.section.Text("history", c.usualHistory()) == asText {
		instructions = withHistory(instructions, req.History)
	}
	voice := c.section.Voice(providers.TTSRequest{Language: req.Language, Voice: req.Voice}, Kinds()[c.shape].Voices[0].Name)
	var session object
	if c.shape == ga {
		session = c.newest(req, voice)
	} else {
		session = c.older(voice)
	}
	session["instructions"] = instructions
	if n := c.section.MaxTokens; n > 0 {
		session[map[shape]string{ga: "max_output_tokens", beta: "max_tokens"}[c.shape]] = n
	}
	if len(req.Tools) > 0 {
		session["tools"] = c.tools(req.Tools)
	}
	overlay(session, c.section.Extra)
	return object{"type": "session.update", "event_id": "setup", "session": session}
}

// newest makes the settings of OpenAI's session.
func (c *client) newest(req providers.DuplexRequest, voice string) object {
	format := object{"type": "audio/pcm", "rate": outRate}
	hearing := object{"model": c.section.Text("transcription_model", hears)}
	if language, _, _ := strings.Cut(string(text.TagOf(req.Language)), "-"); language != "" {
		hearing["language"] = language
	}
	in := object{"format": format, "transcription": hearing, "turn_detection": nil} // we say where an utterance ends
	if noise := c.section.Text("noise_reduction", "far_field"); noise != "none" {
		in["noise_reduction"] = object{"type": noise}
	}
	out := object{"format": format, "voice": voice}
	if speed := c.section.Speed; speed > 0 {
		out["speed"] = min(max(speed, 0.25), 1.5)
	}
	return object{"type": "realtime", "output_modalities": []string{"audio"}, "audio": object{"input": in, "output": out}}
}

// older makes the settings of Qwen's session.
func (c *client) older(voice string) object {
	session := object{
		"modalities": []string{"text", "audio"}, "voice": voice, "input_audio_format": "pcm", "output_audio_format": "pcm",
		"input_audio_transcription": object{"model": c.section.Text("transcription_model", qwenHears)}, "turn_detection": nil,
	}
	if t := c.section.Temperature; t != nil {
		session["temperature"] = *t
	}
	return session
}

// tools lists the tools: flat for OpenAI, as in chats for Qwen.
func (c *client) tools(specs []providers.ToolSpec) []object {
	out := make([]object, 0, len(specs))
	for _, t := range specs {
		parameters := t.Parameters
		if len(parameters) == 0 {
			parameters = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		tool := object{"name": t.Name, "description": t.Description, "parameters": parameters}
		if c.shape == ga {
			tool["type"] = "function"
			out = append(out, tool)
		} else {
			out = append(out, object{"type": "function", "function": tool})
		}
	}
	return out
}

// withHistory puts what was said behind the instructions.
func withHistory(instructions string, history []providers.Message) string {
	var b strings.Builder
	b.WriteString(instructions)
	for i, m := range history {
		if i == 0 {
			b.WriteString("\n")
		}
		b.WriteString("\n" + string(m.Role) + ": " + m.Content)
	}
	return b.String()
}

// message makes the item of a message.
func message(m providers.Message) object {
	kind := "input_text"
	if m.Role == providers.RoleAssistant {
		kind = "output_text"
	}
	return object{"type": "conversation.item.create", "item": object{
		"type": "message", "role": string(m.Role), "content": []object{{"type": kind, "text": m.Content}},
	}}
}

// overlay puts members over those of m, going into objects.
func overlay(m object, extra map[string]any) {
	for name, value := range extra {
		inner, isObject := value.(map[string]any)
		old, wasObject := m[name].(object)
		if isObject && wasObject {
			old = maps.Clone(old)
			overlay(old, inner)
			m[name] = old
		} else {
			m[name] = value
		}
	}
}
