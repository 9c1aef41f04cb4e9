package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	gopenai "github.com/sashabaranov/go-openai"

	"xiaozhi/internal/text"
	"xiaozhi/providers"
)

const maxErrorText = 320 // bytes of a server's words that are kept

// errStalled is the cause of a request that was ended because the server gave nothing in time.
var errStalled = errors.New("the server gave nothing in time")

// statusError is a server's refusal.
type statusError struct {
	status int // HTTP status; 0 or 2xx if the error came inside a reply
	kind   providers.Kind
	text   string
	after  time.Duration // Retry-After; 0 if it did not say
}

// Error returns the status and the server's words.
func (e *statusError) Error() string {
	if e.status == 0 {
		return e.text
	}
	return fmt.Sprintf("status %d: %s", e.status, e.text)
}

// kindOf maps an HTTP status to the kind of error.
func kindOf(status int) providers.Kind {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return providers.Unauthorized
	case http.StatusTooManyRequests:
		return providers.RateLimited
	case http.StatusBadRequest, http.StatusNotFound, http.StatusUnprocessableEntity:
		return providers.BadRequest
	}
	return providers.Unavailable
}

// readStatus makes the error of a response that is a refusal. It reads, but does not close, the body.
func readStatus(resp *http.Response) *statusError {
	e := &statusError{status: resp.StatusCode, kind: kindOf(resp.StatusCode), after: retryAfter(resp.Header)}
	// A body that breaks off still says more than none.
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	message, ok := errorMessage(body)
	if !ok {
		message, ok = detailMessage(body)
	}
	if !ok {
		message = string(body)
	}
	if e.text = strings.TrimSpace(message); e.text == "" {
		e.text = http.StatusText(resp.StatusCode)
	}
	return e
}

// retryAfter reads the header's form in seconds; the form with a date is rare and taken as not given.
func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.ParseFloat(h.Get("Retry-After"), 64)
	if err != nil || !(seconds > 0 && seconds <= 3600) { // so that NaN is none
		return 0
	}
	return time.Duration(seconds * float64(time.Second))
}

// errorMessage finds the words in {"error": {"message": …}}, {"error": "…"} and
// {"object": "error", "message": …}, the shapes in use.
func errorMessage(body []byte) (string, bool) {
	var reply struct {
		Error   json.RawMessage `json:"error"`
		Object  string          `json:"object"`
		Message string          `json:"message"`
	}
	if json.Unmarshal(body, &reply) != nil {
		return "", false
	}
	if len(reply.Error) == 0 || string(reply.Error) == "null" {
		return reply.Message, reply.Object == "error"
	}
	var plain string
	if json.Unmarshal(reply.Error, &plain) == nil {
		return plain, true
	}
	var nested struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(reply.Error, &nested) == nil && nested.Message != "" {
		return nested.Message, true
	}
	return string(reply.Error), true
}

// detailMessage finds the words in {"detail": "…"} and {"detail": [{"loc": […],
// "msg": …}]}, in which servers in Python say what is wrong with a request. The
// request itself, which they quote beside it, holds what the user said: it is
// left out.
func detailMessage(body []byte) (string, bool) {
	var reply struct {
		Detail json.RawMessage `json:"detail"`
	}
	if json.Unmarshal(body, &reply) != nil || len(reply.Detail) == 0 {
		return "", false
	}
	var plain string
	if json.Unmarshal(reply.Detail, &plain) == nil {
		return plain, true
	}
	var faults []struct {
		Loc []any  `json:"loc"`
		Msg string `json:"msg"`
	}
	if json.Unmarshal(reply.Detail, &faults) != nil || len(faults) == 0 {
		return "", false
	}
	var words []string
	for _, f := range faults {
		words = append(words, fmt.Sprint(f.Loc, " ", f.Msg))
	}
	return strings.Join(words, "; "), true
}

// wrap makes the error that leaves this package: ctx's own error unchanged when
// ctx has ended, else a *providers.Error. reqCtx is the request's own context,
// whose cause tells a stall from a hang-up.
func (o Options) wrap(ctx, reqCtx context.Context, op string, err error) error {
	if ended := ctx.Err(); ended != nil {
		return ended
	}
	if errors.Is(context.Cause(reqCtx), errStalled) {
		err = errStalled
	}
	kind := providers.Unavailable
	if refused, ok := errors.AsType[*statusError](err); ok {
		kind = refused.kind
		clean := *refused
		clean.text = o.clean(refused.text)
		err = &clean
	} else if api, ok := errors.AsType[*gopenai.APIError](err); ok {
		err = &statusError{status: api.HTTPStatusCode, text: api.Message}
	} else if dialed, ok := errors.AsType[*url.Error](err); ok {
		err = dialed.Err // the URL may hold a key
	}
	if clean := o.clean(err.Error()); clean != err.Error() { // it shows a secret or is too long
		err = errors.New(clean)
	}
	return &providers.Error{Provider: o.Name, Op: op, Kind: kind, Err: err}
}

// clean returns words as one line of valid text, without secrets and not too long.
func (o Options) clean(words string) string {
	secrets := []string{o.APIKey.Reveal()}
	for _, value := range o.Headers {
		if len(value) >= 8 { // shorter ones are words like "true"
			secrets = append(secrets, value.Reveal())
		}
	}
	for _, secret := range secrets {
		if secret != "" {
			words = strings.ReplaceAll(words, secret, "***")
		}
	}
	return text.Cut(strings.Join(strings.Fields(strings.ToValidUTF8(words, "?")), " "), maxErrorText)
}
