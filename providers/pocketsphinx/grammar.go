package pocketsphinx

import (
	"log/slog"
	"strings"
)

// grammarText makes the JSGF grammar of a request's phrases. Phrases that
// cannot be used are left out and logged at Debug. With no usable phrase the
// grammar is "".
func grammarText(phrases []string, known func(string) bool, log *slog.Logger) string {
	if len(phrases) > maxPhrases {
		log.Debug("phrases left out of the grammar", "over_limit", len(phrases)-maxPhrases)
		phrases = phrases[:maxPhrases]
	}
	seen := make(map[string]bool, len(phrases))
	var usable []string
	for _, phrase := range phrases {
		alternative, err := phraseToJSGF(phrase, known)
		if err != nil {
			log.Debug("phrase left out of the grammar", "phrase", phrase, "err", err)
			continue
		}
		if !seen[alternative] {
			seen[alternative] = true
			usable = append(usable, alternative)
		}
	}
	if len(usable) == 0 {
		return ""
	}
	return "#JSGF V1.0;\ngrammar phrases;\npublic <phrase> = " + strings.Join(usable, "\n | ") + ";\n" + numberRule
}
