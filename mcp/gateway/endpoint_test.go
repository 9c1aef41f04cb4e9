package gateway

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/internal/text"
	"xiaozhi/mcp/router"
)

// elsewhere is a client at an endpoint that the gateway serves.
func (r *rig) elsewhere(e Endpoint, changed func()) *sdk.ClientSession {
	r.t.Helper()
	ours, theirs := sdk.NewInMemoryTransports()
	session, err := r.Serving(e)(r.t.Context(), ours)
	if err != nil {
		r.t.Fatal(err)
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "market", Version: "1"}, &sdk.ClientOptions{
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {
			if changed != nil {
				changed()
			}
		},
	})
	// The handshake was made for it, as the link of an offer does.
	c, err := client.Connect(r.t.Context(), shaken{theirs}, &sdk.ClientSessionOptions{ProtocolVersion: "2024-11-05"})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		_ = c.Close()
		_ = session.Close()
	})
	return c
}

// offeredAt lists the tools at an endpoint.
func offeredAt(t *testing.T, c *sdk.ClientSession) []string {
	t.Helper()
	l, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range l.Tools {
		names = append(names, tool.Name)
	}
	return names
}

// TestEndpointOffers: an endpoint is shown the tools that the gateway offers and that can work there, of the sources
// and by the rules of the offer, and nothing but tools.
func TestEndpointOffers(t *testing.T) {
	for name, test := range map[string]struct {
		endpoint  Endpoint
		has, lack []string
	}{
		"all": {
			Endpoint{Name: "tools.offer.0"},
			[]string{"util.sum", "shop.look", "shop.order", "home.lamp", "hand.wave", "time.now", kitchenStream + ".self.audio_speaker.set_volume"},
			[]string{"util.burn", "shop.buy", "shop.wipe", "hand.punch"}, // nobody can be asked
		},
		"by source": {
			Endpoint{Name: "tools.offer.0", Sources: []string{"local", "device"}},
			[]string{"util.sum", kitchenStream + ".self.audio_speaker.set_volume"},
			[]string{"shop.look", "home.lamp", "hand.wave", "time.now"},
		},
		"by rule": {
			Endpoint{Name: "tools.offer.0", Rules: router.Rules{Allow: []string{"external:shop/*", "home.*"}, Deny: []string{"look"}}},
			[]string{"shop.order", "home.lamp"},
			[]string{"shop.look", "util.sum", "time.now"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGated(t, router.Rules{})
			c := g.elsewhere(test.endpoint, nil)
			names := offeredAt(t, c)
			for _, want := range test.has {
				if !slices.Contains(names, want) {
					t.Errorf("no %s among %q", want, names)
				}
			}
			for _, not := range test.lack {
				if slices.Contains(names, not) {
					t.Errorf("%s is offered", not)
				}
				if r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: not}); err == nil && !r.IsError {
					t.Errorf("%s is run", not)
				}
			}
			if ran := g.took(); len(ran) > 0 {
				t.Errorf("run: %q", ran)
			}
			for what, ask := range map[string]func() (int, error){
				"resources": func() (int, error) {
					l, err := c.ListResources(t.Context(), nil)
					return len(l.Resources), err
				},
				"prompts": func() (int, error) {
					l, err := c.ListPrompts(t.Context(), nil)
					return len(l.Prompts), err
				},
			} {
				if n, err := ask(); n > 0 || err != nil {
					t.Errorf("%d %s, %v", n, what, err)
				}
			}
			if _, err := c.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "xiaozhi://config"}); err == nil {
				t.Error("the settings can be read")
			}
		})
	}
}

