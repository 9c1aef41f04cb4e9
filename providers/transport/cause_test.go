package transport

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"xiaozhi/providers"
)

// TestCauseOfRefusal: what a service says, as a person would put it.
func TestCauseOfRefusal(t *testing.T) {
	refusal := func(kind providers.Kind, text string) error {
		return &providers.Error{Provider: "a", Op: "b", Kind: kind, Err: Refused(kind, "", text)}
	}
	for name, test := range map[string]struct {
		err  error
		free bool
		want Cause
	}{
		"key":             {refusal(providers.Unauthorized, "Invalid API key"), false, CauseKey},
		"no key to check": {refusal(providers.Unauthorized, "forbidden"), true, CauseBlocked},
		"key wanted":      {&providers.Error{Kind: providers.Unauthorized, Err: &Refusal{Status: http.StatusUnauthorized, Text: "no"}}, true, CauseKeyless},
		"key asked for":   {refusal(providers.Unauthorized, "Not authenticated"), true, CauseKeyless},
		"busy":            {&providers.Error{Err: &Refusal{Status: http.StatusOK, Code: "4009", Text: "a chat is running"}}, false, CauseUnknown},
		"a page":          {&providers.Error{Err: &Refusal{Status: http.StatusOK, Text: "hello"}}, false, CauseNonsense},
		"page for sound":  {refusal(providers.Unavailable, "the server sent text instead of sound: <html>"), false, CauseNonsense},
		"torn":            {&providers.Error{Err: fmt.Errorf("read: %w", io.ErrUnexpectedEOF)}, false, CauseBroken},
		"torn socket":     {&providers.Error{Err: errors.New("close 1006: unexpected EOF")}, false, CauseBroken},
		"money":           {refusal(providers.NoCredit, "Arrearage: model"), false, CauseCredit},
		"often":           {refusal(providers.RateLimited, "slow down"), false, CauseRate},
		"model":           {refusal(providers.BadRequest, "The model x does not exist"), false, CauseModel},
		"model, closed":   {refusal(providers.Unauthorized, "ModelNotOpen"), false, CauseModel},
		"voice":           {refusal(providers.BadRequest, "Voice not found"), false, CauseVoice},
		"licence":         {refusal(providers.Unauthorized, "11200: auth no license"), false, CauseLicence},
		"application":     {refusal(providers.BadRequest, "App not found or has been deleted"), false, CauseApp},
		"request":         {refusal(providers.BadRequest, "text too long"), false, CauseRequest},
		"overload":        {refusal(providers.Unavailable, "overloaded"), false, CauseUnknown},
		"clock":           {refusal(providers.Unauthorized, "HMAC signature cannot be verified, a valid date or x-date header is required: clock skew"), false, CauseClock},
		"another path":    {&providers.Error{Kind: providers.BadRequest, Err: &Refusal{Status: http.StatusNotFound, Text: "404 page not found"}}, false, CauseNonsense},
		"language":        {&providers.Error{Kind: providers.BadRequest, Err: providers.ErrLanguage}, false, CauseLanguage},
		"proxy's login":   {&providers.Error{Err: &Refusal{Status: http.StatusProxyAuthRequired}}, false, CauseProxy},
		"no service":      {errors.New("open a.wav: no such file"), false, ""},
		"certificate's time": {
			&providers.Error{Err: x509.CertificateInvalidError{Reason: x509.Expired}}, false, CauseClock,
		},
		"silence":    {&providers.Error{Err: ErrStalled}, false, CauseSilence},
		"no network": {&providers.Error{Err: &net.OpError{Op: "dial", Err: syscall.ENETUNREACH}}, false, CauseNetwork},
	} {
		if got := CauseOf(test.err, test.free); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// TestCauseOfConnection makes connections of both sorts that fail, as they do at home.
func TestCauseOfConnection(t *testing.T) {
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	safe := httptest.NewTLSServer(http.NotFoundHandler()) // nobody knows its certificate
	safe.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(safe.Close)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mute.Close() })
	for name, test := range map[string]struct {
		address, proxy string
		want           Cause
	}{
		"no such host":     {"https://no-such-host.invalid/", "", CauseHost},
		"nobody listens":   {gone.URL, "", CauseListener},
		"no TLS there":     {strings.Replace(plain.URL, "http:", "https:", 1), "", CauseTLS},
		"strange TLS":      {safe.URL, "", CauseTLS},
		"silent":           {"http://" + mute.Addr().String(), "", CauseSilence},
		"proxy is not":     {"https://api.example.com/", gone.URL, CauseProxy},
		"proxy refuses":    {"https://api.example.com/", plain.URL, CauseProxy},
		"proxy of socks":   {"https://api.example.com/", strings.Replace(gone.URL, "http:", "socks5:", 1), CauseProxy},
		"another protocol": {plain.URL, "", CauseNonsense},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			account := Account{Name: "mine"}
			limit := 20 * time.Second
			if test.want == CauseSilence {
				limit = 50 * time.Millisecond
			}
			ctx, cancel := context.WithTimeoutCause(t.Context(), limit, ErrStalled)
			defer cancel()
			if test.want != CauseNonsense {
				client, err := NewHTTPClient(HTTPOptions{Proxy: test.proxy})
				if err != nil {
					t.Fatal(err)
				}
				req, _ := http.NewRequestWithContext(ctx, http.MethodGet, test.address, nil)
				resp, err := client.Do(req)
				if err == nil {
					t.Fatal(resp.Status)
				}
				if got := CauseOf(account.Wrap(t.Context(), ctx, "ask", err), false); got != test.want {
					t.Errorf("by HTTP: %q, want %q (%v)", got, test.want, err)
				}
			}
			dialer, err := NewDialer(DialerOptions{Account: account, Proxy: test.proxy})
			if err != nil {
				t.Fatal(err)
			}
			_, err = dialer.Dial(ctx, test.address, nil)
			if ctx.Err() != nil {
				err = ErrStalled
			}
			if got := CauseOf(account.Wrap(t.Context(), ctx, "ask", err), false); got != test.want {
				t.Errorf("by WebSocket: %q, want %q (%v)", got, test.want, err)
			}
		})
	}
}

// TestPlain: an address in an error is shown without what may be a key.
func TestPlain(t *testing.T) {
	err := fmt.Errorf("get: %w", &url.Error{Op: "Get", URL: "https://me:secret@example.com/a?key=secret#secret", Err: errors.New("no")})
	if got := Plain(err); strings.Contains(got, "secret") || !strings.Contains(got, "https://example.com/a") || !strings.HasSuffix(got, "no") {
		t.Errorf("%s", got)
	}
	if got := Plain(errors.New("what? no://me@x")); got != "what? no://x" {
		t.Errorf("%q", got)
	}
}
