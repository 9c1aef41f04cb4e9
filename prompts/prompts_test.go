package prompts

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// load makes a folder of the given files and loads it.
func load(t *testing.T, files map[string]string) (*Set, error) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Load(dir)
}

func mustLoad(t *testing.T, files map[string]string) *Set {
	t.Helper()
	s, err := load(t, files)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var evening = time.Date(2026, time.November, 22, 18, 5, 0, 0, time.FixedZone("CST", 8*3600))

func TestDefaultPromptNamesEverything(t *testing.T) {
	s := mustLoad(t, nil)
	for lang, wanted := range map[string][]string{
		"zh": {"小智", "厨房", "2026年11月22日", "星期日", "18:05", "中文", "😶 🙂 😆", "🙄"},
		"en": {"小智", "厨房", "November 22, 2026", "Sunday", "18:05", "Chinese", "😶 🙂 😆", "🙄"},
	} {
		got, err := s.Render(Default, lang, Data{AssistantName: "小智", DeviceName: "厨房", Language: "zh", Now: evening})
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range wanted {
			if !strings.Contains(got, w) {
				t.Errorf("%s: no %q in\n%s", lang, w, got)
			}
		}
		if strings.Contains(got, "{{") || strings.Contains(got, "}}") {
			t.Errorf("%s: a variable is left in\n%s", lang, got)
		}
	}
}

func TestRender(t *testing.T) {
	files := map[string]string{
		"pirate.en.md":  "\ufeff\n{{ assistant_name }} of {{device_name}} speaks {{language}}.\n\n",
		"pirate.zh.md":  "{{device_name}}说{{language}}",
		"chinese.zh.md": "只有中文 {{today_weekday}}",
		"deutsch.de.md": "{{device_name}} spricht {{language}}, {{today_date}}",
		"README.md":     "not a prompt {{nothing}}",
		"notes.txt":     "{{nothing}}",
	}
	s := mustLoad(t, files)
	for _, c := range []struct {
		name, prompt, lang string
		data               Data
		want               string
	}{
		{"values", "pirate", "en", Data{AssistantName: "Ann", DeviceName: "Deck", Language: "zh"}, "Ann of Deck speaks Chinese."},
		{"no names", "pirate", "en", Data{}, " of speaker speaks English."},
		{"no device, Chinese", "pirate", "zh", Data{Language: "en"}, "音箱说英语"},
		{"a language that it is not there in is English", "pirate", "fr", Data{}, " of speaker speaks English."},
		{"no language is Chinese", "pirate", "", Data{}, "音箱说中文"},
		{"Taiwan", "pirate", "zh-TW", Data{Language: "zh-TW"}, "音箱说繁体中文"},
		{"another language", "pirate", "en", Data{Language: "ja"}, " of speaker speaks Japanese.\n\nAnswer in Japanese, unless you were told above to use another language."},
		{"another language, in Chinese", "pirate", "zh", Data{Language: "de-AT"}, "音箱说德语\n\n请用德语回答，除非上面要求用别的语言。"},
		{"another language in another", "pirate", "de", Data{Language: "de"}, " of speaker speaks German.\n\nAnswer in German, unless you were told above to use another language."},
		{"a prompt in it", "deutsch", "de-AT", Data{Language: "de", Now: evening}, "Lautsprecher spricht Deutsch, 2026-11-22\n\nAntworte in dieser Sprache, wenn keine andere verlangt ist: Deutsch."},
		{"other language only", "chinese", "en", Data{Now: evening}, "只有中文 星期日"},
		{"values are not looked through", "pirate", "en", Data{AssistantName: "{{language}}"}, "{{language}} of speaker speaks English."},
	} {
		got, err := s.Render(c.prompt, c.lang, c.data)
		if err != nil || got != c.want {
			t.Errorf("%s: got %q, %v; want %q", c.name, got, err, c.want)
		}
	}
	_, err := s.Render("pirat", "en", Data{})
	if err == nil || !strings.Contains(err.Error(), `"pirat" (there are: chinese, default, deutsch, pirate, storyteller, teacher)`) {
		t.Errorf("unknown prompt: %v", err)
	}
}

func TestFileReplacesDefault(t *testing.T) {
	s := mustLoad(t, map[string]string{"default.en.md": "Hi from {{assistant_name}}", "phrases.en.yaml": "ok: Aye.\ntool_failed: '{tool} broke'\n"})
	if got, _ := s.Render(Default, "en", Data{AssistantName: "Bo"}); got != "Hi from Bo" {
		t.Errorf("prompt: %q", got)
	}
	if got, _ := s.Render(Default, "zh", Data{AssistantName: "Bo"}); !strings.Contains(got, "你是Bo") {
		t.Errorf("the other language changed too: %q", got)
	}
	if got := s.Phrase(OK, "en"); got != "Aye." {
		t.Errorf("phrase: %q", got)
	}
	if got := s.Phrase(ToolFailed, "en", "tool", "Lamp"); got != "Lamp broke" {
		t.Errorf("phrase: %q", got)
	}
	if got := s.Phrase(Goodbye, "en"); got != "Goodbye." {
		t.Errorf("a phrase that was not replaced: %q", got)
	}
}

func TestLoadErrors(t *testing.T) {
	for _, c := range []struct{ name, file, text, want string }{
		{"typo in a variable", "a.en.md", "x\n\nI am {{asistant_name}}.", "a.en.md:3: unknown variable {{asistant_name}} (did you mean {{assistant_name}}?)"},
		{"typo, other case", "a.en.md", "{{emojilist}}", "(did you mean {{emojiList}}?)"},
		{"second of two", "a.en.md", "{{language}}\n{{curren_time}}", "a.en.md:2: unknown variable {{curren_time}} (did you mean {{current_time}}?)"},
		{"not closed", "a.en.md", "one\n{{language\n", "a.en.md:2: a {{ without its }}"},
		{"closed on another line", "a.en.md", "{{language\n}}", "a.en.md:1: a {{ without its }}"},
		{"empty", "a.zh.md", " \n", "a.zh.md: the prompt is empty"},
		{"no language", "pirate.md", "x", "pirate.md: the name must be NAME.LANG.md"},
		{"no language's tag", "pirate.jp.md", "x", "for LANG; \"jp\" is none (did you mean ja?)"},
		{"unknown yaml", "voices.en.yaml", "x: y", "voices.en.yaml: the name must be"},
		{"unknown phrase", "phrases.zh.yaml", "# mine\ngodbye: 拜拜", "phrases.zh.yaml:2: unknown phrase godbye (did you mean goodbye?)"},
		{"unknown placeholder", "phrases.zh.yaml", "tool_failed: '{name}坏了'", "phrases.zh.yaml:1: phrase tool_failed has no {name} (it has: tool)"},
		{"unknown phrase of a language of one's own", "phrases.fr.yaml", "godbye: Salut", "phrases.fr.yaml:1: unknown phrase godbye (did you mean goodbye?)"},
		{"words that are no lists", "phrases.fr.yaml", "words: [a]", "phrases.fr.yaml:1: words must hold lists by name"},
		{"an unknown list", "phrases.fr.yaml", "words:\n  exits: [a]", "phrases.fr.yaml:2: unknown list exits (did you mean exit?)"},
		{"a list that is a text", "phrases.fr.yaml", "words:\n  exit: a", "phrases.fr.yaml:2: exit must be a list of words"},
		{"a list with a list", "phrases.fr.yaml", "words:\n  exit: [[a]]", "phrases.fr.yaml:2: exit must be a list of words"},
		{"phrase twice", "phrases.zh.yaml", "ok: 好\nok: 行", "phrases.zh.yaml:2: phrase ok is there twice"},
		{"phrase is a list", "phrases.zh.yaml", "ok: [好]", "phrases.zh.yaml:1: phrase ok must be a text"},
		{"phrase is a number", "phrases.zh.yaml", "ok: 1", "phrases.zh.yaml:1: phrase ok must be a text"},
		{"phrase is empty", "phrases.zh.yaml", "ok:", "phrases.zh.yaml:1: phrase ok must be a text"},
		{"not a map", "phrases.zh.yaml", "- ok", "phrases.zh.yaml:1: expected lines of the form id: text"},
		{"broken", "phrases.zh.yaml", "ok: \"好", "phrases.zh.yaml: not YAML: yaml: found unexpected end"},
	} {
		s, err := load(t, map[string]string{c.file: c.text})
		if err == nil || s != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}

func TestLoadTellsAllErrors(t *testing.T) {
	_, err := load(t, map[string]string{"a.en.md": "{{x}}\n{{y}}", "phrases.en.yaml": "nope: a\n"})
	if err == nil || strings.Count(err.Error(), "unknown") != 3 {
		t.Errorf("want three errors, got %v", err)
	}
}

func TestLoadWithoutFolder(t *testing.T) {
	for _, dir := range []string{"", filepath.Join(t.TempDir(), "none")} {
		s, err := Load(dir)
		if err != nil || !slices.Equal(s.Names(), []string{Default, "storyteller", "teacher"}) {
			t.Errorf("Load(%q): %v, %v", dir, s.Names(), err)
		}
		if !s.Has("teacher") || s.Has("pirate") {
			t.Error("Has is wrong about teacher or pirate")
		}
	}
	if _, err := load(t, map[string]string{"phrases.en.yaml": ""}); err != nil {
		t.Errorf("an empty file of phrases: %v", err)
	}
}

func FuzzParseTemplate(f *testing.F) {
	for _, seed := range []string{"", "{{language}}", "a{{b}}c", "{{", "}}{{", "{{{{language}}}}", "\n{{language\n}}"} {
		f.Add(seed)
	}
	set, err := Load("")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		tmpl, err := parseTemplate("f", text)
		if err != nil {
			return
		}
		if len(tmpl.texts) != len(tmpl.names)+1 {
			t.Fatalf("%d texts, %d names", len(tmpl.texts), len(tmpl.names))
		}
		tmpl.render(set.values("en", Data{}))
	})
}

