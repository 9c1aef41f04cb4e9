package aliyun

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"xiaozhi/internal/servicetest"
	"xiaozhi/providers"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

// issuer gives tokens that live for a while, and counts them.
func issuer(t *testing.T, life time.Duration) (*servicetest.Server, *tokens) {
	t.Helper()
	var s *servicetest.Server
	s = servicetest.New(t, func(w http.ResponseWriter, r *http.Request) {
		s.Note(servicetest.Request{Method: r.Method, Path: r.URL.Path})
		s.Send(w, r, s.Fault(), servicetest.Reply{
			Body:   fmt.Appendf(nil, `{"Token":{"Id":"token-%d","ExpireTime":%d}}`, len(s.Requests()), time.Now().Add(life).Unix()),
			Broken: []byte("{"),
		})
	}, servicetest.Silent, servicetest.Broken, servicetest.Slow)
	return s, &tokens{
		limit: 10 * time.Second, client: http.DefaultClient, clock: &transport.Clock{}, address: s.URL(),
		key: servicetest.Key, secret: servicetest.Secret, asking: make(chan struct{}, 1),
	}
}

func TestTokenIsKeptForAWhile(t *testing.T) {
	for life, want := range map[time.Duration]int{2 * time.Hour: 1, 30 * time.Minute: 3} {
		s, tokens := issuer(t, life)
		for range 3 {
			if token, err := tokens.get(t.Context()); err != nil || token == "" {
				t.Errorf("token %q, error %v", token.Reveal(), err)
			}
		}
		if n := len(s.Requests()); n != want {
			t.Errorf("a life of %v: %d tokens, want %d", life, n, want)
		}
	}
}

func TestManyAskForOneToken(t *testing.T) {
	s, tokens := issuer(t, 24*time.Hour)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { _, _ = tokens.get(t.Context()) })
	}
	all.Wait()
	if n := len(s.Requests()); n != 1 {
		t.Errorf("%d tokens, want one", n)
	}
	first := tokens.kept()
	if !tokens.forget(first) || tokens.kept() != "" {
		t.Error("a token that was refused is kept")
	}
	if second, err := tokens.get(t.Context()); err != nil || second == first {
		t.Errorf("token %q again, error %v", second.Reveal(), err)
	}
}

func TestTokenServiceFails(t *testing.T) {
	for f, want := range map[servicetest.Fault]error{servicetest.Silent: transport.ErrStalled, servicetest.Broken: nil} {
		s, tokens := issuer(t, time.Hour)
		if s.Fail(f); f == servicetest.Silent {
			tokens.limit = 50 * time.Millisecond
		}
		if _, err := tokens.get(t.Context()); err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%v: error %v, want %v", f, err, want)
		}
	}
	_, tokens := issuer(t, time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	tokens.asking <- struct{}{} // another one is at it
	if _, err := tokens.get(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %v", err)
	}
}

func TestGivenTokenIsTaken(t *testing.T) {
	tokens := &tokens{key: "given"}
	if token, err := tokens.get(t.Context()); err != nil || token != providers.Secret("given") || tokens.forget(token) {
		t.Errorf("token %q, error %v", token.Reveal(), err)
	}
}

// What stands in for the service gives tokens, too, whatever its address begins and ends with.
func TestTokenOfAnAddress(t *testing.T) {
	for base, want := range map[string]string{
		"": tokenAddress, "ws://h:1/ws/v1/": "http://h:1", "wss://h": "https://h", "http://h/p": "http://h/p", "ws://x-internal.aliyuncs.com:80/ws/v1": tokenAddress,
	} {
		g, err := newGateway(service.Section{BaseURL: base})
		if err != nil || g.tokens.address != want {
			t.Errorf("%s: %s, %v", base, g.tokens.address, err)
		}
	}
}

func TestSpeeds(t *testing.T) {
	for speed, want := range map[float64]int{0: 0, 0.5: -500, 0.1: -500, 1: 0, 1.5: 250, 2: 500, 9: 500} {
		if got := speechRate(speed); got != want {
			t.Errorf("%v: %d, want %d", speed, got, want)
		}
	}
}

func TestKindsOfFailures(t *testing.T) {
	for status, want := range map[int]providers.Kind{
		40000001: providers.Unauthorized, 40020105: providers.Unauthorized, 40000005: providers.RateLimited, 43040001: providers.RateLimited,
		51020001: providers.RateLimited, 40000010: providers.NoCredit, 40000003: providers.BadRequest, 41020001: providers.BadRequest,
		40000004: providers.Unavailable, 50000000: providers.Unavailable,
	} {
		if got := kindOf(status, ""); got != want {
			t.Errorf("%d: %v, want %v", status, got, want)
		}
	}
}

// TestAddresses: the token is asked for where all of the service is stood in for, by a plain
// request, whatever the address of the socket begins and ends with.
func TestAddresses(t *testing.T) {
	for in, want := range map[string][2]string{
		"":                    {shanghai + "/ws/v1", tokenAddress},
		"ws://h:9/":           {"ws://h:9/ws/v1", "http://h:9"},
		"wss://[::1]/p/ws/v1": {"wss://[::1]/p/ws/v1", "https://[::1]/p"},
		"wss://nls-gateway-cn-beijing.aliyuncs.com/ws/v1": {"wss://nls-gateway-cn-beijing.aliyuncs.com/ws/v1", tokenAddress},
	} {
		g, err := newGateway(service.Section{BaseURL: in})
		if err != nil || g.address != want[0] || g.tokens.address != want[1] {
			t.Errorf("%s: %+v, %v", in, g, err)
		}
	}
}
