package openai

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/openaitest"
	"xiaozhi/providers"
	"xiaozhi/providers/service"
)

// patience bounds what must happen; it decides no test that passes.
const patience = 20 * time.Second

// newServer starts a fake server and checks at the test's end that the client
// has left no goroutine behind.
func newServer(t *testing.T) *openaitest.Server {
	t.Helper()
	before := runtime.NumGoroutine()
	s, err := openaitest.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close server: %v", err)
		}
		wantGoroutines(t, before)
	})
	return s
}

// wantGoroutines waits for the goroutines of closed connections to end.
func wantGoroutines(t *testing.T, before int) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for runtime.NumGoroutine() > before {
		select {
		case <-again.C:
		case <-deadline.C:
			stacks := make([]byte, 1<<20)
			t.Errorf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
			return
		}
	}
}

// quickest tries a time limit of 20 ms, and longer ones while the request does not
// even reach the server within it, or too little comes back: machines differ. It
// returns the request of the last try.
func quickest(t *testing.T, s *openaitest.Server, role openaitest.Role, try func(limit time.Duration) (enough bool)) *openaitest.Request {
	t.Helper()
	for limit := 20 * time.Millisecond; ; limit *= 4 {
		before := len(s.Requests(role))
		enough := try(limit)
		all := s.Requests(role)
		if len(all) > before && (enough || limit > patience/4) {
			return all[len(all)-1]
		}
		if limit > patience {
			t.Fatal("no request reaches the server")
		}
	}
}

// options are settings for s that wait for nothing but patience.
func options(t *testing.T, s *openaitest.Server) Options {
	t.Helper()
	o := Options{
		Name: "fake", BaseURL: s.URL() + "/", APIKey: "sk-secret-key", Model: "m", Retries: -1,
		Timeouts: Timeouts{FirstToken: patience, NextToken: patience},
	}
	client := NewHTTPClient(o.Timeouts)
	t.Cleanup(client.CloseIdleConnections)
	o.HTTPClient = client
	return o
}

// section holds settings of a recogniser or a voice of s that wait for nothing but patience.
func section(t *testing.T, s *openaitest.Server) service.Section {
	t.Helper()
	o := options(t, s)
	return service.Section{
		Name: o.Name, BaseURL: o.BaseURL, Key: o.APIKey, Client: o.HTTPClient,
		Models:   map[service.Role]string{service.ASR: o.Model, service.TTS: o.Model},
		Timeouts: service.Timeouts{First: patience, Next: patience},
	}
}

// wantError checks the kind and that the text is short and holds no secret.
func wantError(t *testing.T, err error, kind providers.Kind, part string) {
	t.Helper()
	failed, ok := errors.AsType[*providers.Error](err)
	if !ok {
		t.Errorf("got error %v, want a *providers.Error", err)
		return
	}
	if failed.Kind != kind || failed.Provider != "fake" {
		t.Errorf("got %s error of %q, want %s: %v", failed.Kind, failed.Provider, kind, err)
	}
	if text := err.Error(); !strings.Contains(text, part) || len(text) > 400 || strings.Contains(text, "secret") || strings.Contains(text, "127.0.0.1") && strings.Contains(text, "http") {
		t.Errorf("error text %q: too long, with a secret, or without %q", text, part)
	}
}

// statuses are what servers refuse with.
var statuses = []struct {
	status int
	kind   providers.Kind
}{
	{http.StatusBadRequest, providers.BadRequest},
	{http.StatusUnauthorized, providers.Unauthorized},
	{http.StatusForbidden, providers.Unauthorized},
	{http.StatusNotFound, providers.BadRequest},
	{http.StatusUnprocessableEntity, providers.BadRequest},
	{http.StatusTooManyRequests, providers.RateLimited},
	{http.StatusInternalServerError, providers.Unavailable},
	{http.StatusBadGateway, providers.Unavailable},
	{http.StatusPaymentRequired, providers.NoCredit},
}

// hangUp ends ctx when the server has the n-th request of the role, and gives that request.
func hangUp(ctx context.Context, t *testing.T, s *openaitest.Server, role openaitest.Role, n int, cancel func()) *openaitest.Request {
	t.Helper()
	r, err := s.Await(ctx, role, n)
	if err != nil {
		t.Error(err)
	}
	cancel()
	return r
}

// wantGone checks that the server saw the client leave.
func wantGone(t *testing.T, r *openaitest.Request) {
	t.Helper()
	select {
	case <-r.Ended():
		if !r.Gone() {
			t.Error("the request was not closed by the client")
		}
	case <-time.After(patience):
		t.Error("the request is still open")
	}
}
