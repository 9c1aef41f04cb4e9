package devicetest

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A server that a device cannot work with fails Dial with the broken rule.
func TestDialRefuses(t *testing.T) {
	tests := []struct {
		name, hello string
		want        Rule // empty: Dial works
		broken      string
	}{
		{"good", `{"type":"hello","transport":"websocket","session_id":"a_B-9"}`, "", ""},
		{"no transport", `{"type":"hello","session_id":"a"}`, RuleHelloTransport, "hello_transport"},
		{"transport null", `{"type":"hello","transport":null,"session_id":"a"}`, RuleHelloTransport, "hello_transport"},
		{"other transport", `{"type":"hello","transport":"udp","session_id":"a"}`, RuleHelloTransport, "hello_transport"},
		{"silence", "", RuleHelloLate, "hello_late"},
		{"rate", `{"type":"hello","transport":"websocket","session_id":"a","audio_params":{"sample_rate":44100}}`, RuleHelloAudio, ""},
		{"frame", `{"type":"hello","transport":"websocket","session_id":"a","audio_params":{"frame_duration":30}}`, "", "hello_audio"},
		{"params null", `{"type":"hello","transport":"websocket","session_id":"a","audio_params":null}`, "", "hello_audio"},
		{"no session", `{"type":"hello","transport":"websocket"}`, "", "session_id"},
		{"session with a quote", `{"type":"hello","transport":"websocket","session_id":"a\"b"}`, "", "session_id"},
		{"session with a space", `{"type":"hello","transport":"websocket","session_id":"a b"}`, "", "session_id"},
		{"before hello", `{"session_id":"a","type":"stt","text":"x"}`, RuleHelloLate, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := net.Pipe()
				done := make(chan struct{})
				go func() {
					defer close(done)
					serve(t, server, func(w *wire) {
						if tt.hello != "" {
							w.raw(tt.hello)
						}
						<-w.ends
					})
				}()
				d, err := Dial(t.Context(), Options{NetConn: client, URL: "ws://server/x"})
				switch {
				case tt.want == "" && err != nil:
					t.Errorf("dial: %v", err)
				case tt.want != "" && ruleOf(err) != tt.want:
					t.Errorf("error %v, want rule %s", err, tt.want)
				}
				if d != nil {
					if got := strings.Join(rules(d), " "); got != tt.broken {
						t.Errorf("rules broken: %q, want %q", got, tt.broken)
					}
					d.Close()
					d.Close() // twice does no harm
				}
				<-done
			})
		})
	}
}

func ruleOf(err error) Rule {
	if v, ok := errors.AsType[*ViolationError](err); ok {
		return v.Rule
	}
	return ""
}

// The upgrade carries what the firmware sends, and nothing that it does not.
func TestUpgradeRequest(t *testing.T) {
	tests := []struct {
		name string
		o    Options
		want map[string]string
		uri  string
	}{
		{"firmware", Options{Token: "abc", Protocol: 3}, map[string]string{
			"Authorization": "Bearer abc", "Protocol-Version": "3", "Device-Id": defaultDeviceID, "Client-Id": defaultClientID,
		}, "/xiaozhi/v1/"},
		{"no token", Options{}, map[string]string{"Authorization": ""}, "/xiaozhi/v1/"},
		{"token with a scheme", Options{Token: "Token x"}, map[string]string{"Authorization": "Token x"}, "/xiaozhi/v1/"},
		{"desktop", Options{Profile: PyXiaozhi}, map[string]string{"Authorization": "Bearer test-token"}, "/xiaozhi/v1/"},
		{
			"browser",
			Options{Profile: Browser, DeviceID: "d1", ClientID: "c1", Token: "t"},
			map[string]string{"Device-Id": "", "Authorization": ""},
			"/xiaozhi/v1/?authorization=Bearer+t&client-id=c1&device-id=d1",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			talk(t, tt.o, func(w *wire) {
				w.hello()
				if w.request.RequestURI != tt.uri {
					t.Errorf("asked for %s, want %s", w.request.RequestURI, tt.uri)
				}
				if tt.o.Profile != Browser && w.request.Host != "server" {
					t.Errorf("Host %q has to come without the port", w.request.Host)
				}
				for _, h := range []string{"Origin", "User-Agent", "Sec-Websocket-Extensions", "Sec-Websocket-Protocol"} {
					if v, ok := w.request.Header[h]; ok {
						t.Errorf("header %s: %q", h, v)
					}
				}
				for h, want := range tt.want {
					if got := w.request.Header.Get(h); got != want {
						t.Errorf("%s: %q, want %q", h, got, want)
					}
				}
			}, nil)
		})
	}
}

// Options that no device could have are refused before anything is sent.
func TestDialOptions(t *testing.T) {
	tests := []Options{
		{URL: "http://h/"},
		{URL: "ws://[::1]:80/"},
		{URL: "ws://h/a:b"},
		{URL: "ws://h?x=1"},
		{URL: "ws://u:p@h:1/"},
		{URL: "ws://:80/"},
		{URL: "ws://h/", Protocol: 4},
		{URL: "ws://h/", Sound: Sound{FrameMs: 30}},
		{URL: "ws://h/", Mode: "always"},
	}
	for _, o := range tests {
		if _, err := Dial(t.Context(), o); err == nil {
			t.Errorf("Dial(%+v) works", o)
		}
	}
}

// A wrong token and a full server look alike to a device, but the error says which.
func TestUpgradeRefused(t *testing.T) {
	client, server := net.Pipe()
	go func() {
		buf := make([]byte, 4096)
		server.Read(buf)
		server.Write([]byte("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n"))
		server.Close()
	}()
	_, err := Dial(t.Context(), Options{NetConn: client, URL: "ws://server/x"})
	if err == nil || !strings.Contains(err.Error(), "401 Unauthorized") {
		t.Errorf("error %v, want it to name 401", err)
	}
}

// A ping is answered, also while the device is frozen by a tool.
func TestPing(t *testing.T) {
	slow := Tool{Name: "slow", Call: func(context.Context, Call) (Result, error) {
		<-time.After(time.Minute)
		return Result{Text: "true"}, nil
	}}
	d := talk(t, Options{OpenListen: true, Tools: []Tool{slow}}, func(w *wire) {
		pong := make(chan string, 1)
		w.ws.SetPongHandler(func(s string) error { pong <- s; return nil })
		w.hello()
		w.await(`"state":"start"`)
		w.say(mcp(1, "tools/call", `{"name":"slow"}`))
		w.ping("abc")
		if got := <-pong; got != "abc" {
			t.Errorf("pong %q", got)
		}
		w.await(`"id":1`)
	}, nil)
	if s := d.Stats(); s.Pings != 1 {
		t.Errorf("stats: %+v", s)
	}
}
