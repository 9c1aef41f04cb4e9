package openai

import (
	"context"
	"io"
	"net/http"
	"time"

	"xiaozhi/providers"
)

// warmTime bounds Warm: connecting, the TLS handshake and one short reply.
const warmTime = 5 * time.Second

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

// warm asks for the head of the list of models, which costs nothing, and
// takes any answer for a good one: what counts is the connection, which net/http
// then keeps. One goroutine at a time does so.
func (o Options) warm(ctx context.Context) error {
	if t, ok := o.HTTPClient.Transport.(*transport); ok {
		if t.warm() || !t.warming.CompareAndSwap(false, true) {
			return nil
		}
		defer t.warming.Store(false)
	}
	reqCtx, cancel := context.WithTimeoutCause(ctx, warmTime, errStalled)
	defer cancel()
	resp, err := o.do(reqCtx, http.MethodHead, "/models", "", nil)
	if err != nil {
		return o.wrap(ctx, reqCtx, "connect", err)
	}
	// A reply to HEAD has no body; one that has all the same costs the connection only.
	_, _ = io.CopyN(io.Discard, resp.Body, maxErrorBody)
	_ = resp.Body.Close()
	return nil
}
