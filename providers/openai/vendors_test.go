package openai

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"xiaozhi/providers"
	"xiaozhi/providers/generation"
)

// body is the body of a request to a vendor, decoded.
func bodyOf(t *testing.T, kind, model string, req providers.LLMRequest, change func(*Options)) map[string]any {
	t.Helper()
	v, ok := VendorOf(kind)
	if !ok {
		t.Fatalf("no vendor %q", kind)
	}
	if model == "" {
		model = v.Models[0]
	}
	o := Options{Name: kind, Model: model, Quirks: v.Quirks}
	if change != nil {
		change(&o)
	}
	raw, err := o.chatBody(req, &refusals{})
	if err != nil {
		t.Fatal(err)
	}
	var body map[string]any
	if err := json.Unmarshal(raw, &body); err != nil {
		t.Fatal(err)
	}
	return body
}

// TestVendors holds for every vendor where it is, what it uses first, and how it is kept from reasoning.
func TestVendors(t *testing.T) {
	disabled, off := `{"thinking":{"type":"disabled"}}`, `{"enable_thinking":false}`
	for _, c := range []struct{ kind, base, model, keys string }{
		{"openai", "https://api.openai.com/v1", "gpt-5.4-nano", `{"reasoning_effort":"none"}`},
		{"openai", "", "gpt-4.1-mini", `{}`},
		{"openai", "", "gpt-5-mini", `{"reasoning_effort":"minimal"}`},
		{"openai", "", "o4-mini", `{"reasoning_effort":"low"}`},
		{"deepseek", "https://api.deepseek.com", "deepseek-flash", disabled},
		{"dashscope", "https://dashscope.aliyuncs.com/compatible-mode/v1", "qwen-flash", off},
		{"qwen", "", "qwen3.5-flash", off},
		{"qwen", "", "qwen3-30b-thinking", `{}`},
		{"glm", "https://open.bigmodel.cn/api/paas/v4", "glm-4.7-flash", disabled},
		{"zhipu", "", "glm-4-flash-250414", `{}`},
		{"doubao", "https://ark.cn-beijing.volces.com/api/v3", "doubao-seed-2-0-mini-260428", disabled},
		{"ark", "", "ep-20260101", disabled},
		{"volc-gateway", "https://ai-gateway.vei.volces.com/v1", "doubao-seed-2-0-mini-260428", disabled},
		{"kimi", "https://api.moonshot.cn/v1", "kimi-k2.6", disabled},
		{"moonshot", "", "kimi-k3", `{"reasoning_effort":"low"}`},
		{"kimi", "", "moonshot-v1-8k", `{}`},
		{"kimi", "", "kimi-k2.7-code", `{}`},
		{"siliconflow", "https://api.siliconflow.cn/v1", "Qwen/Qwen3-8B", off},
		{"minimax", "https://api.minimaxi.com/v1", "MiniMax-M3", `{"thinking":{"type":"disabled"},"reasoning_split":true}`},
		{"minimax", "", "MiniMax-M2.7-highspeed", `{"reasoning_split":true}`},
		{"hunyuan", "https://api.hunyuan.cloud.tencent.com/v1", "hunyuan-turbos-latest", `{}`},
		{"stepfun", "https://api.stepfun.com/v1", "step-3.7-flash", `{}`},
		{"groq", "https://api.groq.com/openai/v1", "llama-3.1-8b-instant", `{}`},
		{"groq", "", "openai/gpt-oss-20b", `{"reasoning_effort":"low"}`},
		{"groq", "", "qwen/qwen3-32b", `{"reasoning_effort":"none"}`},
		{"openrouter", "https://openrouter.ai/api/v1", "google/gemini-2.5-flash-lite:nitro", `{"reasoning":{"enabled":false}}`},
		{"xai", "https://api.x.ai/v1", "grok-4.20-0309-non-reasoning", `{}`},
		{"mistral", "https://api.mistral.ai/v1", "mistral-small-latest", `{}`},
		{"mistral", "", "mistral-small-2603", `{"reasoning_effort":"none"}`},
		{"gemini-openai", "https://generativelanguage.googleapis.com/v1beta/openai", "gemini-3.5-flash-lite", `{"reasoning_effort":"minimal"}`},
		{"gemini-openai", "", "gemini-2.5-flash-lite", `{"reasoning_effort":"none"}`},
		{"ollama-openai", "http://127.0.0.1:11434/v1", "qwen3:4b", `{"reasoning_effort":"none"}`},
		{"ollama-openai", "", "gpt-oss:20b", `{"reasoning_effort":"low"}`},
		{"lmstudio", "http://127.0.0.1:1234/v1", "local-model", `{}`},
		{"vllm", "http://127.0.0.1:8000/v1", "Qwen/Qwen3-4B", `{"chat_template_kwargs":{"enable_thinking":false}}`},
		{"vllm", "", "deepseek-ai/DeepSeek-V3.2", `{"chat_template_kwargs":{"thinking":false}}`},
		{"llamacpp", "http://127.0.0.1:8080/v1", "default", `{"chat_template_kwargs":{"enable_thinking":false}}`},
		{"xinference", "http://127.0.0.1:9997/v1", "uid", `{"chat_template_kwargs":{"enable_thinking":false}}`},
	} {
		v, ok := VendorOf(c.kind)
		if !ok || c.base != "" && v.Address != c.base {
			t.Errorf("%s is at %s", c.kind, v.Address)
			continue
		}
		if c.base != "" && len(v.Models) > 0 && v.Models[0] != c.model {
			t.Errorf("%s uses %s first", c.kind, v.Models[0])
		}
		body := bodyOf(t, c.kind, c.model, ask, nil)
		for _, key := range []string{"model", "messages", "stream", "stream_options"} {
			delete(body, key)
		}
		var want map[string]any
		if err := json.Unmarshal([]byte(c.keys), &want); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(body, want) {
			t.Errorf("%s, %s: %v, want %s", c.kind, c.model, body, c.keys)
		}
	}
	seen := map[string]bool{}
	for _, v := range Vendors() {
		if seen[v.Type] || v.Title == "" || v.Address == "" || v.Free && v.Env != "" {
			t.Errorf("%+v", v)
		}
		seen[v.Type] = true
	}
}

