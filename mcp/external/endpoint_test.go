package external

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/internal/lockout"
	"xiaozhi/mcp"
	"xiaozhi/mcp/router"
)

// home is a set with an endpoint on a network.
func home(t *testing.T, log *record, tokens ...Token) (*Set, *pipeNet) {
	t.Helper()
	f, p := NewSet(Options{ServerOptions: ServerOptions{Log: log.logger()}}), newPipeNet()
	p.serve(t, f.Endpoint(tokens))
	running(t, f)
	return f, p
}

const homeURL = "ws://home.test/mcp/endpoint/?token="

// TestToolServerDialsIn: its tools join, and leave with it at once.
func TestToolServerDialsIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log record
		f, p := home(t, &log, Token{Name: "lamp", Secret: "s3cret-one"}, Token{Secret: "s3cret-two", Deny: []string{"slow"}, Kinds: map[string]mcp.Kind{"echo": mcp.Control}})
		hangUp := toolServer(t, p, homeURL+"s3cret-one", tools(t))
		toolServer(t, p, homeURL+"s3cret-one", tools(t))
		toolServer(t, p, homeURL+"s3cret-two", tools(t))
		synctest.Wait()
		if got := sources(f); got != "endpoint lamp lamp-2" {
			t.Errorf("peers %q", got)
		}
		first := f.Sources()[0].GetAvailableTools()
		if len(first) != 2 || first[0].Kind != mcp.Control || first[0].Source != "external:endpoint" {
			t.Errorf("%+v", first)
		}
		for i, entry := range []string{"endpoint", "lamp", "lamp"} { // the settings know the token, whatever the number
			if tool := f.Sources()[i].GetAvailableTools()[0]; tool.Entry != entry || tool.Trusted {
				t.Errorf("%+v", tool)
			}
		}
		says(t, f.Sources()[1], "echo", "you said hi")
		failed := make(chan error, 1)
		go func() {
			_, err := f.Sources()[1].CallTool(t.Context(), "slow", nil)
			failed <- err
		}()
		synctest.Wait()
		began := time.Now()
		hangUp()
		synctest.Wait()
		if got := sources(f); got != "endpoint lamp-2" || time.Since(began) != 0 {
			t.Errorf("peers %q after %v", got, time.Since(began))
		}
		if err := <-failed; !errors.Is(err, mcp.ErrClosed) {
			t.Errorf("the pending call: %v", err)
		}
		toolServer(t, p, homeURL+"s3cret-one", tools(t)) // the name is free again
		later(10 * time.Minute)                          // pings keep them
		if got := sources(f); got != "endpoint lamp lamp-2" {
			t.Errorf("peers %q", got)
		}
		if strings.Contains(log.String(), "s3cret") {
			t.Errorf("the log shows a token:\n%s", log.String())
		}
	})
}

// TestDialledInAsks: the tools of a server that dials in need a yes, unless they say that they destroy nothing or its token
// is trusted; a rule for its token holds for each that shows it, and a program has nobody to ask.
func TestDialledInAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log record
		f, p := home(t, &log, Token{Name: "lamp", Secret: "s3cret-one"}, Token{Name: "friend", Secret: "s3cret-two", Trust: true}, Token{Name: "shed", Secret: "s3cret-six", Trust: true})
		for _, secret := range []string{"s3cret-one", "s3cret-two", "s3cret-six", "s3cret-six"} {
			toolServer(t, p, homeURL+secret, tools(t))
		}
		synctest.Wait()
		rt := router.New(router.Options{Rules: router.Rules{Confirm: []string{"External:Shed/*"}}}, f)
		defer rt.Close()
		asked := map[string]bool{}
		for _, o := range rt.Offers() {
			if o.Tool.Name != "echo" {
				continue
			}
			p, refused := rt.Prepare(mcp.Call{ID: "c", Name: o.LLMName, Arguments: `{"text":"hi"}`})
			if refused != nil {
				t.Fatal(refused)
			}
			asked[o.Tool.Source] = p.Asks()
			if r := rt.Run(t.Context(), p); r.Action.Failed() != p.Asks() {
				t.Errorf("%s: %+v", o.Tool.Source, r)
			}
			_, refused = rt.Prepare(mcp.Call{ID: "c", Name: o.LLMName, Arguments: `{"text":"hi"}`, By: mcp.ByProgram})
			if (refused != nil) != p.Asks() {
				t.Errorf("%s, by a program: %+v", o.Tool.Source, refused)
			}
		}
		if want := map[string]bool{"external:lamp": true, "external:friend": false, "external:shed": true, "external:shed-2": true}; !maps.Equal(asked, want) {
			t.Errorf("asked: %v", asked)
		}
	})
}

