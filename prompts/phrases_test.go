package prompts

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode"
)

func TestPhrasesMatchAcrossLanguages(t *testing.T) {
	s := mustLoad(t, nil)
	zh, en := s.phrases["zh"], s.phrases["en"]
	for id, text := range zh {
		other, ok := en[id]
		if !ok {
			t.Errorf("%s is missing in English", id)
			continue
		}
		if a, b := placeholders(text), placeholders(other); !slices.Equal(a, b) {
			t.Errorf("%s: placeholders %v in Chinese, %v in English", id, a, b)
		}
		if !strings.ContainsFunc(text, isHan) {
			t.Errorf("%s: the Chinese text %q holds no Chinese", id, text)
		}
		if strings.ContainsFunc(other, isHan) {
			t.Errorf("%s: the English text %q holds Chinese", id, other)
		}
	}
	for id := range en {
		if _, ok := zh[id]; !ok {
			t.Errorf("%s is missing in Chinese", id)
		}
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
		{OK, "de", nil, "好的。"},
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
