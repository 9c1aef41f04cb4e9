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
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"xiaozhi/internal/nearby"
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
type StatusError int

// Error names the status.
func (e StatusError) Error() string {
	return fmt.Sprintf("the service answered %d %s", int(e), http.StatusText(int(e)))
}

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
	host    string
	names   []string // of the values in its URL
	client  *http.Client
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
		return nil, fmt.Errorf("the result %q holds no {path.of.json}", cut(o.Result, 60))
	}
	p := &Page{options: o, host: u.Hostname()}
	for _, m := range placeholder().FindAllStringSubmatch(o.URL, -1) {
		if !slices.Contains(p.names, m[1]) {
			p.names = append(p.names, m[1])
		}
	}
	p.client = &http.Client{
		Timeout:       o.Timeout,
		CheckRedirect: p.redirect,
		Transport: &http.Transport{
			DialContext:            dialer(p.host),
			DisableKeepAlives:      true, // asked now and then; nothing stays open
			TLSHandshakeTimeout:    o.Timeout,
			ResponseHeaderTimeout:  o.Timeout,
			MaxResponseHeaderBytes: 64 << 10,
		},
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
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", errors.New("the url cannot be read")
	}
	req.Header.Set("User-Agent", "xiaozhi")
	req.Header.Set("Accept", "application/json, application/rss+xml, application/atom+xml, text/plain, */*;q=0.5")
	for name, value := range p.options.Headers {
		req.Header.Set(name, value)
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return "", plain(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", StatusError(resp.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	switch {
	case err != nil:
		return "", plain(err)
	case len(body) > maxBody:
		return "", ErrTooLarge
	}
	if body, err = plainText(body, resp.Header.Get("Content-Type")); err != nil {
		return "", err
	}
	text, err := p.text(body)
	if err != nil {
		return "", err
	}
	return cut(text, p.options.Cut), nil
}

// address is the URL with the values in their places, escaped.
func (p *Page) address(values map[string]string) (string, error) {
	for _, name := range p.names {
		v := values[name]
		if v == "." || v == ".." || len(v) > maxValue || strings.ContainsFunc(v, func(r rune) bool { return r < ' ' }) {
			return "", fmt.Errorf("%q cannot be asked for", cut(v, 40))
		}
	}
	path, query, has := strings.Cut(p.options.URL, "?")
	fill := func(text string, escape func(string) string) string {
		return placeholder().ReplaceAllStringFunc(text, func(name string) string { return escape(values[strings.Trim(name, "{}")]) })
	}
	address := fill(path, url.PathEscape)
	if has {
		address += "?" + fill(query, url.QueryEscape)
	}
	return address, nil
}

// redirect follows only to the configured host, and never from https to http.
func (p *Page) redirect(req *http.Request, via []*http.Request) error {
	first := via[0].URL
	switch {
	case len(via) > maxRedirects:
		return errors.New("too many redirects")
	case !strings.EqualFold(req.URL.Hostname(), p.host), req.URL.Port() != first.Port() && req.URL.Port() != "",
		first.Scheme == "https" && req.URL.Scheme != "https":
		return ErrElsewhere
	}
	return nil
}

// plain is err without the URL, which may hold a key.
func plain(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// dialer connects to the host's addresses. Each is looked at right before it is
// used, after its name was resolved, so that no name can lead inside.
func dialer(host string) func(ctx context.Context, network, address string) (net.Conn, error) {
	inside := namesInside(host)
	d := &net.Dialer{Timeout: 10 * time.Second, Control: func(_, address string, _ syscall.RawConn) error {
		ap, err := netip.ParseAddrPort(address)
		if err != nil || (nearby.NotPublic(ap.Addr()) && !inside) {
			return ErrInternal
		}
		return nil
	}}
	return d.DialContext
}

// namesInside reports whether a configured host is plainly one of the owner's
// own network: an address in it, localhost, or a name that no public host has.
func namesInside(host string) bool {
	if a, err := netip.ParseAddr(host); err == nil {
		return nearby.NotPublic(a)
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	ends := []string{".localhost", ".local", ".lan", ".home", ".internal", ".home.arpa"}
	return !strings.Contains(host, ".") || slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(host, end) })
}
