package external

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp"
	"xiaozhi/mcp/local"
	"xiaozhi/mcp/router"
)

// market is somebody else's endpoint: it accepts sockets and hands them over.
type market struct {
	*pipeNet
	sockets chan *websocket.Conn

	mu      sync.Mutex
	queries []string
}

func newMarket(t *testing.T) *market {
	t.Helper()
	m := &market{pipeNet: newPipeNet(), sockets: make(chan *websocket.Conn, 8)}
	m.serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.mu.Lock()
		m.queries = append(m.queries, r.URL.RawQuery)
		m.mu.Unlock()
		conn, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
		if err == nil {
			m.sockets <- conn
		}
	}))
	return m
}

// offered is a source of ours with a tool of each outcome.
func offered(t *testing.T) *local.Source {
	t.Helper()
	s := local.New(local.Options{})
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop() })
	for name, r := range map[string]mcp.ActionResponse{
		"spoken":  {Action: mcp.ActionTypeResponse, Response: "hello"},
		"nothing": {Action: mcp.ActionTypeNone},
		"wrong":   {Action: mcp.ActionTypeError, Result: "no power"},
		"picture": {Action: mcp.ActionTypeReqLLM, Result: []any{"look", mcp.Image{MIMEType: "image/png", Data: []byte{1}}}},
		"numbers": {Action: mcp.ActionTypeReqLLM, Result: []any{1, 2}},
	} {
		add(t, s, name, r)
	}
	return s
}

func add(t *testing.T, s *local.Source, name string, r mcp.ActionResponse) {
	t.Helper()
	schema := `{"type":"object","properties":{"n":{"type":"integer"}}}`
	err := s.AddTool(mcp.Tool{Name: name, Schema: []byte(schema)}, func(context.Context, map[string]any) mcp.ActionResponse { return r })
	if err != nil {
		t.Fatal(err)
	}
}

// offer starts an offer of source at the market.
func offer(t *testing.T, m *market, log *record, source mcp.Source) {
	t.Helper()
	box := router.New(router.Options{Rules: router.Rules{Deny: []string{"get_*"}}}, source)
	t.Cleanup(box.Close)
	o, err := NewOffer(OfferOptions{URL: "wss-less://", Tools: box})
	if err == nil || o != nil {
		t.Error("a bad address is taken")
	}
	o, err = NewOffer(OfferOptions{URL: "ws://market.test/mcp/?token=m4rket", Tools: box, Log: log.logger(), dial: m.dial})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := o.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		_ = o.Stop()
		if err := o.Stop(); err != nil || !errors.Is(o.Start(t.Context()), mcp.ErrClosed) {
			t.Error("not stopped")
		}
	})
}

// client is an MCP client on the next socket of the market.
func (m *market) client(t *testing.T) *Server {
	t.Helper()
	conn := <-m.sockets
	s := newServer("market", Config{}, ServerOptions{})
	s.once, s.dialling.ways = true, []way{{WebSocket, oldestVersion, shakeLimit}}
	s.dialling.open = func(context.Context, way) (*line, error) {
		return socketLine(newLink(newSocket(conn, maxFrame), 0, s.log)), nil
	}
	running(t, s)
	return s
}

// TestOffer: our tools can be listed and called there; each outcome as docs/decisions.md
// section 10 has it for calls from outside.
func TestOffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log record
		m, source := newMarket(t), offered(t)
		offer(t, m, &log, source)
		s := m.client(t)
		for _, name := range []string{"exit", "nothing", "numbers", "picture", "spoken", "wrong"} {
			if !s.HasTool(name) {
				t.Errorf("no %s among %q", name, names(s))
			}
		}
		says(t, s, "spoken", "hello")
		says(t, s, "nothing", "")
		says(t, s, "numbers", "[1,2]")
		if got, err := s.CallTool(t.Context(), "picture", nil); err != nil || toJSON(t, got) != toJSON(t, []any{"look", mcp.Image{MIMEType: "image/png", Data: []byte{1}}}) {
			t.Errorf("picture: %v, %v", got, err)
		}
		if _, err := s.CallTool(t.Context(), "wrong", nil); !reported(err, "no power") {
			t.Errorf("wrong: %v", err)
		}
		if _, err := s.CallTool(t.Context(), "exit", nil); err == nil || !strings.Contains(err.Error(), "conversation only") {
			t.Errorf("exit: %v", err)
		}
		if _, err := s.CallTool(t.Context(), "spoken", map[string]any{"n": "x"}); err == nil || !strings.Contains(err.Error(), "invalid arguments") {
			t.Errorf("wrong arguments: %v", err)
		}
		add(t, source, "another", mcp.ActionResponse{Action: mcp.ActionTypeResponse, Response: "new"})
		later(offerRefresh + 2*time.Second)
		says(t, s, "another", "new")
		if m.queries[0] != "token=m4rket" || strings.Contains(log.String(), "m4rket") {
			t.Errorf("queries %q, log:\n%s", m.queries, log.String())
		}
	})
}

