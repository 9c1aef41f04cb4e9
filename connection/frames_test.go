package connection

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/gorilla/websocket"
)

// frameUp is one frame as a client sends it. first is the first byte of its header.
func frameUp(first byte, payload []byte) []byte {
	key := [4]byte{0xa1, 0x0b, 0xff, 0x37}
	frame := []byte{first}
	switch n := len(payload); {
	case n <= 125:
		frame = append(frame, 0x80|byte(n))
	case n <= 65535:
		frame = binary.BigEndian.AppendUint16(append(frame, 0x80|126), uint16(n))
	default:
		frame = binary.BigEndian.AppendUint64(append(frame, 0x80|127), uint64(n))
	}
	frame = append(frame, key[:]...)
	for i, b := range payload {
		frame = append(frame, b^key[i&3])
	}
	return frame
}

// readAll is what came of a stream: the messages, and what ended it.
func readAll(r io.Reader) (messages []string, err error) {
	f := newFrameReader(r)
	var message []byte
	kind := 0
	for {
		h, err := f.next()
		if err != nil {
			return messages, err
		}
		if h.isControl() {
			payload, err := f.take(int(h.length))
			if err != nil {
				return messages, cutShort(err)
			}
			unmask(payload, h.key, 0)
			if h.op == websocket.CloseMessage {
				return messages, closing(payload)
			}
			messages = append(messages, fmt.Sprintf("%d:%s", h.op, payload))
			continue
		}
		if (h.op == opContinuation) != (kind != 0) {
			return messages, errWire
		}
		if kind == 0 {
			kind = h.op
		}
		if message, err = f.payload(message, h); err != nil {
			return messages, err
		}
		if h.final {
			messages = append(messages, fmt.Sprintf("%d:%s", kind, message))
			message, kind = nil, 0
		}
	}
}

// TestFramesOfAnySizeInAnyPieces reads messages of all sorts of lengths through
// streams that give them in all sorts of portions.
func TestFramesOfAnySizeInAnyPieces(t *testing.T) {
	var raw []byte
	var want []string
	for _, n := range []int{0, 1, 7, 8, 9, 125, 126, 127, 505, 506, 507, 512, 513, 1023, 1024, 4097, 65535, 65536, 100_001} {
		text := strings.Repeat("0123456789abcde", n/15+1)[:n]
		raw = append(raw, frameUp(0x82, []byte(text))...)
		raw = append(raw, frameUp(0x89, []byte("ping"))...)
		raw = append(raw, frameUp(0x01, []byte(text[:n/3]))...)
		raw = append(raw, frameUp(0x8a, nil)...)
		raw = append(raw, frameUp(0x00, []byte(text[n/3:n/2]))...)
		raw = append(raw, frameUp(0x80, []byte(text[n/2:]))...)
		want = append(want, "2:"+text, "9:ping", "10:", "1:"+text)
	}
	for name, r := range map[string]io.Reader{
		"whole": bytes.NewReader(raw), "half": iotest.HalfReader(bytes.NewReader(raw)),
		"one byte": iotest.OneByteReader(bytes.NewReader(raw)), "data with EOF": iotest.DataErrReader(bytes.NewReader(raw)),
	} {
		got, err := readAll(r)
		if !slices.Equal(got, want) || !errors.Is(err, io.EOF) {
			t.Errorf("%s: %d messages of %d, %v", name, len(got), len(want), err)
		}
	}
	for cut := range min(len(raw), 3000) {
		if _, err := readAll(bytes.NewReader(raw[:cut])); !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("cut after %d bytes: %v", cut, err)
		}
	}
}

// What a header promises costs nothing until it comes.
func TestPromisedLengthIsNotAllocated(t *testing.T) {
	raw := binary.BigEndian.AppendUint64([]byte{0x82, 0xff}, 1<<40)
	raw = append(raw, make([]byte, 4+2000)...)
	f := newFrameReader(bytes.NewReader(raw))
	h, err := f.next()
	if err != nil || h.length != 1<<40 {
		t.Fatal(h, err)
	}
	got, err := f.payload(nil, h)
	if !errors.Is(err, io.ErrUnexpectedEOF) || len(got) != 2000 || cap(got) > 8192 {
		t.Errorf("%d bytes in %d, %v", len(got), cap(got), err)
	}
}

