package external

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/internal/servicetest/mcpauth"
	"xiaozhi/mcp"
	"xiaozhi/mcp/external/oauth"
)

// TestLogin: a server that wants a login is away until a person has agreed in a browser; then its tools are there. What it
// has granted is forgotten again on demand.
func TestLogin(t *testing.T) {
	peer := tools(t)
	for transport, handler := range map[Transport]http.Handler{
		HTTP: sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return peer }, nil),
		SSE:  sdk.NewSSEHandler(func(*http.Request) *sdk.Server { return peer }, nil),
	} {
		t.Run(string(transport), func(t *testing.T) {
			vault, log := mcpauth.New(handler), &record{}
			t.Cleanup(vault.Close)
			set := NewSet(Options{
				Servers:       map[string]Config{"vault": config(t, Entry{URL: vault.URL(), Type: string(transport)}), "lamp": {Transport: Stdio, Command: "/none"}},
				ServerOptions: ServerOptions{Log: log.logger()},
			})
			if err := set.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = set.Stop() })
			status := func() Status { return set.Server("vault").Status() }
			until(t, "the login", func() bool { return set.Server("vault") != nil && status().MoreAsked && status().Phase == Waiting })
			if now := status(); now.Trouble != Login || now.LoggedIn {
				t.Errorf("before: %+v", now)
			}
			if _, err := set.Login(t.Context(), "lamp", back); !errors.Is(err, ErrNoLogin) {
				t.Errorf("a program: %v", err)
			}
			if _, err := set.Login(t.Context(), "nobody", back); !errors.Is(err, mcp.ErrClosed) {
				t.Errorf("nobody: %v", err)
			}
			link, err := set.Login(t.Context(), "vault", back)
			if err != nil {
				t.Fatal(err)
			}
			led, err := mcpauth.Browse(link)
			if err != nil || !strings.HasPrefix(led.String(), back) {
				t.Fatal(led, err)
			}
			if _, err := set.LoggedIn(t.Context(), url.Values{"state": {"mine"}, "code": led.Query()["code"]}); !errors.Is(err, oauth.ErrState) {
				t.Errorf("a stranger's answer: %v", err)
			}
			if name, err := set.LoggedIn(t.Context(), led.Query()); name != "vault" || err != nil {
				t.Fatal(name, err)
			}
			until(t, "the login", func() bool { return status().Phase == Connected })
			if now := status(); !now.LoggedIn || now.MoreAsked || now.Tools == 0 {
				t.Errorf("after: %+v", now)
			}
			says(t, set.Server("vault"), "echo", "you said hi")
			if err := set.Logout(t.Context(), "vault"); err != nil {
				t.Fatal(err)
			}
			until(t, "the login", func() bool { return status().MoreAsked && status().Phase == Waiting })
			for _, secret := range []string{led.Query().Get("code"), led.Query().Get("state")} {
				if strings.Contains(log.String(), secret) {
					t.Errorf("the log has a secret: %s", log)
				}
			}
		})
	}
}

const back = "http://127.0.0.1:8000/callback"

// TestLoginByCommand: a try with a person at hand logs in while it connects.
func TestLoginByCommand(t *testing.T) {
	peer := tools(t)
	vault := mcpauth.New(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return peer }, nil))
	t.Cleanup(vault.Close)
	_, _, err := Try(t.Context(), "vault", config(t, Entry{URL: vault.URL()}), ServerOptions{})
	if err == nil || !strings.Contains(err.Error(), "a login") {
		t.Errorf("without a person: %v", err)
	}
	now, _, err := Try(t.Context(), "vault", config(t, Entry{URL: vault.URL()}), ServerOptions{Redirect: back, Browse: browse})
	if err != nil || !now.LoggedIn || now.Tools == 0 {
		t.Errorf("%+v, %v", now, err)
	}
}

func browse(_ context.Context, link string) (url.Values, error) {
	led, err := mcpauth.Browse(link)
	if err != nil {
		return nil, err
	}
	return led.Query(), nil
}

// TestLoginInside: a server of the Internet does not lead us to a private network by naming an authorization server there;
// one at home does, and none leads to where a machine of a cloud finds its own settings.
func TestLoginInside(t *testing.T) {
	for of, reached := range map[string]bool{"https://192.0.2.1/mcp": false, "http://127.0.0.1/mcp": true} {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		conn, err := (&authorities{of: of}).dial(t.Context(), "tcp", l.Addr().String())
		if (err == nil) != reached || err != nil && !errors.Is(err, errInside) {
			t.Errorf("%s: %v", of, err)
		}
		if conn != nil {
			_ = conn.Close()
		}
		_ = l.Close()
		if _, err := (&authorities{of: of}).dial(t.Context(), "tcp", "169.254.169.254:80"); err == nil {
			t.Errorf("%s leads to the settings of the machine", of)
		}
	}
}
