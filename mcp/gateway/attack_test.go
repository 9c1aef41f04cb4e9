package gateway

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/internal/testall"
	"xiaozhi/mcp/gateway/catalog"
)

// TestLargeBodies: what is too long or too deep is refused, by every way in, and
// the next request is answered.
func TestLargeBodies(t *testing.T) {
	r := newRig(t, nil)
	large := `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + strings.Repeat("x", 10<<20) + `"}}`
	deepest := `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":` + strings.Repeat("[", 10000) + strings.Repeat("]", 10000) + `}}`
	modern := []string{"Mcp-Protocol-Version: 2026-07-28"}
	id := "Mcp-Session-Id: " + r.initialize("/api/mcp/jsonrpc")
	for what, header := range map[string][]string{"bare": nil, "modern": modern, "session": {id}} {
		if a := r.rpc("/api/mcp/jsonrpc", large, header...); a.status != 413 || !strings.Contains(a.body, "-32600") {
			t.Errorf("%s: 10 MiB: %d %.200s", what, a.status, a.body)
		}
		if a := r.rpc("/api/mcp/jsonrpc", deepest, header...); a.status != 400 || !strings.Contains(a.body, "-32600") {
			t.Errorf("%s: 10,000 levels: %d %.200s", what, a.status, a.body)
		}
	}
	for _, path := range []string{"/api/mcp/tools/call", "/api/mcp/prompts/default"} {
		if a := r.do("POST", path, large); a.status != 413 {
			t.Errorf("%s: 10 MiB: %d %.200s", path, a.status, a.body)
		}
		if a := r.do("POST", path, deepest); a.status != 400 {
			t.Errorf("%s: 10,000 levels: %d %.200s", path, a.status, a.body)
		}
	}
	arguments := `{"data":"` + strings.Repeat("x", 100<<10) + `"}`
	if a := r.call("/api/mcp/jsonrpc", "util.hash", arguments); field(t, a.body, "error", "code") != -32602.0 {
		t.Errorf("100 KiB of arguments: %.300s", a.body)
	}
	conn := r.dialSocket("", nil)
	if err := conn.WriteMessage(1, []byte(large)); err == nil {
		if _, _, err := conn.ReadMessage(); err == nil {
			t.Error("a socket takes a frame of 10 MiB")
		}
	}
	if a := r.rpc("/api/mcp/jsonrpc", `{"jsonrpc":"2.0","id":1,"method":"ping"}`); a.status != 200 {
		t.Errorf("afterwards: %d", a.status)
	}
}

// TestLargeResult: a result that is too long is cut, with a word about it.
func TestLargeResult(t *testing.T) {
	r := newRig(t, nil)
	if err := r.Registry().Add(catalog.Tool{Name: "long", Run: func(context.Context, map[string]any) (any, error) { return strings.Repeat("灯", 1<<20), nil }}); err != nil {
		t.Fatal(err)
	}
	text := field(t, r.call("/api/mcp/jsonrpc", "long", "{}").body, "result", "content", 0, "text").(string)
	if len(text) > 256<<10+100 || !strings.HasSuffix(text, "… [cut: 3145728 bytes in all]") || strings.ContainsRune(text, '�') {
		t.Errorf("%d bytes, …%s", len(text), text[len(text)-60:])
	}
}

// TestBrokenTool: a tool that panics costs its own call only.
func TestBrokenTool(t *testing.T) {
	r := newRig(t, nil)
	for name, tool := range map[string]catalog.Tool{
		"run":    {Run: func(context.Context, map[string]any) (any, error) { panic("secret") }},
		"handle": {Handle: func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { panic("secret") }},
	} {
		tool.Name = name
		if err := r.Registry().Add(tool); err != nil {
			t.Fatal(err)
		}
		a := r.call("/api/mcp/jsonrpc", name, "{}")
		if field(t, a.body, "result", "isError") != true || strings.Contains(a.body, "secret") {
			t.Errorf("%s: %s", name, a.body)
		}
	}
	if !strings.Contains(r.log.String(), "tool crashed") {
		t.Errorf("log: %s", r.log)
	}
}