// What is skipped is not taken for a frame.
func TestSkippedPayload(t *testing.T) {
	raw := slices.Concat(frameUp(0x82, make([]byte, 70_000)), frameUp(0x81, []byte("after")))
	f := newFrameReader(iotest.HalfReader(bytes.NewReader(raw)))
	h, err := f.next()
	if err != nil {
		t.Fatal(err)
	}
	f.skip = h.length
	if h, err = f.next(); err != nil || h.op != websocket.TextMessage {
		t.Fatal(h, err)
	}
	if got, err := f.payload(nil, h); err != nil || string(got) != "after" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestBadFrames(t *testing.T) {
	for name, raw := range map[string][]byte{
		"not masked":                 {0x81, 0x02, '{', '}'},
		"reserved bits":              {0xf1, 0x80, 0, 0, 0, 0},
		"compressed":                 {0xc1, 0x80, 0, 0, 0, 0},
		"unknown opcode":             {0x83, 0x80, 0, 0, 0, 0},
		"unknown control opcode":     {0x8b, 0x80, 0, 0, 0, 0},
		"a continuation of naught":   {0x80, 0x80, 0, 0, 0, 0},
		"a message inside a message": {0x01, 0x80, 0, 0, 0, 0, 0x81, 0x80, 0, 0, 0, 0},
		"a ping of 126 bytes":        {0x89, 0xfe, 0, 126, 0, 0, 0, 0},
		"a ping in pieces":           {0x09, 0x80, 0, 0, 0, 0},
		"a negative length":          {0x82, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0},
		"a close of one byte":        frameUp(0x88, []byte{3}),
		"a close with code 1005":     frameUp(0x88, []byte{0x03, 0xed}),
		"a close with code 1015":     frameUp(0x88, []byte{0x03, 0xf7}),
		"a close with code 999":      frameUp(0x88, []byte{0x03, 0xe7}),
		"a close that is not UTF-8":  frameUp(0x88, []byte{0x03, 0xe8, 0xff}),
	} {
		if got, err := readAll(bytes.NewReader(raw)); !errors.Is(err, errWire) || len(got) != 0 {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestCloseFrames(t *testing.T) {
	for code, payload := range map[int][]byte{
		1005: nil, 1000: {0x03, 0xe8}, 1001: append([]byte{0x03, 0xe9}, "bye"...), 1013: {0x03, 0xf5}, 4999: {0x13, 0x87},
	} {
		_, err := readAll(bytes.NewReader(frameUp(0x88, payload)))
		closed, ok := errors.AsType[*websocket.CloseError](err)
		if !ok || closed.Code != code || len(payload) > 2 && closed.Text != "bye" {
			t.Errorf("%d: %v", code, err)
		}
	}
}

// TestFramesAllocateNothing reads a microphone's frames.
func TestFramesAllocateNothing(t *testing.T) {
	frame := frameUp(0x82, make([]byte, 120))
	f := newFrameReader(&endless{frame: frame})
	message := make([]byte, 0, 512)
	if n := testing.AllocsPerRun(1000, func() {
		h, err := f.next()
		if err == nil {
			message, err = f.payload(message[:0], h)
		}
		if err != nil || len(message) != 120 {
			t.Fatal(h, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations for a frame", n)
	}
}

// endless gives one frame again and again.
type endless struct {
	frame []byte
	at    int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.frame[e.at:])
	e.at = (e.at + n) % len(e.frame)
	return n, nil
}

// streamConn is the server's end of a connection on which these bytes come.
type streamConn struct {
	net.Conn
	in io.Reader
}

func (s streamConn) Read(p []byte) (int, error)     { return s.in.Read(p) }
func (streamConn) Write(p []byte) (int, error)      { return len(p), nil }
func (streamConn) Close() error                     { return nil }
func (streamConn) SetDeadline(time.Time) error      { return nil }
func (streamConn) SetWriteDeadline(time.Time) error { return nil }

// hijackedStream lets a library upgrade a stream.
type hijackedStream struct {
	http.ResponseWriter
	nc net.Conn
}

func (h hijackedStream) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return h.nc, bufio.NewReadWriter(bufio.NewReader(strings.NewReader("")), bufio.NewWriter(io.Discard)), nil
}

// readByLibrary is readAll by the WebSocket library.
func readByLibrary(t *testing.T, r io.Reader) (messages []string, err error) {
	t.Helper()
	u := websocket.Upgrader{ReadBufferSize: 512}
	ws, err := u.Upgrade(hijackedStream{nc: streamConn{in: r}}, &http.Request{Method: http.MethodGet, Header: http.Header{
		"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="},
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	note := func(op int) func(string) error {
		return func(s string) error { messages = append(messages, fmt.Sprintf("%d:%s", op, s)); return nil }
	}
	ws.SetPingHandler(note(websocket.PingMessage))
	ws.SetPongHandler(note(websocket.PongMessage))
	ws.SetCloseHandler(func(int, string) error { return nil })
	for {
		kind, data, err := ws.ReadMessage()
		if err != nil {
			return messages, err
		}
		messages = append(messages, fmt.Sprintf("%d:%s", kind, data))
	}
}

// FuzzFrames holds our reading of strangers' bytes against the library's: the
// same messages, and an end where it ends.
func FuzzFrames(f *testing.F) {
	f.Add(slices.Concat(frameUp(0x81, []byte(`{"type":"hello"}`)), frameUp(0x82, make([]byte, 300)), frameUp(0x88, []byte{3, 0xe8})))
	f.Add(slices.Concat(frameUp(0x01, []byte("a")), frameUp(0x89, []byte("p")), frameUp(0x00, nil), frameUp(0x80, []byte("b"))))
	f.Add([]byte{0x82, 0xff, 0, 0, 1, 0, 0, 0, 0, 0, 1, 2, 3, 4, 'x'})
	f.Add([]byte{0x82, 0xfe, 0, 5, 1, 2, 3, 4, 'x', 'y', 'z', 'x', 'y'})
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, gotErr := readAll(bytes.NewReader(raw))
		want, wantErr := readByLibrary(t, bytes.NewReader(raw))
		if !slices.Equal(got, want) {
			t.Errorf("we read %q (%v), the library %q (%v)", got, gotErr, want, wantErr)
		}
		ours, ok := errors.AsType[*websocket.CloseError](gotErr)
		theirs, theirOK := errors.AsType[*websocket.CloseError](wantErr)
		if ok && (!theirOK || ours.Code != theirs.Code || ours.Text != theirs.Text) {
			t.Errorf("we close with %v, the library with %v", gotErr, wantErr)
		}
	})
}
