package generation

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"xiaozhi/providers"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

// retries is how often a request is made again, unless the settings say otherwise.
const retries = 1

// Endpoint makes the requests to a service: its address and its headers.
type Endpoint struct {
	Base    string // without a slash at the end
	Headers map[string]providers.Secret
	Client  *http.Client
}

// FromSection makes the options of a model, and its endpoint, of a section. address is that
// of the service; model is the one it uses when the section names none.
func FromSection(s service.Section, role service.Role, address, model string) (Options, Endpoint, error) {
	o := Options{
		Account: transport.Account{Name: s.Name, Secrets: s.Secrets(), Careful: s.Careful},
		Model:   s.Model(role, model), Client: s.Client, Retries: retries, First: s.Timeouts.First, Next: s.Timeouts.Next,
	}
	if o.Model == "" {
		return o, Endpoint{}, fmt.Errorf("%s: model: none is named", s.Name)
	}
	if s.Retries != nil {
		o.Retries = *s.Retries
	}
	base := strings.TrimRight(address, "/")
	if err := CheckURL(base); err != nil {
		return o, Endpoint{}, fmt.Errorf("%s: base_url: %w", s.Name, err)
	}
	if o.Client == nil {
		var err error
		if o.Client, err = transport.NewHTTPClient(transport.HTTPOptions{Connect: s.Timeouts.Connect, Proxy: s.Proxy, Careful: s.Careful}); err != nil {
			return o, Endpoint{}, fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	return o, Endpoint{base, s.Headers, o.Client}, nil
}

// CheckURL wants http or https and a host. It never shows the URL, which may hold a key.
func CheckURL(raw string) error {
	u, err := url.Parse(raw)
	if err != nil {
		return errors.New("it is not a URL")
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("it begins with %q, not with http or https", u.Scheme)
	}
	if u.Host == "" {
		return errors.New("it names no host")
	}
	return nil
}

// Post makes a request with a body of JSON, for a path below the base, with the headers of
// the section and those given as names and values.
func (e Endpoint) Post(ctx context.Context, path string, body any, headers ...string) (*http.Request, error) {
	raw, ok := body.([]byte)
	if !ok {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.Base+path, bytes.NewReader(raw))
	if err != nil {
		return nil, errors.New("the address is no URL")
	}
	req.Header.Set("Content-Type", "application/json")
	e.set(req, headers)
	return req, nil
}

// Head asks for the head of a path, which costs nothing, to open a connection.
func (e Endpoint) Head(ctx context.Context, path string, headers ...string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, e.Base+path, nil)
	if err != nil {
		return nil, errors.New("the address is no URL")
	}
	e.set(req, headers)
	return e.Client.Do(req)
}

// set sets headers that are not empty.
func (e Endpoint) set(req *http.Request, headers []string) {
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i+1] != "" {
			req.Header.Set(headers[i], headers[i+1])
		}
	}
	for name, value := range e.Headers {
		req.Header.Set(name, value.Reveal())
	}
}

// Merge adds the further keys of a section to a body. By null a key is taken out.
func Merge(body, extra map[string]any) error {
	for key, value := range extra {
		if _, err := json.Marshal(value); err != nil {
			return fmt.Errorf("key %s: %w", key, err)
		}
		if value == nil {
			delete(body, key)
			continue
		}
		body[key] = value
	}
	return nil
}
