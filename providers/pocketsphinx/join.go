package pocketsphinx

import "strings"

// joined are words that the language model writes as two.
var joined = map[string]string{
	"e mail":     "email",
	"good bye":   "goodbye",
	"key pad":    "keypad",
	"mail box":   "mailbox",
	"voice mail": "voicemail",
	"web site":   "website",
}

// join writes as one word what is written so: compounds, and letters that are spelled ("t v").
func join(words []string) (out []string) {
	for i := 0; i < len(words); {
		if i+1 < len(words) {
			if one := joined[words[i]+" "+words[i+1]]; one != "" {
				out, i = append(out, one), i+2
				continue
			}
		}
		n := spelled(words[i:])
		out, i = append(out, strings.Join(words[i:i+n], "")), i+n
	}
	return out
}

// spelled returns how many words are letters of one abbreviation; 1 if it is none. "a", "i", "o" are
// words too, and two letters with a vowel may be one ("u s").
func spelled(words []string) int {
	n := 0
	for n < len(words) && len(words[n]) == 1 && !strings.Contains("aio", words[n]) {
		n++
	}
	if n == 2 && strings.ContainsAny(words[0]+words[1], "euy") {
		return 1
	}
	return max(1, n)
}
