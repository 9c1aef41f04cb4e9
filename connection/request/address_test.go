package request

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestBaseURL(t *testing.T) {
	tcp := func(ip string, port int) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: port} }
	lan := tcp("192.168.1.10", 8000)
	proxied := http.Header{"X-Forwarded-Proto": {"https"}, "X-Forwarded-Host": {"speak.example.com"}}
	for _, tc := range []struct {
		name   string
		public string
		trust  bool
		host   string
		tls    bool
		header http.Header
		local  net.Addr
		want   string
	}{
		{name: "host with port", host: "192.168.1.10:8000", local: lan, want: "ws://192.168.1.10:8000/xiaozhi/v1/"},
		{name: "host without port gets the listener's", host: "192.168.1.10", local: tcp("192.168.1.10", 8003), want: "ws://192.168.1.10:8003/xiaozhi/v1/"},
		{name: "port 80 is left out", host: "nas.lan", local: tcp("192.168.1.10", 80), want: "ws://nas.lan/xiaozhi/v1/"},
		{name: "name and mapped port", host: "nas.lan:18000", local: lan, want: "ws://nas.lan:18000/xiaozhi/v1/"},
		{name: "tls", host: "nas.lan:8443", tls: true, local: lan, want: "wss://nas.lan:8443/xiaozhi/v1/"},
		{name: "tls on its own port", host: "nas.lan", tls: true, local: tcp("10.0.0.1", 443), want: "wss://nas.lan/xiaozhi/v1/"},
		{name: "no host", host: "", local: lan, want: "ws://192.168.1.10:8000/xiaozhi/v1/"},
		{name: "host of nonsense", host: `a"b<c`, local: lan, want: "ws://192.168.1.10:8000/xiaozhi/v1/"},
		{name: "port of nonsense", host: "nas.lan:99999", local: lan, want: "ws://192.168.1.10:8000/xiaozhi/v1/"},
		{name: "no host, IPv4 in IPv6", host: "", local: tcp("::ffff:192.168.1.10", 8000), want: "ws://192.168.1.10:8000/xiaozhi/v1/"},
		{name: "ipv6 literal is given back", host: "[fd00::1]:8000", local: tcp("fd00::1", 8000), want: "ws://[fd00::1]:8000/xiaozhi/v1/"},
		{name: "ipv6 literal without port", host: "[fd00::1]", local: tcp("fd00::1", 8000), want: "ws://[fd00::1]:8000/xiaozhi/v1/"},
		{name: "a proxy that is not trusted", host: "192.168.1.10:8000", header: proxied, local: lan, want: "ws://192.168.1.10:8000/xiaozhi/v1/"},
		{name: "a proxy that is trusted", trust: true, host: "127.0.0.1:8000", header: proxied, local: lan, want: "wss://speak.example.com/xiaozhi/v1/"},
		{name: "a proxy that says the protocol only", trust: true, host: "speak.example.com", header: http.Header{"X-Forwarded-Proto": {"https"}}, local: lan, want: "wss://speak.example.com/xiaozhi/v1/"},
		{name: "a proxy that says a port", trust: true, host: "speak.example.com", header: http.Header{"X-Forwarded-Port": {"8443"}, "X-Forwarded-Proto": {"https, http"}}, local: lan, want: "wss://speak.example.com:8443/xiaozhi/v1/"},
		{name: "trusted but there is no proxy", trust: true, host: "192.168.1.10", local: lan, want: "ws://192.168.1.10:8000/xiaozhi/v1/"},
		{name: "public url", public: "https://speak.example.com/", host: "192.168.1.10", local: lan, want: "wss://speak.example.com/xiaozhi/v1/"},
		{name: "public url with prefix and port", public: "http://h:81/speak", host: "x", local: lan, want: "ws://h:81/speak/xiaozhi/v1/"},
		{name: "public url as ws", public: "ws://h:81", host: "x", local: lan, want: "ws://h:81/xiaozhi/v1/"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rd, err := New(Options{PublicURL: tc.public, TrustProxy: tc.trust})
			if err != nil {
				t.Fatal(err)
			}
			r := httptest.NewRequest(http.MethodPost, "/xiaozhi/ota/", nil)
			r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, tc.local))
			r.Host = tc.host
			if tc.tls {
				r.TLS = &tls.ConnectionState{}
			}
			if tc.header != nil {
				r.Header = tc.header
			}
			if got := TalkURL(rd.BaseURL(r)); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestNewChecksOptions(t *testing.T) {
	for _, tc := range []struct {
		name string
		opts Options
		ok   bool
	}{
		{"zero", Options{}, true},
		{"auth without token", Options{Auth: Auth{Enabled: true}}, false},
		{"auth", Options{Auth: Auth{Enabled: true, Token: "t"}}, true},
		{"public url without scheme", Options{PublicURL: "nas.lan:8000"}, false},
		{"public url of a strange scheme", Options{PublicURL: "ftp://nas.lan"}, false},
		{"public url without host", Options{PublicURL: "http://:8000"}, false},
		{"public url with query", Options{PublicURL: "http://h/?a=b"}, false},
		{"public url with password", Options{PublicURL: "http://u:p@h/"}, false},
		{"public url broken", Options{PublicURL: "http://h:port/"}, false},
	} {
		if _, err := New(tc.opts); (err == nil) != tc.ok {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}
