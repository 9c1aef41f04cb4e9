package openai

import (
	"slices"
)

// Vendor is a service, or a program at home, with this wire format, and what is known of it.
type Vendor struct {
	Type    string // in the settings
	Title   string
	Env     string            // the variable that holds its key; "": there is none, or that is for another type
	Address string            // with its version part
	Regions map[string]string // further addresses by name
	Models  []string          // the default first
	Free    bool              // it runs at home
	Quirks  Quirks
}

// Vendors lists all that have a type of their own. A type of another name is known under
// that as well: aliases return it.
func Vendors() []Vendor { return slices.Concat(clouds(), chinese(), programs()) }

// VendorOf returns the vendor of a type or an alias.
func VendorOf(name string) (Vendor, bool) {
	if other, ok := aliases()[name]; ok {
		name = other
	}
	for _, v := range Vendors() {
		if v.Type == name {
			return v, true
		}
	}
	return Vendor{}, false
}

// aliases are names that people know a vendor by.
func aliases() map[string]string {
	return map[string]string{
		"qwen": "dashscope", "zhipu": "glm", "ark": "doubao", "moonshot": "kimi", "grok": "xai", "step": "stepfun",
	}
}

func clouds() []Vendor {
	return []Vendor{
		{
			Type: "openai", Title: "OpenAI", Env: "OPENAI_API_KEY", Address: DefaultBaseURL,
			Models: []string{"gpt-5.4-nano", "gpt-5.4-mini", "gpt-6-luna", "gpt-4.1-mini"},
			Quirks: Quirks{Switch: openaiSwitch},
		},
		{
			Type: "groq", Title: "Groq", Env: "GROQ_API_KEY", Address: "https://api.groq.com/openai/v1",
			Models: []string{"llama-3.1-8b-instant", "openai/gpt-oss-20b"},
			Quirks: Quirks{Switch: groqSwitch, LooseIDs: true},
		},
		{
			Type: "openrouter", Title: "OpenRouter", Env: "OPENROUTER_API_KEY", Address: "https://openrouter.ai/api/v1",
			Models: []string{"google/gemini-2.5-flash-lite:nitro"},
			Quirks: Quirks{Switch: openrouterSwitch, Echo: EchoDetails, LooseIDs: true},
		},
		{
			Type: "xai", Title: "xAI", Env: "XAI_API_KEY", Address: "https://api.x.ai/v1",
			Models: []string{"grok-4.20-0309-non-reasoning", "grok-4.7"},
		},
		{
			Type: "mistral", Title: "Mistral", Env: "MISTRAL_API_KEY", Address: "https://api.mistral.ai/v1",
			Models: []string{"mistral-small-latest", "ministral-8b-latest"},
			Quirks: Quirks{Switch: mistralSwitch, ShortIDs: true, NoUsage: true, AfterTools: true},
		},
		{
			Type: "gemini-openai", Title: "Gemini (OpenAI)", Env: "GEMINI_OPENAI_API_KEY", Address: "https://generativelanguage.googleapis.com/v1beta/openai",
			Models: []string{"gemini-3.5-flash-lite", "gemini-2.5-flash-lite"},
			Quirks: Quirks{Switch: geminiSwitch, Unsigned: geminiUnsigned, NoEmpty: true, BadSchema: []string{"additionalProperties", "$schema", "$ref"}},
		},
	}
}