// dialogue is one with calls of other services.
func dialogue() providers.LLMRequest {
	say := func(role providers.Role, text string) providers.Message {
		return providers.Message{Role: role, Content: text}
	}
	return providers.LLMRequest{
		NoTools: true,
		Messages: []providers.Message{
			say(providers.RoleSystem, "one"), say(providers.RoleSystem, "two"), say(providers.RoleUser, "hi"),
			{Role: providers.RoleAssistant, ToolCalls: []providers.ToolCall{{ID: "call_0123456789abcdef", Name: "a", Arguments: "{}"}, {ID: "toolu_01.x" + strings.Repeat("y", 60), Name: "b", Arguments: "{}"}}},
			{Role: providers.RoleTool, ToolCallID: "call_0123456789abcdef", Content: "1"}, {Role: providers.RoleTool, ToolCallID: "toolu_01.x" + strings.Repeat("y", 60), Content: "2"},
			say(providers.RoleUser, "and"),
		},
		Tools: []providers.ToolSpec{{Name: "a", Parameters: json.RawMessage(`{"$schema":"x","type":"object","additionalProperties":false,"properties":{"$schema":{"type":"object","additionalProperties":true}}}`)}},
	}
}

func list(v any) []any { l, _ := v.([]any); return l }

func object(v any) map[string]any { m, _ := v.(map[string]any); return m }

