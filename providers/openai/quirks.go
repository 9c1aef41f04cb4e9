package openai

import (
	"encoding/json"
	"strings"
)

// Quirks say in what a server differs from OpenAI's own. The zero value fits most.
type Quirks struct {
	// Switch returns the keys of a request that keep a model from reasoning, or from
	// showing it; nil: there are none. A server that refuses one is not sent it again.
	Switch func(model string) map[string]any

	Echo       EchoMode
	ShortIDs   bool                               // ids of calls are nine letters and digits
	LooseIDs   bool                               // ids of calls may hold points and colons, and models want those back that they have made
	NoChoice   bool                               // tool_choice is not understood: tools that must not be called are not listed
	NoUsage    bool                               // stream_options is refused; usage comes unasked
	AfterTools bool                               // the result of a tool must not be followed by a user's message
	Alternate  bool                               // user and assistant must take turns, the user first: the templates of many open models
	NoEmpty    bool                               // an object without properties is refused: a tool that takes nothing has no schema
	Unsigned   func(model string) json.RawMessage // what stands for extra_content at a call of another service; nil: nothing must
	BadSchema  []string                           // keys of schemas that are refused
}

// EchoMode says what of an answer a server wants back.
type EchoMode int

// The modes. What stands beside a call as extra_content goes back to every server.
const (
	EchoNothing EchoMode = iota
	EchoContent          // the reasoning, as reasoning_content
	EchoDetails          // the list reasoning_details
)

// The switches of reasoning, as they are common.

func thinkingDisabled(string) map[string]any {
	return map[string]any{"thinking": map[string]any{"type": "disabled"}}
}

func enableThinkingFalse(model string) map[string]any {
	if always := strings.Contains(model, "thinking") || strings.Contains(model, "qwq"); always {
		return nil
	}
	return map[string]any{"enable_thinking": false}
}

func effort(level string) map[string]any { return map[string]any{"reasoning_effort": level} }

// templateSwitch is for servers that render a model's own template.
func templateSwitch(model string) map[string]any {
	key := "enable_thinking"
	if strings.Contains(strings.ToLower(model), "deepseek") {
		key = "thinking"
	}
	return map[string]any{"chat_template_kwargs": map[string]any{key: false}}
}

func openaiSwitch(model string) map[string]any {
	switch {
	case strings.HasPrefix(model, "gpt-5."), strings.HasPrefix(model, "gpt-6"):
		return effort("none")
	case strings.HasPrefix(model, "gpt-5"):
		return effort("minimal")
	case strings.HasPrefix(model, "o1"), strings.HasPrefix(model, "o3"), strings.HasPrefix(model, "o4"):
		return effort("low")
	}
	return nil
}

func glmSwitch(model string) map[string]any {
	if strings.HasPrefix(model, "glm-4-") { // they know no thinking
		return nil
	}
	return thinkingDisabled(model)
}

func kimiSwitch(model string) map[string]any {
	switch {
	case strings.HasPrefix(model, "kimi-k2.5"), strings.HasPrefix(model, "kimi-k2.6"):
		return thinkingDisabled(model)
	case strings.HasPrefix(model, "kimi-k3"):
		return effort("low")
	}
	return nil
}

func minimaxSwitch(model string) map[string]any {
	keys := map[string]any{"reasoning_split": true}
	if strings.HasPrefix(model, "MiniMax-M3") {
		keys["thinking"] = map[string]any{"type": "disabled"}
	}
	return keys
}

func groqSwitch(model string) map[string]any {
	switch {
	case strings.Contains(model, "qwen3"), strings.Contains(model, "qwen-3"):
		return effort("none")
	case strings.Contains(model, "gpt-oss"):
		return effort("low")
	}
	return nil
}

func openrouterSwitch(string) map[string]any {
	return map[string]any{"reasoning": map[string]any{"enabled": false}}
}

func mistralSwitch(model string) map[string]any {
	if strings.Contains(model, "small-2603") || strings.Contains(model, "medium-3.5") {
		return effort("none")
	}
	return nil
}

func geminiSwitch(model string) map[string]any {
	switch {
	case strings.HasPrefix(model, "gemini-2.5-flash"):
		return effort("none")
	case strings.HasPrefix(model, "gemini-3"):
		return effort("minimal")
	}
	return nil
}

// geminiUnsigned stands for the signature of a call, without which the newer models refuse it.
func geminiUnsigned(model string) json.RawMessage {
	if strings.HasPrefix(model, "gemini-1") || strings.HasPrefix(model, "gemini-2") || !strings.HasPrefix(model, "gemini-") {
		return nil
	}
	return json.RawMessage(`{"google":{"thought_signature":"skip_thought_signature_validator"}}`)
}

func ollamaSwitch(model string) map[string]any {
	if strings.HasPrefix(model, "gpt-oss") {
		return effort("low")
	}
	return effort("none")
}
