package external

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"sync/atomic"

	"xiaozhi/mcp/rawjson"
)

// roundTripper is the HTTP client's way to one server. It adds the headers of the
// config, goes nowhere else, bounds what comes back, leaves out events that the
// SDK would die of, and tells when the server cannot be reached.
type roundTripper struct {
	base    http.RoundTripper
	server  *url.URL
	headers map[string]string
	first   bool        // the event "endpoint" is wanted: this is the older SSE transport
	lost    func(error) // may be called by many goroutines at a time; never waits
	hurry   atomic.Bool // the session is left without a word: a server may wait for its own calls before it answers
}

var errElsewhere = errors.New("the server points to another host, where it was not configured to be")

// errStream says that we hear no more of changes: the server may be gone, or may
// just have grown tired of the stream.
var errStream = errors.New("the stream of changes ended")

// RoundTrip sends one request. It keeps the caller's request as it is.
func (c *roundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != c.server.Scheme || r.URL.Host != c.server.Host {
		return nil, errElsewhere
	}
	if r.Method == http.MethodDelete && c.hurry.Load() {
		return &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody, Request: r}, nil
	}
	sent := r.Clone(r.Context())
	for name, value := range c.headers {
		if http.CanonicalHeaderKey(name) == "Host" {
			sent.Host = value
			continue
		}
		sent.Header.Set(name, value)
	}
	resp, err := c.base.RoundTrip(sent)
	if err != nil {
		if r.Context().Err() == nil {
			c.lost(fmt.Errorf("cannot be reached: %w", err))
		}
		return nil, err
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if kind == "text/event-stream" {
		stream := newEvents(resp.Body, c.first && r.Method == http.MethodGet)
		if r.Header.Get("Mcp-Method") == "subscriptions/listen" { // the only thing that lasts in the newest revision
			stream.ended = func() {
				if r.Context().Err() == nil {
					c.lost(errStream)
				}
			}
		}
		resp.Body = stream
		return resp, nil
	}
	if err := bounded(resp); err != nil {
		if r.Context().Err() == nil {
			c.lost(err)
		}
		return nil, err
	}
	return resp, nil
}

// bounded reads a body that is no stream, so that a huge or a very deep one
// does not reach the SDK.
func bounded(resp *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxFrame+1))
	_ = resp.Body.Close()
	switch {
	case err != nil:
		return err
	case len(body) > maxFrame:
		return fmt.Errorf("the answer is longer than %d bytes", maxFrame)
	case rawjson.Depth(body) > maxDepth:
		return errors.New("the answer is nested too deeply")
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return nil
}
