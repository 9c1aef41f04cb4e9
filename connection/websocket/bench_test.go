package websocket

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"xiaozhi/connection"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp"
)

// readyTalk says when it runs.
type readyTalk struct {
	dropTalk
	out   wire.Outbox
	ready chan struct{} // closed when it runs
}

func (h *readyTalk) Run(ctx context.Context) error {
	close(h.ready)
	<-ctx.Done()
	return nil
}

// socket is one device on a TCP connection of this machine, after its hello.
func socket(b *testing.B) (*readyTalk, *websocket.Conn) {
	b.Helper()
	talk := &readyTalk{ready: make(chan struct{})}
	registry, wrap := setup{Options: connection.Options{
		Log: slog.New(slog.DiscardHandler),
		NewConversation: func(_ wire.Session, out wire.Outbox, _ []mcp.Source) (connection.Conversation, error) {
			talk.out = out
			return talk, nil
		},
	}}.build(b)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	web := &http.Server{Handler: wrap(http.NotFoundHandler()), ReadHeaderTimeout: time.Second}
	go func() { _ = web.Serve(ln) }()
	b.Cleanup(func() { web.Close(); registry.Close() })
	ws, _, err := websocket.DefaultDialer.DialContext(b.Context(), "ws://"+ln.Addr().String()+"/xiaozhi/v1/", http.Header{"Device-Id": {"d1"}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { ws.Close() })
	if err := ws.WriteMessage(websocket.TextMessage, []byte(`{"type":"hello","version":3}`)); err != nil {
		b.Fatal(err)
	}
	if _, _, err := ws.ReadMessage(); err != nil {
		b.Fatal(err)
	}
	<-talk.ready
	return talk, ws
}

// BenchmarkFrameOut is one packet from the conversation to the socket. The
// receiver's side allocates nothing.
func BenchmarkFrameOut(b *testing.B) {
	talk, ws := socket(b)
	packet := make([]byte, 200)
	buf := make([]byte, 4+4+len(packet))
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := talk.out.Audio(1, packet); !ok {
			b.Fatal("refused")
		}
		if _, err := io.ReadFull(ws.NetConn(), buf); err != nil {
			b.Fatal(err)
		}
	}
}
