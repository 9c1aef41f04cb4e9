package transport

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/servicetest"
	"xiaozhi/providers"
)

// join passes bytes both ways until either side ends.
func join(a io.ReadWriteCloser, b io.ReadWriteCloser) {
	var both sync.WaitGroup
	for _, way := range [2][2]io.ReadWriteCloser{{a, b}, {b, a}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			_, _ = a.Close(), b.Close()
		})
	}
	both.Wait()
}

// tunnel is a proxy by CONNECT for the one who knows the password.
func tunnel(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect || r.Header.Get("Proxy-Authorization") != "Basic bWU6cGFzcw==" {
		w.WriteHeader(http.StatusProxyAuthRequired)
		return
	}
	to, err := net.Dial("tcp", r.Host)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	from, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	_, _ = io.WriteString(from, "HTTP/1.1 200 OK\r\n\r\n")
	join(from, to)
}

// socks is a proxy of SOCKS version 5 without a password, for names and addresses of version 4.
func socks(c net.Conn) {
	in := bufio.NewReader(c)
	head := make([]byte, 2)
	if _, err := io.ReadFull(in, head); err != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, in, int64(head[1]))
	_, _ = c.Write([]byte{5, 0})
	ask := make([]byte, 4)
	if _, err := io.ReadFull(in, ask); err != nil {
		return
	}
	host := make([]byte, 4)
	if ask[3] == 3 {
		n, _ := in.ReadByte()
		host = make([]byte, n)
	}
	port := make([]byte, 2)
	_, _ = io.ReadFull(in, host)
	_, _ = io.ReadFull(in, port)
	name := string(host)
	if ask[3] == 1 {
		name = net.IP(host).String()
	}
	to, err := net.Dial("tcp", net.JoinHostPort(name, strconv.Itoa(int(binary.BigEndian.Uint16(port)))))
	if err != nil {
		return
	}
	_, _ = c.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
	join(struct {
		io.Reader
		io.WriteCloser
	}{in, c}, to)
}

// TestSocketsGoThroughProxies: each kind of proxy that the settings take carries a socket.
func TestSocketsGoThroughProxies(t *testing.T) {
	s := answer(t, func(c *websocket.Conn) { _ = c.WriteMessage(websocket.TextMessage, []byte("hello")) })
	plain := httptest.NewServer(http.HandlerFunc(tunnel))
	defer plain.Close()
	secure := httptest.NewTLSServer(http.HandlerFunc(tunnel))
	defer secure.Close()
	five := strings.TrimPrefix(servicetest.NewTCP(t, socks).URL(), "tcp")
	withPassword := func(url string) string { return strings.Replace(url, "://", "://me:pass@", 1) }
	for proxy, ok := range map[string]bool{
		withPassword(plain.URL): true, plain.URL: false, withPassword(secure.URL): true, "socks5" + five: true, "socks5h" + five: true, "none": true,
	} {
		d, err := NewDialer(DialerOptions{Proxy: proxy, Insecure: true})
		if err != nil {
			t.Fatal(err)
		}
		socket, err := d.Dial(t.Context(), s.WS(), nil)
		if (err == nil) != ok || err != nil && strings.Contains(err.Error(), "pass@") {
			t.Errorf("%s: error %v", proxy, err)
		}
		if err != nil {
			continue
		}
		if _, message, err := socket.Read(5 * time.Second); err != nil || string(message) != "hello" {
			t.Errorf("%s: %q, %v", proxy, message, err)
		}
		socket.Close()
	}
}

// TestUpgradeThatIsNeverAnswered: the end of the context ends the wait for it.
func TestUpgradeThatIsNeverAnswered(t *testing.T) {
	s := servicetest.NewTCP(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	at := "ws" + strings.TrimPrefix(s.URL(), "tcp")
	for _, proxy := range []string{"none", "http" + strings.TrimPrefix(s.URL(), "tcp")} {
		d, err := NewDialer(DialerOptions{Proxy: proxy})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(30*time.Millisecond, cancel)
		begun := time.Now()
		if _, err := d.Dial(ctx, at, nil); !errors.Is(err, context.Canceled) || time.Since(begun) > time.Second || d.Open() != 0 {
			t.Errorf("%s: error %v after %v, %d open", proxy, err, time.Since(begun), d.Open())
		}
	}
}

// TestReasonsOfCloses: a service may close with a code of its own for a reason of ours.
func TestReasonsOfCloses(t *testing.T) {
	for reason, want := range map[string]providers.Kind{
		"invalid_request_error.invalid_api_key": providers.Unauthorized, "Quota exceeded": providers.NoCredit,
		"Too many requests": providers.RateLimited, "server read msg timeout": providers.Unavailable, "": providers.Unavailable,
	} {
		if got := closeKind(3000, reason); got != want {
			t.Errorf("%q: %v, want %v", reason, got, want)
		}
	}
	if closeKind(1000, "quota") != providers.Unavailable || closeKind(1008, "go away") != providers.Unauthorized {
		t.Error("the code does not count")
	}
}
