package external

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
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

// pipeNet is a network of one address, in memory, so that a bubble's time
// stands still while something is on its way.
type pipeNet struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once

	mu   sync.Mutex
	live []net.Conn
}

func newPipeNet() *pipeNet {
	return &pipeNet{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (p *pipeNet) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipeNet) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipeNet) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 80} }

func (p *pipeNet) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		p.mu.Lock()
		p.live = append(p.live, ours, theirs)
		p.mu.Unlock()
		return ours, nil
	case <-p.closed:
		return nil, errors.New("connection refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// cut breaks every connection.
func (p *pipeNet) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.live {
		_ = c.Close()
	}
	p.live = nil
}

// serve runs a handler on the network until the test ends.
func (p *pipeNet) serve(t *testing.T, h http.Handler) {
	t.Helper()
	srv := &http.Server{Handler: h, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(p)
	}()
	t.Cleanup(func() {
		_ = srv.Close()
		_ = p.Close()
		p.cut()
		<-done
	})
}

// tools are the tools of a real server: echo answers at once, slow only when it
// is given up, or the test is over.
func tools(t *testing.T) *sdk.Server {
	t.Helper()
	s := sdk.NewServer(&sdk.Implementation{Name: "toolbox", Version: "9"}, nil)
	addTool(s, "echo", func(_ context.Context, text string) (*sdk.CallToolResult, error) {
		return words("you said " + text), nil
	})
	addTool(s, "slow", func(ctx context.Context, _ string) (*sdk.CallToolResult, error) {
		select {
		case <-ctx.Done():
		case <-t.Context().Done():
		}
		return nil, errors.New("given up")
	})
	addTool(s, "fail", func(context.Context, string) (*sdk.CallToolResult, error) {
		r := words("the lamp is broken")
		r.IsError = true
		return r, nil
	})
	return s
}

func words(text string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}
}

func addTool(s *sdk.Server, name string, f func(context.Context, string) (*sdk.CallToolResult, error)) {
	s.AddTool(&sdk.Tool{
		Name: name, Description: "does " + name,
		InputSchema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`),
	}, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		var args struct {
			Text string `json:"text"`
		}
		_ = json.Unmarshal(r.Params.Arguments, &args)
		return f(ctx, args.Text)
	})
}

// record is a log that a test reads.
type record struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.b.Write(p)
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.b.String()
}

func (r *record) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(r, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// has fails the test unless the log holds each of parts.
func (r *record) has(t *testing.T, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(r.String(), part) {
			t.Errorf("the log lacks %q:\n%s", part, r.String())
		}
	}
}

// dialled is a server whose config is c, on a network in memory.
func dialled(c Config, p *pipeNet, o ServerOptions) *Server {
	o.dial = p.dial
	return NewServer("far", c, o)
}

// streamable serves peer over streamable HTTP. Sessions that a client left
// without a word end with the test.
func streamable(t *testing.T, peer *sdk.Server) http.Handler {
	t.Helper()
	t.Cleanup(func() {
		for session := range peer.Sessions() {
			_ = session.Close()
		}
	})
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return peer }, nil)
}

// modern serves peer over streamable HTTP without sessions, as the newest
// revision has it.
func modern(_ *testing.T, peer *sdk.Server) http.Handler {
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return peer }, &sdk.StreamableHTTPOptions{Stateless: true})
}

// config is what an entry says, which must be right.
func config(t *testing.T, e Entry) Config {
	t.Helper()
	c, err := e.Config()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// piped is a server over lines, with a real SDK server at the other end of each
// connection; broken ends the connections.
func piped(t *testing.T, peer *sdk.Server, o ServerOptions) (s *Server, cut func()) {
	t.Helper()
	var mu sync.Mutex
	var live []io.Closer
	s = newServer("near", Config{}, o)
	s.dialling.ways = Config{Transport: Stdio}.ways()
	s.dialling.open = func(context.Context, way) (*line, error) {
		ours, theirs := net.Pipe()
		mu.Lock()
		live = append(live, theirs)
		mu.Unlock()
		session, err := peer.Connect(t.Context(), &sdk.IOTransport{Reader: theirs, Writer: theirs}, nil)
		if err != nil {
			return nil, err
		}
		l := newLink(newLines(ours, ours), 0, s.log)
		return &line{transport: l, cause: l.cause, end: func() {
			_ = l.Close()
			_ = session.Wait()
			l.wait()
		}}, nil
	}
	return s, func() {
		mu.Lock()
		defer mu.Unlock()
		for _, c := range live {
			_ = c.Close()
		}
	}
}

// websockets serves peer to each socket that is opened.
func websockets(peer *sdk.Server) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
		if err != nil {
			return
		}
		l := newLink(newSocket(conn, maxFrame), 0, slog.New(slog.DiscardHandler))
		session, err := peer.Connect(r.Context(), l, nil)
		if err != nil {
			return
		}
		_ = session.Wait()
		_ = l.Close()
		l.wait()
	})
}

// toolServer dials in to an endpoint and serves peer there until hangUp.
func toolServer(t *testing.T, p *pipeNet, address string, peer *sdk.Server) (hangUp func()) {
	t.Helper()
	conn, err := dialSocket(t.Context(), address, websocket.Dialer{NetDialContext: p.dial}, nil)
	if err != nil {
		t.Errorf("dial: %v", err)
		return func() {}
	}
	l := newLink(newSocket(conn, maxFrame), 0, slog.New(slog.DiscardHandler))
	session, err := peer.Connect(t.Context(), l, nil)
	if err != nil {
		t.Error(err)
		return func() {}
	}
	var once sync.Once
	hangUp = func() {
		once.Do(func() {
			_ = l.Close()
			_ = session.Close()
			l.wait()
		})
	}
	t.Cleanup(hangUp)
	return hangUp
}

// running starts s in the bubble and stops it at the end.
func running(t *testing.T, s mcp.Source) {
	t.Helper()
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop() })
	synctest.Wait()
}

// later lets the bubble's time pass and waits until all has settled.
func later(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// says calls a tool and wants its text.
func says(t *testing.T, s mcp.Source, tool, want string) {
	t.Helper()
	got, err := s.CallTool(t.Context(), tool, map[string]any{"text": "hi"})
	if err != nil || got != want {
		t.Errorf("%s: %v, %v; want %q", tool, got, err, want)
	}
}
