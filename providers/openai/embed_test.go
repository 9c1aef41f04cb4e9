package openai

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"xiaozhi/internal/servicetest"
	"xiaozhi/internal/servicetest/embeddings"
	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
	"xiaozhi/providers/service"
)

func TestEmbedderContract(t *testing.T) {
	k := Kinds()[0]
	providertest.TestEmbedderContract(t, providertest.Case{Kind: k, Fake: embeddings.New, Reuses: true})
}

// embedderAt makes what asks a fake.
func embedderAt(t *testing.T, s *embeddings.Server, change func(*service.Section)) providers.Embedder {
	t.Helper()
	section := service.Section{Name: "fake", Key: servicetest.Key, BaseURL: s.URL() + "/v1", Proxy: "none"}
	if change != nil {
		change(&section)
	}
	e, err := Kinds()[0].Embed(section)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// near reports whether vectors are those of their texts.
func near(t *testing.T, texts []string, got providers.Embedding, err error) {
	t.Helper()
	if err != nil || len(got.Vectors) != len(texts) {
		t.Fatalf("%d vectors of %d texts, error %v", len(got.Vectors), len(texts), err)
	}
	for i, v := range got.Vectors {
		sum := 0.0
		for k, n := range servicetest.Vector(texts[i], len(v)) {
			sum += float64(n) * float64(v[k])
		}
		if sum < 0.999 {
			t.Fatalf("the vector of %q is another one: %v", texts[i], sum)
		}
	}
}

// TestEmbeddingServers: servers differ in the order, the form and the number of vectors at once.
func TestEmbeddingServers(t *testing.T) {
	var texts []string
	for i := range 40 {
		texts = append(texts, fmt.Sprint("text ", i))
	}
	for name, o := range map[string]embeddings.Options{
		"base64": {Packed: true}, "no index": {Bare: true}, "ten at once": {Most: 10}, "one at once, 413": {Most: 1, Status: http.StatusRequestEntityTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			s := embeddings.With(t, o)
			e := embedderAt(t, s, nil)
			got, err := e.Embed(t.Context(), providers.EmbedRequest{Texts: texts})
			near(t, texts, got, err)
			before := len(s.Requests())
			got, err = e.Embed(t.Context(), providers.EmbedRequest{Texts: texts})
			near(t, texts, got, err)
			if n := len(s.Requests()) - before; o.Most > 0 && n > 40/o.Most {
				t.Errorf("what it takes at once was not learned: %d requests", n)
			}
		})
	}
}

// TestEmbeddingErrorOfStatus200: some servers refuse with the status of success.
func TestEmbeddingErrorOfStatus200(t *testing.T) {
	s := embeddings.With(t, embeddings.Options{OfError: true})
	s.Fail(servicetest.WrongModel)
	if _, err := embedderAt(t, s, nil).Embed(t.Context(), providers.EmbedRequest{Texts: []string{"a"}}); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Error(err)
	}
}

// TestEmbeddingRequest: model, dimensions and the words that a model wants before a text go out; addresses with a path are taken.
func TestEmbeddingRequest(t *testing.T) {
	s := embeddings.With(t, embeddings.Options{})
	e := embedderAt(t, s, func(section *service.Section) {
		section.BaseURL += "/chat/completions"
		section.Models = map[service.Role]string{service.Embed: "Qwen/Qwen3-Embedding-0.6B"}
		section.Settings = map[string]any{"dimensions": 64}
	})
	for _, query := range []bool{false, true} {
		got, err := e.Embed(t.Context(), providers.EmbedRequest{Texts: []string{"tea"}, Query: query})
		if err != nil || len(got.Vectors[0]) != 64 || got.Usage.Prompt == 0 {
			t.Fatalf("%+v %v", got, err)
		}
		var body struct {
			Model string
			Input []string
		}
		asked := s.Requests()[len(s.Requests())-1]
		if err := json.Unmarshal(asked.Body, &body); err != nil || asked.Path != "/v1/embeddings" {
			t.Fatal(asked.Path, err)
		}
		if said := body.Input[0]; body.Model != "Qwen/Qwen3-Embedding-0.6B" || strings.HasPrefix(said, "Instruct: ") != query || !strings.HasSuffix(said, "tea") {
			t.Errorf("query %v: %q of %s", query, said, body.Model)
		}
	}
}

// TestEmbeddingModelsOfVendors: each vendor has a default model, or says that it must be named.
func TestEmbeddingModelsOfVendors(t *testing.T) {
	for _, k := range Kinds() {
		if k.Embed == nil {
			continue
		}
		e, err := k.Embed(service.Section{Name: "x", Key: "k", Proxy: "none"})
		if models := k.Models[service.Embed]; len(models) == 0 && (err == nil || !strings.Contains(err.Error(), "model")) || len(models) > 0 && (err != nil || e.Model() != models[0]) {
			t.Errorf("%s: %v, %v", k.Type, models, err)
		}
	}
}
