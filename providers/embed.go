package providers

import "context"

// EmbedRequest asks for the vectors of texts.
type EmbedRequest struct {
	Texts []string // none is empty
	Query bool     // they look for what is stored, and are not stored themselves: some models must be told
}

// Embedding holds the vectors of texts.
type Embedding struct {
	Vectors [][]float32 // one of each text, in the order of the request: of length 1 and of one dimension
	Usage   Usage       // what they have cost, where it is known
}

// Embedder makes vectors of texts, which are near one another where the texts mean something alike.
type Embedder interface {
	// Name is the provider's name in the config and in logs.
	Name() string
	// Model names what makes the vectors. Those of two models, and those of two dimensions, cannot be compared.
	Model() string
	// Embed makes the vectors of texts, of all of them or of none.
	Embed(ctx context.Context, req EmbedRequest) (Embedding, error)
}
