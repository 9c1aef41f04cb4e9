package settings

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"xiaozhi/internal/text"
)

// TestNames: what people name by the routes for programs is named as on the pages; the sentence says how, and does not
// repeat what was typed. What stands in a file keeps its name.
func TestNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, "providers:\n  my ollama: {type: ollama, model: a}\n", "")
		defer b.end()
		section := func(name string) []Edit {
			return []Edit{{Path: []string{"providers", name}, Value: map[string]any{"type": "ollama", "model": "m"}}}
		}
		server := func(name string) []Edit {
			return []Edit{{Path: []string{"tools", "external", "mcpServers", name, "url"}, Value: "http://127.0.0.1:9/mcp"}}
		}
		nested := func(name string) []Edit {
			return []Edit{{Path: []string{"tools", "external"}, Value: map[string]any{"mcpServers": map[string]any{name: map[string]any{"url": "http://127.0.0.1:9/mcp"}}}}}
		}
		long := strings.Repeat("长", 65)
		for what, c := range map[string]struct {
			edits []Edit
			says  string
		}{
			"markup":               {section("<img src=x>"), "letters, digits, - and _"},
			"a slash":              {section("a/b"), "letters, digits, - and _"},
			"too long":             {section(long), "64 characters"},
			"taken":                {section("add"), "auto, none and add"},
			"a line":               {section("a\nb"), "letters, digits, - and _"},
			"all sections at once": {[]Edit{{Path: []string{"providers"}, Value: map[string]any{"ok": map[string]any{"type": "ollama"}, "not ok": map[string]any{"type": "ollama"}}}}, "letters, digits, - and _"},
			"a key of a section":   {[]Edit{{Path: []string{"providers", "a b", "type"}, Value: "ollama"}}, "letters, digits, - and _"},
			"a server":             {server("bad name"), "40 characters"},
			"a hidden server":      {server(".hidden"), "begins with a letter"},
			"a server in a map":    {nested(strings.Repeat("x", 41)), "40 characters"},
		} {
			_, err := b.Plan(t.Context(), anna(), 0, c.edits)
			var wrong *InvalidError
			if !errors.As(err, &wrong) || !strings.Contains(wrong.In(text.English), c.says) || strings.Contains(wrong.In(text.Chinese), long) || !strings.Contains(wrong.In(text.Chinese), "最多") {
				t.Errorf("%s: %v", what, err)
			}
		}
		for what, edits := range map[string][]Edit{
			"Chinese": section("我的模型"), "64 characters": section(strings.Repeat("长", 64)), "a server": server("Home.Assistant-2"),
			"of a file": {{Path: []string{"providers", "my ollama", "model"}, Value: "b"}},
		} {
			if _, err := b.Plan(t.Context(), anna(), 0, edits); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}
