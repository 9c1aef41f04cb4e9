package openai

import (
	"context"
	"errors"
	"net/http"

	gopenai "github.com/sashabaranov/go-openai"

	"xiaozhi/providers"
	"xiaozhi/providers/transport"
)

const maxStream = 16 << 20 // bytes of one answer

// library returns go-openai's client, which makes its requests through d.
func (o Options) library(d gopenai.HTTPDoer) *gopenai.Client {
	config := gopenai.DefaultConfig(o.APIKey.Reveal())
	config.BaseURL, config.HTTPClient, config.EmptyMessagesLimit = o.BaseURL, d, maxStream
	return gopenai.NewClientWithConfig(config)
}

// sender sends the requests that go-openai makes. It adds the configured headers
// and makes a refusal an error: go-openai would read the body of one without a
// limit.
type sender struct{ o Options }

// Do sends a request. A status other than 200 to 299 is a [*transport.Refusal].
func (s *sender) Do(req *http.Request) (*http.Response, error) {
	req.Header.Del("Connection") // HTTP/2 knows no such header, and HTTP/1.1 keeps alive anyway
	s.o.setHeaders(req)
	resp, err := s.o.HTTPClient.Do(req)
	if err != nil {
		return nil, err
	}
	if err := refusal(resp); err != nil {
		_ = resp.Body.Close()
		return nil, err
	}
	return resp, nil
}

// refusal returns the [*transport.Refusal] of a response whose status is not 200 to 299, else nil.
func refusal(resp *http.Response) error {
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return transport.ReadRefusal(resp)
	}
	return nil
}

const maxReply = 4 << 20 // bytes of a JSON reply that are read

// do makes one request without a body, of a path below the base URL. The caller
// closes the body of the response. Errors are not yet wrapped.
func (o Options) do(ctx context.Context, method, path string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, o.BaseURL+path, nil)
	if err != nil {
		return nil, &transport.Refusal{Kind: providers.BadRequest, Text: "the request cannot be made"}
	}
	if o.APIKey != "" {
		req.Header.Set("Authorization", "Bearer "+o.APIKey.Reveal())
	}
	o.setHeaders(req)
	return o.HTTPClient.Do(req)
}

// setHeaders adds the configured headers.
func (o Options) setHeaders(req *http.Request) {
	for name, value := range o.Headers {
		req.Header.Set(name, value.Reveal())
	}
}

// account returns the name of the provider and its secrets, for errors.
func (o Options) account() transport.Account {
	a := transport.Account{Name: o.Name, Secrets: []providers.Secret{o.APIKey}}
	for _, value := range o.Headers {
		if len(value) >= 8 { // shorter ones are words like "true"
			a.Secrets = append(a.Secrets, value)
		}
	}
	return a
}

// wrap makes the error that leaves this package.
func (o Options) wrap(ctx, reqCtx context.Context, op string, err error) error {
	if api, ok := errors.AsType[*gopenai.APIError](err); ok {
		err = &transport.Refusal{Status: api.HTTPStatusCode, Text: api.Message}
	}
	return o.account().Wrap(ctx, reqCtx, op, err)
}

var (
	_ providers.Warmer = (*LLM)(nil)
	_ providers.Warmer = (*ASR)(nil)
	_ providers.Warmer = (*TTS)(nil)
)

// Warm opens a connection for the next request, if none waits for it already.
func (l *LLM) Warm(ctx context.Context) error { return l.o.warm(ctx) }

// Warm opens a connection for the next request, if none waits for it already.
func (a *ASR) Warm(ctx context.Context) error { return a.o.warm(ctx) }

// Warm opens a connection for the next request, if none waits for it already.
func (t *TTS) Warm(ctx context.Context) error { return t.o.warm(ctx) }

// warm asks for the head of the list of models, which costs nothing.
func (o Options) warm(ctx context.Context) error {
	return o.account().Warm(ctx, o.HTTPClient, func(ctx context.Context) (*http.Response, error) { return o.do(ctx, http.MethodHead, "/models") })
}
