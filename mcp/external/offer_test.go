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

// shop is a server of ours with a tool.
func shop() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "shop", Version: "1"}, nil)
	addTool(s, "greet", func(context.Context, string) (*sdk.CallToolResult, error) { return words("hello"), nil })
	return s
}

// offer starts an offer of a server's tools at the market.
func offer(t *testing.T, m *market, log *record, server *sdk.Server) {
	t.Helper()
	if o, err := NewOffer(OfferOptions{URL: "wss-less://"}); err == nil || o != nil {
		t.Error("a bad address is taken")
	}
	o, err := NewOffer(OfferOptions{
		URL: "ws://market.test/mcp/?token=m4rket", Log: log.logger(), dial: m.dial,
		Connect: func(ctx context.Context, link sdk.Transport) (OfferSession, error) {
			return server.Connect(ctx, link, &sdk.ServerSessionOptions{State: &sdk.ServerSessionState{
				InitializeParams: &sdk.InitializeParams{ProtocolVersion: oldestVersion}, InitializedParams: &sdk.InitializedParams{},
			}})
		},
	})
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

// TestOffer: what is served can be listed and called there, a change of it is told, and the address stays out of the log.
func TestOffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log record
		m, server := newMarket(t), shop()
		offer(t, m, &log, server)
		s := m.client(t)
		says(t, s, "greet", "hello")
		addTool(server, "another", func(context.Context, string) (*sdk.CallToolResult, error) { return words("new"), nil })
		later(2 * time.Second)
		says(t, s, "another", "new")
		if m.queries[0] != "token=m4rket" || strings.Contains(log.String(), "m4rket") {
			t.Errorf("queries %q, log:\n%s", m.queries, log.String())
		}
	})
}

// TestOfferReturns: after a loss, by the same pauses as others.
func TestOfferReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log record
		m := newMarket(t)
		offer(t, m, &log, shop())
		s := m.client(t)
		says(t, s, "greet", "hello")
		m.cut()
		synctest.Wait()
		if s.IsReady() {
			t.Error("still there")
		}
		later(1300 * time.Millisecond)
		s = m.client(t)
		says(t, s, "greet", "hello")
		log.has(t, "endpoint is away", "endpoint=ws://market.test/mcp/")
	})
}

// TestOfferRefused: who will not serve is asked again after a pause.
func TestOfferRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log record
		m, asked := newMarket(t), 0
		o, err := NewOffer(OfferOptions{URL: "ws://market.test/", Log: log.logger(), dial: m.dial, Connect: func(context.Context, sdk.Transport) (OfferSession, error) {
			asked++
			return nil, errors.New("closing time")
		}})
		if err != nil {
			t.Fatal(err)
		}
		running(t, stoppable{o})
		later(time.Minute)
		if asked < 3 || asked > 8 {
			t.Errorf("asked %d times", asked)
		}
		log.has(t, "closing time")
		for range asked {
			_ = (<-m.sockets).Close()
		}
	})
}

// stoppable is an offer where a source is wanted.
type stoppable struct{ *Offer }

func (stoppable) HasTool(string) bool                                           { return false }
func (stoppable) GetAvailableTools() []mcp.Tool                                 { return nil }
func (stoppable) CallTool(context.Context, string, map[string]any) (any, error) { return nil, nil }
func (stoppable) IsReady() bool                                                 { return true }
func (stoppable) ResetConnection() error                                        { return nil }

// TestManyHandshakes: an endpoint shakes hands anew for each of its devices, or
// not at all.
func TestManyHandshakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log record
		m := newMarket(t)
		offer(t, m, &log, shop())
		conn := <-m.sockets
		t.Cleanup(func() { _ = conn.Close() })
		for _, c := range []struct{ say, want string }{
			{`{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"greet"}}`, `"text":"hello"`},
			{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}`, `"protocolVersion":"2025-06-18"`},
			{`{"jsonrpc":"2.0","method":"notifications/initialized"}`, ""},
			{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"1999"}}`, `"protocolVersion":"2024-11-05"`},
			{`{"jsonrpc":"2.0","id":2,"method":"initialize","params":7}`, `"tools":{"listChanged":true}`},
			{`{"jsonrpc":"2.0","id":3,"method":"ping"}`, `"id":3,"result":{}`},
			{`nonsense`, ""},
			{`{"jsonrpc":"2.0","id":4,"method":"tools/list"}`, `"name":"greet"`},
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
