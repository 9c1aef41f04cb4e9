package knowledge

import (
	"context"
	"encoding/binary"
	"math"
	"slices"
	"time"
)

// Embedder makes vectors of texts, which are near one another where the texts mean something alike. Its methods may be called
// at the same time.
type Embedder interface {
	// Model names what makes the vectors: those of two models cannot be compared.
	Model() string
	// Embed makes the vectors of texts, in their order, of length 1. query says that they look for what is stored.
	Embed(ctx context.Context, texts []string, query bool) ([][]float32, error)
}

// Vectors.
const (
	meaningTime = 1500 * time.Millisecond // that a search waits for the vector of its query
	batch       = 32                      // pieces that are given to an embedder at once
	rankPart    = 60                      // of reciprocal rank fusion (Cormack, Clarke and Büttcher, 2009)
	nearest     = 0.3                     // cosine that a piece must have to be found by its meaning alone
	nearPart    = 0.85                    // and that part of the best one's
	scaleBytes  = 4
)

// quantise writes a vector with a byte for each number, after the scale of all: a quarter of its size, and the cosine of two
// differs by less than a hundredth.
func quantise(v []float32) []byte {
	most := float32(0)
	for _, x := range v {
		most = max(most, float32(math.Abs(float64(x))))
	}
	scale := most / 127
	if !(scale > 0) || math.IsInf(float64(scale), 0) {
		scale = 1
	}
	out := binary.LittleEndian.AppendUint32(make([]byte, 0, scaleBytes+len(v)), math.Float32bits(scale))
	for _, x := range v {
		out = append(out, byte(int8(math.Round(float64(x/scale)))))
	}
	return out
}

// dot returns the product of two vectors of the same length, quantised.
func dot(a, b []byte) float64 {
	scale := float64(math.Float32frombits(binary.LittleEndian.Uint32(a))) * float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	a, b = a[scaleBytes:], b[scaleBytes:]
	b = b[:len(a)]
	sum := 0
	for i := range a {
		sum += int(int8(a[i])) * int(int8(b[i]))
	}
	return float64(sum) * scale
}

// withVectors returns the index with the vectors of its pieces; without any if they are not all there.
func (x *index) withVectors(v [][]byte) *index {
	y := *x
	y.vectors, y.distance = nil, 0
	if len(v) != len(x.lengths) || len(v) == 0 || len(v[0]) <= scaleBytes {
		return &y
	}
	for _, one := range v {
		if len(one) != len(v[0]) {
			return &y
		}
	}
	y.vectors, y.distance = slices.Concat(v...), len(v[0])
	return &y
}

// byMeaning finds more pieces by their vectors, and joins them with what was found by words. Without an embedder, or when that
// fails or is late, it returns those.
func (l *Library) byMeaning(ctx context.Context, query string, volumes []volume, words []hit) []hit {
	e := l.o.Embedder()
	if e == nil || query == "" {
		return words
	}
	ctx, cancel := context.WithTimeout(ctx, meaningTime)
	defer cancel()
	made, err := e.Embed(ctx, []string{query}, true)
	if err != nil || len(made) != 1 {
		l.o.Log.Debug("a search goes by words alone", "err", err)
		return words
	}
	asked := quantise(made[0])
	var near []hit
	for v := range volumes {
		x := volumes[v].index
		if x.distance != len(asked) {
			continue
		}
		for piece := range x.lengths {
			if score := dot(asked, x.vectors[piece*x.distance:(piece+1)*x.distance]); score >= nearest {
				near = append(near, hit{&volumes[v], piece, score})
			}
		}
	}
	slices.SortFunc(near, better)
	near = near[:min(len(near), candidates)]
	for i, h := range near {
		if h.score < nearPart*near[0].score {
			near = near[:i]
			break
		}
	}
	return fuse(words, near)
}

// fuse joins lists by the ranks of what is in them.
func fuse(lists ...[]hit) (all []hit) {
	for _, list := range lists {
		for rank, h := range list {
			h.score = 1 / float64(rankPart+rank+1)
			i := slices.IndexFunc(all, func(o hit) bool { return o.volume == h.volume && o.piece == h.piece })
			if i < 0 {
				all = append(all, h)
			} else {
				all[i].score += h.score
			}
		}
	}
	slices.SortFunc(all, better)
	return all[:min(len(all), candidates)]
}