// TestRenderText: of a prompt that a person has typed the variables are filled in, and everything else is as it was typed.
func TestRenderText(t *testing.T) {
	s, err := Load("")
	if err != nil {
		t.Fatal(err)
	}
	d := Data{AssistantName: "{{language}} <b>", Now: time.Date(2026, 11, 22, 7, 5, 0, 0, time.UTC)}
	for typed, want := range map[string]string{
		"You are {{assistant_name}}.\n\n\"It's\" {{ current_time }}": "You are {{language}} <b>.\n\n\"It's\" 07:05",
		"你是海盗，{{language}}":                                          "你是海盗，英文",
		"{{":                                                         "{{", "}}": "}}", "{{}}": "{{}}", "{{{{current_time}}}}": "{{07:05}}", "{{current_time": "{{current_time",
		"{{no_such}} {{.Secret}} {{range .}} ${HOME} %s {% x %}": "{{no_such}} {{.Secret}} {{range .}} ${HOME} %s {% x %}",
		"{{a\n}} {{current_time}}":                               "{{a\n}} 07:05",
	} {
		lang := "en"
		if strings.HasPrefix(typed, "你") {
			lang, want = "zh", "你是海盗，"+s.Phrase(languageChinese, "zh")
		}
		if got := s.RenderText(typed, lang, d); got != want {
			t.Errorf("%q: %q, want %q", typed, got, want)
		}
	}
	long := strings.Repeat("{{", 16<<10)
	if got := s.RenderText(long, "en", d); got != long {
		t.Error("many open braces change")
	}
}
