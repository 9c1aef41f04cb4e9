// Package web fetches one configured page and makes a short text of it. It is
// built so that nothing a model says can make the server ask anybody else: the
// host is the configured one, also after a redirect, and addresses of the
// server's own network are refused unless the configured URL names one.
package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"xiaozhi/internal/outbound"
)

// Limits of a request.
const (
	maxBody      = 256 << 10 // bytes, unpacked
	maxRedirects = 3
	maxValue     = 200 // bytes of a value that is put into the URL
)

var (
	// ErrTooLarge says that the page is over 256 KiB.
	ErrTooLarge = errors.New("the page is over 256 KiB")
	// ErrElsewhere says that a redirect leads to another host.
	ErrElsewhere = errors.New("redirected to another host")
	// ErrInternal says that the host's name leads into the server's own network.
	ErrInternal = errors.New("the address is one of an internal network")
)

// StatusError says that the service answered, but not with 200.
type StatusError = outbound.StatusError

// Options of a Page.
type Options struct {
	URL     string            // http or https; {name} in its path or query stands for a value
	Headers map[string]string // of the request
	Result  string            // what to tell: text with {path.of.json}; "": a feed's items, or all of it
	Timeout time.Duration     // of all of it; 0: 10 s
	Items   int               // of a feed; 0: 10
	Cut     int               // bytes of the text; 0: 4 KiB
}

// Page is one configured page. Fetch may be called at the same time.
type Page struct {
	options Options
	names   []string // of the values in its URL
	client  *Client
}

// New checks the options. An error says what is wrong with them, without
// anything secret.
func New(o Options) (*Page, error) {
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	o.Items = cmp.Or(o.Items, 10)
	o.Cut = cmp.Or(o.Cut, 4<<10)
	bare := placeholder().ReplaceAllString(o.URL, "x")
	u, err := url.Parse(bare)
	switch {
	case err != nil:
		return nil, errors.New("the url cannot be read")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("the url must begin with http:// or https://")
	case u.Hostname() == "":
		return nil, errors.New("the url names no host")
	case u.User != nil:
		return nil, errors.New("the url must not hold a password; use headers")
	case strings.ContainsAny(strings.SplitN(o.URL, "/", 4)[2], "{}"):
		return nil, errors.New("the host of the url must be a fixed one")
	}
	if o.Result != "" && !paths().MatchString(o.Result) { // it would tell nothing of the page
		return nil, fmt.Errorf("the result %q holds no {path.of.json}", Cut(o.Result, 60))
	}
	client, err := NewClient(ClientOptions{Base: u.Scheme + "://" + u.Host, Headers: o.Headers, Timeout: o.Timeout})
	if err != nil {
		return nil, err
	}
	p := &Page{options: o, client: client}
	for _, m := range placeholder().FindAllStringSubmatch(o.URL, -1) {
		if !slices.Contains(p.names, m[1]) {
			p.names = append(p.names, m[1])
		}
	}
	return p, nil
}

func placeholder() *regexp.Regexp { return regexp.MustCompile(`\{([a-z]+)\}`) }

// Names are the values that the URL needs.
func (p *Page) Names() []string { return slices.Clone(p.names) }

// Fetch gets the page for these values and makes a text of it. The errors name
// neither the URL nor the headers.
func (p *Page) Fetch(ctx context.Context, values map[string]string) (string, error) {
	address, err := p.address(values)
	if err != nil {
		return "", err
	}
	a, err := p.client.Do(ctx, Request{Path: address, Accept: "application/json, application/rss+xml, application/atom+xml, text/plain, */*;q=0.5"})
	if err != nil {
		return "", err
	}
	body, err := plainText(a.Body, a.Type)
	if err != nil {
		return "", err
	}
	text, err := p.text(body)
	if err != nil {
		return "", err
	}
	return Cut(text, p.options.Cut), nil
}

// address is the path and query of the URL with the values in their places, escaped.
func (p *Page) address(values map[string]string) (string, error) {
	for _, name := range p.names {
		v := values[name]
		if v == "." || v == ".." || len(v) > maxValue || strings.ContainsFunc(v, func(r rune) bool { return r < ' ' }) {
			return "", fmt.Errorf("%q cannot be asked for", Cut(v, 40))
		}
	}
	_, rest, _ := strings.Cut(p.options.URL, "://")
	path, query, has := strings.Cut(rest[strings.IndexAny(rest+"/", "/?"):], "?")
	fill := func(text string, escape func(string) string) string {
		return placeholder().ReplaceAllStringFunc(text, func(name string) string { return escape(values[strings.Trim(name, "{}")]) })
	}
	address := fill(path, url.PathEscape)
	if address == "" {
		address = "/"
	}
	if has {
		address += "?" + fill(query, url.QueryEscape)
	}
	return address, nil
}
