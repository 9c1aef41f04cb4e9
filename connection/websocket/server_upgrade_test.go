package websocket

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gorilla/websocket"
	"xiaozhi/connection"
	"xiaozhi/connection/request"
)

func TestServeAuthorization(t *testing.T) {
	const token = "dvc_5f2e9c"
	auth := func(o *setup) { o.Auth = request.Auth{Enabled: true, Token: token} }
	id := http.Header{"Device-Id": {"AA:BB:CC:00:11:22"}}
	with := func(value string) http.Header {
		return http.Header{"Device-Id": {"AA:BB:CC:00:11:22"}, "Authorization": {value}}
	}
	for _, tc := range []struct {
		name   string
		change func(*setup)
		path   string
		header http.Header
		status int
	}{
		{"headers", nil, "/xiaozhi/v1/", id, 101},
		{"no last slash", nil, "/xiaozhi/v1", id, 101},
		{"doubled slashes", nil, "//xiaozhi//v1//", id, 101},
		{"alias", nil, "/ws/xiaozhi/v1/", id, 101},
		{"alias without slash", nil, "/ws/xiaozhi/v1", id, 101},
		{"query device-id", nil, "/xiaozhi/v1/?device-id=AA:BB:CC:00:11:22", nil, 101},
		{"query Device-Id", nil, "/xiaozhi/v1/?Device-Id=AA:BB:CC:00:11:22&Client-Id=web", nil, 101},
		{"query deviceId", nil, "/xiaozhi/v1?deviceId=aa%3Abb%3Acc%3A00%3A11%3A22", nil, 101},
		{"query device_id", nil, "/xiaozhi/v1?device_id=AA:BB:CC:00:11:22", nil, 101},
		{"token where none is asked for", nil, "/xiaozhi/v1/", with("Bearer test-token"), 101},
		{"no device id", nil, "/xiaozhi/v1/", nil, 400},
		{"no device id, no token", func(o *setup) { auth(o); withLight(o) }, "/xiaozhi/v1/", nil, 401},
		{"device id too long", nil, "/xiaozhi/v1/", http.Header{"Device-Id": {strings.Repeat("a", 129)}}, 400},
		{"device id of dots", nil, "/xiaozhi/v1/?device-id=..", nil, 400},
		{"device id not printable", nil, "/xiaozhi/v1/?device-id=a%0Ab", nil, 400},
		{"unknown path", nil, "/xiaozhi/v2/", id, 404},
		{"bearer", auth, "/xiaozhi/v1/", with("Bearer " + token), 101},
		{"bearer in small letters", auth, "/xiaozhi/v1/", with("bearer " + token), 101},
		{"raw token", auth, "/xiaozhi/v1/", with(token), 101},
		{"query authorization", auth, "/xiaozhi/v1/?device-id=AA:BB:CC:00:11:22&authorization=Bearer%20" + token, nil, 101},
		{"query token", auth, "/xiaozhi/v1/?device-id=AA:BB:CC:00:11:22&token=" + token, nil, 101},
		{"no token", auth, "/xiaozhi/v1/", id, 401},
		{"wrong token", auth, "/xiaozhi/v1/", with("Bearer wr0ng-secret"), 401},
		{"token cut short", auth, "/xiaozhi/v1/", with("Bearer " + token[:5]), 401},
		{"only the scheme", auth, "/xiaozhi/v1/", with("Bearer "), 401},
		{"token with a space", func(o *setup) { o.Auth = request.Auth{Enabled: true, Token: "Token abc"} }, "/xiaozhi/v1/", with("Token abc"), 101},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, tc.change, func(t *testing.T, r *rig) {
				ws, answer, err := r.upgrade(tc.path, tc.header)
				if answer == nil {
					t.Fatal(err)
				}
				if answer.StatusCode != tc.status {
					t.Fatalf("status %d, want %d (%v)", answer.StatusCode, tc.status, err)
				}
				if tc.status == 101 {
					if answer.Header.Get("Sec-Websocket-Extensions") != "" || answer.Header.Get("Sec-Websocket-Protocol") != "" {
						t.Errorf("negotiated something: %v", answer.Header)
					}
					synctest.Wait()
					if len(r.log.lines("device connected", "aa:bb:cc:00:11:22")) != 1 {
						t.Errorf("not in the log by its id:\n%s", r.log)
					}
					ws.NetConn().Close()
					return
				}
				if tc.status == 401 {
					if len(r.log.lines("device refused", strings.ToLower(tc.header.Get("Device-Id")), "token")) != 1 {
						t.Errorf("not in the log:\n%s", r.log)
					}
				}
			})
		})
	}
}

func TestTokensNotLogged(t *testing.T) {
	bubble(t, func(o *setup) { o.Auth = request.Auth{Enabled: true, Token: "right-secret"} }, func(t *testing.T, r *rig) {
		for _, value := range []string{"Bearer wrong-secret", "Bearer right-secret"} {
			ws, _, err := r.upgrade("/xiaozhi/v1/", http.Header{"Device-Id": {"a"}, "Authorization": {value}})
			if err == nil {
				ws.NetConn().Close()
			}
		}
		_, _, _ = r.upgrade("/xiaozhi/v1/?device-id=a&token=wrong-secret", nil)
		slog.New(slog.NewTextHandler(r.log, nil)).Info("options", "auth", request.Auth{Enabled: true, Token: "right-secret"})
		synctest.Wait()
		if strings.Contains(r.log.String(), "secret") {
			t.Errorf("a token is in the log:\n%s", r.log)
		}
	})
}

