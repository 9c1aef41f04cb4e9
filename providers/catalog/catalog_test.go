package catalog

import (
	"slices"
	"strings"
	"testing"

	"xiaozhi/providers/service"
)

// TestKindsAreWhole: what a settings file and a person need to know of a kind is there.
func TestKindsAreWhole(t *testing.T) {
	kinds := Kinds()
	seen := map[string]bool{}
	for _, k := range kinds {
		if seen[k.Type] {
			t.Errorf("%s is there twice", k.Type)
		}
		seen[k.Type] = true
		if k.Type == "" || k.Type != strings.ToLower(k.Type) || strings.ContainsAny(k.Type, " _.") || k.Title == "" {
			t.Errorf("%q: type or title %q", k.Type, k.Title)
		}
		if len(k.Roles()) == 0 {
			t.Errorf("%s can do nothing", k.Type)
		}
		for _, f := range k.Needs {
			if !slices.ContainsFunc(k.Env, func(e service.Env) bool { return e.Field == f }) {
				t.Errorf("%s needs %s, which no variable holds", k.Type, f)
			}
		}
		for _, m := range k.More {
			if slices.Contains([]string{"type", "model", "voice", "base_url", "api_key", "format", "timeout", "decoders"}, m.Name) && m.Name != "decoders" {
				t.Errorf("%s: the setting %s is one of all kinds", k.Type, m.Name)
			}
		}
	}
	for _, name := range []string{"openai", "dashscope", "deepseek", "qwen", "volcengine", "iflytek", "funasr", "edge"} {
		if _, ok := Find(kinds, name); !ok {
			t.Errorf("there is no %s", name)
		}
	}
	if k, _ := Find(kinds, "dashscope"); k.LLM == nil || k.ASR == nil {
		t.Error("one key of DashScope gives no model and recogniser")
	}
}

// TestRegionOfOneRole: a region that only the models of a type have is not taken for that of
// its speech, which would go to another country.
func TestRegionOfOneRole(t *testing.T) {
	k, _ := Find(Kinds(), "dashscope")
	for region, ok := range map[string]bool{"us": false, "intl": true, "": true} {
		s := service.Section{Name: "mine", Key: "k", Region: region}
		if _, err := k.ASR(s); (err == nil) != ok {
			t.Errorf("region %q: a recogniser: %v", region, err)
		}
		if _, err := k.LLM(s); err != nil {
			t.Errorf("region %q: a model: %v", region, err)
		}
	}
}

func TestSharedAddressKeepsTheHost(t *testing.T) {
	s := elsewhere(service.Section{BaseURL: "http://127.0.0.1:9/compatible-mode/v1?x=y"})
	if s.BaseURL != "http://127.0.0.1:9" {
		t.Errorf("got %s", s.BaseURL)
	}
	if s := elsewhere(service.Section{}); s.BaseURL != "" {
		t.Errorf("got %s for none", s.BaseURL)
	}
}
