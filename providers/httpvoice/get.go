package httpvoice

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

const (
	getTime = 10 * time.Second
	maxList = 8 << 20 // bytes
)

// Get makes a request that is answered with JSON, such as a list of voices, and reads it
// into v. judge may be nil.
func Get(s service.Section, r *http.Request, judge func(*transport.Refusal), v any) error {
	account, client, ctx := transport.Account{Name: s.Name, Secrets: s.Secrets(), Careful: s.Careful}, s.Client, r.Context()
	if client == nil {
		own, err := transport.NewHTTPClient(transport.HTTPOptions{Connect: s.Timeouts.Connect, Proxy: s.Proxy, Careful: s.Careful})
		if err != nil {
			return err
		}
		defer own.CloseIdleConnections()
		client = own
	}
	limited, cancel := context.WithTimeoutCause(ctx, getTime, transport.ErrStalled)
	defer cancel()
	resp, err := client.Do(plain(r.WithContext(limited), s))
	if err != nil {
		return account.Wrap(ctx, limited, "list voices", err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		refusal := transport.ReadRefusal(resp)
		if judge != nil {
			judge(refusal)
		}
		return account.Wrap(ctx, limited, "list voices", refusal)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxList))
	if err != nil {
		return account.Wrap(ctx, limited, "list voices", err)
	}
	if err := json.Unmarshal(body, v); err != nil {
		return account.Wrap(ctx, limited, "list voices", fmt.Errorf("the answer is not the JSON expected: %w", err))
	}
	return nil
}
