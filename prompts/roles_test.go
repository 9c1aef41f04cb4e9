package prompts

import (
	"strings"
	"testing"
	"unicode"
)

// TestRoles: each role that comes along is complete in both languages: it knows
// its name, the day and the faces, keeps to what can be said aloud, tells how to
// get back, and is not the ordinary prompt.
func TestRoles(t *testing.T) {
	s := mustLoad(t, nil)
	data := Data{AssistantName: "小智", DeviceName: "厨房", Language: "zh", Now: evening}
	for _, name := range s.Names() {
		texts := make(map[string]string)
		for _, lang := range []string{"zh", "en"} {
			text, err := s.Render(name, lang, data)
			if err != nil {
				t.Fatalf("%s.%s: %v", name, lang, err)
			}
			texts[lang] = text
			for _, want := range []string{"小智", "厨房", "18:05", "😶", map[string]string{"zh": "2026年11月22日", "en": "November 22, 2026"}[lang], map[string]string{"zh": "中文", "en": "Chinese"}[lang], "Markdown", map[string]string{"zh": "工具", "en": "tool"}[lang]} {
				if !strings.Contains(text, want) {
					t.Errorf("%s.%s does not say %s", name, lang, want)
				}
			}
			if strings.Contains(text, "{{") || strings.Contains(text, "}}") {
				t.Errorf("%s.%s has a variable left", name, lang)
			}
			if way := map[string]string{"zh": "原来的样子", "en": "as you were before"}[lang]; name != Default && !strings.Contains(text, way) {
				t.Errorf("%s.%s does not say how to get back", name, lang)
			}
			if ordinary, err := s.Render(Default, lang, data); err != nil || name != Default && text == ordinary {
				t.Errorf("%s.%s is the ordinary prompt: %v", name, lang, err)
			}
			if n := len([]rune(text)); n < 200 || n > 3000 {
				t.Errorf("%s.%s has %d signs", name, lang, n)
			}
		}
		lines := func(text string) int { return strings.Count(text, "\n- ") }
		if lines(texts["zh"]) != lines(texts["en"]) {
			t.Errorf("%s has %d rules in Chinese and %d in English", name, lines(texts["zh"]), lines(texts["en"]))
		}
		if han := func(text string) bool {
			return strings.ContainsFunc(strings.NewReplacer("小智", "", "厨房", "").Replace(text), func(r rune) bool { return unicode.Is(unicode.Han, r) })
		}; han(texts["en"]) || !han(texts["zh"]) {
			t.Errorf("%s is not in its language", name)
		}
	}
}
