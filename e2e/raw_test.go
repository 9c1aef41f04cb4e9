package e2e

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	wire "encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// The frame types of RFC 6455 section 5.2.
const (
	opContinuation = 0x0
	opText         = 0x1
	opBinary       = 0x2
	opClose        = 0x8
	opPing         = 0x9
	opPong         = 0xA
	finBit         = 0x80
)

// raw is a WebSocket client without manners: it writes what the test says, byte
// by byte if need be, and answers nothing by itself. Reads are for one
// goroutine, writes for any.
type raw struct {
	t    testing.TB
	conn net.Conn
	in   *bufio.Reader
	mu   sync.Mutex // writes
}

// hello242 is what present firmware without tools says.
const hello242 = `{"type":"hello","version":1,"features":{},"transport":"websocket","audio_params":{"format":"opus","sample_rate":16000,"channels":1,"frame_duration":60}}`

// dialTCP opens a connection to the server and nothing more.
func dialTCP(tb testing.TB, s *server) *raw {
	tb.Helper()
	host := strings.TrimSuffix(strings.TrimPrefix(s.ota, "http://"), "/xiaozhi/ota/")
	conn, err := net.Dial("tcp", host)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { conn.Close() })
	return &raw{t: tb, conn: conn, in: bufio.NewReaderSize(conn, 4096)}
}

// dialRaw upgrades a connection and says no hello. Lines are further headers.
func dialRaw(tb testing.TB, s *server, deviceID string, lines ...string) *raw {
	tb.Helper()
	r := dialTCP(tb, s)
	if status := r.upgrade("/xiaozhi/v1/", append([]string{"Device-Id: " + deviceID}, lines...)...); status != http.StatusSwitchingProtocols {
		tb.Fatalf("the upgrade was answered with %d", status)
	}
	return r
}

// upgrade asks for a WebSocket at a path and returns the status.
func (r *raw) upgrade(target string, lines ...string) int {
	r.t.Helper()
	var nonce [16]byte
	rand.Read(nonce[:])
	request := "GET " + target + " HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " +
		base64.StdEncoding.EncodeToString(nonce[:]) + "\r\n"
	for _, l := range lines {
		request += l + "\r\n"
	}
	r.bytes([]byte(request + "\r\n"))
	r.patience(10 * time.Second)
	resp, err := http.ReadResponse(r.in, nil)
	if err != nil {
		r.t.Fatalf("no answer to the upgrade: %v", err)
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		_, _ = io.Copy(io.Discard, resp.Body)
	}
	return resp.StatusCode
}

// patience sets the time limit of the next reads.
func (r *raw) patience(d time.Duration) { _ = r.conn.SetReadDeadline(time.Now().Add(d)) }

// bytes writes as they are. That the server has gone away is no failure here.
func (r *raw) bytes(b []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.conn.SetWriteDeadline(time.Now().Add(10 * time.Second))
	_, err := r.conn.Write(b)
	return err == nil
}

// frame writes one masked frame whose first byte is given.
func (r *raw) frame(first byte, payload []byte) bool {
	return r.bytes(maskedFrame(first, payload))
}

// maskedFrame is a client's frame; the mask is zero, which is allowed.
func maskedFrame(first byte, payload []byte) []byte {
	b := []byte{first}
	switch n := len(payload); {
	case n < 126:
		b = append(b, 0x80|byte(n))
	case n <= 0xFFFF:
		b = wire.BigEndian.AppendUint16(append(b, 0x80|126), uint16(n))
	default:
		b = wire.BigEndian.AppendUint64(append(b, 0x80|127), uint64(n))
	}
	return append(append(b, 0, 0, 0, 0), payload...)
}

func (r *raw) text(s string) bool   { return r.frame(finBit|opText, []byte(s)) }
func (r *raw) binary(b []byte) bool { return r.frame(finBit|opBinary, b) }

// read gives the next frame of the server.
func (r *raw) read() (op byte, payload []byte, err error) {
	var head [2]byte
	if _, err := io.ReadFull(r.in, head[:]); err != nil {
		return 0, nil, err
	}
	n := uint64(head[1] & 0x7F)
	switch n {
	case 126:
		var b [2]byte
		_, err = io.ReadFull(r.in, b[:])
		n = uint64(wire.BigEndian.Uint16(b[:]))
	case 127:
		var b [8]byte
		_, err = io.ReadFull(r.in, b[:])
		n = wire.BigEndian.Uint64(b[:])
	}
	if err != nil || n > 1<<20 {
		return 0, nil, fmt.Errorf("frame of %d bytes: %w", n, err)
	}
	payload = make([]byte, n)
	_, err = io.ReadFull(r.in, payload)
	return head[0] & 0x0F, payload, err
}

// await reads until a text message holds all parts, and returns it. Pings are
// answered meanwhile.
func (r *raw) await(parts ...string) string {
	r.t.Helper()
	r.patience(30 * time.Second)
	for {
		op, payload, err := r.read()
		if err != nil {
			r.t.Fatalf("no message with %q: %v", parts, err)
		}
		if op == opPing {
			r.frame(finBit|opPong, payload)
		}
		if op == opClose {
			r.t.Fatalf("no message with %q, but a close frame: %q", parts, payload)
		}
		if op == opText && holdsAll(string(payload), parts) {
			return string(payload)
		}
	}
}

func holdsAll(s string, parts []string) bool {
	for _, p := range parts {
		if !strings.Contains(s, p) {
			return false
		}
	}
	return true
}

// hello says hello and waits for the answer, whose session id it returns.
func (r *raw) hello(h string) string {
	r.t.Helper()
	r.text(h)
	var m struct {
		SessionID string `json:"session_id"`
	}
	if err := json.Unmarshal([]byte(r.await(`"type":"hello"`)), &m); err != nil || m.SessionID == "" {
		r.t.Fatalf("hello: %v", err)
	}
	return m.SessionID
}

// awaitClose reads to the end of the connection. It gives the code and reason
// of the close frame, or 0 when TCP ended without one.
func (r *raw) awaitClose(ctx context.Context) (code int, reason string) {
	r.t.Helper()
	deadline, _ := ctx.Deadline()
	_ = r.conn.SetReadDeadline(deadline)
	for {
		op, payload, err := r.read()
		if err != nil {
			if isTimeout(err) {
				r.t.Fatal("the connection was not closed")
			}
			return code, reason
		}
		if op == opClose && len(payload) >= 2 {
			code, reason = int(wire.BigEndian.Uint16(payload)), string(bytes.Clone(payload[2:]))
		}
	}
}

func isTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout()
}
