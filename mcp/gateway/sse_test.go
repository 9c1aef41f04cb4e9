package gateway

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/mcp/gateway/catalog"
)

// connectFor reads /api/mcp/connect for so long, in fake time.
func connectFor(t *testing.T, g *Gateway, path, accept string, d time.Duration) *httptest.ResponseRecorder {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+path, nil)
	r.RemoteAddr = "127.0.0.1:1"
	if accept != "" {
		r.Header.Set("Accept", accept)
	}
	w := httptest.NewRecorder()
	asOwner(g).ServeHTTP(w, r)
	return w
}

// TestConnect: the plain stream for clients that accept anything, the older transport
// for those that ask for events; each says every 30 s that it is there.
func TestConnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newOwned(Options{})
		defer g.Close()
		for _, c := range []struct{ path, accept string }{{"/api/mcp/connect", ""}, {"/api/mcp/connect", "*/*"}, {"/api/mcp/connect?legacy=1", "text/event-stream"}} {
			w := connectFor(t, g, c.path, c.accept, 65*time.Second)
			want := "data: {\"type\":\"connected\",\"message\":\"MCP连接已建立\"}\n\n"
			if got := w.Body.String(); !strings.HasPrefix(got, want) || strings.Count(got, "data: {\"type\":\"ping\",\"timestamp\":9466") != 2 {
				t.Errorf("%v: %s", c, got)
			}
			if w.Header().Get("Content-Type") != "text/event-stream" || w.Header().Get("Cache-Control") != "no-cache" {
				t.Errorf("%v: %v", c, w.Header())
			}
		}
		got := connectFor(t, g, "/api/mcp/connect", "text/event-stream", 65*time.Second).Body.String()
		if !strings.HasPrefix(got, "event: endpoint\ndata: /api/mcp/connect?sessionid=") || strings.Count(got, ": ping\n\n") != 2 || strings.Contains(got, `"type"`) {
			t.Errorf("events: %s", got)
		}
	})
}

// TestConnectPost: what is posted to a stream must be for it, and from the client that opened it.
func TestConnectPost(t *testing.T) {
	r := newRig(t, tokened)
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	if a := r.do("POST", "/api/mcp/connect?sessionid=nope", ping, "Authorization: Bearer t-all"); a.status != 404 {
		t.Errorf("no such stream: %d %s", a.status, a.body)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.server.URL+"/api/mcp/connect?token=t-all", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	buf := make([]byte, 1024)
	n, err := resp.Body.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	_, endpoint, _ := strings.Cut(string(buf[:n]), "data: ")
	endpoint = strings.TrimSpace(endpoint)
	if a := r.do("POST", endpoint, ping); a.status != 202 {
		t.Errorf("its own token: %d %s", a.status, a.body)
	}
	if n, err = resp.Body.Read(buf); err != nil || !strings.Contains(string(buf[:n]), `"id":1`) {
		t.Errorf("answer: %s, %v", buf[:n], err)
	}
	other := strings.Replace(endpoint, "t-all", "t-time", 1)
	if a := r.do("POST", other, ping); a.status != 404 {
		t.Errorf("somebody else: %d %s", a.status, a.body)
	}
}

// TestCloseEndsAll: the end of the gateway ends calls, streams, sockets and sessions.
func TestCloseEndsAll(t *testing.T) {
	r := newRig(t, nil)
	running := make(chan struct{}, 1)
	if err := r.Registry().Add(catalog.Tool{Name: "waits", Run: func(ctx context.Context, _ map[string]any) (any, error) {
		running <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}}); err != nil {
		t.Fatal(err)
	}
	r.initialize("/api/mcp/jsonrpc")
	conn := r.dialSocket("", nil)
	ask(t, conn, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	answered := make(chan answer, 1)
	go func() { answered <- r.call("/api/mcp/jsonrpc", "waits", "{}") }()
	<-running
	closed := make(chan struct{})
	go func() {
		r.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(30 * time.Second):
		t.Fatal("Close waits")
	}
	if a := <-answered; a.status != 200 {
		t.Errorf("the call: %d %s", a.status, a.body)
	}
	if _, _, err := conn.ReadMessage(); err == nil {
		t.Error("the socket is open")
	}
}
