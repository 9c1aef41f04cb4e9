package hosted

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

const (
	callTime  = 20 * time.Second // of one request
	maxAnswer = 8 << 20          // bytes
)

// Account says where a memory service is, and who pays for it. A zero value but Name works where the service wants none.
type Account struct {
	Name    string // in the settings and in logs
	BaseURL string // "": where the service is at home
	Key     providers.Secret
	Proxy   string        // as in the settings of services
	Timeout time.Duration // of one request; 0: 20 s
	Client  *http.Client  // nil: the client makes its own
}

// Client makes the requests to a memory service. It may be used by any number of goroutines at once.
type Client struct {
	account transport.Account
	base    string
	limit   time.Duration
	http    *http.Client
	sign    func(h http.Header)
}

// NewClient makes the client of an account at an address, unless it has one of its own. sign adds what proves who asks.
func NewClient(a Account, home string, sign func(h http.Header)) (*Client, error) {
	base, err := service.Endpoint(cmp.Or(a.BaseURL, home), "http", "https")
	if err != nil {
		return nil, fmt.Errorf("%s: base_url: %w", a.Name, err)
	}
	c := &Client{account: transport.Account{Name: a.Name, Secrets: []providers.Secret{a.Key}}, base: base, limit: cmp.Or(a.Timeout, callTime), http: a.Client, sign: sign}
	if c.http == nil {
		if c.http, err = transport.NewHTTPClient(transport.HTTPOptions{Proxy: a.Proxy}); err != nil {
			return nil, fmt.Errorf("%s: %w", a.Name, err)
		}
	}
	return c, nil
}

// Name is that of the account.
func (c *Client) Name() string { return c.account.Name }

// Call makes a request of a path below the address, with in as its body (nil: none), and reads the answer into out (nil: it is not
// read). check says what is wrong with an answer of success; nil: nothing can be. Requests that change nothing are made once more where
// that may help. The error is a [*providers.Error].
func (c *Client) Call(ctx context.Context, op, method, path string, in, out any, check func(body []byte) error) error {
	limited, cancel := context.WithTimeoutCause(ctx, c.limit, transport.ErrStalled)
	defer cancel()
	tries := 1
	if method == http.MethodGet {
		tries = 2
	}
	body, err := transport.Again(limited, tries, func() ([]byte, error) { return c.ask(limited, method, path, in) })
	if err == nil && check != nil {
		err = check(body)
	}
	if err == nil && out != nil {
		if err = json.Unmarshal(body, out); err != nil {
			err = fmt.Errorf("the answer is not the JSON expected: %w", err)
		}
	}
	if err != nil {
		return c.account.Wrap(ctx, limited, op, err)
	}
	return nil
}

func (c *Client) ask(ctx context.Context, method, path string, in any) ([]byte, error) {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return nil, transport.NotAsked(err)
		}
		body = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, transport.NotAsked(errors.New("the address is no URL"))
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept", "application/json")
	c.sign(req.Header)
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, transport.ReadRefusal(resp)
	}
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err == nil && len(answer) > maxAnswer {
		err = fmt.Errorf("the answer is longer than %d MiB", maxAnswer>>20)
	}
	return answer, err
}

// Warm opens a connection for a request that will soon come.
func (c *Client) Warm(ctx context.Context) error {
	return c.account.Warm(ctx, c.http, func(ctx context.Context) (*http.Response, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodHead, c.base, nil)
		if err != nil {
			return nil, errors.New("the address is no URL")
		}
		return c.http.Do(req)
	})
}

// Missing reports whether an error says that what was asked for is not there.
func Missing(err error) bool {
	refused := refusalOf(err)
	return refused != nil && (refused.Status == http.StatusNotFound || refused.Code == "404")
}

// refusalOf returns the refusal that an error is; nil: it is none.
func refusalOf(err error) *transport.Refusal {
	refused, ok := errors.AsType[*transport.Refusal](err)
	if !ok {
		return nil
	}
	return refused
}

// Line makes one line of a text that a service keeps.
func Line(s string) string { return strings.Join(strings.Fields(s), " ") }
