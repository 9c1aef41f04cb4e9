package providertest

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"xiaozhi/internal/servicetest"
	"xiaozhi/providers"
)

// Embedder is a fake that makes the vectors of [servicetest.Vector].
type Embedder struct {
	Label string        // its name; "fake-embedder" if empty
	Kind  string        // its model; "fake" if empty
	Dims  int           // 256 if 0
	Delay time.Duration // of each answer
	Err   error         // of each answer; nil: none

	mu    sync.Mutex
	asked []providers.EmbedRequest
}

// Name returns the label.
func (e *Embedder) Name() string { return cmp.Or(e.Label, "fake-embedder") }

// Model names the model.
func (e *Embedder) Model() string { return cmp.Or(e.Kind, "fake") }

// Asked lists what vectors were asked for so far.
func (e *Embedder) Asked() []providers.EmbedRequest {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.asked)
}

// Fail has all answers be an error from now on; nil: none.
func (e *Embedder) Fail(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.Err = err
}

// Embed makes vectors, after the delay.
func (e *Embedder) Embed(ctx context.Context, req providers.EmbedRequest) (made providers.Embedding, err error) {
	e.mu.Lock()
	e.asked = append(e.asked, req)
	failure := e.Err
	e.mu.Unlock()
	if e.Delay > 0 {
		timer := time.NewTimer(e.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	if err := cmp.Or(ctx.Err(), failure); err != nil {
		return made, err
	}
	for _, t := range req.Texts {
		made.Vectors = append(made.Vectors, servicetest.Vector(t, cmp.Or(e.Dims, 256)))
		made.Usage.Prompt += 1 + len(t)/4
	}
	return made, nil
}
