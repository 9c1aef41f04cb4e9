package request_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"xiaozhi/connection/request"
)

// TestRemote: only a trusted proxy is believed about who asks, and how.
func TestRemote(t *testing.T) {
	for _, c := range []struct {
		name           string
		trust          bool
		proto, forward string
		remote         string
		secure         bool
	}{
		{"directly", false, "", "", "192.168.1.7", false},
		{"directly, trusting", true, "", "", "192.168.1.7", false},
		{"invented", false, "https", "10.0.0.9", "192.168.1.7", false},
		{"proxy", true, "https", "203.0.113.5, 10.0.0.9", "10.0.0.9", true},
		{"proxy without TLS", true, "http", "10.0.0.9", "10.0.0.9", false},
		{"nonsense", true, "https", "unknown", "invalid IP", true},
	} {
		rd, err := request.New(request.Options{TrustProxy: c.trust})
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = "[::ffff:192.168.1.7]:5000"
		if c.forward != "" {
			r.Header.Set("X-Forwarded-For", c.forward)
			r.Header.Set("X-Forwarded-Proto", c.proto)
		}
		if addr, secure := rd.Remote(r).String(), rd.Secure(r); addr != c.remote || secure != c.secure {
			t.Errorf("%s: %s %v, want %s %v", c.name, addr, secure, c.remote, c.secure)
		}
	}
}

// TestTold: a handler that counts by RemoteAddr sees whom a trusted proxy has seen, and nobody's invention.
func TestTold(t *testing.T) {
	for _, c := range []struct {
		name    string
		trust   bool
		forward string
		want    string
	}{
		{"directly, trusting", true, "", "192.168.1.7:5000"},
		{"invented", false, "203.0.113.5", "192.168.1.7:5000"},
		{"proxy", true, "10.9.9.9, 203.0.113.5", "203.0.113.5:0"},
		{"IPv6", true, "2001:db8::1", "[2001:db8::1]:0"},
		{"nonsense", true, "unknown", ":0"},
	} {
		rd, err := request.New(request.Options{TrustProxy: c.trust})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		h := rd.Told(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.RemoteAddr }))
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = "192.168.1.7:5000"
		if c.forward != "" {
			r.Header.Set("X-Forwarded-For", c.forward)
		}
		if h.ServeHTTP(httptest.NewRecorder(), r); got != c.want || r.RemoteAddr != "192.168.1.7:5000" {
			t.Errorf("%s: %s, want %s; the request itself: %s", c.name, got, c.want, r.RemoteAddr)
		}
	}
}
