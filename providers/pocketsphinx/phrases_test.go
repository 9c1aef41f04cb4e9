package pocketsphinx

import (
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// knowsAll is a dictionary of a few words and of everything short enough.
func knowsAll(word string) bool { return word != "zzyzx" }

func TestPhraseToJSGF(t *testing.T) {
	for _, c := range []struct{ phrase, want string }{
		{"stop", "stop"},
		{"What time is it?", "what time is it"},
		{"Set volume to 30%", "set volume to thirty"},
		{"set the volume to <number>", "set the volume to <number>"},
		{"<NUMBER>", "<number>"},
		{"turn it (up | down)", "turn it ( up | down )"},
		{"[please] stop", "[ please ] stop"},
		{"turn (on|off [all]) the lamp", "turn ( on | off [ all ] ) the lamp"},
		{"self.audio_speaker.set_volume", "self audio speaker set volume"},
		{"don’t stop", "don't stop"},
		{"play 101", "play one hundred one"},
		{"go | leave", "go | leave"},
	} {
		got, err := phraseToJSGF(c.phrase, knowsAll)
		if err != nil || got != c.want {
			t.Errorf("%q: %q, %v; want %q", c.phrase, got, err, c.want)
		}
	}
}

func TestPhraseLeftOut(t *testing.T) {
	for phrase, why := range map[string]string{
		"":                              "nothing to say",
		"?!":                            "nothing to say",
		"turn (on":                      "missing",
		"turn on)":                      "too many",
		"turn (on]":                     "missing",
		"turn ()":                       "nothing to say",
		"turn (on|)":                    "nothing to say",
		"[please]":                      "must be said",
		"(stop | [now])":                "must be said",
		"打开灯":                           "not English",
		"café":                          "not English",
		"zzyzx road":                    "dictionary",
		"set <volume>":                  "<number>",
		"stop; public <x> = y":          "<number>",
		"mp3 player":                    "number up to 999",
		"call 1234":                     "number up to 999",
		"((((((deep))))))":              "deeper",
		"x" + strings.Repeat(" go", 99): "longer",
		"\xff":                          "not English",
	} {
		got, err := phraseToJSGF(phrase, knowsAll)
		if err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %q, %v; want an error with %q", phrase, got, err, why)
		}
	}
}

func TestGrammarText(t *testing.T) {
	text := grammarText([]string{"Stop!", "stop", "开", "turn (up", "go to <number>"}, knowsAll, slog.New(slog.DiscardHandler))
	if want := "public <phrase> = stop\n | go to <number>;\n"; !strings.Contains(text, want) {
		t.Errorf("grammar %q lacks %q", text, want)
	}
	if text := grammarText([]string{"开"}, knowsAll, slog.New(slog.DiscardHandler)); text != "" {
		t.Errorf("grammar of nothing: %q", text)
	}
	many := slices.Repeat([]string{"stop"}, maxPhrases)
	if text := grammarText(append(many, "late"), knowsAll, slog.New(slog.DiscardHandler)); strings.Contains(text, "late") {
		t.Error("a phrase over the limit is in the grammar")
	}
}

func TestSayNumber(t *testing.T) {
	for n, want := range map[int]string{
		0: "zero", 7: "seven", 13: "thirteen", 20: "twenty", 42: "forty two",
		100: "one hundred", 101: "one hundred one", 999: "nine hundred ninety nine",
	} {
		if got := strings.Join(sayNumber(n), " "); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func FuzzPhraseToJSGF(f *testing.F) {
	for _, s := range []string{"stop", "set <number>", "a (b|c) [d]", "((", "<number", "30", "开灯", "a;b", "\x00'"} {
		f.Add(s)
	}
	safe := regexp.MustCompile(`^([a-z'()\[\]| ]|<number>)+$`)
	f.Fuzz(func(t *testing.T, phrase string) {
		text, err := phraseToJSGF(phrase, func(string) bool { return true })
		if err != nil {
			return
		}
		if !safe.MatchString(text) {
			t.Errorf("%q became %q", phrase, text)
		}
		if strings.Count(text, "(") != strings.Count(text, ")") || strings.Count(text, "[") != strings.Count(text, "]") {
			t.Errorf("%q became %q with brackets that do not match", phrase, text)
		}
	})
}
