package web

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"xiaozhi/internal/nearby"
	"xiaozhi/internal/outbound"
	"xiaozhi/mcp/rawjson"
)

// ClientOptions configure a [Client].
type ClientOptions struct {
	Base    string            // http or https, with the beginning of the path if there is one
	Headers map[string]string // of each request
	Timeout time.Duration     // of a request and its answer; 0: 10 s
	Most    int               // bytes of an answer, unpacked; 0: 256 KiB
	Keep    bool              // connections stay open for what is asked next
	// Transport asks in place of a connection of its own, for tests without sockets; nil: none does.
	Transport http.RoundTripper
}

// Client asks one service: nothing that a model says, or that the service answers, makes it ask another host, and an address of
// the server's own network is asked only if the configured one is plainly there. Its methods may be called at the same time.
type Client struct {
	options ClientOptions
	base    *url.URL
	http    *http.Client
}

// NewClient checks the options. An error says what is wrong with them, without anything secret.
func NewClient(o ClientOptions) (*Client, error) {
	o.Timeout, o.Most = cmp.Or(o.Timeout, 10*time.Second), cmp.Or(o.Most, maxBody)
	u, err := url.Parse(o.Base)
	switch {
	case err != nil:
		return nil, errors.New("the url cannot be read")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("the url must begin with http:// or https://")
	case u.Hostname() == "":
		return nil, errors.New("the url names no host")
	case u.User != nil:
		return nil, errors.New("the url must not hold a password; use headers")
	}
	c := &Client{options: o, base: u}
	home, keep := outbound.NamesHome(u.Hostname()), time.Duration(0)
	if o.Keep {
		keep = time.Minute // asked now and then: nothing else stays open
	}
	c.http = outbound.NewClient(outbound.Options{
		Timeout: o.Timeout, Keep: keep, Packed: true, Redirect: c.redirect,
		Check: func(at netip.Addr) error {
			if nearby.NotPublic(at) && !home {
				return ErrInternal
			}
			return nil
		},
	})
	c.http.Timeout = o.Timeout
	if o.Transport != nil {
		c.http.Transport = o.Transport
	}
	return c, nil
}

// Close lets go of the connections that are open for what is asked next.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Request is one question to a service.
type Request struct {
	Method string // "": GET, or POST with a Body
	Path   string // after that of the base, as it is written in a URL; "": the base is all of it
	Query  url.Values
	Body   any // is sent as JSON; nil: none
	Accept string
}

// Answer holds what came back with status 200 or 201.
type Answer struct {
	Type string // Content-Type
	Body []byte
}

// Do asks, and reads the whole answer. The errors name neither the address nor the headers; [StatusError], [ErrTooLarge],
// [ErrElsewhere] and [ErrInternal] are among them. A refusal keeps the beginning of what the service said about it.
func (c *Client) Do(ctx context.Context, r Request) (Answer, error) {
	whole := c.base.Scheme + "://" + c.base.Host + strings.TrimRight(c.base.EscapedPath(), "/") + r.Path
	switch {
	case r.Path == "" && len(r.Query) == 0:
		whole = c.base.String()
	case len(r.Query) > 0:
		whole += "?" + r.Query.Encode()
	}
	var body io.Reader
	if r.Body != nil {
		raw, err := json.Marshal(r.Body)
		if err != nil {
			return Answer{}, fmt.Errorf("encode the request: %w", err)
		}
		body, r.Method = bytes.NewReader(raw), cmp.Or(r.Method, http.MethodPost)
	}
	req, err := http.NewRequestWithContext(ctx, cmp.Or(r.Method, http.MethodGet), whole, body)
	if err != nil {
		return Answer{}, errors.New("the url cannot be read")
	}
	req.Header.Set("User-Agent", "xiaozhi")
	req.Header.Set("Accept", cmp.Or(r.Accept, "application/json"))
	if r.Body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, value := range c.options.Headers {
		req.Header.Set(name, value)
	}
	return c.send(req)
}

func (c *Client) send(req *http.Request) (Answer, error) {
	resp, err := c.http.Do(req)
	if err != nil {
		return Answer{}, outbound.Plain(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusCreated {
		said, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
		return Answer{}, &refusal{StatusError(resp.StatusCode), said}
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, int64(c.options.Most)+1))
	switch {
	case err != nil:
		return Answer{}, outbound.Plain(err)
	case len(body) > c.options.Most:
		return Answer{}, ErrTooLarge
	}
	return Answer{resp.Header.Get("Content-Type"), body}, nil
}

// ErrJSON says that an answer is not the JSON that it should be.
var ErrJSON = errors.New("the answer is no JSON that can be read")

// JSON asks, and reads the answer into v.
func (c *Client) JSON(ctx context.Context, r Request, v any) error {
	a, err := c.Do(ctx, r)
	if err != nil {
		return err
	}
	if rawjson.Depth(a.Body) > maxJSONDepth || json.Unmarshal(a.Body, v) != nil {
		return ErrJSON
	}
	return nil
}

// maxRefusal is how much is read of what a service says when it refuses.
const maxRefusal = 4 << 10

// refusal is a [StatusError] with what the service said.
type refusal struct {
	StatusError
	said []byte
}

// Unwrap gives the status.
func (r *refusal) Unwrap() error { return r.StatusError }

// Refusal returns the beginning of what a service said when it refused; nil: it is no refusal.
func Refusal(err error) []byte {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r.said
	}
	return nil
}

// redirect follows only to the configured host, and never from https to http.
func (c *Client) redirect(req *http.Request, via []*http.Request) error {
	first := via[0].URL
	switch {
	case len(via) > maxRedirects:
		return errors.New("too many redirects")
	case !strings.EqualFold(req.URL.Hostname(), c.base.Hostname()), req.URL.Port() != first.Port() && req.URL.Port() != "",
		first.Scheme == "https" && req.URL.Scheme != "https":
		return ErrElsewhere
	}
	return nil
}
