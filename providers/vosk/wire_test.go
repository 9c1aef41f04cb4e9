package vosk

import "testing"

func TestParse(t *testing.T) {
	for message, want := range map[string]struct {
		words string
		ended bool
		fails bool
	}{
		`{"partial":"今天 天气 怎么样"}`:                        {"今天天气怎么样", false, false},
		`{"text":"turn on the lamp 好 吗"}`:                {"turn on the lamp 好吗", true, false},
		`{"text":""}`:                                    {"", true, false},
		`{"alternatives":[{"text":"a b"},{"text":"c"}]}`: {"a b", true, false},
		`{"other":1}`:                                    {"", false, false},
		`{"text":`:                                       {"", false, true},
	} {
		words, ended, err := parse([]byte(message))
		if words != want.words || ended != want.ended || (err != nil) != want.fails {
			t.Errorf("%s: %q, %v, %v", message, words, ended, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"partial":"a b"}`))
	f.Add([]byte(`{"text":"a","result":[{"conf":1}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if words, _, err := parse(b); err != nil && words != "" {
			t.Errorf("%q and %v", words, err)
		}
	})
}
