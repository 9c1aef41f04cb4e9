package transport

import (
	"net/http"
	"strings"
	"testing"
)

// TestRequestAfterWarmEnded makes a request on the connection of a warm-up that is
// given up under it: it is made again, with its body.
func TestRequestAfterWarmEnded(t *testing.T) {
	var bodies []string
	inner := &http.Transport{}
	inner.RegisterProtocol("warm", roundTripper(func(r *http.Request) (*http.Response, error) {
		body := make([]byte, 8)
		n, _ := r.Body.Read(body)
		if bodies = append(bodies, string(body[:n])); len(bodies) == 1 {
			return nil, errWarmEnded
		}
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
	}))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "warm://host/x", strings.NewReader("words"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&HTTP{Transport: inner}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if len(bodies) != 2 || bodies[1] != "words" {
		t.Errorf("sent %q", bodies)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
