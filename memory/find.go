package memory

import (
	"cmp"
	"maps"
	"slices"

	"xiaozhi/internal/text/search"
)

const lengthPart = 0.5 // of BM25: facts are all short

// index finds texts by their words. It is made once and does not change.
type index struct {
	texts  []map[string]float64
	length []float64
	in     map[string]int // texts that have a term
	mean   float64        // length
}

// newIndex makes the index of texts, whose places count from 0.
func newIndex(texts []string) *index {
	x := &index{in: map[string]int{}}
	for _, t := range texts {
		of, n := terms(t), 0.0
		for term, weight := range of {
			x.in[term]++
			n += weight
		}
		x.texts, x.length, x.mean = append(x.texts, of), append(x.length, n), x.mean+n
	}
	x.mean = max(x.mean/max(float64(len(texts)), 1), 1)
	return x
}

// hit is a text that was found.
type hit struct {
	place int
	score float64
}

// find returns the texts that share words with a query, the best first.
func (x *index) find(query string, most int) []hit {
	var hits []hit
	asked := terms(query)
	for place, of := range x.texts {
		score := 0.0
		for _, term := range slices.Sorted(maps.Keys(asked)) { // in one order: sums of fractions depend on it
			weight, ok := of[term]
			if !ok {
				continue
			}
			score += search.Weight(search.Rarity(x.in[term], len(x.texts)), asked[term], weight, x.length[place]/x.mean, lengthPart)
		}
		if score > 0 {
			hits = append(hits, hit{place, score})
		}
	}
	slices.SortFunc(hits, func(a, b hit) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.place, b.place)) })
	return hits[:min(most, len(hits))]
}
