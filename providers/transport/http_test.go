package transport

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/servicetest"
	"xiaozhi/providers"
)

// TestRedirectsStayAtTheirHost: the key is in a header that net/http would hand on.
func TestRedirectsStayAtTheirHost(t *testing.T) {
	asked := 0
	s := servicetest.New(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/here":
			http.Redirect(w, r, "/there", http.StatusTemporaryRedirect)
		case "/away":
			_, port, _ := strings.Cut(r.Host, ":")
			http.Redirect(w, r, "http://localhost:"+port+"/there", http.StatusTemporaryRedirect)
		default:
			asked++
		}
	})
	client, err := NewHTTPClient(HTTPOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{"/here": http.StatusOK, "/away": http.StatusTemporaryRedirect} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+path, strings.NewReader("words"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Api-Key", "secret")
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: status %d, want %d", path, resp.StatusCode, want)
		}
	}
	if asked != 1 {
		t.Errorf("the other place was asked %d times", asked)
	}
}

// TestPackedBodies: a body packed by gzip, though nobody asked for it, is read as it comes.
func TestPackedBodies(t *testing.T) {
	t.Parallel()
	read := make(chan struct{})
	s := servicetest.New(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		if r.URL.Path == "/none" {
			return
		}
		packed := gzip.NewWriter(w)
		_, _ = io.WriteString(packed, "data: one\n\n")
		_ = packed.Flush()
		_ = http.NewResponseController(w).Flush()
		<-read
		_, _ = io.WriteString(packed, "data: two\n\n")
		if r.URL.Path != "/cut" {
			_ = packed.Close()
		}
	})
	client, err := NewHTTPClient(HTTPOptions{})
	if err != nil {
		t.Fatal(err)
	}
	get := func(path string) io.ReadCloser {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		return resp.Body
	}
	body := get("/")
	first := make([]byte, 11)
	if _, err := io.ReadFull(body, first); err != nil || string(first) != "data: one\n\n" {
		t.Errorf("before the end: %q, %v", first, err)
	}
	close(read)
	rest, err := io.ReadAll(body)
	if err != nil || string(rest) != "data: two\n\n" {
		t.Errorf("the rest: %q, %v", rest, err)
	}
	_ = body.Close()
	for path, want := range map[string]error{"/none": nil, "/cut": io.ErrUnexpectedEOF} {
		body := get(path)
		if _, err := io.ReadAll(body); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
		_ = body.Close()
	}
}

type wrapper struct{ http.RoundTripper }

func (w wrapper) Unwrap() http.RoundTripper { return w.RoundTripper }

// TestWarmLooksThroughWrappers: one connection is enough, whoever stands before it.
func TestWarmLooksThroughWrappers(t *testing.T) {
	asked := 0
	s := servicetest.New(t, func(http.ResponseWriter, *http.Request) { asked++ })
	client, err := NewHTTPClient(HTTPOptions{})
	if err != nil {
		t.Fatal(err)
	}
	client.Transport = wrapper{client.Transport}
	for range 3 {
		if err := (Account{}).Warm(t.Context(), client, func(ctx context.Context) (*http.Response, error) {
			req, err := http.NewRequestWithContext(ctx, http.MethodHead, s.URL(), nil)
			if err != nil {
				return nil, err
			}
			return client.Do(req)
		}); err != nil {
			t.Fatal(err)
		}
	}
	if asked != 1 {
		t.Errorf("%d requests", asked)
	}
}

func TestSecretThatBeginsAnother(t *testing.T) {
	a := Account{Secrets: []providers.Secret{"sk-1", "sk-1234", "a b/c"}}
	if got := a.Clean("sk-1234 sk-1 a%20b%2Fc a+b%2Fc"); got != "*** *** *** ***" {
		t.Errorf("got %q", got)
	}
}

// TestAgain: a request is made again where that may help, and as often as it may be.
func TestAgain(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, test := range map[string]struct {
		ctx   context.Context
		tries int
		fails int // before it works
		err   error
		asked int
		works bool
	}{
		"at once":         {t.Context(), 3, 0, errors.New("down"), 1, true},
		"the second time": {t.Context(), 3, 1, errors.New("down"), 2, true},
		"never":           {t.Context(), 3, 9, errors.New("down"), 3, false},
		"once, not set":   {t.Context(), 0, 9, errors.New("down"), 1, false},
		"overloaded":      {t.Context(), 2, 1, Refused(providers.Unavailable, "", "x"), 2, true},
		"wrong key":       {t.Context(), 3, 9, Refused(providers.Unauthorized, "", "x"), 1, false},
		"out of time":     {t.Context(), 3, 9, ErrStalled, 1, false},
		"ended":           {ended, 3, 9, errors.New("down"), 1, false},
	} {
		asked := 0
		_, err := Again(test.ctx, test.tries, func() (int, error) {
			if asked++; asked <= test.fails {
				return 0, test.err
			}
			return 1, nil
		})
		if asked != test.asked || (err == nil) != test.works {
			t.Errorf("%s: asked %d times, %v", name, asked, err)
		}
	}
}

// TestHTTPOfSockets: what has the address of sockets is asked by HTTP.
func TestHTTPOfSockets(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	defer server.Close()
	client, err := NewHTTPClient(HTTPOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "ws"+strings.TrimPrefix(server.URL, "http"), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil || resp.StatusCode != http.StatusTeapot {
		t.Fatal(resp, err)
	}
	_ = resp.Body.Close()
}

// TestDatesOfServices: whoever wants to know hears by how much the clock of a service differs.
func TestDatesOfServices(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
	}))
	defer server.Close()
	var hosts []string
	var ahead time.Duration
	ctx := WithDates(t.Context(), func(host string, by time.Duration) { hosts, ahead = append(hosts, host), by })
	for _, ctx := range []context.Context{ctx, t.Context()} {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := (&HTTP{Transport: http.DefaultTransport.(*http.Transport)}).RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	if len(hosts) != 1 || hosts[0] != "127.0.0.1" || ahead < 59*time.Minute || ahead > 61*time.Minute {
		t.Errorf("%q, %v", hosts, ahead)
	}
}

// TestRetire: a client that nobody has any more keeps no connection, nor that of a request which goes on, and can still be used.
func TestRetire(t *testing.T) {
	release := make(chan struct{})
	s := servicetest.New(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "first ")
		_ = http.NewResponseController(w).Flush()
		if r.URL.Path == "/slow" {
			<-release
		}
		_, _ = io.WriteString(w, "last")
	})
	client, err := NewHTTPClient(HTTPOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(path string) *http.Response {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	whole := func(resp *http.Response) {
		body, err := io.ReadAll(resp.Body)
		if _ = resp.Body.Close(); err != nil || string(body) != "first last" {
			t.Errorf("%q, %v", body, err)
		}
	}
	live := func() int {
		n, _ := client.Transport.(*HTTP).Counts()
		return n
	}
	slow := ask("/slow")
	whole(ask("/"))
	if live() != 2 {
		t.Fatalf("%d connections", live())
	}
	Retire(client)
	if live() != 1 {
		t.Errorf("%d connections after the end, one is used", live())
	}
	close(release)
	whole(slow)
	if live() != 0 {
		t.Errorf("%d connections are kept", live())
	}
	whole(ask("/"))
	if live() != 0 {
		t.Errorf("%d connections are kept after one more request", live())
	}
}
