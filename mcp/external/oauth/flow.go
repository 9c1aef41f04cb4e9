package oauth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"golang.org/x/oauth2"
)

// Begin begins a login of a person: link is to be opened in their browser, which is led back to redirect. One that was
// begun before ends. The error is [ErrUnasked] where the server has not refused anything.
func (l *Login) Begin(ctx context.Context, redirect string) (link string, err error) {
	f := &flow{link: make(chan string, 1), answer: make(chan *auth.AuthorizationResult, 1), done: make(chan struct{})}
	l.mu.Lock()
	asked := l.asked
	if asked == nil || l.closed {
		l.mu.Unlock()
		return "", ErrUnasked
	}
	h, err := l.handler(ctx, redirect, f.fetch)
	if err != nil {
		l.mu.Unlock()
		return "", err
	}
	if l.flow != nil {
		l.flow.cancel()
	}
	l.flow = f
	var flowCtx context.Context
	flowCtx, f.cancel = context.WithTimeout(context.WithoutCancel(ctx), flowTime) // the person comes back by another request
	l.wg.Go(func() { l.run(flowCtx, f, h, asked) })
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, linkTime)
	defer cancel()
	select {
	case link := <-f.link:
		u, err := url.Parse(link)
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			f.cancel()
			return "", fmt.Errorf("the authorization server has no address that a browser can open")
		}
		l.mu.Lock()
		f.state = u.Query().Get("state")
		l.mu.Unlock()
		return link, nil
	case <-f.done:
		return "", f.err
	case <-ctx.Done():
		f.cancel()
		return "", fmt.Errorf("ask the authorization server: %w", context.Cause(ctx))
	}
}

// run holds a login from the refusal to the token.
func (l *Login) run(ctx context.Context, f *flow, h *auth.AuthorizationCodeHandler, asked *challenge) {
	defer close(f.done)
	defer f.cancel()
	req := &http.Request{Method: http.MethodPost, URL: asked.url, Header: http.Header{}, Host: asked.url.Host}
	resp := &http.Response{StatusCode: asked.status, Header: asked.header, Body: io.NopCloser(bytes.NewReader(nil)), Request: req}
	f.err = h.Authorize(ctx, req, resp)
	if f.err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		f.err = ErrState
	}
	if refused, is := errors.AsType[*oauth2.RetrieveError](f.err); is && refused.ErrorCode == "invalid_client" {
		l.unregister(ctx)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.flow == f {
		l.flow = nil
	}
}

// fetch gives the link away and waits for the person.
func (f *flow) fetch(ctx context.Context, a *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
	f.link <- a.URL
	select {
	case r := <-f.answer:
		return r, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Owns reports whether an answer of a browser is one to a login that goes on here.
func (l *Login) Owns(answer url.Values) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.flow != nil && l.flow.state != "" && l.flow.state == answer.Get("state")
}

// Finish takes the query with which the browser came back, gets the tokens, and returns when that is done. The error is
// [ErrState] for what is no answer to a login that goes on, or a [*RefusedError].
func (l *Login) Finish(ctx context.Context, answer url.Values) error {
	l.mu.Lock()
	f := l.flow
	if f == nil || f.state == "" || f.state != answer.Get("state") {
		l.mu.Unlock()
		return ErrState
	}
	f.state = "" // it is good for one answer
	l.mu.Unlock()
	r, err := resultOf(answer)
	if err != nil {
		f.cancel()
		if refused, is := errors.AsType[*RefusedError](err); is && (refused.Code == "invalid_client" || refused.Code == "unauthorized_client") {
			l.unregister(ctx)
		}
		return err
	}
	f.answer <- r
	ctx, cancel := context.WithTimeout(ctx, finishTime)
	defer cancel()
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		f.cancel()
		return fmt.Errorf("get the tokens: %w", context.Cause(ctx))
	}
}