// TestPeerOfOneDevice is seen by that device alone.
func TestPeerOfOneDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log record
		f, p := home(t, &log, Token{Name: "hers", Secret: "s3cret", Device: "AA:BB:CC:DD:EE:FF"})
		toolServer(t, p, homeURL+"s3cret", tools(t))
		synctest.Wait()
		if hers, his, all := sources(f.For("aa:bb:cc:dd:ee:ff")), sources(f.For("11:22:33:44:55:66")), sources(f); hers != "hers" || his+all != "" {
			t.Errorf("hers %q, his %q, all %q", hers, his, all)
		}
	})
}

// TestRefused: who has no token learns nothing, and is named in the log.
func TestRefused(t *testing.T) {
	var log record
	f := NewSet(Options{ServerOptions: ServerOptions{Log: log.logger()}})
	h := f.Endpoint([]Token{{Name: "a", Secret: "s3cret"}, {Name: "none"}})
	ask := func(method, query, bearer string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), method, "/mcp/endpoint"+query, nil)
		if bearer != "" {
			r.Header.Set("Authorization", "Bearer "+bearer)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	for _, c := range []struct {
		method, query, bearer string
		want                  int
	}{
		{"GET", "", "", http.StatusUnauthorized},
		{"GET", "?token=", "", http.StatusUnauthorized},
		{"GET", "?token=s3cre", "", http.StatusUnauthorized},
		{"GET", "", "S3cret", http.StatusUnauthorized},
		{"POST", "?token=s3cret", "", http.StatusMethodNotAllowed},
		{"GET", "?token=s3cret", "", http.StatusUpgradeRequired},
		{"GET", "", "s3cret", http.StatusUpgradeRequired},
	} {
		w := ask(c.method, c.query, c.bearer)
		if w.Code != c.want || (c.want == http.StatusUnauthorized && w.Header().Get("WWW-Authenticate") != "Bearer") {
			t.Errorf("%+v: %d", c, w.Code)
		}
	}
	log.has(t, "mcp tool server refused", "no token", "unknown token", "remote=")
	for range 1000 {
		ask("GET", "?token=guess", "")
	}
	if n := strings.Count(log.String(), "\n"); n > logBurst+1 {
		t.Errorf("%d lines for a thousand guesses", n)
	}
	if strings.Contains(log.String(), "guess") || strings.Contains(log.String(), "s3cret") {
		t.Error("the log shows tokens")
	}
}

// TestForeignPage: a page in a browser cannot dial in, whatever it knows.
func TestForeignPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log record
		_, p := home(t, &log, Token{Secret: "s3cret"})
		d := websocket.Dialer{NetDialContext: p.dial}
		_, resp, err := d.DialContext(t.Context(), homeURL+"s3cret", http.Header{"Origin": {"https://evil.example"}})
		if err == nil || resp == nil || resp.StatusCode != http.StatusForbidden {
			t.Errorf("%v", err)
		}
	})
}

// TestTooManyPeers are refused before they are let in, until one leaves.
func TestTooManyPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log record
		f, p := home(t, &log, Token{Name: "n", Secret: "s3cret"})
		var hangUp func()
		for range maxPeers {
			hangUp = toolServer(t, p, homeURL+"s3cret", tools(t))
		}
		synctest.Wait()
		d := websocket.Dialer{NetDialContext: p.dial}
		_, resp, err := d.DialContext(t.Context(), homeURL+"s3cret", nil)
		if err == nil || resp == nil || resp.StatusCode != http.StatusServiceUnavailable {
			t.Fatalf("one too many: %v", err)
		}
		hangUp()
		synctest.Wait()
		toolServer(t, p, homeURL+"s3cret", tools(t))
		synctest.Wait()
		if n := len(f.Sources()); n != maxPeers {
			t.Errorf("%d peers", n)
		}
	})
}

