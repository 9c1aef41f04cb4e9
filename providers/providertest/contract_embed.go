package providertest

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"xiaozhi/internal/servicetest"
	"xiaozhi/providers"
)

// TestEmbedderContract holds a client of a service that makes vectors against its fake, through every fault that the fake knows.
// Its fake makes those of [servicetest.Vector].
func TestEmbedderContract(t *testing.T, c Case) {
	t.Helper()
	t.Attr(rowsOf, "embedder")
	c.Skip = maps.Clone(c.Skip)
	c.each(t, func(tr *trial) {
		e := embedder(tr)
		times := map[bool]int{true: 3, false: 1}[tr.f == servicetest.None]
		for range times {
			got, err := e.Embed(tr.Context(), providers.EmbedRequest{Texts: vectorTexts})
			judgeVectors(tr, got, err)
		}
		if tr.f == servicetest.None && c.Reuses && tr.fake.Conns() >= times {
			tr.Errorf("%d connections for %d requests", tr.fake.Conns(), times)
		}
	})
	t.Run("cancelled before", func(t *testing.T) {
		t.Parallel()
		c.try(t, servicetest.None, func(tr *trial) {
			ctx, cancel := context.WithCancel(tr.Context())
			cancel()
			_, err := embedder(tr).Embed(ctx, providers.EmbedRequest{Texts: vectorTexts})
			tr.errs = append(tr.errs, err)
			tr.cancelled(err, 0)
		})
	})
	t.Run("cancelled while nothing comes", func(t *testing.T) {
		t.Parallel()
		c.try(t, servicetest.Silent, func(tr *trial) {
			ctx, cancel := context.WithCancel(tr.Context())
			var ended time.Time
			after(soon/10, func() { ended = time.Now(); cancel() })
			_, err := embedder(tr).Embed(ctx, providers.EmbedRequest{Texts: vectorTexts, Query: true})
			tr.cancelled(err, time.Since(ended))
		})
	})
	t.Run("nothing to do", func(t *testing.T) {
		t.Parallel()
		c.try(t, servicetest.None, func(tr *trial) {
			if got, err := embedder(tr).Embed(tr.Context(), providers.EmbedRequest{}); err != nil || len(got.Vectors) > 0 || len(tr.fake.Requests()) > 0 {
				tr.Errorf("%d vectors, error %v, %d requests", len(got.Vectors), err, len(tr.fake.Requests()))
			}
		})
	})
	t.Run("many texts, many at once", func(t *testing.T) {
		t.Parallel()
		c.try(t, servicetest.None, manyTexts)
	})
}

// vectorTexts are those of which most tests make vectors.
var vectorTexts = []string{"The key is under the mat.", servicetest.Words, "Where is the key?"}

func embedder(tr *trial) providers.Embedder {
	tr.Helper()
	e, err := tr.c.Kind.Embed(tr.section())
	if err != nil {
		tr.Fatal(err)
	}
	if e.Name() != "under-test" || e.Model() == "" {
		tr.Errorf("it is called %q, its model %q", e.Name(), e.Model())
	}
	return e
}

// judgeVectors looks at what came of the usual texts under a fault.
func judgeVectors(tr *trial, got providers.Embedding, err error) {
	tr.Helper()
	if _, fails := usual(tr.f); fails {
		tr.wantKind(err)
		return
	}
	if err == nil {
		err = sameVectors(vectorTexts, got.Vectors)
	}
	if err != nil {
		tr.Error(err)
	}
	if got.Usage.Prompt == 0 {
		tr.Error("it is not told what that has cost")
	}
}

// sameVectors says which vectors are not those of their texts: each is of length 1, and nearest to its own.
func sameVectors(texts []string, got [][]float32) error {
	if len(got) != len(texts) {
		return fmt.Errorf("%d vectors of %d texts", len(got), len(texts))
	}
	for i, v := range got {
		want := servicetest.Vector(texts[i], len(v))
		if near := dot(v, want); math.Abs(near-1) > 1e-3 || math.Abs(dot(v, v)-1) > 1e-4 {
			return fmt.Errorf("the vector of %q is another one: %v", texts[i], near)
		}
	}
	return nil
}

func dot(a, b []float32) (sum float64) {
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

// manyTexts makes more vectors than a service takes at once, by several goroutines.
func manyTexts(tr *trial) {
	e := embedder(tr)
	done := make(chan error)
	for range 3 {
		go func() {
			var texts []string
			for i := range 150 {
				texts = append(texts, fmt.Sprint("fact number ", i, " ", servicetest.Words))
			}
			got, err := e.Embed(tr.Context(), providers.EmbedRequest{Texts: slices.Clone(texts)})
			if err == nil {
				err = sameVectors(texts, got.Vectors)
			}
			done <- err
		}()
	}
	for range 3 {
		if err := <-done; err != nil {
			tr.Error(err)
		}
	}
}