func chinese() []Vendor {
	return []Vendor{
		{
			Type: "deepseek", Title: "DeepSeek", Env: "DEEPSEEK_API_KEY", Address: "https://api.deepseek.com",
			Models: []string{"deepseek-flash", "deepseek-v4-flash"},
			Quirks: Quirks{Switch: thinkingDisabled, Echo: EchoContent},
		},
		{
			Type: "dashscope", Title: "Qwen (DashScope)", Env: "DASHSCOPE_API_KEY", Address: "https://dashscope.aliyuncs.com/compatible-mode/v1",
			Regions: map[string]string{
				"cn":   "https://dashscope.aliyuncs.com/compatible-mode/v1",
				"intl": "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
				"us":   "https://dashscope-us.aliyuncs.com/compatible-mode/v1",
			},
			Models: []string{"qwen-flash", "qwen3.5-flash", "qwen3.8-flash"},
			Quirks: Quirks{Switch: enableThinkingFalse, Echo: EchoContent, LooseIDs: true},
		},
		{
			Type: "glm", Title: "GLM (Zhipu)", Env: "ZHIPUAI_API_KEY", Address: "https://open.bigmodel.cn/api/paas/v4",
			Regions: map[string]string{"cn": "https://open.bigmodel.cn/api/paas/v4", "intl": "https://api.z.ai/api/paas/v4"},
			Models:  []string{"glm-4.7-flash", "glm-4-flash-250414", "glm-5.3-flash"},
			Quirks:  Quirks{Switch: glmSwitch, Echo: EchoContent},
		},
		{
			Type: "doubao", Title: "Doubao (Ark)", Env: "ARK_API_KEY", Address: "https://ark.cn-beijing.volces.com/api/v3",
			Models: []string{"doubao-seed-2-0-mini-260428", "doubao-seed-2-1-turbo-260628", "doubao-seed-2-0-lite-260428"},
			Quirks: Quirks{Switch: thinkingDisabled, Echo: EchoContent},
		},
		{
			Type: "volc-gateway", Title: "Volcengine edge gateway", Env: "VOLC_GATEWAY_API_KEY", Address: "https://ai-gateway.vei.volces.com/v1",
			Models: []string{"doubao-seed-2-0-mini-260428"},
			Quirks: Quirks{Switch: thinkingDisabled},
		},
		{
			Type: "kimi", Title: "Kimi (Moonshot)", Env: "MOONSHOT_API_KEY", Address: "https://api.moonshot.cn/v1",
			Regions: map[string]string{"cn": "https://api.moonshot.cn/v1", "intl": "https://api.moonshot.ai/v1"},
			Models:  []string{"kimi-k2.6", "kimi-k2.5", "moonshot-v1-8k"},
			Quirks:  Quirks{Switch: kimiSwitch, Echo: EchoContent, LooseIDs: true, BadSchema: []string{"$schema"}},
		},
		{
			Type: "siliconflow", Title: "SiliconFlow", Env: "SILICONFLOW_API_KEY", Address: "https://api.siliconflow.cn/v1",
			Regions: map[string]string{"cn": "https://api.siliconflow.cn/v1", "intl": "https://api.siliconflow.com/v1"},
			Models:  []string{"Qwen/Qwen3-8B", "deepseek-ai/DeepSeek-V3.2"},
			Quirks:  Quirks{Switch: enableThinkingFalse, LooseIDs: true},
		},
		{
			Type: "minimax", Title: "MiniMax", Env: "MINIMAX_API_KEY", Address: "https://api.minimaxi.com/v1",
			Regions: map[string]string{"cn": "https://api.minimaxi.com/v1", "intl": "https://api.minimax.io/v1"},
			Models:  []string{"MiniMax-M3", "MiniMax-M2.7-highspeed"},
			Quirks:  Quirks{Switch: minimaxSwitch, Echo: EchoDetails},
		},
		{
			Type: "hunyuan", Title: "Hunyuan", Env: "HUNYUAN_API_KEY", Address: "https://api.hunyuan.cloud.tencent.com/v1",
			Models: []string{"hunyuan-turbos-latest", "hunyuan-lite"},
		},
		{
			Type: "stepfun", Title: "StepFun", Env: "STEP_API_KEY", Address: "https://api.stepfun.com/v1",
			Regions: map[string]string{"cn": "https://api.stepfun.com/v1", "intl": "https://api.stepfun.ai/v1"},
			Models:  []string{"step-3.7-flash", "step-2-mini"},
		},
	}
}

// programs run at home.
func programs() []Vendor {
	return []Vendor{
		{
			Type: "ollama-openai", Title: "Ollama (OpenAI)", Address: "http://127.0.0.1:11434/v1", Free: true,
			Models: []string{"qwen3:4b"}, Quirks: Quirks{Switch: ollamaSwitch, NoChoice: true},
		},
		{Type: "lmstudio", Title: "LM Studio", Address: "http://127.0.0.1:1234/v1", Free: true, Models: []string{"local-model"}, Quirks: Quirks{Alternate: true}},
		{Type: "vllm", Title: "vLLM", Address: "http://127.0.0.1:8000/v1", Free: true, Quirks: Quirks{Switch: templateSwitch, LooseIDs: true, Alternate: true}},
		{Type: "llamacpp", Title: "llama.cpp", Address: "http://127.0.0.1:8080/v1", Free: true, Models: []string{"default"}, Quirks: Quirks{Switch: templateSwitch, LooseIDs: true, Alternate: true}},
		{Type: "xinference", Title: "Xinference", Address: "http://127.0.0.1:9997/v1", Free: true, Quirks: Quirks{Switch: templateSwitch, LooseIDs: true, Alternate: true}},
	}
}
