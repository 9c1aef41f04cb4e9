package ollama

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"xiaozhi/internal/servicetest"
	fake "xiaozhi/internal/servicetest/ollamanative"
	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
	"xiaozhi/providers/service"
)

func TestEmbedderContract(t *testing.T) {
	providertest.TestEmbedderContract(t, providertest.Case{Kind: Kind(), Fake: fake.New, Reuses: true})
}

// TestEmbedRequest: what is sent is what /api/embed takes, and Warm loads the model once.
func TestEmbedRequest(t *testing.T) {
	s := fake.New(t)
	e, err := NewEmbedder(service.Section{Name: "home", BaseURL: s.URL() + "/v1", Proxy: "none", Settings: map[string]any{"dimensions": 32}, Models: map[service.Role]string{service.Embed: "nomic-embed-text"}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := e.Warm(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(s.Requests()); n != 1 {
		t.Errorf("%d requests to load a model", n)
	}
	got, err := e.Embed(t.Context(), providers.EmbedRequest{Texts: []string{"tea"}, Query: true})
	if err != nil || len(got.Vectors[0]) != 32 {
		t.Fatal(got, err)
	}
	asked := s.Requests()[1]
	var body map[string]any
	if err := json.Unmarshal(asked.Body, &body); err != nil {
		t.Fatal(err)
	}
	if asked.Path != "/api/embed" || body["keep_alive"] != "30m" || body["truncate"] != true || body["input"].([]any)[0] != "search_query: tea" {
		t.Errorf("%s %s", asked.Path, asked.Body)
	}
}

// TestEmbedByChatModel: that a model makes no vectors is told in the server's words.
func TestEmbedByChatModel(t *testing.T) {
	s := fake.New(t)
	e, err := NewEmbedder(service.Section{Name: "home", BaseURL: s.URL(), Proxy: "none", Models: map[service.Role]string{service.Embed: "qwen3:4b"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Embed(t.Context(), providers.EmbedRequest{Texts: []string{"tea"}}); err == nil || !strings.Contains(err.Error(), "does not support embeddings") {
		t.Error(err)
	}
	if !slices.ContainsFunc(s.Requests(), func(r servicetest.Request) bool { return r.Path == "/api/embed" }) {
		t.Error("it was not asked")
	}
}
