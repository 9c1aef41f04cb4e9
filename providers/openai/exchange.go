package openai

import (
	"context"
	"net/http"

	"xiaozhi/providers"
	"xiaozhi/providers/transport"
)

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
	o.authorize(req)
	return o.HTTPClient.Do(req)
}

// authorize adds the key and the configured headers.
func (o Options) authorize(req *http.Request) {
	if o.APIKey != "" {
		req.Header.Set("Authorization", "Bearer "+o.APIKey.Reveal())
	}
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
	return o.account().Wrap(ctx, reqCtx, op, err)
}

var _ providers.Warmer = (*LLM)(nil)

// Warm opens a connection for the next request, if none waits for it already.
func (l *LLM) Warm(ctx context.Context) error { return l.o.warm(ctx) }

// warm asks for the head of the list of models, which costs nothing.
func (o Options) warm(ctx context.Context) error {
	return o.account().Warm(ctx, o.HTTPClient, func(ctx context.Context) (*http.Response, error) { return o.do(ctx, http.MethodHead, "/models") })
}
