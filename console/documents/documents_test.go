package documents

import (
	"strings"
	"testing"
	"unicode"

	"xiaozhi/internal/text"
	"xiaozhi/knowledge"
	"xiaozhi/knowledge/reader"
)

// TestFaultsInWords: whatever is wrong with a document is said in one sentence, in Chinese and in English.
func TestFaultsInWords(t *testing.T) {
	said := map[string]reader.Fault{}
	for _, f := range []reader.Fault{
		reader.Large, reader.Empty, reader.Binary, reader.OtherKind, reader.Encrypted, reader.Broken, reader.Bomb, reader.Scanned, reader.Encoding, reader.Slow, reader.Heavy,
		knowledge.Closed, knowledge.Outside, knowledge.Full, knowledge.Lost,
	} {
		d := knowledge.Document{State: knowledge.Failed, Fault: f, Detail: "ZIP"}
		for lang, end := range map[text.Lang]string{text.English: ".", text.Chinese: "。"} {
			words := problem(lang, &d)
			han := strings.ContainsFunc(words, func(r rune) bool { return unicode.Is(unicode.Han, r) })
			if !strings.HasSuffix(words, end) || strings.Count(words, end) != 1 || han != (lang == text.Chinese) || strings.Contains(words, "%") {
				t.Errorf("%s: %q", f, words)
			}
			if other := said[words]; other != "" {
				t.Errorf("%s and %s are both %q", f, other, words)
			}
			said[words] = f
		}
	}
	if words := problem(text.English, &knowledge.Document{State: knowledge.Ready}); words != "" {
		t.Errorf("a document that can be found: %q", words)
	}
}
