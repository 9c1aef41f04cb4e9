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
	length []float32
	in     map[string][]posting
	mean   float64 // length
}

// posting says that a term is in a text.
type posting struct {
	place  int32
	weight float32
}

// newIndex makes the index of texts, whose places count from 0.
func newIndex(texts []string) *index {
	x := &index{in: map[string][]posting{}, length: make([]float32, len(texts))}
	sum := 0.0
	for place, t := range texts {
		n := 0.0
		for term, weight := range terms(t) {
			x.in[term] = append(x.in[term], posting{int32(place), float32(weight)})
			n += weight
		}
		x.length[place], sum = float32(n), sum+n
	}
	x.mean = max(sum/max(float64(len(texts)), 1), 1)
	return x
}

// hit is a text that was found.
type hit struct {
	place int
	score float64
}

// find returns the texts that share words with a query, the best first.
func (x *index) find(query string, most int) []hit {
	asked, scores := terms(query), map[int32]float64{}
	for _, term := range slices.Sorted(maps.Keys(asked)) { // in one order: sums of fractions depend on it
		rare := search.Rarity(len(x.in[term]), len(x.length))
		for _, p := range x.in[term] {
			scores[p.place] += search.Weight(rare, asked[term], float64(p.weight), float64(x.length[p.place])/x.mean, lengthPart)
		}
	}
	hits := make([]hit, 0, len(scores))
	for place, score := range scores {
		hits = append(hits, hit{int(place), score})
	}
	slices.SortFunc(hits, func(a, b hit) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.place, b.place)) })
	return hits[:min(most, len(hits))]
}

// rankPart is the constant of reciprocal rank fusion (Cormack, Clarke and Büttcher, 2009): less than their 60, so that the best of one
// way goes before what is in the middle of both. TestQuestions tells the difference.
const rankPart = 10

// fuse joins what was found by words with what was found by meaning, the best first. at gives the places of facts by their ids.
func fuse(words []hit, meant []near, at map[string]int) []int {
	scores := map[int]float64{}
	for rank, h := range words {
		scores[h.place] += 1 / float64(rankPart+rank)
	}
	for rank, n := range meant {
		if place, ok := at[n.id]; ok { // it may have been forgotten meanwhile
			scores[place] += 1 / float64(rankPart+rank)
		}
	}
	places := slices.Collect(maps.Keys(scores))
	slices.SortFunc(places, func(a, b int) int { return cmp.Or(cmp.Compare(scores[b], scores[a]), cmp.Compare(a, b)) })
	return places
}