// raw dials in and hands over its socket.
func raw(t *testing.T, p *pipeNet) *websocket.Conn {
	t.Helper()
	d := websocket.Dialer{NetDialContext: p.dial, HandshakeTimeout: time.Second}
	conn, _, err := d.DialContext(t.Context(), homeURL+"s3cret", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// TestWireOfTheEndpoint is what boards and bridges are written for: the older
// handshake first, whole numbers as ids, then the list.
func TestWireOfTheEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log record
		f, p := home(t, &log, Token{Name: "board", Secret: "s3cret"})
		conn := raw(t, p)
		expect := func(part, answer string) {
			t.Helper()
			_, message, err := conn.ReadMessage()
			if err != nil || !strings.Contains(string(message), part) {
				t.Fatalf("%s, %v; want %s", message, err, part)
			}
			if answer != "" {
				if err := conn.WriteMessage(websocket.BinaryMessage, []byte(answer)); err != nil {
					t.Fatal(err)
				}
			}
		}
		expect(`"id":1,"method":"initialize","params":{"clientInfo":{"name":"xiaozhi","version":""},"protocolVersion":"2024-11-05","capabilities":{}}`,
			"starting…\n{\"jsonrpc\":\"2.0\",\"id\":\"1\",\"result\":{\"protocolVersion\":\"2024-11-05\",\n\"capabilities\":{}}}")
		_ = conn.WriteMessage(websocket.TextMessage, []byte("{\"jsonrpc\":\"2.0\",\"id\":\"1\",\n\"result\":{\"protocolVersion\":\"2024-11-05\",\"capabilities\":{}}}\n"))
		expect("notifications/initialized", "")
		expect(`"id":2,"method":"tools/list"`, `{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"led","inputSchema":{}}]}}`+"\n"+`{"jsonrpc":"2.0","id":77,"method":"ping"}`)
		expect(`"id":77,"result":{}`, "")
		synctest.Wait()
		if !f.HasTool("led") {
			t.Fatal("no tool")
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			says(t, f, "led", "on")
		}()
		expect(`"id":3,"method":"tools/call","params":{"name":"led","arguments":{"text":"hi"}}`,
			`{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"on"}]}}`)
		<-done
	})
}

// TestBadPeers: one that says nothing, one that says too much, one that is cut
// off; none of them stays, and none hurts another.
func TestBadPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log record
		f, p := home(t, &log, Token{Name: "n", Secret: "s3cret"})
		toolServer(t, p, homeURL+"s3cret", tools(t))
		synctest.Wait()
		mute, loud, _ := raw(t, p), raw(t, p), raw(t, p) // the third reads nothing
		drain := func(c *websocket.Conn) {
			for {
				if _, _, err := c.ReadMessage(); err != nil {
					return
				}
			}
		}
		go drain(mute)
		go drain(loud)
		go func() { // longer than is taken: the rest is not read
			_ = loud.SetWriteDeadline(time.Now().Add(time.Second))
			_ = loud.WriteMessage(websocket.TextMessage, make([]byte, maxPeerFrame+1))
		}()
		later(2 * time.Second)
		log.has(t, "a message is too long")
		later(2 * time.Minute)
		if got := len(f.Sources()); got != 1 {
			t.Errorf("%d peers are left", got)
		}
		log.has(t, errNoHandshake.Error())
		says(t, f, "echo", "you said hi")
	})
}

// TestStopEndsPeers: the end of the set is the end of every socket.
func TestStopEndsPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log record
		f, p := home(t, &log, Token{Name: "n", Secret: "s3cret"})
		toolServer(t, p, homeURL+"s3cret", tools(t))
		synctest.Wait()
		if err := f.Stop(); err != nil {
			t.Fatal(err)
		}
		if len(f.Sources()) != 0 {
			t.Error("there are peers")
		}
		d := websocket.Dialer{NetDialContext: p.dial}
		if _, resp, err := d.DialContext(t.Context(), homeURL+"s3cret", nil); err == nil || resp.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("after the end: %v", err)
		}
	})
}

// TestPeerChangesItsTools: as any other server may.
func TestPeerChangesItsTools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log record
		f, p := home(t, &log, Token{Name: "n", Secret: "s3cret"})
		peer := tools(t)
		toolServer(t, p, homeURL+"s3cret", peer)
		synctest.Wait()
		addTool(peer, "new", func(context.Context, string) (*sdk.CallToolResult, error) { return words("new"), nil })
		later(2 * time.Second)
		says(t, f, "new", "new")
	})
}

// Who guesses tokens is not listened to for a while; a server that was there before is.
func TestEndpointGuesses(t *testing.T) {
	var log record
	h := NewSet(Options{ServerOptions: ServerOptions{Log: log.logger()}}).Endpoint([]Token{{Name: "a", Secret: "s3cret"}, {Name: "b", Secret: "an0ther"}})
	ask := func(token string) int {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/mcp/endpoint?token="+token, nil)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	if code := ask("s3cret"); code != http.StatusUpgradeRequired {
		t.Fatal(code)
	}
	for range lockout.MaxGuesses {
		if code := ask("guess"); code != http.StatusUnauthorized {
			t.Fatal(code)
		}
	}
	for token, want := range map[string]int{"guess": 429, "an0ther": 429, "s3cret": http.StatusUpgradeRequired} {
		if code := ask(token); code != want {
			t.Errorf("%s: %d, want %d", token, code, want)
		}
	}
}
