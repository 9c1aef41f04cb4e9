package memory

import "xiaozhi/internal/text/search"

// terms returns what a text is found by, with how much each counts.
func terms(s string) map[string]float64 {
	found := map[string]float64{}
	search.Each(s, common, func(term string, weight float64) { found[term] = max(found[term], weight) })
	return found
}
