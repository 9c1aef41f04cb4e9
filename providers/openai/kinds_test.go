package openai

import (
	"testing"

	"xiaozhi/internal/openaitest"
	"xiaozhi/providers"
	"xiaozhi/providers/service"
)

func TestKinds(t *testing.T) {
	s := newServer(t)
	seen := map[string]bool{}
	for _, k := range Kinds() {
		if seen[k.Type] || k.LLM == nil || k.Title == "" || (len(k.Needs) > 0) == k.Free {
			t.Errorf("%+v", k)
		}
		seen[k.Type] = true
		section := service.Section{
			Name: "fake", Key: "sk-secret-key", BaseURL: s.URL() + "/", Models: map[service.Role]string{service.LLM: "m"}, Vision: true,
			Client: options(t, s).HTTPClient,
		}
		l, err := k.LLM(section)
		if err != nil {
			t.Errorf("%s: %v", k.Type, err)
			continue
		}
		for _, err := range l.Generate(t.Context(), ask) {
			if err != nil {
				t.Errorf("%s: %v", k.Type, err)
			}
		}
		if !providers.CapabilitiesOf(l).Vision {
			t.Errorf("%s: it cannot see", k.Type)
		}
	}
	for _, name := range []string{"openai", "deepseek", "dashscope", "qwen", "glm", "doubao", "kimi", "siliconflow", "minimax", "openrouter", "groq", "mistral"} {
		if !seen[name] {
			t.Errorf("%s is no kind", name)
		}
	}
	if got := s.Requests(openaitest.Chat)[0]; got.Header.Get("Authorization") != "Bearer sk-secret-key" || got.JSON()["model"] != "m" {
		t.Errorf("%v %v", got.Header, got.JSON())
	}
	for _, section := range []service.Section{{Name: "x", BaseURL: "ftp://x"}, {Name: "x", BaseURL: "http://x", Proxy: "gopher://x"}} {
		if _, err := Kinds()[0].LLM(section); err == nil {
			t.Errorf("%+v is taken", section)
		}
	}
}
