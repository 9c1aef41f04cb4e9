package transport

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"xiaozhi/internal/nearby"
	"xiaozhi/internal/servicetest"
)

// leadTo has every name lead to an address while a test runs, which is no parallel one.
func leadTo(t *testing.T, ip [4]byte) {
	t.Helper()
	usual := net.DefaultResolver
	t.Cleanup(func() { net.DefaultResolver = usual })
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe() // a stream: each message has its length in front
		go func() {
			defer far.Close()
			for {
				var size [2]byte
				if _, err := far.Read(size[:]); err != nil {
					return
				}
				ask := make([]byte, binary.BigEndian.Uint16(size[:]))
				if _, err := far.Read(ask); err != nil {
					return
				}
				end := 12
				for ask[end] != 0 {
					end += int(ask[end]) + 1
				}
				question := ask[12 : end+5]
				answer := append([]byte{ask[0], ask[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, question...)
				if question[len(question)-3] == 1 { // an IPv4 address is asked for
					answer[7] = 1
					answer = append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, ip[0], ip[1], ip[2], ip[3])
				}
				if _, err := far.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)); err != nil {
					return
				}
			}
		}()
		return near, nil
	}}
}

// TestCarefulConnections: a name that leads to where machines find their own settings is not followed there, by requests,
// sockets and plain connections, where people have typed it; what the owner of the files wrote goes everywhere.
func TestCarefulConnections(t *testing.T) {
	leadTo(t, [4]byte{169, 254, 169, 254})
	account := Account{Name: "mine", Careful: true}
	client, err := NewHTTPClient(HTTPOptions{Proxy: "none", Careful: true})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://innocent.example/latest/meta-data", nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := client.Do(req); !errors.Is(err, nearby.ErrDoor) {
		if err == nil {
			_ = resp.Body.Close()
		}
		t.Errorf("a request: %v", err)
	}
	dialer, err := NewDialer(DialerOptions{Account: account, Proxy: "none"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dialer.Dial(t.Context(), "ws://innocent.example/", nil); err == nil || !strings.Contains(err.Error(), nearby.ErrDoor.Error()) {
		t.Errorf("a socket: %v", err)
	}
	if _, err := account.TCP(t.Context(), "innocent.example:10300", 0); !errors.Is(err, nearby.ErrDoor) {
		t.Errorf("a plain connection: %v", err)
	}

	leadTo(t, [4]byte{127, 0, 0, 1})
	s := servicetest.New(t, func(http.ResponseWriter, *http.Request) {})
	_, port, _ := strings.Cut(strings.TrimPrefix(s.URL(), "http://"), ":")
	req.URL.Host = "innocent.example:" + port
	resp, err := client.Do(req)
	if err != nil {
		t.Fatalf("a name that leads home: %v", err)
	}
	_ = resp.Body.Close()
	if controlOf(false) != nil {
		t.Error("what stands in a file is looked at")
	}
}

// TestRedirectsStayAtTheirServer: another port or scheme of the same host is another program, which gets neither the key
// nor the words.
func TestRedirectsStayAtTheirServer(t *testing.T) {
	var asked atomic.Int32
	other := servicetest.New(t, func(_ http.ResponseWriter, _ *http.Request) { asked.Add(1) })
	s := servicetest.New(t, func(w http.ResponseWriter, r *http.Request) {
		to := other.URL() + "/there" // another port
		if r.URL.Path == "/scheme" {
			to = "https://" + r.Host + "/there"
		}
		http.Redirect(w, r, to, http.StatusTemporaryRedirect)
	})
	client, err := NewHTTPClient(HTTPOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/port", "/scheme"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+path, strings.NewReader("words"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer secret")
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusTemporaryRedirect {
			t.Errorf("%s: status %d", path, resp.StatusCode)
		}
	}
	if asked.Load() > 0 {
		t.Errorf("the other program was asked %d times", asked.Load())
	}
}
