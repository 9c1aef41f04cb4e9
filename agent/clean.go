package agent

import (
	"xiaozhi/internal/text"
)

// languageOf returns the language of words, "" if they have none.
func languageOf(words string) string { return string(text.Of(words)) }

// These stand in for [text.Bare], [text.In] and [text.Join] where a local
// variable has the package's name.
func bare(words string) string                 { return text.Bare(words) }
func isOneOf(words string, list []string) bool { return text.In(words, list) }
func joinText(a, b string) string              { return text.Join(a, b) }
