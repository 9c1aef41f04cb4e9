package websocket

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"xiaozhi/connection"
	"xiaozhi/connection/identity"
	"xiaozhi/internal/testall"
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
	registry, wrap := setup{Options: connection.Options{NewConversation: func(_ wire.Session, out wire.Outbox, _ []mcp.Source) (connection.Conversation, error) {
		talk := &fakeTalk{out: out, over: make(chan error, 1)}
		talks <- talk
		return talk, nil
	}}}.build(t)
	web := httptest.NewServer(wrap(http.NotFoundHandler()))
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
	if err := registry.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestReadReason(t *testing.T) {
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
		{errors.New("websocket: bad opcode 3"), "device broke the WebSocket protocol", false},
		{errFlood, "device floods the connection", false},
	} {
		r, ok := errors.AsType[*connection.Reason](readReason(tc.err, false))
		if !ok || r.Text != tc.want || r.Gone != tc.gone {
			t.Errorf("%v: %+v", tc.err, r)
		}
	}
}

// discardConn is a socket into nothing, on which these bytes come.
type discardConn struct {
	net.Conn
	in io.Reader
}

func (c discardConn) Read(p []byte) (int, error)     { return c.in.Read(p) }
func (discardConn) Write(p []byte) (int, error)      { return len(p), nil }
func (discardConn) SetDeadline(time.Time) error      { return nil }
func (discardConn) SetReadDeadline(time.Time) error  { return nil }
func (discardConn) SetWriteDeadline(time.Time) error { return nil }
func (discardConn) Close() error                     { return nil }

// hijacked hands out a socket.
type hijacked struct {
	*httptest.ResponseRecorder
	nc net.Conn
}

func (h hijacked) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return h.nc, bufio.NewReadWriter(bufio.NewReader(strings.NewReader("")), bufio.NewWriter(h.nc)), nil
}

// looseConn is a connection whose goroutines do not run, on which in comes.
func looseConn(tb testing.TB, framing int, in io.Reader) *conn {
	tb.Helper()
	r := httptest.NewRequest(http.MethodGet, "/xiaozhi/v1/", nil)
	r.Header = http.Header{
		"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="},
	}
	u := New(Options{}).upgrader
	metered := &meteredConn{}
	ws, err := u.Upgrade(hijacker{hijacked{httptest.NewRecorder(), discardConn{in: in}}, metered}, r, nil)
	if err != nil {
		tb.Fatal(err)
	}
	c := newConn(ws, metered, false)
	c.framing, c.stamped = framing, framing == 2
	return c
}

func TestSendingAllocatesNothing(t *testing.T) {
	for framing := 1; framing <= 3; framing++ {
		c := looseConn(t, framing, strings.NewReader(""))
		packet := make([]byte, 180)
		n := testing.AllocsPerRun(1000, func() {
			if err := c.WriteAudio(packet, 5); err != nil {
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
			c := looseConn(b, framing, strings.NewReader(""))
			packet := make([]byte, 180)
			b.ReportAllocs()
			for b.Loop() {
				if err := c.WriteAudio(packet, 5); err != nil {
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

// TestEndlessFragments: a message of endless empty fragments ends. The library
// alone goes on as long as they come, whatever its read limit is.
func TestEndlessFragments(t *testing.T) {
	fragments := func() *endless { return &endless{first: frameUp(0x01, []byte("{")), frame: frameUp(0x00, nil)} }
	c := looseConn(t, 1, fragments())
	if _, r, err := c.ws.NextReader(); err != nil {
		t.Fatal(err)
	} else if err := c.readAll(r, maxText, anySize); !errors.Is(err, errFlood) {
		t.Errorf("ended by %v", err)
	}
	in := fragments()
	in.most = testall.Pick(20, 2) * (maxText + maxOverhead)
	c = looseConn(t, 1, in)
	c.in.left = 1 << 40
	c.ws.SetReadLimit(maxText)
	if _, r, err := c.ws.NextReader(); err != nil {
		t.Fatal(err)
	} else if err := c.readAll(r, maxText, anySize); !websocket.IsCloseError(err, websocket.CloseAbnormalClosure) || in.read < in.most {
		t.Errorf("the library ends it by itself after %d bytes: %v; the meter can go", in.read, err)
	}
}

// TestReceivingAllocates: the library costs one small allocation for a message.
func TestReceivingAllocates(t *testing.T) {
	framed, err := appendFrame(nil, 3, 0, make([]byte, 120))
	if err != nil {
		t.Fatal(err)
	}
	c := looseConn(t, 3, &endless{frame: frameUp(0x82, framed)})
	n := testing.AllocsPerRun(1000, func() {
		c.in.begin()
		_, r, err := c.ws.NextReader()
		if err == nil {
			err = c.readAll(r, maxBinary, anySize)
		}
		if err != nil || len(c.scratch) != len(framed) {
			t.Fatal(len(c.scratch), err)
		}
	})
	if n > 1 {
		t.Errorf("%v allocations for a frame", n)
	}
}

// FuzzRead lets strangers' bytes come: whatever they are, the reader ends.
func FuzzRead(f *testing.F) {
	f.Add(slices.Concat(frameUp(0x81, []byte(`{"type":"hello"}`)), frameUp(0x82, make([]byte, 300)), frameUp(0x88, []byte{3, 0xe8})))
	f.Add(slices.Concat(frameUp(0x01, []byte("a")), frameUp(0x89, []byte("p")), frameUp(0x00, nil), frameUp(0x80, []byte("b"))))
	f.Add([]byte{0x82, 0xff, 0, 0, 1, 0, 0, 0, 0, 0, 1, 2, 3, 4, 'x'})
	f.Add([]byte{0x82, 0xfe, 0, 5, 1, 2, 3, 4, 'x', 'y', 'z', 'x', 'y'})
	f.Add([]byte{0x82, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, raw []byte) {
		registry := connection.New(connection.Options{
			NewConversation: func(wire.Session, wire.Outbox, []mcp.Source) (connection.Conversation, error) { return dropTalk{}, nil },
		})
		room, err := registry.Reserve(connection.Peer{Visit: identity.Visit{Address: "d1"}})
		if err != nil {
			t.Fatal(err)
		}
		c := looseConn(t, 1, bytes.NewReader(raw))
		room.Admit(t.Context(), c, c)
		<-c.readDone
		if err := registry.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if cap(c.scratch) > 2*len(raw)+keepScratch {
			t.Errorf("%d bytes of memory for %d", cap(c.scratch), len(raw))
		}
	})
}

// BenchmarkConnect measures one connection from TCP to the server's hello, and
// what one idle connection holds of memory (both ends' sockets, our goroutines).
func BenchmarkConnect(b *testing.B) {
	registry, wrap := setup{Options: connection.Options{
		MaxDevices:      1 << 20,
		NewConversation: func(wire.Session, wire.Outbox, []mcp.Source) (connection.Conversation, error) { return dropTalk{}, nil },
	}}.build(b)
	web := httptest.NewServer(wrap(http.NotFoundHandler()))
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
	if err := registry.Shutdown(b.Context()); err != nil {
		b.Error(err)
	}
}
