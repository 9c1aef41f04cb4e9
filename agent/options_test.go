package agent

import (
	"testing"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/intent"
)

// TestStopWords: the stop-words that end music end a reply too.
func TestStopWords(t *testing.T) {
	words := Options{}.withDefaults().StopWords
	for _, word := range words {
		if got := intent.Classify(word, text.Of(word), words); got != intent.Stop {
			t.Errorf("%q: %v", word, got)
		}
	}
}