// TestOfferReturns: after a loss, by the same pauses as others; what is gone is
// taken back.
func TestOfferReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log record
		m := newMarket(t)
		p := folk(t, "a")
		f := NewSet(Options{Servers: map[string]Config{"a": config(t, Entry{URL: "ws://h/a", Trust: true})}, ServerOptions: ServerOptions{dial: p.dial}})
		running(t, f)
		offer(t, m, &log, f)
		s := m.client(t)
		says(t, s, "a", "I am a")
		m.cut()
		synctest.Wait()
		if s.IsReady() {
			t.Error("still there")
		}
		later(1300 * time.Millisecond)
		s = m.client(t)
		says(t, s, "a", "I am a")
		_ = p.Close()
		p.cut()
		later(offerRefresh + 2*time.Second)
		if got := names(s); got != "" {
			t.Errorf("tools %q", got)
		}
		log.has(t, "endpoint is away", "endpoint=ws://market.test/mcp/")
	})
}

// TestManyHandshakes: an endpoint shakes hands anew for each of its devices, or
// not at all.
func TestManyHandshakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log record
		m := newMarket(t)
		offer(t, m, &log, offered(t))
		conn := <-m.sockets
		t.Cleanup(func() { _ = conn.Close() })
		for _, c := range []struct{ say, want string }{
			{`{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"spoken"}}`, `"text":"hello"`},
			{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}`, `"protocolVersion":"2025-06-18"`},
			{`{"jsonrpc":"2.0","method":"notifications/initialized"}`, ""},
			{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"1999"}}`, `"protocolVersion":"2024-11-05"`},
			{`{"jsonrpc":"2.0","id":2,"method":"initialize","params":7}`, `"tools":{"listChanged":true}`},
			{`{"jsonrpc":"2.0","id":3,"method":"ping"}`, `"id":3,"result":{}`},
			{`nonsense`, ""},
			{`{"jsonrpc":"2.0","id":4,"method":"tools/list"}`, `"name":"spoken"`},
		} {
			if err := conn.WriteMessage(websocket.TextMessage, []byte(c.say)); err != nil {
				t.Fatal(err)
			}
			if c.want == "" {
				continue
			}
			if _, got, err := conn.ReadMessage(); err != nil || !strings.Contains(string(got), c.want) {
				t.Fatalf("%s: %s, %v", c.say, got, err)
			}
		}
	})
}

// TestUnofferable: a schema that the SDK panics at costs one tool.
func TestUnofferable(t *testing.T) {
	var log record
	box := router.New(router.Options{})
	defer box.Close()
	o, err := NewOffer(OfferOptions{URL: "ws://h", Tools: box, Log: log.logger()})
	if err != nil {
		t.Fatal(err)
	}
	server := sdk.NewServer(&sdk.Implementation{Name: "x"}, nil)
	for _, schema := range []string{`{"type":"object","properties":{"a":{"type":"object","x-mcp-header":"A"}}}`, `[]`, ``, `{"type":"string"}`} {
		o.add(server, router.Offer{LLMName: "t", Tool: mcp.Tool{Name: "t", Schema: []byte(schema)}})
	}
	log.has(t, "tool cannot be offered")
}

// Nobody can be asked at the other end of an endpoint: what needs a yes is not offered,
// and is not run for who knows of it all the same.
func TestOfferNeedsConsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log record
		m, source := newMarket(t), offered(t)
		yes, ran := true, false
		wipe := mcp.Tool{Name: "wipe", Schema: []byte(`{"type":"object"}`), Annotations: mcp.Annotations{Destructive: &yes}}
		if err := source.AddTool(wipe, func(context.Context, map[string]any) mcp.ActionResponse {
			ran = true
			return mcp.ActionResponse{}
		}); err != nil {
			t.Fatal(err)
		}
		p := folk(t, "a")
		f := NewSet(Options{Servers: map[string]Config{"a": config(t, Entry{URL: "ws://h/a"})}, ServerOptions: ServerOptions{dial: p.dial}})
		running(t, f)
		box := router.New(router.Options{}, source, f)
		defer box.Close()
		o, err := NewOffer(OfferOptions{URL: "ws://market.test/mcp/?token=m4rket", Tools: box, Log: log.logger(), dial: m.dial})
		if err != nil {
			t.Fatal(err)
		}
		if err := o.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer o.Stop()
		s := m.client(t)
		for _, name := range []string{"wipe", "a"} { // that of another server says nothing of what it does
			if s.HasTool(name) {
				t.Errorf("%s is offered", name)
			}
			_, refused := box.Prepare(mcp.Call{Name: name, By: mcp.ByProgram})
			if refused == nil || !strings.Contains(mcp.ResultText(*refused), "nobody can be asked") {
				t.Errorf("%s: %+v", name, refused)
			}
		}
		if ran {
			t.Error("it was run")
		}
	})
}
