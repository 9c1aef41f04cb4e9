package transport

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/servicetest"
	"xiaozhi/providers"
)

// answer is a server that does this with each socket.
func answer(t *testing.T, do func(*websocket.Conn)) *servicetest.Server {
	t.Helper()
	var s *servicetest.Server
	s = servicetest.New(t, func(w http.ResponseWriter, r *http.Request) {
		if c, ok := s.Socket(w, r, nil); ok {
			defer func() { _ = c.Close() }()
			do(c)
		}
	})
	return s
}

func dialer(t *testing.T, o DialerOptions) *Dialer {
	t.Helper()
	d, err := NewDialer(o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// eventually waits for something that happens behind a call.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

func TestSocketEndsWithItsContext(t *testing.T) {
	var s *servicetest.Server
	s = answer(t, func(c *websocket.Conn) { s.Hold(c) })
	d := dialer(t, DialerOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	socket, err := d.Dial(ctx, s.WS(), nil)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(20*time.Millisecond, cancel)
	begun := time.Now()
	if _, _, err := socket.Read(0); err == nil || time.Since(begun) > 5*time.Second {
		t.Errorf("error %v after %v", err, time.Since(begun))
	}
	eventually(t, "the socket is closed", func() bool { return d.Open() == 0 && s.Open() == 0 })
}

func TestKeptSocketOutlivesItsContext(t *testing.T) {
	s := answer(t, func(c *websocket.Conn) {
		for {
			kind, m, err := c.ReadMessage()
			if err != nil {
				return
			}
			_ = c.WriteMessage(kind, m)
		}
	})
	d := dialer(t, DialerOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	socket, err := d.Dial(ctx, s.WS(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if !socket.Unbind() {
		t.Error("the context had ended")
	}
	cancel()
	next, end := context.WithCancel(t.Context())
	release := socket.Bind(next)
	if err := socket.WriteJSON(map[string]string{"a": "<b>"}); err != nil {
		t.Fatal(err)
	}
	text, m, err := socket.Read(5 * time.Second)
	if err != nil || !text || string(m) != `{"a":"<b>"}` {
		t.Errorf("got %q and error %v", m, err)
	}
	if !release() {
		t.Error("the next context had ended")
	}
	end()
	socket.Close()
	if d.Open() != 0 {
		t.Error("a socket counts that was closed")
	}
	socket.Close()
}

func TestSilentSocketStalls(t *testing.T) {
	var s *servicetest.Server
	s = answer(t, func(c *websocket.Conn) { s.Hold(c) })
	socket, err := dialer(t, DialerOptions{}).Dial(t.Context(), s.WS(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	if _, _, err := socket.Read(20 * time.Millisecond); !errors.Is(err, ErrStalled) {
		t.Errorf("got error %v, want %v", err, ErrStalled)
	}
}

func TestClosesTellWhy(t *testing.T) {
	for code, kind := range map[int]providers.Kind{
		websocket.CloseInternalServerErr: providers.Unavailable,
		websocket.ClosePolicyViolation:   providers.Unauthorized,
		websocket.CloseMessageTooBig:     providers.BadRequest,
	} {
		s := answer(t, func(c *websocket.Conn) {
			_ = c.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, "go away"), time.Now().Add(time.Second))
			_, _, _ = c.ReadMessage()
		})
		socket, err := dialer(t, DialerOptions{}).Dial(t.Context(), s.WS(), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = socket.Read(0)
		if refused, ok := errors.AsType[*Refusal](err); !ok || refused.Kind != kind || !strings.Contains(err.Error(), "go away") {
			t.Errorf("close %d: got %v, want a refusal of kind %s", code, err, kind)
		}
		socket.Close()
	}
}

func TestRefusedUpgradeIsRead(t *testing.T) {
	clock := &Clock{}
	s := servicetest.New(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Tt-Logid", "log-7")
		w.Header().Set("Date", time.Now().Add(10*time.Minute).UTC().Format(http.TimeFormat))
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"error":{"message":"no such key: sk-secret-key"}}`)
	})
	d := dialer(t, DialerOptions{Account: Account{Name: "x", Secrets: []providers.Secret{"sk-secret-key"}}, Clock: clock})
	_, err := d.Dial(t.Context(), s.WS()+"/?key=sk-secret-key", nil)
	refused, ok := errors.AsType[*Refusal](err)
	if !ok || refused.Kind != providers.Unauthorized || refused.LogID != "log-7" || !refused.Skewed {
		t.Fatalf("got %+v", err)
	}
	if ahead := time.Until(clock.Now()); ahead < 9*time.Minute {
		t.Errorf("the clock was put %v ahead", ahead)
	}
	if _, err = d.Dial(t.Context(), s.WS(), nil); err.(*Refusal).Skewed { //nolint:errorlint // checked above
		t.Error("a clock that is right was put right again")
	}
	if shown := d.Account().Wrap(t.Context(), t.Context(), "dial", err).Error(); strings.Contains(shown, "secret") {
		t.Errorf("the error shows the key: %s", shown)
	}
	if d.Open() != 0 {
		t.Error("a refused socket counts")
	}
}

// A name and a password in an address go where the HTTP client puts them.
func TestPasswordOfAnAddress(t *testing.T) {
	var name, password string
	var s *servicetest.Server
	s = servicetest.New(t, func(w http.ResponseWriter, r *http.Request) {
		name, password, _ = r.BasicAuth()
		if c, ok := s.Socket(w, r, nil); ok {
			_ = c.Close()
		}
	})
	socket, err := dialer(t, DialerOptions{}).Dial(t.Context(), strings.Replace(s.WS(), "://", "://me:secret@", 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	socket.Close()
	if name != "me" || password != "secret" {
		t.Errorf("%q and %q", name, password)
	}
}

func TestWordsOfAnyShape(t *testing.T) {
	for body, want := range map[string]string{
		`{"error":{"message":"a","code":1}}`: "a", `{"code":20012,"message":"b","data":null}`: "b", `{"detail":"c"}`: "c", `{"error":"d"}`: "d",
		`{"base_resp":{"status_code":1004,"status_msg":"e"}}`: "e", `{"Response":{"Error":{"Code":"X","Message":"f"}}}`: "f", `{"audio":"x"}`: "", `[1]`: "", `<html>`: "",
	} {
		if got, ok := Words([]byte(body)); got != want || ok != (want != "") {
			t.Errorf("%s: %q", body, got)
		}
	}
	for words, want := range map[string]providers.Kind{
		"Invalid API key": providers.Unauthorized, "You have no credits": providers.NoCredit, "Rate limit reached": providers.RateLimited,
		"voice not found": providers.BadRequest, "oops": providers.Unavailable,
	} {
		if got := KindOfWords(words); got != want {
			t.Errorf("%s: %v", words, got)
		}
	}
}

func TestSocketsAreLimited(t *testing.T) {
	var s *servicetest.Server
	s = answer(t, func(c *websocket.Conn) { s.Hold(c) })
	d := dialer(t, DialerOptions{Most: 1})
	first, err := d.Dial(t.Context(), s.WS(), nil)
	if err != nil {
		t.Fatal(err)
	}
	soon, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if _, err := d.Dial(soon, s.WS(), nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a second socket: error %v", err)
	}
	first.Close()
	second, err := d.Dial(t.Context(), s.WS(), nil)
	if err != nil {
		t.Fatal(err)
	}
	second.Close()
}

func TestProxies(t *testing.T) {
	for setting, ok := range map[string]bool{
		"": true, "none": true, "http://user:pass@10.0.0.1:3128": true, "socks5://10.0.0.1:1080": true, "ftp://x": false, "10.0.0.1": false,
	} {
		_, err := NewHTTPClient(HTTPOptions{Proxy: setting})
		if _, err2 := NewDialer(DialerOptions{Proxy: setting}); (err == nil) != ok || (err2 == nil) != ok {
			t.Errorf("%q: errors %v and %v", setting, err, err2)
		}
	}
	var asked string
	proxy := servicetest.New(t, func(_ http.ResponseWriter, r *http.Request) { asked = r.URL.String() })
	client, err := NewHTTPClient(HTTPOptions{Proxy: proxy.URL()})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Get("http://service.example/x")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if asked != "http://service.example/x" {
		t.Errorf("the proxy was asked for %q", asked)
	}
}
