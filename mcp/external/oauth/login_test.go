package oauth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"xiaozhi/internal/servicetest/mcpauth"
)

// shelf is a keeper in memory.
type shelf struct {
	mu   sync.Mutex
	kept map[string]string
	err  error
}

func (s *shelf) Load(_ context.Context, server, address string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept[server+" "+address], s.err
}

func (s *shelf) Save(_ context.Context, server, address, grant string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil {
		s.kept = map[string]string{}
	}
	s.kept[server+" "+address] = grant
	return s.err
}

func (s *shelf) text() (all string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, grant := range s.kept {
		all += grant
	}
	return all
}

const back = "http://127.0.0.1:8000/oauth/callback"

// vault is a protected server that says hello.
func vault(t *testing.T) *mcpauth.Server {
	t.Helper()
	s := mcpauth.New(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }))
	t.Cleanup(s.Close)
	return s
}

func login(t *testing.T, s *mcpauth.Server, keeper Keeper, change func(*Options)) *Login {
	t.Helper()
	o := Options{Server: "vault", Address: s.URL(), Keeper: keeper, Client: &http.Client{Timeout: 5 * time.Second}}
	if change != nil {
		change(&o)
	}
	l := New(o)
	t.Cleanup(l.Close)
	return l
}

// ask asks the server as the SDK's transport does.
func ask(t *testing.T, s *mcpauth.Server, l *Login) (string, error) {
	t.Helper()
	send := func() *http.Response {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL(), strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		src, err := l.TokenSource(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if src != nil {
			if token, err := src.Token(); err == nil {
				req.Header.Set("Authorization", "Bearer "+token.AccessToken)
			}
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	resp := send()
	if resp.StatusCode == http.StatusUnauthorized {
		if err := l.Authorize(t.Context(), resp.Request, resp); err != nil {
			return "", err
		}
		resp = send()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("status %d", resp.StatusCode)
	}
	return string(body), err
}

// agree does what a person does in a browser.
func agree(t *testing.T, l *Login) error {
	t.Helper()
	link, err := l.Begin(t.Context(), back)
	if err != nil {
		return err
	}
	where, err := mcpauth.Browse(link)
	if err != nil || !strings.HasPrefix(where.String(), back) {
		t.Fatalf("led to %v, %v", where, err)
	}
	if !l.Owns(where.Query()) || l.Owns(url.Values{"state": {"x"}}) {
		t.Error("whose answer is it?")
	}
	return l.Finish(t.Context(), where.Query())
}

// TestLogin: a server that wants a login is asked for nothing until a person begins; then a client is registered, once,
// and what is granted is kept, refreshed, and used after a restart; what is taken back is asked for again.
func TestLogin(t *testing.T) {
	s, keeper := vault(t), &shelf{}
	l := login(t, s, keeper, nil)
	if _, err := l.Begin(t.Context(), back); !errors.Is(err, ErrUnasked) {
		t.Errorf("unasked: %v", err)
	}
	for range 2 {
		if _, err := ask(t, s, l); !errors.Is(err, ErrWanted) {
			t.Errorf("without a login: %v", err)
		}
	}
	if in, wanted := l.State(); in || !wanted || s.Asked("POST /register") != 0 {
		t.Errorf("in %v, wanted %v, registered %d times", in, wanted, s.Asked("POST /register"))
	}
	if err := agree(t, l); err != nil {
		t.Fatal(err)
	}
	if got, err := ask(t, s, l); got != "hello" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if in, wanted := l.State(); !in || wanted {
		t.Errorf("in %v, wanted %v", in, wanted)
	}
	l.Close()

	l = login(t, s, keeper, nil) // the next start
	if got, err := ask(t, s, l); got != "hello" || err != nil {
		t.Errorf("after a restart: %q, %v", got, err)
	}
	s.Set(mcpauth.Faults{})
	before := s.Asked("POST /token")
	old := keeper.text()
	s.Set(mcpauth.Faults{ForgetAccess: true})
	_, _ = ask(t, s, l)
	s.Set(mcpauth.Faults{})
	if got, err := ask(t, s, l); got != "hello" || err != nil || s.Asked("POST /token") != before+1 || keeper.text() == old {
		t.Errorf("a token that was refused is refreshed: %q, %v, %d requests", got, err, s.Asked("POST /token")-before)
	}
	s.Revoke()
	for range 3 { // the token is tried, then the refreshing, then a person is asked
		if _, err := ask(t, s, l); errors.Is(err, ErrWanted) {
			break
		}
	}
	if in, wanted := l.State(); in || !wanted {
		t.Errorf("taken back: in %v, wanted %v", in, wanted)
	}
	if err := agree(t, l); err != nil || s.Asked("POST /register") != 1 {
		t.Errorf("again: %v, registered %d times", err, s.Asked("POST /register"))
	}
	if got, err := ask(t, s, l); got != "hello" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	l.Forget(t.Context())
	if _, err := ask(t, s, l); !errors.Is(err, ErrWanted) || keeper.text() != "" {
		t.Errorf("forgotten: %v, kept %q", err, keeper.text())
	}
}

// TestLoginRefresh: a token that ends is refreshed before it is used, and the new one is kept.
func TestLoginRefresh(t *testing.T) {
	s, keeper := vault(t), &shelf{}
	s.Set(mcpauth.Faults{Lifetime: time.Second}) // below what the library counts as valid
	l := login(t, s, keeper, nil)
	_, _ = ask(t, s, l)
	if err := agree(t, l); err != nil {
		t.Fatal(err)
	}
	first := keeper.text()
	for range 3 {
		if got, err := ask(t, s, l); got != "hello" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	}
	if keeper.text() == first || s.Asked("POST /token") < 4 {
		t.Errorf("%d token requests", s.Asked("POST /token"))
	}
}

// TestLoginRefused: what the authorization server or the person refuses is told in its words, and the next try begins anew.
func TestLoginRefused(t *testing.T) {
	const metadata = "/.well-known/oauth-authorization-server"
	for name, c := range map[string]struct {
		faults mcpauth.Faults
		want   string
	}{
		"the person says no":       {mcpauth.Faults{Deny: "access_denied"}, "access_denied"},
		"no token":                 {mcpauth.Faults{TokenError: "invalid_grant"}, "invalid_grant"},
		"the client is not known":  {mcpauth.Faults{TokenError: "invalid_client"}, "invalid_client"},
		"nobody can register":      {mcpauth.Faults{NoClients: true}, "regist"},
		"registration fails":       {mcpauth.Faults{Status: map[string]int{"/register": 500}}, "regist"},
		"broken metadata":          {mcpauth.Faults{Answer: map[string]string{metadata: `{"issuer":`}}, "metadata"},
		"another issuer":           {mcpauth.Faults{Answer: map[string]string{metadata: `{"issuer":"https://evil.example","authorization_endpoint":"https://evil.example/a","token_endpoint":"https://evil.example/t","code_challenge_methods_supported":["S256"]}`}}, "issuer"},
		"an address of no browser": {mcpauth.Faults{Answer: map[string]string{metadata: `{"issuer":"ISSUER","authorization_endpoint":"javascript:alert(1)","token_endpoint":"ISSUER/token","registration_endpoint":"ISSUER/register","response_types_supported":["code"],"code_challenge_methods_supported":["S256"]}`}}, ""},
		"no PKCE":                  {mcpauth.Faults{Answer: map[string]string{metadata: `{"issuer":"ISSUER","authorization_endpoint":"ISSUER/authorize","token_endpoint":"ISSUER/token","registration_endpoint":"ISSUER/register","response_types_supported":["code"]}`}}, "PKCE"},
		"a huge answer":            {mcpauth.Faults{Answer: map[string]string{metadata: `{"x":"` + strings.Repeat("x", 4<<20) + `"}`}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := vault(t)
			l := login(t, s, &shelf{}, nil)
			if _, err := ask(t, s, l); !errors.Is(err, ErrWanted) {
				t.Fatal(err)
			}
			for path, body := range c.faults.Answer {
				c.faults.Answer[path] = strings.ReplaceAll(body, "ISSUER", strings.TrimSuffix(s.URL(), "/mcp"))
			}
			s.Set(c.faults)
			if err := agree(t, l); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			s.Set(mcpauth.Faults{})
			if err := agree(t, l); err != nil {
				t.Errorf("the next try: %v", err)
			}
		})
	}
}

// TestLoginStrangers: an answer that belongs to no login that goes on changes nothing, and each is good once.
func TestLoginStrangers(t *testing.T) {
	s := vault(t)
	l := login(t, s, &shelf{}, nil)
	_, _ = ask(t, s, l)
	for _, answer := range []url.Values{{}, {"state": {""}}, {"state": {"guess"}, "code": {"x"}}} {
		if err := l.Finish(t.Context(), answer); !errors.Is(err, ErrState) || l.Owns(answer) {
			t.Errorf("%v: %v", answer, err)
		}
	}
	first, err := l.Begin(t.Context(), back)
	if err != nil {
		t.Fatal(err)
	}
	second, err := l.Begin(t.Context(), back)
	if err != nil || first == second {
		t.Fatal(err)
	}
	old, err := mcpauth.Browse(first)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Finish(t.Context(), old.Query()); !errors.Is(err, ErrState) {
		t.Errorf("one that was begun before: %v", err)
	}
	good, err := mcpauth.Browse(second)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Finish(t.Context(), good.Query()); err != nil {
		t.Error(err)
	}
	if err := l.Finish(t.Context(), good.Query()); !errors.Is(err, ErrState) {
		t.Errorf("the same answer again: %v", err)
	}
	if s.Asked("POST /register") != 1 {
		t.Errorf("registered %d times", s.Asked("POST /register"))
	}
}

// TestLoginByHand: a client that was registered by hand registers no other one; scopes of the settings are asked for too.
func TestLoginByHand(t *testing.T) {
	s := vault(t)
	s.Register("by-hand", back)
	l := login(t, s, &shelf{}, func(o *Options) { o.ClientID, o.Scopes = "by-hand", []string{"lights"} })
	s.Set(mcpauth.Faults{Scope: "read"})
	_, _ = ask(t, s, l)
	link, err := l.Begin(t.Context(), back)
	if err != nil {
		t.Fatal(err)
	}
	u, _ := url.Parse(link)
	if q := u.Query(); q.Get("client_id") != "by-hand" || !slices.Contains([]string{"read lights", "lights read"}, q.Get("scope")) || q.Get("resource") != s.URL() || s.Asked("POST /register") != 0 {
		t.Errorf("asked by %s", link)
	}
}

// TestLoginEnds: a person who does not come back leaves nothing behind, and the end waits for nobody.
func TestLoginEnds(t *testing.T) {
	s := vault(t)
	l := login(t, s, &shelf{err: errors.New("no disk")}, nil)
	_, _ = ask(t, s, l)
	if _, err := l.Begin(t.Context(), back); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	l.Close()
	if time.Since(began) > 5*time.Second {
		t.Error("the end has waited")
	}
	if _, err := l.Begin(t.Context(), back); err == nil {
		t.Error("it goes on after the end")
	}
	hung := login(t, s, &shelf{}, nil)
	_, _ = ask(t, s, hung)
	s.Set(mcpauth.Faults{Hang: map[string]bool{"/register": true}})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := hung.Begin(ctx, back); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an authorization server that hangs: %v", err)
	}
}

// TestLoginDoubted: a token that is refused is refreshed once; if the next one is refused too, a person is asked. What was
// kept stays, for the server may be wrong, and is tried at the next start.
func TestLoginDoubted(t *testing.T) {
	s, keeper := vault(t), &shelf{}
	l := login(t, s, keeper, nil)
	_, _ = ask(t, s, l)
	if err := agree(t, l); err != nil {
		t.Fatal(err)
	}
	s.Set(mcpauth.Faults{ForgetAccess: true})
	if _, err := ask(t, s, l); err == nil || errors.Is(err, ErrWanted) {
		t.Errorf("refused, and refused again: %v", err)
	}
	for range 3 {
		if _, err := ask(t, s, l); !errors.Is(err, ErrWanted) {
			t.Errorf("refused once more: %v", err)
		}
	}
	if n := s.Asked("POST /token"); n != 2 {
		t.Errorf("%d token requests, want the login and one refresh", n)
	}
	s.Set(mcpauth.Faults{})
	if got, err := ask(t, s, login(t, s, keeper, nil)); got != "hello" || err != nil {
		t.Errorf("at the next start: %q, %v", got, err)
	}
}

// TestLoginBeside: a login by a command beside this program is seen by the next request, and a request that is given up does
// not take a refresh with it: most refresh tokens are good once.
func TestLoginBeside(t *testing.T) {
	s, keeper := vault(t), &shelf{}
	s.Set(mcpauth.Faults{Lifetime: time.Second})
	l, command := login(t, s, keeper, nil), login(t, s, keeper, nil)
	_, _ = ask(t, s, l)
	_, _ = ask(t, s, command)
	if err := agree(t, command); err != nil {
		t.Fatal(err)
	}
	if got, err := ask(t, s, l); got != "hello" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if in, wanted := l.State(); !in || wanted {
		t.Errorf("in %v, wanted %v", in, wanted)
	}
	given, up := context.WithCancel(t.Context())
	up()
	src, err := l.TokenSource(given)
	if err != nil || src == nil {
		t.Fatal(err)
	}
	if _, err := src.Token(); err != nil {
		t.Errorf("the refresh of a request that was given up: %v", err)
	}
	if got, err := ask(t, s, l); got != "hello" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// TestLoginHugeTokens: what is too long to be kept whole is kept without what can be had again.
func TestLoginHugeTokens(t *testing.T) {
	g := grant{ClientID: "x", Access: strings.Repeat("a", maxText), Refresh: "r", Registration: registration{Endpoint: "e", Answer: []byte(`{}`)}}
	kept, ok := readGrant(g.text())
	if len(g.text()) > maxText || !ok || kept.token().Valid() || kept.Refresh != "r" || kept.Registration.Endpoint != "e" {
		t.Errorf("kept %d bytes, %+v", len(g.text()), kept)
	}
	if g.Refresh = ""; (grant{}).text() != "" {
		t.Error("nothing is kept as something")
	}
}