func TestDeviations(t *testing.T) {
	roles := func(body map[string]any) (out string) {
		for _, m := range list(body["messages"]) {
			out += object(m)["role"].(string)[:1]
		}
		return out
	}
	ids := func(body map[string]any) (calls, results []string) {
		for _, m := range list(body["messages"]) {
			for _, c := range list(object(m)["tool_calls"]) {
				calls = append(calls, object(c)["id"].(string))
			}
			if id, ok := object(m)["tool_call_id"].(string); ok {
				results = append(results, id)
			}
		}
		return calls, results
	}
	schema := func(body map[string]any) string {
		raw, err := json.Marshal(object(object(list(body["tools"])[0])["function"])["parameters"])
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	usual := bodyOf(t, "openai", "", dialogue(), nil)
	if got := roles(usual); got != "suattu" || object(list(usual["messages"])[0])["content"] != "one\n\ntwo" || usual["tool_choice"] != "none" {
		t.Errorf("roles %s, choice %v", got, usual["tool_choice"])
	}
	calls, results := ids(usual)
	if calls[0] != "call_0123456789abcdef" || len(calls[1]) > 40 || strings.Contains(calls[1], ".") || !slices.Equal(calls, results) {
		t.Errorf("ids %q, %q", calls, results)
	}
	mistral := bodyOf(t, "mistral", "", dialogue(), nil)
	if calls, results = ids(mistral); len(calls[0]) != 9 || len(calls[1]) != 9 || calls[0] == calls[1] || !slices.Equal(calls, results) {
		t.Errorf("Mistral's ids %q, %q", calls, results)
	}
	if _, asked := mistral["stream_options"]; asked || roles(mistral) != "suattau" {
		t.Errorf("Mistral: %s, %v", roles(mistral), mistral["stream_options"])
	}
	ollama := bodyOf(t, "ollama-openai", "", dialogue(), nil)
	if ollama["tools"] != nil || ollama["tool_choice"] != nil {
		t.Errorf("Ollama gets %v, %v", ollama["tools"], ollama["tool_choice"])
	}
	if got := schema(bodyOf(t, "gemini-openai", "", dialogue(), nil)); got != `{"properties":{"$schema":{"type":"object"}},"type":"object"}` {
		t.Errorf("Gemini's schema: %s", got)
	}
	if got := schema(bodyOf(t, "kimi", "", dialogue(), nil)); strings.Count(got, "$schema") != 1 || !strings.Contains(got, "additionalProperties") {
		t.Errorf("Kimi's schema: %s", got)
	}
	turns := providers.LLMRequest{Messages: []providers.Message{
		{Role: providers.RoleAssistant, Content: "Hello!"}, {Role: providers.RoleUser, Content: "a"}, {Role: providers.RoleAssistant},
		{Role: providers.RoleUser, Content: "b"}, {Role: providers.RoleSystem, Content: "Be brief."},
	}}
	for kind, want := range map[string]string{"openai": "sauu", "vllm": "suauau", "llamacpp": "suauau"} {
		if got := roles(bodyOf(t, kind, "m", turns, nil)); got != want {
			t.Errorf("%s: roles %s, want %s", kind, got, want)
		}
	}
	nothing := providers.LLMRequest{Tools: []providers.ToolSpec{{Name: "a", Parameters: json.RawMessage(`{"type":"object","properties":{}}`)}}}
	if got := schema(bodyOf(t, "gemini-openai", "", nothing, nil)); got != "null" {
		t.Errorf("Gemini's schema of a tool that takes nothing: %s", got)
	}
	forced := Options{Name: "x", Model: "m"}
	var known refusals
	known.Learn(400, []byte("Unrecognized request argument: tool_choice"), nil, droppable()...)
	if raw, err := forced.chatBody(dialogue(), &known); err != nil || strings.Contains(string(raw), `"tools"`) {
		t.Errorf("tools that must not be called are listed where the choice is refused: %s, %v", raw, err)
	}
	own := bodyOf(t, "deepseek", "", ask, func(o *Options) {
		o.Extra = map[string]any{"thinking": map[string]any{"type": "enabled"}, "stream_options": nil}
	})
	if object(own["thinking"])["type"] != "enabled" {
		t.Errorf("the user's own switch: %v", own["thinking"])
	}
	if _, sent := own["stream_options"]; sent {
		t.Error("a key taken out by null is sent")
	}
}

// What a model wants back goes to it and to no other, and with reasoning every message has some.
func TestEchoOnTheWire(t *testing.T) {
	owner := generation.Owner("deepseek", "deepseek-flash")
	req := dialogue()
	req.Messages = append(req.Messages, providers.Message{Role: providers.RoleAssistant, Content: "x", Echo: providers.NewEcho(owner, `{"reasoning_content":"hm"}`)})
	req.Messages[3].ToolCalls[0].Echo = providers.NewEcho(owner, `{"extra_content":{"google":{"thought_signature":"s"}}}`)
	messages := list(bodyOf(t, "deepseek", "", req, nil)["messages"])
	if last := object(messages[len(messages)-1]); last["reasoning_content"] != "hm" {
		t.Errorf("the last message: %v", last)
	}
	with := object(messages[2])
	if with["reasoning_content"] != "" || object(list(with["tool_calls"])[0])["extra_content"] == nil {
		t.Errorf("the message with calls: %v", with)
	}
	raw, err := json.Marshal(bodyOf(t, "deepseek", "deepseek-v4-flash", req, nil))
	if err != nil || strings.Contains(string(raw), "reasoning_content") || strings.Contains(string(raw), "extra_content") {
		t.Errorf("another model gets %s, %v", raw, err)
	}
}