// TestEndpointCalls: a call goes the way of the gateway: results have its form and its limits, there is a line for it,
// and what the settings hide meanwhile is gone.
func TestEndpointCalls(t *testing.T) {
	g := newGated(t, router.Rules{})
	changed := make(chan struct{}, 16)
	c := g.elsewhere(Endpoint{Name: "tools.offer.3", Where: "wss://market.test/mcp/", Language: text.English}, func() { changed <- struct{}{} })
	call := func(name string, arguments any) string {
		t.Helper()
		r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: arguments})
		if err != nil {
			return err.Error()
		}
		return r.Content[0].(*sdk.TextContent).Text
	}
	if got := call("util.sum", nil); got != "done" {
		t.Errorf("sum: %q", got)
	}
	volume := kitchenStream + ".self.audio_speaker.set_volume"
	if got := call(volume, map[string]any{"volume": 30}); !strings.Contains(got, `"volume":30`) || !strings.Contains(got, kitchenID) {
		t.Errorf("a device: %q", got)
	}
	if got := call(volume, map[string]any{"volume": "loud"}); !strings.Contains(got, "volume") || !strings.Contains(got, "invalid") && !strings.Contains(got, "arguments") {
		t.Errorf("bad arguments: %q", got)
	}
	if got := call("util.none", nil); !strings.Contains(got, "tool not found") {
		t.Errorf("unknown: %q", got)
	}
	for _, want := range []string{"outward call", "token=tools.offer.3", "remote=wss://market.test/mcp/", "via=offer", "tool=util.sum", "outcome=ok", "outcome=unknown"} {
		if !strings.Contains(g.log.String(), want) {
			t.Errorf("no %s in the log", want)
		}
	}
	g.Renew(router.NewGate(router.Rules{Deny: []string{"sum"}, Confirm: []string{"shop.look"}}), nil)
	select {
	case <-changed:
	case <-time.After(10 * time.Second):
		t.Fatal("no change is told")
	}
	if names := offeredAt(t, c); slices.Contains(names, "util.sum") || slices.Contains(names, "shop.look") || !slices.Contains(names, "shop.order") {
		t.Errorf("offered %q", names)
	}
	if got := call("util.sum", nil); !strings.Contains(got, "tool not found") {
		t.Errorf("what is hidden: %q", got)
	}
}

// TestEndpointEnds: a session ends with the gateway, which begins none after that.
func TestEndpointEnds(t *testing.T) {
	g := newGated(t, router.Rules{})
	c := g.elsewhere(Endpoint{Name: "tools.offer.0"}, nil)
	g.Close()
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = c.Wait()
	}()
	select {
	case <-over:
	case <-time.After(10 * time.Second):
		t.Fatal("it is still there")
	}
	ours, _ := sdk.NewInMemoryTransports()
	if _, err := g.Serving(Endpoint{Name: "tools.offer.0"})(t.Context(), ours); err == nil {
		t.Error("a closed gateway serves")
	}
}

// shaken is a transport whose server counts the handshake as made: it answers initialize itself.
type shaken struct{ sdk.Transport }

func (s shaken) Connect(ctx context.Context) (sdk.Connection, error) {
	conn, err := s.Transport.Connect(ctx)
	return &shakenConn{Connection: conn, answers: make(chan jsonrpc.Message, 1)}, err
}

type shakenConn struct {
	sdk.Connection
	answers chan jsonrpc.Message
}

func (c *shakenConn) Write(ctx context.Context, m jsonrpc.Message) error {
	r, ok := m.(*jsonrpc.Request)
	switch {
	case ok && r.Method == "initialize":
		c.answers <- &jsonrpc.Response{ID: r.ID, Result: []byte(`{"protocolVersion":"2024-11-05","capabilities":{"tools":{"listChanged":true},"resources":{},"prompts":{}},"serverInfo":{"name":"x","version":"1"}}`)}
		return nil
	case ok && r.Method == "notifications/initialized":
		return nil
	}
	return c.Connection.Write(ctx, m)
}

func (c *shakenConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	if c.answers != nil {
		answer := <-c.answers
		c.answers = nil
		return answer, nil
	}
	return c.Connection.Read(ctx)
}
