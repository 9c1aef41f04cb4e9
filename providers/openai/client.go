package openai

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"xiaozhi/providers"
)

const (
	maxErrorBody = 64 << 10 // bytes of an error's body that are read
	maxReply     = 4 << 20  // bytes of a JSON reply that are read
)

// send makes one request of path below the base URL. The caller closes the body
// of the response, whose status is 200 to 299. Errors are not yet wrapped.
//
// Transcriptions and lists of models use it and not go-openai, whose reply types
// refuse what servers send: a segment whose id is a text, a language that is a
// list, a plain text, an error of status 200, a date that is not a whole number.
func (o Options) send(ctx context.Context, method, path, contentType string, body io.Reader) (*http.Response, error) {
	return accepted(o.do(ctx, method, path, contentType, body))
}

// do is send with a response of any status.
func (o Options) do(ctx context.Context, method, path, contentType string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, o.BaseURL+path, body)
	if err != nil {
		return nil, &statusError{kind: providers.BadRequest, text: "the request cannot be made"}
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
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

// readJSON decodes a reply of limited length. An error object in a reply of
// status 200, as some gateways send it, is an error.
func readJSON(resp *http.Response, into any) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxReply))
	if err != nil {
		return err
	}
	if message, ok := errorMessage(body); ok {
		return &statusError{status: resp.StatusCode, text: message}
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("the reply is not the JSON expected: %w", err)
	}
	return nil
}

// Models asks the endpoint which models it has.
func (l *LLM) Models(ctx context.Context) ([]string, error) {
	const op = "list models"
	reqCtx, cancel := context.WithTimeoutCause(ctx, l.o.Timeouts.Transcribe, errStalled)
	defer cancel()
	resp, err := l.o.send(reqCtx, http.MethodGet, "/models", "", nil)
	if err != nil {
		return nil, l.o.wrap(ctx, reqCtx, op, err)
	}
	defer func() { _ = resp.Body.Close() }()
	var reply struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := readJSON(resp, &reply); err != nil {
		return nil, l.o.wrap(ctx, reqCtx, op, err)
	}
	ids := make([]string, 0, len(reply.Data))
	for _, m := range reply.Data {
		if id := strings.TrimSpace(m.ID); id != "" {
			ids = append(ids, id)
		}
	}
	return ids, nil
}
