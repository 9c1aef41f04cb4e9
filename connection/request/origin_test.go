package request

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
)

func TestOriginFits(t *testing.T) {
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	rd, err := New(Options{PublicURL: "https://speak.example.org", Hosts: []string{"nas.home"}, Origins: []string{"https://console.example/", "null"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		origin, host string
		fits         bool
	}{
		{"", "192.168.1.10:8000", true}, // no web page
		{"http://localhost:8006", "192.168.1.10:8000", true},
		{"http://test.localhost", "192.168.1.10:8000", true},
		{"https://127.0.0.1", "192.168.1.10:8000", true},
		{"http://[::1]:8006", "192.168.1.10:8000", true},
		{"http://192.168.1.10:8000", "192.168.1.10:8000", true},
		{"http://192.168.1.10:8006", "192.168.1.10:8000", false}, // another program there
		{"https://speak.example.org", "speak.example.org", true},
		{"http://nas.home:8000", "nas.home:8000", true},
		{"http://" + name + ":8000", name + ":8000", true},
		{"http://evil.example:8000", "evil.example:8000", false}, // a name that leads here
		{"https://evil.example", "192.168.1.10:8000", false},
		{"https://console.example", "192.168.1.10:8000", true},
		{"HTTPS://Console.Example", "192.168.1.10:8000", true},
		{"https://console.example.evil.example", "192.168.1.10:8000", false},
		{"http://console.example", "192.168.1.10:8000", false},
		{"null", "192.168.1.10:8000", true}, // listed
		{"http://localhost.evil.example", "192.168.1.10:8000", false},
		{"http://127.0.0.1.evil.example", "192.168.1.10:8000", false},
		{"file://", "192.168.1.10:8000", false},
		{"chrome-extension://localhost", "192.168.1.10:8000", false},
		{"http://", "", false},
		{"http://a b", "a b", false},
		{"://", "192.168.1.10:8000", false},
	} {
		r := httptest.NewRequest(http.MethodPost, "/xiaozhi/ota/", nil)
		r.Host = tc.host
		if tc.origin != "" {
			r.Header.Set("Origin", tc.origin)
		}
		if got := rd.OriginFits(r); got != tc.fits {
			t.Errorf("%q to %q: %v", tc.origin, tc.host, got)
		}
	}
	plain, _ := New(Options{})
	r := httptest.NewRequest(http.MethodPost, "/xiaozhi/ota/", nil)
	r.Header.Set("Origin", "null")
	if plain.OriginFits(r) {
		t.Error("a page without an origin fits")
	}
}

func TestWhereFrom(t *testing.T) {
	for _, tc := range []struct {
		name   string
		o      Options
		remote string
		header http.Header
		from   string
		near   bool
	}{
		{"loopback", Options{}, "127.0.0.1:5000", nil, "127.0.0.1", true},
		{"private", Options{}, "192.168.1.40:5000", nil, "192.168.1.40", true},
		{"private in IPv6", Options{}, "[::ffff:10.0.0.7]:5000", nil, "::ffff:10.0.0.7", true},
		{"own network of IPv6", Options{}, "[fd00::7]:5000", nil, "fd00::7", true},
		{"link", Options{}, "[fe80::7%eth0]:5000", nil, "fe80::7%eth0", true},
		{"public", Options{}, "203.0.113.9:5000", nil, "203.0.113.9", false},
		{"public in IPv6", Options{}, "[2001:db8::1]:5000", nil, "2001:db8::1", false},
		{"of the carrier", Options{}, "100.64.0.1:5000", nil, "100.64.0.1", false},
		{"nothing", Options{}, "pipe", nil, "pipe", false},
		{"a proxy that is not trusted", Options{}, "127.0.0.1:5000", http.Header{"X-Forwarded-For": {"192.168.1.40"}}, "127.0.0.1", false},
		{"a proxy that says Via only", Options{}, "127.0.0.1:5000", http.Header{"Via": {"1.1 x"}}, "127.0.0.1", false},
		{"a trusted proxy, private", Options{TrustProxy: true}, "127.0.0.1:5000", http.Header{"X-Forwarded-For": {"192.168.1.40"}}, "192.168.1.40", true},
		{"a trusted proxy, public", Options{TrustProxy: true}, "127.0.0.1:5000", http.Header{"X-Forwarded-For": {"203.0.113.9"}}, "203.0.113.9", false},
		{"a client that says it is near", Options{TrustProxy: true}, "127.0.0.1:5000", http.Header{"X-Forwarded-For": {"192.168.1.40, 203.0.113.9"}}, "203.0.113.9", false},
		{"the same in two headers", Options{TrustProxy: true}, "127.0.0.1:5000", http.Header{"X-Forwarded-For": {"192.168.1.40", "203.0.113.9"}}, "203.0.113.9", false},
		{"public behind two proxies", Options{TrustProxy: true}, "127.0.0.1:5000", http.Header{"X-Forwarded-For": {"203.0.113.9, 10.0.0.2"}}, "10.0.0.2", false},
		{"X-Real-Ip", Options{TrustProxy: true}, "10.0.0.2:5000", http.Header{"X-Real-Ip": {"203.0.113.9"}}, "203.0.113.9", false},
		{"public before the trusted proxy", Options{TrustProxy: true}, "127.0.0.1:5000", http.Header{"X-Forwarded-For": {"10.0.0.2"}, "Forwarded": {`proto=https; For="203.0.113.9:4711"`}}, "10.0.0.2", false},
		{"hidden before the trusted proxy", Options{TrustProxy: true}, "127.0.0.1:5000", http.Header{"X-Forwarded-For": {"10.0.0.2"}, "Forwarded": {"for=_gazonk"}}, "10.0.0.2", false},
		{"private before the trusted proxy", Options{TrustProxy: true}, "127.0.0.1:5000", http.Header{"X-Forwarded-For": {"10.0.0.2"}, "Forwarded": {`for="[fd00::7]:80";by=x, for=192.168.1.40`}}, "10.0.0.2", true},
		{"a trusted proxy that does not say who", Options{TrustProxy: true}, "127.0.0.1:5000", http.Header{"X-Forwarded-Proto": {"https"}}, "127.0.0.1", false},
		{"nonsense", Options{TrustProxy: true}, "127.0.0.1:5000", http.Header{"X-Forwarded-For": {"unknown"}}, "unknown", false},
		{"trusted, no proxy", Options{TrustProxy: true}, "192.168.1.40:5000", nil, "192.168.1.40", true},
		{"a public proxy", Options{TrustProxy: true}, "203.0.113.9:5000", http.Header{"X-Forwarded-For": {"192.168.1.40"}}, "192.168.1.40", false},
		{"a public name, a proxy without a sign", Options{PublicURL: "https://speak.example.org"}, "127.0.0.1:5000", nil, "127.0.0.1", false},
		{"a public name, a proxy that is trusted", Options{PublicURL: "https://speak.example.org", TrustProxy: true}, "127.0.0.1:5000", http.Header{"X-Forwarded-For": {"192.168.1.40"}}, "192.168.1.40", true},
		{"a name at home", Options{PublicURL: "http://nas.local:8000"}, "192.168.1.40:5000", nil, "192.168.1.40", true},
		{"a short name", Options{PublicURL: "http://nas:8000"}, "192.168.1.40:5000", nil, "192.168.1.40", true},
		{"an address at home", Options{PublicURL: "http://192.168.1.10:8000"}, "192.168.1.40:5000", nil, "192.168.1.40", true},
	} {
		rd, err := New(tc.o)
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest(http.MethodPost, "/xiaozhi/ota/", nil)
		r.RemoteAddr = tc.remote
		maps.Copy(r.Header, tc.header)
		if from, near := rd.from(r); from != tc.from || near != tc.near {
			t.Errorf("%s: %s, near %v", tc.name, from, near)
		}
	}
}
