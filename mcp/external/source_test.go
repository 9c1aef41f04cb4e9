package external

import (
	"context"
	"net/http"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp"
	"xiaozhi/mcp/sourcetest"
)

// TestSource holds every transport to the contract of a source.
func TestSource(t *testing.T) {
	web := func(e Entry, handler func(*testing.T, *sdk.Server) http.Handler) func(*testing.T) mcp.Source {
		return func(t *testing.T) mcp.Source {
			t.Helper()
			p := newPipeNet()
			p.serve(t, handler(t, tools(t)))
			e.Timeout = "5m"
			return dialled(config(t, e), p, ServerOptions{})
		}
	}
	for name, make := range map[string]func(*testing.T) mcp.Source{
		"lines": func(t *testing.T) mcp.Source {
			t.Helper()
			s, _ := piped(t, tools(t), ServerOptions{})
			s.config.Timeout = 5 * time.Minute
			return s
		},
		"http":        web(Entry{URL: "http://tools.test/mcp"}, streamable),
		"http modern": web(Entry{URL: "http://tools.test/mcp"}, modern),
		"http legacy": web(Entry{URL: "http://tools.test/mcp", Protocol: "legacy"}, streamable),
		"sse": web(Entry{URL: "http://tools.test/sse"}, func(_ *testing.T, s *sdk.Server) http.Handler {
			return sdk.NewSSEHandler(func(*http.Request) *sdk.Server { return s }, nil)
		}),
		"websocket": web(Entry{URL: "ws://tools.test/mcp"}, func(_ *testing.T, s *sdk.Server) http.Handler { return websockets(s) }),
		"set":       fleetOfOne,
		"endpoint":  fleetOfPeers,
	} {
		t.Run(name, func(t *testing.T) {
			sourcetest.Run(t, sourcetest.Case{New: make, Tool: "echo", Arguments: map[string]any{"text": "x"}, Slow: "slow"})
		})
	}
}

// started is a set that does more at its start.
type started struct {
	*Set
	also func()
}

func (s started) Start(ctx context.Context) error {
	err := s.Set.Start(ctx)
	if err == nil {
		s.also()
	}
	return err
}

// fleetOfOne is a set with one server over WebSocket.
func fleetOfOne(t *testing.T) mcp.Source {
	t.Helper()
	p := newPipeNet()
	p.serve(t, websockets(tools(t)))
	return NewSet(Options{
		Servers:       map[string]Config{"far": config(t, Entry{URL: "ws://tools.test/mcp", Timeout: "5m"})},
		ServerOptions: ServerOptions{dial: p.dial},
	})
}

// fleetOfPeers is a set that a tool server dials in to.
func fleetOfPeers(t *testing.T) mcp.Source {
	t.Helper()
	f := NewSet(Options{})
	p := newPipeNet()
	return started{f, func() {
		p.serve(t, f.Endpoint([]Token{{Name: "lamp", Secret: "s3cret"}}))
		toolServer(t, p, "ws://home.test/mcp/endpoint/?token=s3cret", tools(t))
	}}
}
