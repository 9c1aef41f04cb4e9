package prompts

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode"

	"xiaozhi/internal/text"
)

// TestPhrasesMatchAcrossLanguages holds the keys of all files together, and says what is missing in which.
func TestPhrasesMatchAcrossLanguages(t *testing.T) {
	s := mustLoad(t, nil)
	if want := []string{"de", "en", "es", "ja", "ko", "ru", "vi", "zh"}; !slices.Equal(s.Languages(), want) {
		t.Errorf("phrases in %v, want %v", s.Languages(), want)
	}
	all := map[string]string{} // by id, with the language in which it was met
	for _, lang := range s.Languages() {
		for id := range s.phrases[lang] {
			all[id] = lang
		}
	}
	english := s.phrases["en"]
	for _, lang := range s.Languages() {
		for id, from := range all {
			words, ok := s.phrases[lang][id]
			if !ok {
				t.Errorf("phrases.%s.yaml lacks %s, which phrases.%s.yaml has", lang, id, from)
				continue
			}
			if a, b := placeholders(words), placeholders(english[id]); !slices.Equal(a, b) {
				t.Errorf("%s: placeholders %v in %s, %v in English", id, a, lang, b)
			}
			if words != strings.TrimSpace(words) || strings.Contains(words, "  ") {
				t.Errorf("%s in %s has spaces too many: %q", id, lang, words)
			}
			if lang != "en" && words == english[id] && !strings.HasPrefix(words, "{") {
				t.Errorf("%s in %s is still English: %q", id, lang, words)
			}
			if lang != "zh" && lang != "ja" && strings.ContainsFunc(words, isHan) {
				t.Errorf("%s: the text in %s, %q, holds Chinese", id, lang, words)
			}
			if plain := strings.Map(noPlaceholder(), words); lang != "en" && lang != "zh" && len(plain) > 24 && text.Resolve(plain, "", text.Lang(lang)) != text.Lang(lang) {
				t.Errorf("%s in %s is in %s: %q", id, lang, text.Resolve(plain, "", text.Lang(lang)), words)
			}
		}
	}
	for id, words := range s.phrases["zh"] {
		if !strings.ContainsFunc(words, isHan) {
			t.Errorf("%s: the Chinese text %q holds no Chinese", id, words)
		}
	}
}

// noPlaceholder returns a mapping that drops what stands in braces.
func noPlaceholder() func(rune) rune {
	within := false
	return func(r rune) rune {
		if r == '{' || r == '}' {
			within = r == '{'
			return ' '
		}
		if within {
			return -1
		}
		return r
	}
}

