package probe

import (
	"context"
	"time"

	"xiaozhi/providers"
)

// Embedded holds what came of three sentences of which vectors were made.
type Embedded struct {
	Took       time.Duration
	Dimensions int
	Tokens     int
	Right      bool // the sentence that means the same was nearer than the other
}

// Embed has vectors made of a question, of a sentence that answers it, and of one that does not.
func Embed(ctx context.Context, by providers.Embedder, question, near, far string) (e Embedded, err error) {
	begun := time.Now()
	asked, err := by.Embed(ctx, providers.EmbedRequest{Texts: []string{question}, Query: true})
	if err != nil {
		return e, err
	}
	e.Took = time.Since(begun)
	stored, err := by.Embed(ctx, providers.EmbedRequest{Texts: []string{near, far}})
	if err != nil {
		return e, err
	}
	q := asked.Vectors[0]
	e.Dimensions, e.Tokens = len(q), asked.Usage.Prompt+stored.Usage.Prompt
	e.Right = alike(q, stored.Vectors[0]) > alike(q, stored.Vectors[1])
	return e, nil
}

// alike is the cosine of the angle between two vectors of length 1; 0 for those that cannot be compared.
func alike(a, b []float32) (sum float32) {
	if len(a) != len(b) {
		return 0
	}
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}
