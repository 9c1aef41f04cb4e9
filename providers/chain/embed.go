package chain

import (
	"context"
	"errors"
	"time"

	"xiaozhi/providers"
)

// Embedder makes vectors, behind a breaker. Its first member makes all of them: those of another one could not be
// compared with what is stored.
type Embedder struct{ list[providers.Embedder] }

// NewEmbedder makes one. It has no members of its own: at least one is needed.
func NewEmbedder(members []providers.Embedder, o Options) (*Embedder, error) {
	l, err := newList(members, o, "embed")
	if err != nil {
		return nil, err
	}
	return &Embedder{l}, nil
}

// Model names what makes the vectors.
func (e *Embedder) Model() string { return e.members[0].Model() }

// Embed makes the vectors of texts. While the member is left out after failures it fails at once.
func (e *Embedder) Embed(ctx context.Context, req providers.EmbedRequest) (providers.Embedding, error) {
	if !e.breakers[0].allow() {
		return providers.Embedding{}, &providers.Error{Provider: e.Name(), Op: e.op, Kind: providers.Unavailable, Err: errResting}
	}
	begun := time.Now()
	got, err := e.members[0].Embed(ctx, req)
	if e.report(0, err); err == nil {
		e.breakers[0].gave(time.Since(begun))
	}
	return got, err
}

// errResting says that a member was not asked.
var errResting = errors.New("left out after failures")
