package openai

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"xiaozhi/internal/servicetest"
	"xiaozhi/internal/servicetest/openaichat"
	"xiaozhi/providers"
	"xiaozhi/providers/service"
)

// A call and its result go to every vendor as it wants them, thoughts, ids and signatures too.
func TestCallsOfVendors(t *testing.T) {
	t.Parallel()
	for name, as := range map[string]openaichat.Vendor{
		"openai": openaichat.OpenAI, "deepseek": openaichat.DeepSeek, "mistral": openaichat.Mistral, "dashscope": openaichat.Qwen, "glm": openaichat.GLM,
		"minimax": openaichat.MiniMax, "groq": openaichat.Groq, "openrouter": openaichat.OpenRouter, "gemini-openai": openaichat.Gemini, "kimi": openaichat.Kimi,
		"deepseek thinking": openaichat.DeepSeek, "kimi thinking": openaichat.Kimi,
	} {
		t.Run(name, func(t *testing.T) {
			vendor, _, thinks := strings.Cut(name, " ")
			at := slices.IndexFunc(Kinds(), func(k service.Kind) bool { return k.Type == vendor })
			section := service.Section{Name: vendor, Key: servicetest.Key, BaseURL: openaichat.As(t, as).URL() + "/v1", Proxy: "none"}
			if thinks {
				section.Extra = map[string]any{"thinking": map[string]any{"type": "enabled"}}
			}
			m, err := Kinds()[at].LLM(section)
			if err != nil {
				t.Fatal(err)
			}
			q := providers.LLMRequest{
				Messages: []providers.Message{{Role: providers.RoleSystem, Content: "You are a speaker."}, {Role: providers.RoleUser, Content: "the lamp"}},
				Tools: []providers.ToolSpec{
					{Name: "lamp", Parameters: json.RawMessage(`{"type":"object","properties":{"on":{"type":"boolean"}},"required":["on"]}`)},
					{Name: "now"}, {Name: "later", Parameters: json.RawMessage(`{"type":"object"}`)},
					{Name: "find", Parameters: json.RawMessage(`{"anyOf":[{"properties":{"a":{"$ref":"#/$defs/a"}}},{"properties":{"b":{"type":"string"}}}],"$defs":{"a":{"type":"string"}}}`)},
				},
			}
			made := providers.Message{Role: providers.RoleAssistant}
			for range 2 {
				text := ""
				for d, err := range m.Generate(t.Context(), q) {
					if err != nil {
						t.Fatal(err)
					}
					text += d.Text
					made.ToolCalls = append(made.ToolCalls, d.ToolCalls...)
					if d.Echo.Owner != "" {
						made.Echo = d.Echo
					}
				}
				if len(q.Messages) == 2 && len(made.ToolCalls) == 1 && made.ToolCalls[0].Arguments == `{"on":true}` {
					q.Messages = append(q.Messages, made, providers.Message{Role: providers.RoleTool, ToolCallID: made.ToolCalls[0].ID, Content: "it is on"})
					continue
				}
				if len(made.ToolCalls) != 1 || !strings.Contains(text, servicetest.Answer("it is on")) {
					t.Errorf("got %q and %+v", text, made.ToolCalls)
				}
				break
			}
		})
	}
}

// An address is taken as people write it: with its version part, without, or with the whole path.
func TestAddresses(t *testing.T) {
	t.Parallel()
	fake := openaichat.As(t, openaichat.OpenAI)
	for _, end := range []string{"", "/", "/v1", "/v1/", "/v1/chat/completions"} {
		at := slices.IndexFunc(Kinds(), func(k service.Kind) bool { return k.Type == "openai" })
		m, err := Kinds()[at].LLM(service.Section{Name: "x", Key: servicetest.Key, BaseURL: fake.URL() + end, Proxy: "none"})
		if err != nil {
			t.Fatal(err)
		}
		text := ""
		for d, err := range m.Generate(t.Context(), providers.LLMRequest{Messages: []providers.Message{{Role: providers.RoleUser, Content: "hi"}}}) {
			if text += d.Text; err != nil {
				t.Errorf("%q: %v", end, err)
			}
		}
		if text == "" {
			t.Errorf("%q: nothing was answered", end)
		}
	}
}