func TestFullServerRefuses(t *testing.T) {
	bubble(t, func(o *setup) { o.MaxDevices = 2 }, func(t *testing.T, r *rig) {
		first := r.greet("d1")
		r.greet("d2")
		_, answer, err := r.upgrade("/xiaozhi/v1/", http.Header{"Device-Id": {"d3"}})
		if err == nil || answer.StatusCode != http.StatusServiceUnavailable {
			t.Fatalf("a third device: %v", err)
		}
		body, _ := io.ReadAll(answer.Body)
		if answer.Header.Get("Retry-After") == "" || !strings.Contains(string(body), "full") || !strings.Contains(string(body), "已满") {
			t.Errorf("answer %v %q", answer.Header, body)
		}
		// One that is connected already takes no more room.
		again := r.greet("D1")
		<-first.done
		if n := r.registry.Connected(); n != 2 {
			t.Errorf("%d devices connected, want 2", n)
		}
		again.leave()
		synctest.Wait()
		r.greet("d3")
	})
}

func TestFailedUpgradeReleasesRoom(t *testing.T) {
	bubble(t, func(o *setup) { o.MaxDevices = 1 }, func(t *testing.T, r *rig) {
		for range 3 {
			w := httptest.NewRecorder() // cannot be hijacked
			req := httptest.NewRequest(http.MethodGet, "/xiaozhi/v1/", nil)
			req.Header = http.Header{
				"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"},
				"Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="}, "Device-Id": {"d9"},
			}
			r.handler.ServeHTTP(w, req)
			if w.Code < 400 {
				t.Fatalf("status %d", w.Code)
			}
		}
		r.greet("d1")
	})
}

func TestPlainHTTP(t *testing.T) {
	h := handlers(t)
	for _, tc := range []struct {
		method string
		status int
	}{{http.MethodGet, 200}, {http.MethodHead, 200}, {http.MethodPost, 405}, {http.MethodDelete, 405}} {
		w := httptest.NewRecorder()
		h(http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequest(tc.method, "http://nas.lan:8000/xiaozhi/v1/", nil))
		if w.Code != tc.status {
			t.Errorf("%s: status %d, want %d", tc.method, w.Code, tc.status)
		}
		if tc.method == http.MethodGet {
			for _, part := range []string{"正在运行", "is running", "ws://nas.lan:8000/xiaozhi/v1/", "http://nas.lan:8000/xiaozhi/ota/"} {
				if !strings.Contains(w.Body.String(), part) {
					t.Errorf("answer lacks %q: %s", part, w.Body)
				}
			}
		}
	}
}

// Firmware sends a Host without its port, no Origin and no extensions.
func TestFirmwareUpgrade(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		nc, err := r.ln.dial()
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		go fmt.Fprintf(nc, "GET /xiaozhi/v1/ HTTP/1.1\r\nHost: 192.0.2.10\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
			"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nProtocol-Version: 1\r\n"+
			"Device-Id: 24:6f:28:aa:10:02\r\nClient-Id: 7d0f4e1c-5a0e-4a66-9a5e-0c2b8a6f1d33\r\n\r\n")
		answer, err := http.ReadResponse(bufio.NewReader(nc), nil)
		if err != nil {
			t.Fatal(err)
		}
		if answer.StatusCode != 101 || answer.Proto != "HTTP/1.1" {
			t.Errorf("%s %s", answer.Proto, answer.Status)
		}
		nc.Close()
		synctest.Wait()
	})
}

func TestOtherPaths(t *testing.T) {
	h := handlers(t)
	next := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "next "+r.URL.Path) })
	for _, path := range []string{"/", "/healthz", "/xiaozhi/v1/x", "/xiaozhi/./v1/", "/xiaozhi/../xiaozhi/v1", "/api/devices/"} {
		w := httptest.NewRecorder()
		h(next).ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Body.String() != "next "+path {
			t.Errorf("%s: %d %q", path, w.Code, w.Body)
		}
	}
}

func TestCloseCode(t *testing.T) {
	for kind := connection.Normal; kind <= connection.TooBig; kind++ {
		if code := closeCode(kind); code < 1000 || code > 1013 || (code == 1000) != (kind == connection.Normal) {
			t.Errorf("kind %d: code %d", kind, code)
		}
	}
}

// Compression is never agreed to: firmware knows none, and a small message could
// stand for a large one.
func TestNoCompression(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		d := websocket.Dialer{
			NetDialContext:    func(context.Context, string, string) (net.Conn, error) { return r.ln.dial() },
			EnableCompression: true,
		}
		ws, answer, err := d.DialContext(t.Context(), "ws://server/xiaozhi/v1/", http.Header{"Device-Id": {"d1"}})
		if err != nil {
			t.Fatal(err)
		}
		defer ws.Close()
		if got := answer.Header.Get("Sec-Websocket-Extensions"); got != "" {
			t.Errorf("agreed to %q", got)
		}
	})
}
