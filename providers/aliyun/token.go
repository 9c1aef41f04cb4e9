package aliyun

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"xiaozhi/providers"
	"xiaozhi/providers/transport"
)

const renewAhead = time.Hour // before a token expires

// tokens gives the token that a section's requests carry: the one that was set, or one
// that is got for an access key and kept until an hour before its end. It may be used by
// any number of goroutines at once; one of them asks, the others wait for it.
type tokens struct {
	limit   time.Duration // to get a token
	client  *http.Client
	clock   *transport.Clock
	address string
	key     providers.Secret // the access key id, or the token itself if there is no secret
	secret  providers.Secret

	asking chan struct{} // of size 1: held by the goroutine that asks
	mu     sync.Mutex
	token  providers.Secret
	until  time.Time
}

// get returns a token that is good now.
func (t *tokens) get(ctx context.Context) (providers.Secret, error) {
	if t.secret == "" {
		return t.key, nil
	}
	select {
	case t.asking <- struct{}{}:
		defer func() { <-t.asking }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	if token := t.kept(); token != "" {
		return token, nil
	}
	token, until, err := t.ask(ctx)
	if refused, ok := errors.AsType[*transport.Refusal](err); ok && refused.Skewed {
		token, until, err = t.ask(ctx)
	}
	if err != nil {
		return "", err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.token, t.until = token, until
	return token, nil
}

// kept returns the token that is kept if it is still good.
func (t *tokens) kept() providers.Secret {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.clock.Now().After(t.until) {
		return ""
	}
	return t.token
}

// forget drops a token that was refused. It says whether a new one can be had.
func (t *tokens) forget(token providers.Secret) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.token == token {
		t.token = ""
	}
	return t.secret != ""
}

// answer is that of the token service.
type answer struct {
	Token struct {
		ID         string        `json:"Id"`
		ExpireTime transport.Int // unix seconds
	}
	ErrMsg    string
	Code      string
	Message   string
	RequestID string `json:"RequestId"`
}

// ask gets a token.
func (t *tokens) ask(ctx context.Context) (providers.Secret, time.Time, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, t.limit, transport.ErrStalled)
	defer cancel()
	query := signed(t.secret.Reveal(), map[string]string{
		"AccessKeyId": t.key.Reveal(), "Action": "CreateToken", "Format": "JSON", "RegionId": "cn-shanghai",
		"SignatureMethod": "HMAC-SHA1", "SignatureNonce": uuid.NewString(), "SignatureVersion": "1.0",
		"Timestamp": t.clock.Now().UTC().Format(time.RFC3339), "Version": "2019-02-28",
	})
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(t.address, "/")+"/?"+query, nil)
	if err != nil {
		return "", time.Time{}, errors.New("the address of the token service is not a URL")
	}
	resp, err := t.client.Do(req)
	if err != nil {
		return "", time.Time{}, fmt.Errorf("get token: %w", stalled(ctx, err))
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, transport.MaxErrorBody))
	if err != nil {
		return "", time.Time{}, fmt.Errorf("get token: %w", stalled(ctx, err))
	}
	var a answer
	err = transport.Decode(body, &a)
	switch {
	case resp.StatusCode != http.StatusOK || err == nil && a.Token.ID == "":
		return "", time.Time{}, t.refused(resp, a)
	case err != nil:
		return "", time.Time{}, fmt.Errorf("get token: the answer is not the JSON expected: %w", err)
	}
	return providers.Secret(a.Token.ID), time.Unix(int64(a.Token.ExpireTime), 0).Add(-renewAhead), nil
}

// stalled says of an error that the service gave nothing in time, if that is why.
func stalled(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, transport.ErrStalled) {
		return cause
	}
	if dialed, ok := errors.AsType[*url.Error](err); ok {
		return dialed.Err // the URL holds a signature
	}
	return err
}

// refused makes the error of a refusal to give a token.
func (t *tokens) refused(resp *http.Response, a answer) error {
	e := &transport.Refusal{Status: resp.StatusCode, Code: a.Code, Text: a.Message, LogID: a.RequestID, Kind: transport.KindOf(resp.StatusCode)}
	if e.Text == "" {
		e.Text = a.ErrMsg
	}
	switch {
	case strings.HasPrefix(a.Code, "Throttling"):
		e.Kind = providers.RateLimited
	case strings.HasPrefix(a.Code, "InvalidAccessKey"), strings.HasPrefix(a.Code, "Signature"), strings.HasPrefix(a.Code, "Forbidden"), strings.HasPrefix(a.Code, "InvalidTimeStamp"), resp.StatusCode == http.StatusNotFound:
		e.Kind = providers.Unauthorized
	}
	e.Skewed = t.clock.Learn(resp.Header)
	return e
}
