package external

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"xiaozhi/mcp/external/oauth"
	"xiaozhi/mcp/rawjson"
)

// roundTripper is the HTTP client's way to one server. It adds the headers of the
// config, goes nowhere else, bounds what comes back, leaves out events that the
// SDK would die of, and tells when the server cannot be reached.
type roundTripper struct {
	base    http.RoundTripper
	server  *url.URL
	headers map[string]string
	first   bool         // the event "endpoint" is wanted: this is the older SSE transport
	lost    chan error   // 1: the first reason why the server is taken for gone
	login   *oauth.Login // whose tokens are sent, of the older SSE transport; nil: none
	hurry   atomic.Bool  // the session is left without a word: a server may wait for its own calls before it answers
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
	lost := func(err error) {
		if r.Context().Err() != nil {
			return
		}
		select {
		case c.lost <- err:
		default:
		}
	}
	resp, err := c.send(sent)
	if errors.Is(err, oauth.ErrWanted) {
		return nil, err
	}
	if err != nil {
		lost(fmt.Errorf("cannot be reached: %w", err))
		return nil, err
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if kind == "text/event-stream" {
		stream := newEvents(resp.Body, c.first && r.Method == http.MethodGet)
		if r.Header.Get("Mcp-Method") == "subscriptions/listen" { // the only thing that lasts in the newest revision
			stream.ended = func() { lost(errStream) }
		}
		resp.Body = stream
		return resp, nil
	}
	if err := bounded(resp); err != nil {
		lost(err)
		return nil, err
	}
	return resp, nil
}

// send sends a request, with a token where there is a login, and once more where that has got another one.
func (c *roundTripper) send(r *http.Request) (*http.Response, error) {
	if c.login == nil {
		return c.base.RoundTrip(r)
	}
	for first := true; ; first = false {
		if err := c.show(r); err != nil {
			return nil, err
		}
		resp, err := c.base.RoundTrip(r)
		if err != nil || resp.StatusCode != http.StatusUnauthorized || !first || r.Body != nil && r.GetBody == nil {
			return resp, err
		}
		if err := c.login.Authorize(r.Context(), r, resp); err != nil {
			return nil, err
		}
		if r.GetBody != nil {
			if r.Body, err = r.GetBody(); err != nil {
				return nil, err
			}
		}
	}
}

// show puts the token into a request, if there is one.
func (c *roundTripper) show(r *http.Request) error {
	r.Header.Del("Authorization")
	src, err := c.login.TokenSource(r.Context())
	if err != nil || src == nil {
		return err
	}
	token, err := src.Token()
	if err == nil { // else the server says that it wants another one
		r.Header.Set("Authorization", "Bearer "+token.AccessToken)
	}
	return nil
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

// events is a stream of server-sent events without those that are no messages:
// the SDK takes every event for one and gives the session up at the first that
// is not. What is left is written anew. It is for one goroutine, apart from Close.
type events struct {
	body  io.ReadCloser
	lines *bufio.Reader
	first bool   // waiting for the event "endpoint"; all before it is left out
	older bool   // it began with "endpoint": the older transport, which goes on nowhere after a break
	rest  []byte // of the event that is being read
	err   error  // for when rest is empty
	ended func() // if not nil, called once when the stream has ended
}

func newEvents(body io.ReadCloser, endpoint bool) *events {
	return &events{body: body, lines: bufio.NewReader(body), first: endpoint, older: endpoint}
}

// Close ends the stream.
func (e *events) Close() error { return e.body.Close() }

// Read gives the bytes of the events that pass.
func (e *events) Read(p []byte) (int, error) {
	for len(e.rest) == 0 && e.err == nil {
		var next *event
		if next, e.err = e.event(); e.wanted(next) {
			e.rest = append(next.written.Bytes(), '\n')
		}
		if e.err != nil && e.ended != nil {
			e.ended()
		}
	}
	if len(e.rest) == 0 {
		return 0, e.err
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

// event is one server-sent event.
type event struct {
	name    string
	marks   bool // it has an id or a time to wait: where to go on after a break
	data    []byte
	hasData bool
	written bytes.Buffer // as the SDK reads it, but for the empty line at the end
}

// wanted reports whether an event goes to the SDK, and notes the first.
func (e *events) wanted(v *event) bool {
	if e.first {
		if v.name != "endpoint" || !v.hasData {
			return false
		}
		e.first = false
		return true
	}
	if !v.hasData || len(v.data) == 0 && !e.older {
		return v.marks // an empty line of data comes with it
	}
	if v.name != "" && v.name != "message" {
		return false
	}
	if rawjson.Depth(v.data) > maxDepth {
		return false
	}
	_, err := jsonrpc.DecodeMessage(v.data)
	return err == nil
}

var errLongEvent = errors.New("a server-sent event is too long")

// event reads up to the next empty line. The error comes with the last event.
func (e *events) event() (*event, error) {
	v, size := &event{}, 0
	for {
		line, err := e.line()
		if size += len(line); size > maxFrame {
			return &event{}, errLongEvent
		}
		if len(line) == 0 {
			return v, err
		}
		v.field(line)
		if err != nil {
			return v, err
		}
	}
}

// field takes in one line. The SDK wants a colon in each; the standard does not.
func (v *event) field(line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "event":
		v.name = string(value)
	case "id", "retry":
		v.marks = v.marks || len(value) > 0
	case "data":
		if v.hasData {
			v.data = append(v.data, '\n')
		}
		v.data, v.hasData = append(v.data, value...), true
	default:
		return
	}
	fmt.Fprintf(&v.written, "%s: %s\n", name, value)
}

// line reads one line without its end, which may be CR, LF or both.
func (e *events) line() ([]byte, error) {
	var line []byte
	for {
		part, err := e.lines.ReadSlice('\n')
		line = append(line, part...)
		if errors.Is(err, bufio.ErrBufferFull) && len(line) <= maxFrame {
			continue
		}
		return bytes.TrimRight(line, "\r\n"), err
	}
}
