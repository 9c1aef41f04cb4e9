package openai

import (
	"context"
	"net/http"
	"strings"

	"xiaozhi/providers"
	"xiaozhi/providers/embedding"
	"xiaozhi/providers/generation"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

// Embeddings lists the models of a vendor that make vectors with this wire format, by POST embeddings.
type Embeddings struct {
	Models []string // the default first; none: it must be named
	Batch  int      // texts in one request; 0: as many as ours
}

// embeds lists the models that make vectors of all vendors, by their types.
func embeds() map[string]Embeddings {
	return map[string]Embeddings{
		"openai":        {Models: []string{"text-embedding-3-small", "text-embedding-3-large"}},
		"mistral":       {Models: []string{"mistral-embed"}},
		"gemini-openai": {Models: []string{"gemini-embedding-001"}},
		"dashscope":     {Models: []string{"text-embedding-v4", "text-embedding-v3"}, Batch: 10},
		"glm":           {Models: []string{"embedding-3", "embedding-2"}},
		"siliconflow":   {Models: []string{"BAAI/bge-m3", "Qwen/Qwen3-Embedding-0.6B"}, Batch: 32},
		"ollama-openai": {Models: []string{"bge-m3", "nomic-embed-text"}, Batch: 32},
		"lmstudio":      {Batch: 32},
		"vllm":          {Batch: 32},
		"llamacpp":      {Models: []string{"default"}, Batch: 32},
		"xinference":    {Batch: 32},
	}
}

// embeds adds to a kind what its vendor makes vectors with.
func (v Vendor) embeds(k *service.Kind) {
	e, ok := embeds()[v.Type]
	if !ok {
		return
	}
	k.Models[service.Embed] = e.Models
	k.More = append(k.More, service.Setting{Name: "dimensions", Type: service.Number})
	k.Embed = func(section service.Section) (providers.Embedder, error) { return v.embedder(e, section) }
}

// embedder makes the vectors of a section.
func (v Vendor) embedder(e Embeddings, section service.Section) (providers.Embedder, error) {
	first := ""
	if len(e.Models) > 0 {
		first = e.Models[0]
	}
	address := strings.TrimSuffix(strings.TrimRight(section.Address(v.Regions, v.Address), "/"), "/chat/completions")
	base, at, err := generation.FromSection(section, service.Embed, address, first)
	if err != nil {
		return nil, err
	}
	bearer := ""
	if section.Key != "" {
		bearer = "Bearer " + section.Key.Reveal()
	}
	at.Base = service.Join(at.Base, "/embeddings")
	request := func(ctx context.Context, texts []string) (*http.Request, error) {
		body := map[string]any{"model": base.Model, "input": texts}
		if d := section.Number("dimensions", 0); d > 0 {
			body["dimensions"] = int(d)
		}
		return at.Post(ctx, "", body, "Authorization", bearer)
	}
	models := generation.Endpoint{Base: service.Join(address, "/models"), Headers: at.Headers, Client: at.Client}
	return embedding.New(embedding.Options{
		Account: base.Account, Client: at.Client, Model: base.Model, Batch: e.Batch, Tries: section.Tries(), Limit: section.Timeouts.First,
		Request: request, Read: readEmbeddings, Judge: judge,
		Warm: func(ctx context.Context) error {
			return base.Account.Warm(ctx, at.Client, func(ctx context.Context) (*http.Response, error) {
				return models.Head(ctx, "", "Authorization", bearer)
			})
		},
	}), nil
}

// readEmbeddings reads the answer of an OpenAI-compatible server. Vectors need not come in the order of their texts.
func readEmbeddings(body []byte) (a embedding.Answer, err error) {
	var reply struct {
		Data []struct {
			Index     *int              `json:"index"`
			Embedding embedding.Numbers `json:"embedding"`
		} `json:"data"`
		Usage struct {
			Prompt transport.Int `json:"prompt_tokens"`
			Total  transport.Int `json:"total_tokens"`
		} `json:"usage"`
	}
	if err := transport.Decode(body, &reply); err != nil {
		return a, err
	}
	for i, d := range reply.Data {
		if d.Index != nil { // some servers leave it out
			i = *d.Index
		}
		a.Vectors = append(a.Vectors, embedding.Vector{Place: i, Numbers: d.Embedding})
	}
	a.Usage.Prompt = int(max(reply.Usage.Prompt, reply.Usage.Total))
	return a, nil
}
