package speechtest

import "strings"

// WER counts the word errors of hyp against ref (the fewest substitutions,
// insertions and deletions) and the words of ref. Case and punctuation do not
// count. The word error rate of a set is the sum of errors over the sum of words.
func WER(ref, hyp string) (errors, words int) {
	want, got := spokenWords(ref), spokenWords(hyp)
	row := make([]int, len(got)+1)
	for j := range row {
		row[j] = j
	}
	for i, w := range want {
		diagonal := row[0]
		row[0] = i + 1
		for j, g := range got {
			substituted := diagonal
			if w != g {
				substituted++
			}
			diagonal = row[j+1]
			row[j+1] = min(substituted, diagonal+1, row[j]+1)
		}
	}
	return row[len(got)], len(want)
}

// spokenWords are the words of a text: letters, digits and inner apostrophes.
func spokenWords(text string) []string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '\'' && r <= 127
	})
	for i := range words {
		words[i] = strings.Trim(words[i], "'")
	}
	return words
}
