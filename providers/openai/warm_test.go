package openai

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"xiaozhi/internal/openaitest"
	"xiaozhi/providers"
	"xiaozhi/providers/httpvoice"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

// counted is a TLS server with one voice that counts what comes.
type counted struct {
	*httptest.Server
	opened, heads atomic.Int64
}

// newService starts such a server, with HTTP/2 or without.
func newService(tb testing.TB, http2 bool, speech http.HandlerFunc) *counted {
	tb.Helper()
	s := &counted{}
	mux := http.NewServeMux()
	mux.HandleFunc("HEAD /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		s.heads.Add(1)
		w.WriteHeader(http.StatusMethodNotAllowed) // any answer will do
	})
	mux.HandleFunc("POST /v1/audio/speech", speech)
	s.Server = httptest.NewUnstartedServer(mux)
	s.EnableHTTP2 = http2
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.opened.Add(1)
		}
	}
	s.StartTLS()
	tb.Cleanup(s.Close)
	return s
}

// voice is a TTS of the server, and its transport.
func (s *counted) voice(tb testing.TB) (*httpvoice.Voice, *transport.HTTP) {
	tb.Helper()
	client := NewHTTPClient(Timeouts{Connect: patience})
	t := client.Transport.(*transport.HTTP)
	t.TLSClientConfig = s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	t.TLSClientConfig.NextProtos = nil
	tb.Cleanup(client.CloseIdleConnections)
	v, err := Vendor{}.voice(speeches()["openai"], service.Section{
		Name: "fake", BaseURL: s.URL + "/v1", Client: client, Timeouts: service.Timeouts{First: patience, Next: patience},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return v.(*httpvoice.Voice), t
}

// beep is 60 ms of sound.
func beep(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "audio/pcm")
	_, _ = w.Write(openaitest.Tone(24000, 440, 60*time.Millisecond))
}

// say speaks one sentence to its end.
func say(tb testing.TB, v *httpvoice.Voice) {
	tb.Helper()
	for _, err := range v.Synthesize(tb.Context(), hello) {
		if err != nil {
			tb.Fatal(err)
		}
	}
}

func TestWarmNextConnection(t *testing.T) {
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			s := newService(t, http2, beep)
			v, _ := s.voice(t)
			for range 3 {
				if err := v.Warm(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if opened, heads := s.opened.Load(), s.heads.Load(); opened != 1 || heads != 1 {
				t.Errorf("warmed three times: %d connections, %d requests, want one of each", opened, heads)
			}
			for range 3 {
				say(t, v)
				if err := v.Warm(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if opened, heads := s.opened.Load(), s.heads.Load(); opened != 1 || heads != 1 {
				t.Errorf("after three sentences: %d connections, %d heads, want still one", opened, heads)
			}
		})
	}
}

func TestWarmBusyConnection(t *testing.T) {
	for name, tt := range map[string]struct {
		http2  bool
		opened int64
	}{"HTTP/1.1": {false, 2}, "HTTP/2": {true, 1}} {
		t.Run(name, func(t *testing.T) {
			hold := make(chan struct{})
			s := newService(t, tt.http2, func(w http.ResponseWriter, r *http.Request) {
				beep(w, r)
				_ = http.NewResponseController(w).Flush()
				<-hold
			})
			v, _ := s.voice(t)
			for _, err := range v.Synthesize(t.Context(), hello) {
				if err != nil {
					t.Fatal(err)
				}
				for range 2 {
					if err := v.Warm(t.Context()); err != nil {
						t.Error(err)
					}
				}
				break
			}
			close(hold)
			if opened := s.opened.Load(); opened != tt.opened {
				t.Errorf("%d connections, want %d", opened, tt.opened)
			}
		})
	}
}

func TestWarmAfterServerClosed(t *testing.T) {
	s := newService(t, false, beep)
	v, tr := s.voice(t)
	if err := v.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.CloseClientConnections()
	deadline := time.Now().Add(patience)
	for live, _ := tr.Counts(); live > 0 && time.Now().Before(deadline); live, _ = tr.Counts() {
		time.Sleep(time.Millisecond)
	}
	if err := v.Warm(t.Context()); err != nil || s.opened.Load() != 2 {
		t.Errorf("%d connections, %v", s.opened.Load(), err)
	}
	if live, busy := tr.Counts(); live != 1 || busy != 0 {
		t.Errorf("%d connections and %d requests are counted", live, busy)
	}
}

func TestManyWarmAtOnce(t *testing.T) {
	s := newService(t, false, beep)
	v, _ := s.voice(t)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if err := v.Warm(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := s.heads.Load(); n != 1 {
		t.Errorf("%d requests", n)
	}
}

func TestWarmFails(t *testing.T) {
	s := newServer(t)
	o := options(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	l := newLLM(t, o)
	wantError(t, l.Warm(t.Context()), providers.Unavailable, "refused")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Warm(ctx); err != context.Canceled { //nolint:errorlint // unchanged
		t.Errorf("got %v", err)
	}
	if live, busy := o.HTTPClient.Transport.(*transport.HTTP).Counts(); live+busy != 0 {
		t.Errorf("left behind: %d connections, %d requests", live, busy)
	}
}

// TestConnectionClosedUnderTheRequest: a server ends a kept connection just as
// the next request comes in on it.
func TestConnectionClosedUnderTheRequest(t *testing.T) {
	seen := map[string]bool{}
	var mu sync.Mutex
	s := newService(t, false, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		again := seen[r.RemoteAddr]
		seen[r.RemoteAddr] = true
		mu.Unlock()
		if r.Header.Get("Idempotency-Key") != "" || len(r.Header.Values("Idempotency-Key")) > 0 {
			t.Error("the key that only net/http is to see was sent")
		}
		if !again {
			beep(w, r)
			return
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_ = conn.Close()
	})
	v, _ := s.voice(t)
	for range 3 {
		say(t, v)
	}
	if n := s.opened.Load(); n != 3 {
		t.Errorf("%d connections", n)
	}
}

// TestConnectionsForAHundredDevices checks that those of a busy moment are kept
// for the next one.
func TestConnectionsForAHundredDevices(t *testing.T) {
	const devices = 100
	var mu sync.Mutex
	arrived, all := 0, make(chan struct{})
	s := newService(t, false, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		here := all
		if arrived++; arrived == devices {
			arrived, all = 0, make(chan struct{})
			close(here)
		}
		mu.Unlock()
		select {
		case <-here:
		case <-time.After(20 * time.Second): // one of them has failed
		case <-r.Context().Done():
		}
		beep(w, r)
	})
	v, _ := s.voice(t)
	round := func() {
		var asking sync.WaitGroup
		for range devices {
			asking.Go(func() {
				for _, err := range v.Synthesize(t.Context(), hello) {
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		asking.Wait()
	}
	round()
	first := s.opened.Load()
	round()
	if n := s.opened.Load(); first != devices || n > devices+devices/10 {
		t.Errorf("%d connections, then %d; want %d and hardly more", first, n, devices)
	}
}

// TestTransportBounds: a peer that cannot be reached must be known in time for
// another member, and for telling the user within three seconds.
func TestTransportBounds(t *testing.T) {
	client := NewHTTPClient(Timeouts{})
	tr := client.Transport.(*transport.HTTP)
	if connect := (Timeouts{}).withDefaults().Connect; 2*connect > 3*time.Second || tr.TLSHandshakeTimeout > 2*time.Second {
		t.Errorf("connect %v, handshake %v", connect, tr.TLSHandshakeTimeout)
	}
	if tr.MaxIdleConnsPerHost < 200 || tr.MaxIdleConns < tr.MaxIdleConnsPerHost || !tr.ForceAttemptHTTP2 {
		t.Errorf("%d connections are kept, %d of one host", tr.MaxIdleConns, tr.MaxIdleConnsPerHost)
	}
}

// TestRefusedInNoTime: with no server, all tries together end far below a second.
func TestRefusedInNoTime(t *testing.T) {
	var worst time.Duration
	for try := range 2 {
		pause := (75 * time.Millisecond) << try
		worst += pause + pause/2
	}
	if 2*worst > 700*time.Millisecond {
		t.Errorf("two members retry for %v", 2*worst)
	}
	l := newLLM(t, Options{Name: "fake", Model: "m", HTTPClient: &http.Client{Transport: refuses{}}})
	_, err := generate(t.Context(), l, ask)
	wantError(t, err, providers.Unavailable, "refused")
}

// refuses is a network without servers.
type refuses struct{}

func (refuses) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("connection refused")
}

// BenchmarkRequest is one sentence over TLS, to its first sound and its end: over
// a connection that is there, and over one that has to be made.
func BenchmarkRequest(b *testing.B) {
	for _, http2 := range []bool{false, true} {
		for _, cold := range []bool{false, true} {
			name := map[bool]string{false: "HTTP1", true: "HTTP2"}[http2] + map[bool]string{false: "/warm", true: "/cold"}[cold]
			b.Run(name, func(b *testing.B) {
				v, tr := newService(b, http2, beep).voice(b)
				say(b, v)
				for b.Loop() {
					if cold {
						tr.CloseIdleConnections()
					}
					say(b, v)
				}
			})
		}
	}
}
