package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/generation"
	"xiaozhi/providers/transport"
)

// ollamaDeadline bounds the search for a local server at the start.
const ollamaDeadline = 700 * time.Millisecond

// FindOllama asks an Ollama server at base, for example
// "http://127.0.0.1:11434" (with or without /v1), for its first model that can
// hold a conversation. It returns within 0.7 s. No server, or none with such a
// model, is an error.
func FindOllama(ctx context.Context, base string) (model string, err error) {
	return findOllama(ctx, base, ollamaDeadline)
}

// findOllama is [FindOllama] within a time limit.
func findOllama(ctx context.Context, base string, limit time.Duration) (model string, err error) {
	base = strings.TrimSuffix(strings.TrimRight(base, "/"), "/v1")
	o := Options{Name: "ollama", BaseURL: base, Timeouts: Timeouts{Connect: limit}}
	if err := generation.CheckURL(base); err != nil {
		return "", fmt.Errorf("ollama: base_url: %w", err)
	}
	o.HTTPClient = NewHTTPClient(o.Timeouts)
	defer o.HTTPClient.CloseIdleConnections()
	reqCtx, cancel := context.WithTimeoutCause(ctx, limit, transport.ErrStalled)
	defer cancel()
	names, err := o.ollamaModels(reqCtx)
	if err != nil {
		return "", o.wrap(ctx, reqCtx, "find model", err)
	}
	if i := slices.IndexFunc(names, canChat); i >= 0 {
		return names[i], nil
	}
	err = fmt.Errorf("none of its %d models can hold a conversation", len(names))
	return "", &providers.Error{Provider: o.Name, Op: "find model", Kind: providers.BadRequest, Err: err}
}

// ollamaModels lists the models by Ollama's own way, else by the common one.
func (o Options) ollamaModels(ctx context.Context) ([]string, error) {
	var reply struct {
		Models []struct { // of /api/tags
			Name    string `json:"name"`
			Details struct {
				Family string `json:"family"`
			} `json:"details"`
		} `json:"models"`
		Data []struct { // of /v1/models
			ID string `json:"id"`
		} `json:"data"`
	}
	body, err := o.list(ctx, "/api/tags")
	if refused, ok := errors.AsType[*transport.Refusal](err); ok && refused.Status == http.StatusNotFound {
		body, err = o.list(ctx, "/v1/models")
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(body, &reply); err != nil {
		return nil, fmt.Errorf("the reply is not the JSON expected: %w", err)
	}
	var names []string
	for _, m := range reply.Models {
		if !strings.Contains(strings.ToLower(m.Details.Family), "bert") { // the embedding families
			names = append(names, m.Name)
		}
	}
	for _, m := range reply.Data {
		names = append(names, m.ID)
	}
	return names, nil
}

// list reads a list of models.
func (o Options) list(ctx context.Context, path string) ([]byte, error) {
	resp, err := o.do(ctx, http.MethodGet, path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if err := refusal(resp); err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxReply))
	if err != nil {
		return nil, err
	}
	if message, ok := transport.ErrorMessage(body); ok { // of status 200, as some gateways send it
		return nil, &transport.Refusal{Status: resp.StatusCode, Text: message}
	}
	return body, nil
}

// canChat judges a model by its name: those for other work say so there.
func canChat(name string) bool {
	name = strings.ToLower(name)
	others := []string{"embed", "bge-", "minilm", "rerank", "whisper", "tts", "clip"}
	return name != "" && !slices.ContainsFunc(others, func(other string) bool { return strings.Contains(name, other) })
}
