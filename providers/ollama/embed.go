package ollama

import (
	"context"
	"net/http"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/embedding"
	"xiaozhi/providers/generation"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

// embedders are models that make vectors, the default first: it knows Chinese and English.
var embedders = []string{"bge-m3", "qwen3-embedding:0.6b", "embeddinggemma", "nomic-embed-text"}

// embedBatch is how many texts a server at home is given at once: it works them off one after another.
const embedBatch = 16

// NewEmbedder makes what has the server of a section make vectors, by POST /api/embed. It asks the server nothing.
func NewEmbedder(s service.Section) (*embedding.Embedder, error) {
	base, at, err := generation.FromSection(s, service.Embed, address(s), embedders[0])
	if err != nil {
		return nil, err
	}
	w := &wire{s: s, at: at, model: base.Model, account: base.Account}
	request := func(ctx context.Context, texts []string) (*http.Request, error) {
		w.used.Store(time.Now().UnixNano())
		body := map[string]any{"model": w.model, "input": texts, "truncate": true, "keep_alive": w.keep()}
		if d := s.Number("dimensions", 0); d > 0 {
			body["dimensions"] = int(d)
		}
		return w.at.Post(ctx, "/api/embed", body, "Authorization", w.bearer())
	}
	o := embedding.Options{
		Account: w.account, Client: at.Client, Model: w.model, Batch: embedBatch, Tries: s.Tries(), Limit: s.Timeouts.First, Request: request, Read: readEmbeddings,
	}
	own := o
	own.Limit = loadTime
	loader := embedding.New(own)
	o.Warm = func(ctx context.Context) error { // it loads the model, unless that was used a short time ago
		if !w.idle() {
			return nil
		}
		_, err := loader.Embed(ctx, providers.EmbedRequest{Texts: []string{"."}, Query: true})
		if err != nil {
			w.used.Store(0)
		}
		return err
	}
	return embedding.New(o), nil
}

// readEmbeddings reads an answer: vectors in the order of their texts.
func readEmbeddings(body []byte) (a embedding.Answer, err error) {
	var reply struct {
		Embeddings []embedding.Numbers `json:"embeddings"`
		Prompt     transport.Int       `json:"prompt_eval_count"`
	}
	if err := transport.Decode(body, &reply); err != nil {
		return a, err
	}
	for i, v := range reply.Embeddings {
		a.Vectors = append(a.Vectors, embedding.Vector{Place: i, Numbers: v})
	}
	a.Usage.Prompt = int(reply.Prompt)
	return a, nil
}
