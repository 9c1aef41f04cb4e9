package baidu

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

const (
	tokenAddress = "https://aip.baidubce.com"
	tokenMargin  = time.Hour // before its end in which a token is not used any more
)

// tokens gets the token that every request needs, and keeps it while it lasts: 30 days.
// It may be used by any number of goroutines at once.
type tokens struct {
	client      *http.Client
	url         string
	key, secret providers.Secret
	asking      chan struct{} // holds one: who may ask for a token

	mu    sync.Mutex
	token providers.Secret
	until time.Time
}

func newTokens(client *http.Client, base string, key, secret providers.Secret) *tokens {
	return &tokens{client: client, url: base + "/oauth/2.0/token", key: key, secret: secret, asking: make(chan struct{}, 1)}
}

// kept returns the token that is there, or "".
func (t *tokens) kept() providers.Secret {
	t.mu.Lock()
	defer t.mu.Unlock()
	if time.Now().After(t.until) {
		return ""
	}
	return t.token
}

// forget has a token replaced that the service does not take any more.
func (t *tokens) forget(token providers.Secret) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.token == token {
		t.token = ""
	}
}

// get returns a token. One goroutine asks for it, the others wait.
func (t *tokens) get(ctx context.Context) (providers.Secret, error) {
	if token := t.kept(); token != "" {
		return token, nil
	}
	select {
	case t.asking <- struct{}{}:
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	defer func() { <-t.asking }()
	if token := t.kept(); token != "" {
		return token, nil
	}
	token, err := t.ask(ctx, false)
	if refused, ok := errors.AsType[*transport.Refusal](err); ok && refused.Kind == providers.Unauthorized {
		return t.ask(ctx, true)
	}
	return token, err
}

// ask asks for a token. The keys are in the body, so that no log of a proxy has them; the
// vendor's pages, and whoever goes by them, want them in the query.
func (t *tokens) ask(ctx context.Context, query bool) (providers.Secret, error) {
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {t.key.Reveal()}, "client_secret": {t.secret.Reveal()}}.Encode()
	at := t.url
	if query {
		at, form = service.Join(at, "?"+form), ""
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, at, strings.NewReader(form))
	if err != nil {
		return "", transport.Refused(providers.BadRequest, "", "the address is not a URL")
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := t.client.Do(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode >= http.StatusInternalServerError || resp.StatusCode == http.StatusTooManyRequests {
		return "", transport.ReadRefusal(resp)
	}
	var out struct {
		Token   providers.Secret `json:"access_token"`
		Expires transport.Int    `json:"expires_in"` // seconds
		Error   string           `json:"error"`
		Words   string           `json:"error_description"`
	}
	if err := readJSON(resp.Body, &out); err != nil {
		return "", err
	}
	if out.Token == "" && out.Error == "" {
		return "", errors.New("the answer holds no token")
	}
	if out.Token == "" {
		refused := transport.Refused(providers.Unauthorized, out.Error, out.Words)
		refused.Status = resp.StatusCode
		return "", refused
	}
	life := time.Duration(min(max(out.Expires, 0), 1e8)) * time.Second
	t.mu.Lock()
	defer t.mu.Unlock()
	t.token, t.until = out.Token, time.Now().Add(max(life-tokenMargin, life/2))
	return t.token, nil
}
