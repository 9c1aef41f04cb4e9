package openai

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	gopenai "github.com/sashabaranov/go-openai"

	"xiaozhi/providers"
	"xiaozhi/providers/transport"
)

const (
	maxStream  = 16 << 20               // bytes of one answer
	drainLimit = 100 * time.Millisecond // for the end of a finished stream, so that its connection can be used again
)

// library returns go-openai's client, which makes its requests through d.
func (o Options) library(d gopenai.HTTPDoer) *gopenai.Client {
	config := gopenai.DefaultConfig(o.APIKey.Reveal())
	config.BaseURL, config.HTTPClient, config.EmptyMessagesLimit = o.BaseURL, d, maxStream
	return gopenai.NewClientWithConfig(config)
}

// sender sends the requests that go-openai makes. It adds the configured headers
// and makes a refusal an error: go-openai would read the body of one without a
// limit.
type sender struct {
	o   Options
	raw []byte // the body of the request in place of go-openai's; nil: that one
}

// Do sends a request. A status other than 200 to 299 is a [*transport.Refusal].
func (s *sender) Do(req *http.Request) (*http.Response, error) {
	if s.raw != nil {
		req.Body = io.NopCloser(bytes.NewReader(s.raw))
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(s.raw)), nil }
		req.ContentLength = int64(len(s.raw))
	}
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

// exchange sends one chat request. go-openai makes the request but for its body,
// and reads the events; exchange keeps what go-openai does not hand out. It is
// for one goroutine.
type exchange struct {
	sender
	body *watchedBody // of the response; nil until there is one
}

// Do sends the request. A refusal, and a reply that is not an event stream, is an
// error.
func (x *exchange) Do(req *http.Request) (*http.Response, error) {
	resp, err := x.sender.Do(req)
	if err != nil {
		return nil, err
	}
	if media, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err == nil && (media == "application/json" || media == "text/html") {
		defer func() { _ = resp.Body.Close() }()
		return nil, notAStream(resp, media)
	}
	x.body = &watchedBody{ReadCloser: resp.Body, left: maxStream}
	resp.Body = x.body
	return resp, nil
}

// notAStream returns the error for a reply of status 200 that holds no events.
func notAStream(resp *http.Response, media string) error {
	refusal := transport.ReadRefusal(resp)
	refusal.Kind = providers.Unavailable
	if media != "application/json" || !strings.HasPrefix(refusal.Text, "{") {
		return refusal
	}
	return errors.New("the reply is not an event stream: " + refusal.Text)
}

// tokenLimitKey returns the key of the token limit. OpenAI's reasoning models refuse
// the older name, most other servers know only that one.
func tokenLimitKey(model string) string {
	for _, prefix := range []string{"o1", "o3", "o4", "gpt-5", "gpt-6"} {
		if strings.HasPrefix(model, prefix) {
			return "max_completion_tokens"
		}
	}
	return "max_tokens"
}

// watchedBody bounds a stream and remembers whether its end mark went by, which
// go-openai does not tell from a connection that broke.
type watchedBody struct {
	io.ReadCloser
	left int
	tail []byte // the last bytes read, fewer than the mark has
	done bool
}

// The end mark, as servers write it.
const (
	endMark      = "data: [DONE]"
	endMarkTight = "data:[DONE]"
)

// Read reads and looks for the end mark, also across two reads.
func (w *watchedBody) Read(p []byte) (int, error) {
	if w.left <= 0 {
		return 0, fmt.Errorf("the answer is longer than %d bytes", maxStream)
	}
	n, err := w.ReadCloser.Read(p[:min(len(p), w.left)])
	w.left -= n
	if n > 0 && !w.done {
		seen := append(w.tail, p[:n]...)
		w.done = bytes.Contains(seen, []byte(endMark)) || bytes.Contains(seen, []byte(endMarkTight))
		w.tail = append(w.tail[:0], seen[max(0, len(seen)-len(endMark)+1):]...)
	}
	return n, err
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
