package sherpa

import (
	"strings"
	"unicode"
)

const (
	// minClause is what a clause has at least, unless it is the last: shorter ones sound chopped.
	minClause = 12
	// maxClause is what a clause has at most: Kokoro takes 510 sounds.
	maxClause = 180
)

// clauses cuts a text where one may breathe, so that the first sound comes early and a cancel is soon noticed.
// Han characters count as three. A text without letters and digits has none.
func clauses(words string) []string {
	var out []string
	var part strings.Builder
	weight, spoken := 0, false
	flush := func() {
		if spoken {
			out = append(out, strings.TrimSpace(part.String()))
			part.Reset()
			weight, spoken = 0, false
		}
	}
	for _, r := range words {
		if unicode.IsControl(r) {
			r = ' '
		}
		part.WriteRune(r)
		spoken = spoken || unicode.IsLetter(r) || unicode.IsDigit(r)
		weight++
		if unicode.Is(unicode.Han, r) {
			weight += 2
		}
		soft := strings.ContainsRune("，；：,;:。！？!?", r) && weight >= minClause
		if r == ',' || r == ':' || r == '.' {
			soft = false // it may stand in a number; a space follows where it does not
		}
		if soft || weight >= maxClause || r == ' ' && weight >= minClause && strings.HasSuffix(strings.TrimRight(part.String(), " "), ",") {
			flush()
		}
	}
	flush()
	return out
}