// TestUnreadFiles: a file that no native speaker has read says so.
func TestUnreadFiles(t *testing.T) {
	for _, lang := range mustLoad(t, nil).Languages() {
		file, err := embedded.ReadFile("phrases." + lang + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		if unread := strings.Contains(string(file), "NO NATIVE SPEAKER HAS READ THIS FILE YET"); unread != (lang != "zh" && lang != "en") {
			t.Errorf("phrases.%s.yaml says that it is unread: %v", lang, unread)
		}
	}
}

// TestWords: every language beside Chinese and English has each list of words, and no word says yes and no, or ends the talk and agrees.
func TestWords(t *testing.T) {
	s := mustLoad(t, map[string]string{"phrases.de.yaml": "words:\n  exit: [servus]\n", "phrases.fr.yaml": "ok: Bien.\nwords:\n  stop: [arrête]\n"})
	for _, lang := range s.Languages() {
		if text.Lang(lang).IsOwn() || lang == "fr" {
			continue
		}
		w := s.Words(text.Lang(lang))
		for name, list := range w.lists() {
			if len(*list) == 0 && (name != "abbreviations" || lang == "de" || lang == "es" || lang == "ru") {
				t.Errorf("%s has no words for %s", lang, name)
			}
			for i, word := range *list {
				if slices.Contains((*list)[:i], word) {
					t.Errorf("%s, %s: %s is there twice", lang, name, word)
				}
			}
		}
		for _, word := range w.Assents {
			if text.In(word, w.Negations) || text.In(word, w.Exit) {
				t.Errorf("%s: %s is a yes and a no, or a farewell", lang, word)
			}
		}
		for _, word := range w.Exit {
			if text.In(word, w.Listening) || text.In(word, w.Sounds) {
				t.Errorf("%s: %s ends the talk and is a sign of listening", lang, word)
			}
		}
	}
	if w := s.Words("de-AT"); !slices.Equal(w.Exit, []string{"servus"}) || len(w.Stop) == 0 {
		t.Errorf("of a file that replaces one list: %v, %v", w.Exit, w.Stop)
	}
	if w := s.Words("fr"); !slices.Equal(w.Stop, []string{"arrête"}) || w.Exit != nil {
		t.Errorf("of a language of one's own: %+v", w)
	}
	if s.Phrase(OK, "fr-CA") != "Bien." || s.Phrase(Goodbye, "fr") != "Goodbye." {
		t.Error("a language of one's own does not fall back to English")
	}
	if w := (*Set)(nil).Words("tlh"); w == nil || w.Exit != nil || s.Words("") == nil {
		t.Errorf("of no language: %+v", w)
	}
}

func isHan(r rune) bool { return unicode.Is(unicode.Han, r) }

func TestPhraseIDs(t *testing.T) {
	s := mustLoad(t, nil)
	for _, id := range IDs() {
		if s.Phrase(id, "zh") == id || s.Phrase(id, "en") == id {
			t.Errorf("%s has no phrase", id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(s.phrases["zh"])) {
		if !slices.Contains(IDs(), id) && !strings.HasPrefix(id, brainPhrases) && !strings.HasPrefix(id, wordPhrases) {
			t.Errorf("%s has no constant", id)
		}
	}
}

func TestPhrase(t *testing.T) {
	s := mustLoad(t, nil)
	for _, c := range []struct {
		id, lang string
		args     []string
		want     string
	}{
		{OK, "zh", nil, "好的。"},
		{OK, "en", nil, "OK."},
		{OK, "", nil, "好的。"},
		{OK, "zh-TW", nil, "好的。"},
		{OK, "yue", nil, "好的。"},
		{OK, "de", nil, "Gut."},
		{OK, "de-CH", nil, "Gut."},
		{OK, "ja", nil, "はい。"},
		{OK, "fr", nil, "OK."},
		{OK, "nonsense", nil, "OK."},
		{ToolFailed, "en", []string{"tool", "Lamp"}, "Lamp did not work."},
		{ToolFailed, "zh", []string{"tool", "台灯"}, "台灯没有成功。"},
		{ToolFailed, "en", []string{"tool", "{tool}"}, "{tool} did not work."},
		{ToolFailed, "en", []string{"tool"}, "{tool} did not work."},
		{ToolFailed, "en", []string{"other", "x"}, "{tool} did not work."},
		{"no_such_thing", "en", []string{"a", "b"}, "no_such_thing"},
		{"", "en", nil, ""},
	} {
		if got := s.Phrase(c.id, c.lang, c.args...); got != c.want {
			t.Errorf("Phrase(%q, %q, %v) = %q, want %q", c.id, c.lang, c.args, got, c.want)
		}
	}
}

func TestFailurePhrases(t *testing.T) {
	s := mustLoad(t, nil)
	for _, id := range sounded() {
		for _, lang := range []string{"zh", "en"} {
			text := s.Phrase(id, lang)
			if len(placeholders(text)) > 0 {
				t.Errorf("%s in %s cannot be recorded: %q", id, lang, text)
			}
		}
	}
	for id, words := range map[string][2]string{
		FailASR: {"语音识别", "recognition"}, FailLLM: {"语言模型", "language model"},
		FailTTS: {"语音合成", "synthesis"}, FailTool: {"工具", "tool"}, FailInternal: {"服务器", "server"},
		NoChineseASR: {"asr", "asr"}, NoLLM: {"语言模型", "language model"},
	} {
		if text := s.Phrase(id, "zh"); !strings.Contains(text, words[0]) {
			t.Errorf("%s: %q does not name %s", id, text, words[0])
		}
		if text := s.Phrase(id, "en"); !strings.Contains(text, words[1]) {
			t.Errorf("%s: %q does not name %s", id, text, words[1])
		}
	}
}

func TestPlaceholders(t *testing.T) {
	for text, want := range map[string][]string{
		"":              nil,
		"plain":         nil,
		"{a}":           {"a"},
		"{b} and {a}":   {"a", "b"},
		"{a}{a}":        {"a"},
		"half {a":       nil,
		"{a} then { b.": {"a"},
	} {
		if got := placeholders(text); !slices.Equal(got, want) {
			t.Errorf("placeholders(%q) = %v, want %v", text, got, want)
		}
	}
}

// TestLoadLeavesEmbedded: what the files of a folder replace is replaced for that set only.
func TestLoadLeavesEmbedded(t *testing.T) {
	mustLoad(t, map[string]string{"phrases.de.yaml": "ok: Ja.\nwords:\n  exit: [servus]\n", "default.de.md": "Hallo", "pirate.en.md": "Ahoy"})
	s := mustLoad(t, nil)
	if s.Phrase(OK, "de") != "Gut." || slices.Contains(s.Words("de").Exit, "servus") || s.Has("pirate") || s.prompts[Default]["de"].texts != nil {
		t.Error("the embedded texts were replaced for all")
	}
}
