package oauth

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
)

// maxRegistration is how much of the answer to a registration is kept, in bytes.
const maxRegistration = 4 << 10

// registrar answers a registration that was made before, at the same place and with the same way back, as it was answered
// then: a client that registers itself at each login leaves a trail of clients that nobody uses. All else it lets pass.
type registrar struct {
	login    *Login
	redirect string
	next     http.RoundTripper
}

// RoundTrip sends one request.
func (r *registrar) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodPost || !strings.HasPrefix(req.Header.Get("Content-Type"), "application/json") { // nothing else is
		return r.next.RoundTrip(req)
	}
	endpoint := req.URL.String()
	l := r.login
	l.mu.Lock()
	known := l.grant.Registration
	l.mu.Unlock()
	if known.Endpoint == endpoint && known.Redirect == r.redirect && len(known.Answer) > 0 {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return answered(req, known.Answer), nil
	}
	resp, err := r.next.RoundTrip(req)
	if err != nil || resp.StatusCode/100 != 2 {
		return resp, err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxRegistration+1))
	_ = resp.Body.Close()
	if err != nil {
		return nil, err
	}
	var compact bytes.Buffer
	if len(body) <= maxRegistration && json.Compact(&compact, body) == nil {
		l.mu.Lock()
		l.grant.Registration = registration{endpoint, r.redirect, compact.Bytes()}
		l.mu.Unlock()
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// answered is the answer to a registration.
func answered(req *http.Request, body []byte) *http.Response {
	return &http.Response{
		Status: "201 Created", StatusCode: http.StatusCreated, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: req,
	}
}

// unregister forgets a registration that the authorization server does not know any more.
func (l *Login) unregister(ctx context.Context) {
	l.mu.Lock()
	l.grant.Registration = registration{}
	l.mu.Unlock()
	l.save(ctx)
}
