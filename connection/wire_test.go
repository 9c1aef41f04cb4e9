package connection

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/wire"
	"xiaozhi/mcp"
)

// These tests and benchmarks use no fake time: real sockets, or none at all.

// rawDevice connects over TCP as firmware does, and gives the socket after the
// server's hello.
func rawDevice(tb testing.TB, addr, id, hello string) (net.Conn, *bufio.Reader) {
	tb.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		tb.Fatal(err)
	}
	fmt.Fprintf(nc, "GET /xiaozhi/v1/ HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nDevice-Id: %s\r\n\r\n", id)
	br := bufio.NewReaderSize(nc, 256)
	answer, err := http.ReadResponse(br, nil)
	if err != nil || answer.StatusCode != 101 {
		tb.Fatalf("upgrade: %v %v", answer, err)
	}
	if _, err := nc.Write(masked(hello)); err != nil {
		tb.Fatal(err)
	}
	head := make([]byte, 4) // 0x81, 126, length
	if _, err := io.ReadFull(br, head); err != nil || head[0] != 0x81 || head[1] != 126 {
		tb.Fatalf("server hello: %x %v", head, err)
	}
	body := make([]byte, int(head[2])<<8|int(head[3]))
	if _, err := io.ReadFull(br, body); err != nil || !strings.Contains(string(body), `"hello"`) {
		tb.Fatalf("server hello: %s %v", body, err)
	}
	return nc, br
}

// masked makes one short text frame with a mask of zeros.
func masked(text string) []byte {
	return append([]byte{0x81, 0x80 | byte(len(text)), 0, 0, 0, 0}, text...)
}