// TestSlowBody: a body that trickles in does not hold a place for ever.
func TestSlowBody(t *testing.T) {
	r := newRig(t, nil)
	r.bodyTime = 100 * time.Millisecond
	var d net.Dialer
	conn, err := d.DialContext(t.Context(), "tcp", r.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "POST /api/mcp/jsonrpc HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(bodyTime))
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 400 {
		t.Errorf("status %d", resp.StatusCode)
	}
}

// write sends bytes over a new connection in one piece, and reads nothing before
// all are sent, as many clients do.
func (r *rig) write(text string) answer {
	r.t.Helper()
	var d net.Dialer
	conn, err := d.DialContext(r.t.Context(), "tcp", r.server.Listener.Addr().String())
	if err != nil {
		r.t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, text); err != nil {
		r.t.Fatalf("after %.60q…: %v", text, err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		r.t.Fatalf("after %.60q…: %v", text, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, strings.TrimSpace(string(body))}
}

// TestLargeBodyAnswer: a client that sends all of a body that is too long before
// it reads is told so.
func TestLargeBodyAnswer(t *testing.T) {
	r := newRig(t, nil)
	body := strings.Repeat("x", 10<<20)
	for _, path := range []string{"/api/mcp/jsonrpc", "/api/mcp/tools/call"} {
		head := "POST " + path + " HTTP/1.1\r\nHost: localhost\r\nAccept-Language: en\r\n"
		for what, text := range map[string]string{
			"with a length": head + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body),
			"in chunks":     head + fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(body), body),
		} {
			if a := r.write(text); a.status != 413 || !strings.Contains(a.body, "the body is over 1048576 bytes") {
				t.Errorf("%s %s: %d %s", path, what, a.status, a.body)
			}
		}
	}
}

// TestCompressedBody: a body that is compressed is refused as such.
func TestCompressedBody(t *testing.T) {
	r := newRig(t, nil)
	for _, path := range []string{"/api/mcp/jsonrpc", "/api/mcp/tools/call"} {
		if a := r.do("POST", path, "\x1f\x8b\x08", "Content-Encoding: gzip"); a.status != 415 || !strings.Contains(a.body, "Content-Encoding") {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
}

// TestUnreadBody: an answer that needs no body does not wait for it.
func TestUnreadBody(t *testing.T) {
	r := newRig(t, tokened)
	r.bodyTime = 100 * time.Millisecond
	for _, request := range []string{
		"POST /api/mcp/jsonrpc", "GET /api/mcp/tools", "POST /api/mcp/tools", "GET /api/mcp/health", "GET /api/mcp/nowhere", "PUT /mcp/ws",
	} {
		a := r.write(request + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{")
		if a.status == 0 || !strings.Contains(a.body, "success") && !strings.Contains(a.body, "error") {
			t.Errorf("%s: %d %s", request, a.status, a.body)
		}
	}
}

// TestUnreadAnswers: a client that asks and asks and reads no answer is hung up on.
func TestUnreadAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		w := &stuckConn{ResponseRecorder: httptest.NewRecorder()}
		reply(w, http.StatusOK, "x")
		if took := time.Since(began); took != writeTime {
			t.Errorf("it took %s", took)
		}
		if !w.deadline.IsZero() {
			t.Error("what the connection serves next has a deadline of this answer")
		}
	})
}

// stuckConn is an answer over a connection that takes nothing.
type stuckConn struct {
	*httptest.ResponseRecorder
	deadline time.Time
}

func (c *stuckConn) SetWriteDeadline(t time.Time) error {
	c.deadline = t
	return nil
}

func (c *stuckConn) Write([]byte) (int, error) {
	time.Sleep(time.Until(c.deadline))
	return 0, os.ErrDeadlineExceeded
}

// TestQueryUnreadable: a filter that cannot be read does not become none.
func TestQueryUnreadable(t *testing.T) {
	r := newRig(t, nil)
	for _, query := range []string{"?stream=time;x", "?stream=%zz", "?a=1&stream=time;stream=system"} {
		for _, path := range []string{"/api/mcp/jsonrpc", "/api/mcp/tools/call"} {
			a := r.do("POST", path+query, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"system.info"}}`)
			if a.status != 400 || strings.Contains(a.body, "platform") {
				t.Errorf("%s%s: %d %.200s", path, query, a.status, a.body)
			}
		}
	}
}

// TestSmuggling: requests that one server may read in two ways are refused.
func TestSmuggling(t *testing.T) {
	r := newRig(t, nil)
	for _, headers := range []string{
		"Content-Length: 5\r\nContent-Length: 6", "Transfer-Encoding: chunked, identity", "Transfer-Encoding: xchunked", "Content-Length: +5",
	} {
		a := r.raw("POST /api/mcp/jsonrpc HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n\r\n0\r\n\r\nGET /api/mcp/tools HTTP/1.1\r\nHost: localhost\r\n\r\n")
		if a.status != 400 && a.status != 501 {
			t.Errorf("%q: %d %s", headers, a.status, a.body)
		}
	}
}

// TestManyStreams: streams that one caller leaves open are bounded, refused
// beyond that with a word, in the way of no other, and gone when their clients are.
func TestManyStreams(t *testing.T) {
	r := newRig(t, func(o *Options) {
		o.Access.Tokens = []catalog.Token{{Name: "many", Token: "m"}, {Name: "other", Token: "o"}}
	})
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var mu sync.Mutex
	var bodies []io.Closer
	var open, refused atomic.Int64
	var all sync.WaitGroup
	limit := make(chan struct{}, 50)
	for range maxOwnSessions + 20 {
		all.Go(func() {
			limit <- struct{}{}
			defer func() { <-limit }()
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.server.URL+"/api/mcp/connect", nil)
			if err != nil {
				t.Error(err)
				return
			}
			req.Header.Set("Accept", "text/event-stream")
			req.Header.Set("Authorization", "Bearer m")
			resp, err := transport.RoundTrip(req)
			if err != nil {
				t.Error(err)
				return
			}
			if resp.StatusCode == 503 && resp.Header.Get("Retry-After") != "" {
				refused.Add(1)
				resp.Body.Close()
				return
			}
			open.Add(1)
			mu.Lock()
			defer mu.Unlock()
			bodies = append(bodies, resp.Body)
		})
	}
	all.Wait()
	if open.Load() != maxOwnSessions || refused.Load() != 20 {
		t.Errorf("%d open, %d refused", open.Load(), refused.Load())
	}
	const begin = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
	if a := r.rpc("/api/mcp/jsonrpc", begin, "Authorization: Bearer m"); a.status != 503 {
		t.Errorf("one session more: %d %s", a.status, a.body)
	}
	if a := r.rpc("/api/mcp/jsonrpc", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "Authorization: Bearer m"); a.status != 200 {
		t.Errorf("a call without a session: %d %s", a.status, a.body)
	}
	if a := r.rpc("/api/mcp/jsonrpc", begin, "Authorization: Bearer o"); a.status != 200 {
		t.Errorf("somebody else's session: %d %s", a.status, a.body)
	}
	cancel()
	for _, b := range bodies {
		b.Close()
	}
	until(t, "the streams to end", func() bool {
		r.sessions.mu.Lock()
		defer r.sessions.mu.Unlock()
		left := 0
		r.sessions.posts.Range(func(any, any) bool {
			left++
			return true
		})
		return r.sessions.held == 0 && left == 0 && r.sessions.owned[catalog.Holder{Name: "many"}] == 0
	})
}

// TestSessionsMakeRoom: a client that opens sessions and never ends them loses the
// unused ones, the oldest first, and locks out neither itself nor others.
func TestSessionsMakeRoom(t *testing.T) {
	r := newRig(t, nil)
	listens := r.initialize("/api/mcp/jsonrpc")
	defer r.sessions.use(listens)()
	first := r.initialize("/api/mcp/jsonrpc")
	for range maxOwnSessions - 2 {
		r.initialize("/api/mcp/jsonrpc")
	}
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	last := r.initialize("/api/mcp/jsonrpc")
	r.sessions.wg.Wait() // those that made room end on their own
	for what, c := range map[string]struct {
		id     string
		status int
	}{"in use": {listens, 200}, "the oldest": {first, 404}, "the newest": {last, 200}} {
		if a := r.rpc("/api/mcp/jsonrpc", ping, "Mcp-Session-Id: "+c.id); a.status != c.status {
			t.Errorf("%s: %d %s", what, a.status, a.body)
		}
	}
	r.sessions.mu.Lock()
	defer r.sessions.mu.Unlock()
	if n := r.sessions.owned[catalog.Holder{}]; n != maxOwnSessions || n != len(r.sessions.byID) {
		t.Errorf("%d places are taken by %d sessions", n, len(r.sessions.byID))
	}
}

// TestIdleSessions: an unused session ends; one with an open stream does not.
func TestIdleSessions(t *testing.T) {
	r := newRig(t, nil)
	idle, used := r.initialize("/api/mcp/jsonrpc"), r.initialize("/api/mcp/jsonrpc")
	done := r.sessions.use(used)
	until(t, "the requests to be over", func() bool {
		r.sessions.mu.Lock()
		defer r.sessions.mu.Unlock()
		return r.sessions.byID[idle].using == 0
	})
	r.sessions.mu.Lock()
	for _, h := range r.sessions.byID {
		h.last = time.Now().Add(-2 * sessionIdle)
	}
	r.sessions.mu.Unlock()
	r.sessions.sweep()
	r.sessions.wg.Wait() // they end on their own
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	if a := r.rpc("/api/mcp/jsonrpc", ping, "Mcp-Session-Id: "+idle); a.status != 404 {
		t.Errorf("the idle one: %d %s", a.status, a.body)
	}
	if a := r.rpc("/api/mcp/jsonrpc", ping, "Mcp-Session-Id: "+used); a.status != 200 {
		t.Errorf("the used one: %d %s", a.status, a.body)
	}
	done()
}

// TestCallerGone: a call ends when its caller leaves, by each way in.
func TestCallerGone(t *testing.T) {
	r := newRig(t, nil)
	running, ended := make(chan struct{}, 1), make(chan struct{}, 1)
	if err := r.Registry().Add(catalog.Tool{Name: "waits", Run: func(ctx context.Context, _ map[string]any) (any, error) {
		running <- struct{}{}
		<-ctx.Done()
		ended <- struct{}{}
		return nil, ctx.Err()
	}}); err != nil {
		t.Fatal(err)
	}
	leave := func(what string, begin func() (leave func())) {
		t.Helper()
		gone := begin()
		<-running
		gone()
		select {
		case <-ended:
		case <-time.After(30 * time.Second):
			t.Fatalf("%s: the call goes on", what)
		}
	}
	post := func(path, body string) func() func() {
		return func() func() {
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.server.URL+path, strings.NewReader(body))
				if err != nil {
					return
				}
				if resp, err := http.DefaultTransport.RoundTrip(req); err == nil {
					resp.Body.Close()
				}
			}()
			return cancel
		}
	}
	leave("bare", post("/api/mcp/jsonrpc", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"waits"}}`))
	leave("rest", post("/api/mcp/tools/call", `{"name":"waits"}`))
	for what, frame := range map[string]string{"socket": `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"waits"}}`, "old socket": `{"type":"call_tool","name":"waits"}`} {
		leave(what, func() func() {
			conn := r.dialSocket("", nil)
			if err := conn.WriteMessage(1, []byte(frame)); err != nil {
				t.Fatal(err)
			}
			return func() { conn.Close() }
		})
	}
}

// TestManyClients: many clients at once with many calls each, over all ways in,
// while a device comes and goes: each gets its own answers, and nothing is left.
func TestManyClients(t *testing.T) {
	r := newRig(t, nil)
	if err := r.Registry().Add(catalog.Tool{Name: "echo", Schema: []byte(`{"type":"object","properties":{"n":{"type":"integer"}}}`), Run: func(_ context.Context, a map[string]any) (any, error) {
		return fmt.Sprint("n=", a["n"]), nil
	}}); err != nil {
		t.Fatal(err)
	}
	clients, each := testall.Pick(200, 60), testall.Pick(50, 15)
	ctx, cancel := context.WithCancel(t.Context())
	var moving sync.WaitGroup
	moving.Go(func() {
		for ctx.Err() == nil {
			r.home.connect(bedroomID, "bedroom", nil)
			r.DeviceChanged(bedroomID)
			time.Sleep(300 * time.Millisecond)
			r.home.leave(bedroomID)
			r.DeviceChanged(bedroomID)
			time.Sleep(300 * time.Millisecond)
		}
	})
	transport := &http.Transport{MaxIdleConnsPerHost: clients}
	defer transport.CloseIdleConnections()
	var wrong atomic.Int64
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			var call func(n int) (string, error)
			switch i % 4 {
			case 0, 1:
				call = func(n int) (string, error) { return postEcho(t.Context(), transport, r.server.URL, i%4 == 0, n) }
			case 2:
				conn := r.dialSocket("", nil)
				defer conn.Close()
				call = func(n int) (string, error) {
					if err := conn.WriteMessage(1, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"n":%[1]d}}}`, n)); err != nil {
						return "", err
					}
					for {
						_, data, err := conn.ReadMessage()
						if err != nil || !strings.Contains(string(data), "list_changed") {
							return string(data), err
						}
					}
				}
			default:
				s, err := sdk.NewClient(&sdk.Implementation{Name: "x", Version: "1"}, nil).Connect(t.Context(),
					&sdk.StreamableClientTransport{Endpoint: r.server.URL + "/api/mcp/jsonrpc", HTTPClient: &http.Client{Transport: transport}},
					&sdk.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
				if err != nil {
					t.Error(err)
					return
				}
				defer s.Close()
				call = func(n int) (string, error) {
					result, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "echo", Arguments: map[string]any{"n": n}})
					if err != nil {
						return "", err
					}
					return result.Content[0].(*sdk.TextContent).Text, nil
				}
			}
			for k := range each {
				n := i*1000 + k
				if got, err := call(n); err != nil || !strings.Contains(got, fmt.Sprint("n=", n)) {
					wrong.Add(1)
					t.Logf("client %d: %s, %v", i, got, err)
				}
			}
		})
	}
	all.Wait()
	cancel()
	moving.Wait()
	if wrong.Load() > 0 {
		t.Errorf("%d answers were lost or crossed", wrong.Load())
	}
}

func postEcho(ctx context.Context, transport http.RoundTripper, server string, rest bool, n int) (string, error) {
	path, body := "/api/mcp/jsonrpc", fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"n":%[1]d}}}`, n)
	if rest {
		path, body = "/api/mcp/tools/call", fmt.Sprintf(`{"name":"echo","arguments":{"n":%d}}`, n)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, server+path, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return string(data), err
}

// FuzzMessages: no message brings the server down, or gets an answer that is no JSON.
func FuzzMessages(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`,
		`{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"util.hash","arguments":{"data":"x"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":null,"argument":{}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"\u0000"}}`,
	} {
		f.Add([]byte(seed), "")
		f.Add([]byte(seed), catalog.Version2024)
	}
	for _, method := range []string{"tools/list", "tools/call", "completion/complete", "resources/read", "server/discover", "prompts/get", "initialize"} {
		f.Add(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":%q,"params":{"name":"util.uuid","uri":"a","ref":{"type":"ref/prompt"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"}}}}`, method), catalog.VersionModern)
	}
	g := newOwned(Options{})
	f.Cleanup(g.Close)
	f.Fuzz(func(t *testing.T, body []byte, version string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/api/mcp/jsonrpc", strings.NewReader(string(body)))
		if err != nil {
			t.Fatal(err)
		}
		req.RemoteAddr, req.Host = "127.0.0.1:1", "localhost"
		var m rpcMessage
		if json.Unmarshal(body, &m) == nil && m.Method != nil && *m.Method == "subscriptions/listen" {
			return // it lasts
		}
		if version != "" {
			req.Header.Set(headerVersion, version)
		}
		if version >= catalog.VersionModern && m.Method != nil {
			req.Header.Set("Mcp-Method", *m.Method)
			req.Header.Set("Mcp-Name", "util.uuid")
		}
		w := httptest.NewRecorder()
		asOwner(asJSON(g)).ServeHTTP(w, req)
		if text := w.Body.String(); text != "" && !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "[") && !strings.HasPrefix(text, "event:") {
			t.Errorf("%q: %d %s", body, w.Code, text)
		}
	})
}
