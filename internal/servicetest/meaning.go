package servicetest

import (
	"hash/fnv"
	"math"
	"strings"
	"unicode"
)

// Vector returns the vector that every fake makes of a text: of length 1, the same whenever it is asked, and near that
// of a text with the same parts of words, as models do that know subwords and nothing more. Each part counts at a place, and
// with a sign, that its hash says.
func Vector(text string, dims int) []float32 {
	sum := make([]float64, dims)
	add := func(part string, weight float64) {
		h := fnv.New64a()
		_, _ = h.Write([]byte(part)) // it takes all
		n := h.Sum64()
		if n>>63 == 1 {
			weight = -weight
		}
		sum[n%uint64(dims)] += weight
	}
	before := rune(0)
	for _, r := range text {
		if unicode.Is(unicode.Han, r) {
			add(string(r), 0.6)
			if before != 0 {
				add(string([]rune{before, r}), 1)
			}
			before = r
			continue
		}
		before = 0
	}
	for _, word := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return unicode.Is(unicode.Han, r) || !unicode.IsLetter(r) && !unicode.IsNumber(r)
	}) {
		add(word, 1)
		padded := []rune("<" + word + ">")
		for i := 0; i+4 <= len(padded); i++ {
			add(string(padded[i:i+4]), 0.4)
		}
	}
	length := 0.0
	for _, n := range sum {
		length += n * n
	}
	if length == 0 { // a text without a word
		sum[0], length = 1, 1
	}
	v := make([]float32, dims)
	for i, n := range sum {
		v[i] = float32(n / math.Sqrt(length))
	}
	return v
}