// A mute device on real TCP with unread sound under way still gets the close
// frame, then the end of TCP.
func TestHangUpOverTCP(t *testing.T) {
	talks := make(chan *fakeTalk, 1)
	s, err := NewServer(Options{NewTalk: func(_ wire.Session, out wire.Outbox, _ []mcp.Source) (Talk, error) {
		talk := &fakeTalk{out: out, over: make(chan error, 1)}
		talks <- talk
		return talk, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(s.Handler(nil))
	defer web.Close()
	nc, br := rawDevice(t, web.Listener.Addr().String(), "d1", `{"type":"hello"}`)
	defer nc.Close()
	(<-talks).out.HangUp(nil)
	for range 50 { // the microphone is still on
		if _, err := nc.Write([]byte{0x82, 0x81, 0, 0, 0, 0, 1}); err != nil {
			break
		}
	}
	rest, err := io.ReadAll(br)
	if err != nil || len(rest) < 4 || rest[0] != 0x88 || rest[2] != 0x03 || rest[3] != 0xe8 {
		t.Errorf("got %x, %v; want a close frame of 1000 and EOF", rest, err)
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestReadEndings(t *testing.T) {
	reset := &net.OpError{Op: "read", Err: fmt.Errorf("connection reset by peer")}
	for _, tc := range []struct {
		err  error
		want string
		gone bool
	}{
		{io.EOF, "device closed the connection", true},
		{reset, "device closed the connection", true},
		{net.ErrClosed, "device closed the connection", true},
		{&websocket.CloseError{Code: 1006}, "device closed the connection", true},
		{&websocket.CloseError{Code: 1000}, "device closed the connection", false},
		{&websocket.CloseError{Code: 3000}, "device closed the connection", false},
		{context.DeadlineExceeded, "no data and no pong for 60 s", true},
		{fmt.Errorf("%w: opcode 3", errWire), "device broke the WebSocket protocol", false},
	} {
		e := endingOf(readEnding(tc.err))
		if e.reason != tc.want || e.gone != tc.gone {
			t.Errorf("%v: %q, gone %v", tc.err, e.reason, e.gone)
		}
	}
	if endingOf(context.Canceled).reason != "server is stopping" {
		t.Error("the end of the server's context is not taken for its stop")
	}
}

// discardConn is a socket into nothing.
type discardConn struct{ net.Conn }

func (discardConn) Write(p []byte) (int, error)      { return len(p), nil }
func (discardConn) Read([]byte) (int, error)         { return 0, io.EOF }
func (discardConn) SetDeadline(time.Time) error      { return nil }
func (discardConn) SetReadDeadline(time.Time) error  { return nil }
func (discardConn) SetWriteDeadline(time.Time) error { return nil }
func (discardConn) Close() error                     { return nil }

// hijacked hands out a discardConn.
type hijacked struct{ *httptest.ResponseRecorder }

func (hijacked) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return discardConn{}, bufio.NewReadWriter(bufio.NewReader(discardConn{}), bufio.NewWriter(discardConn{})), nil
}

// idleConn is a connection whose goroutines do not run.
func idleConn(tb testing.TB, framing int) *conn {
	tb.Helper()
	s, err := NewServer(Options{NewTalk: noTalk})
	if err != nil {
		tb.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodGet, "/xiaozhi/v1/", nil)
	r.Header = http.Header{
		"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="},
	}
	ws, err := s.upgrader.Upgrade(hijacked{httptest.NewRecorder()}, r, nil)
	if err != nil {
		tb.Fatal(err)
	}
	c := newConn(s, identity{deviceID: "d1"}, "s1", ws)
	c.cancel = func(error) {}
	c.framing, c.stamped = framing, framing == 2
	return c
}

func TestSendingAFrameAllocatesNothing(t *testing.T) {
	for framing := 1; framing <= 3; framing++ {
		c := idleConn(t, framing)
		packet := make([]byte, 180)
		n := testing.AllocsPerRun(1000, func() {
			if _, ok := c.Audio(1, packet); !ok {
				t.Fatal("frame not taken")
			}
			if err := c.writeQueued(); err != nil {
				t.Fatal(err)
			}
		})
		if n != 0 {
			t.Errorf("framing %d: %v allocations per frame", framing, n)
		}
	}
}

func BenchmarkSendFrame(b *testing.B) {
	for framing := 1; framing <= 3; framing++ {
		b.Run(fmt.Sprint("framing", framing), func(b *testing.B) {
			c := idleConn(b, framing)
			packet := make([]byte, 180)
			b.ReportAllocs()
			for b.Loop() {
				c.Audio(1, packet)
				if err := c.writeQueued(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// dropTalk throws away what it is told.
type dropTalk struct{}

func (dropTalk) Run(ctx context.Context) error { <-ctx.Done(); return nil }
func (dropTalk) Post(wire.Event) error         { return nil }
func (dropTalk) Hear(wire.Packet)              {}

// hearTalk counts what it hears.
type hearTalk struct {
	dropTalk
	frames int
}

func (h *hearTalk) Hear(wire.Packet) { h.frames++ }

// hearingConn is a connection after its hello, on which the same frame of sound
// comes again and again, and nothing is too much.
func hearingConn(tb testing.TB) *conn {
	tb.Helper()
	c := idleConn(tb, 3)
	talk := new(hearTalk)
	c.talk = talk
	c.dialect.hello.Store(true)
	c.dues.sound.size, c.dues.words.size = 1<<62, 1<<62
	wire, err := appendFrame(nil, 3, 0, make([]byte, 120))
	if err != nil {
		tb.Fatal(err)
	}
	c.in = newFrameReader(&endless{frame: frameUp(0x82, wire)})
	return c
}

func TestReceivingAFrameAllocatesNothing(t *testing.T) {
	c := hearingConn(t)
	const n = 1000
	if allocs := testing.AllocsPerRun(n, func() {
		if err := c.readOne(t.Context()); err != nil {
			t.Fatal(err)
		}
	}); allocs != 0 {
		t.Errorf("%v allocations for a frame", allocs)
	}
	if got := c.talk.(*hearTalk).frames; got != n+1 {
		t.Errorf("%d frames of %d were heard", got, n+1)
	}
}

func BenchmarkReceiveFrame(b *testing.B) {
	c := hearingConn(b)
	b.ReportAllocs()
	for b.Loop() {
		if err := c.readOne(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReceiveText(b *testing.B) {
	c := hearingConn(b)
	text := []byte(`{"session_id":"s-20261121-0001","type":"listen","state":"start","mode":"auto"}`)
	b.ReportAllocs()
	for b.Loop() {
		c.onText(b.Context(), text)
	}
}

// BenchmarkConnect measures one connection from TCP to the server's hello, and
// what one idle connection holds of memory (both ends' sockets, our goroutines).
func BenchmarkConnect(b *testing.B) {
	s, err := NewServer(Options{
		MaxDevices: 1 << 20,
		NewTalk:    func(wire.Session, wire.Outbox, []mcp.Source) (Talk, error) { return dropTalk{}, nil },
	})
	if err != nil {
		b.Fatal(err)
	}
	web := httptest.NewServer(s.Handler(nil))
	defer web.Close()
	addr := web.Listener.Addr().String()
	memory := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapInuse + m.StackInuse
	}
	var held []net.Conn
	before := memory()
	for b.Loop() {
		nc, _ := rawDevice(b, addr, fmt.Sprint("d", len(held)), `{"type":"hello"}`)
		if held = append(held, nc); len(held) == 400 {
			b.StopTimer()
			b.ReportMetric(float64(memory()-before)/400, "B/conn")
			for _, nc := range held {
				nc.Close()
			}
			held = held[:0]
			b.StartTimer()
		}
	}
	for _, nc := range held {
		nc.Close()
	}
	if err := s.Shutdown(b.Context()); err != nil {
		b.Error(err)
	}
}
