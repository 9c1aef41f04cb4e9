// Package oauth logs in to servers of others that want it: OAuth 2.1 by authorization code with PKCE (S256), with
// discovery of the protected resource and of its authorization server, and registration as a client where none was made by
// hand. The protocol is the SDK's; this package keeps what was granted, refreshes it, and leads a person through the
// browser step: it gives a link, and takes the address to which the browser was sent back.
package oauth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
)

// Times of a login.
const (
	linkTime   = 30 * time.Second // until there is a link
	flowTime   = 10 * time.Minute // until the person is back
	finishTime = 30 * time.Second // for the tokens

	refreshTime = 20 * time.Second
	renewPause  = time.Minute // between two tokens that are refreshed because they were refused
)

// Errors of logins.
var (
	// ErrWanted says that somebody must log in before the server can be used.
	ErrWanted = errors.New("the server wants a login: a person must allow it in a browser")
	// ErrUnasked says that the server has not asked for a login.
	ErrUnasked = errors.New("the server has not asked for a login")
	// ErrState says that an address belongs to no login that goes on.
	ErrState = errors.New("this is no login that was begun here, or it took longer than ten minutes")
)

// Options describe the login of one server. Server and Address are needed.
type Options struct {
	Server  string // its name
	Address string // its URL: what is granted is for its host only

	ClientID, ClientSecret string   // of a client that was registered by hand; "": one is registered when it is needed
	Scopes                 []string // that are asked for beside those that the server names
	ClientURL              string   // where this server describes itself as a client, https; "": nowhere

	Keeper Keeper       // nil: what is granted lasts as long as the program
	Client *http.Client // of all requests; nil: http.DefaultClient
	Log    *slog.Logger // nil: discarded

	// Browse follows a link as the browser of a person would, and returns what it comes back with to Redirect. nil: a
	// person does that, by [Login.Begin].
	Browse   func(ctx context.Context, link string) (url.Values, error)
	Redirect string
}

// Login is the login of one server. It is an [auth.OAuthHandler]. All methods may be called at the same time. Close ends it.
type Login struct {
	o   Options
	log *slog.Logger
	wg  sync.WaitGroup

	refreshing sync.Mutex // held while a token is refreshed: most refresh tokens are good once
	saving     sync.Mutex // held while the grant is kept, so that the last one stays

	mu      sync.Mutex
	closed  bool
	loaded  bool
	grant   grant
	stale   string                         // an access token that is to be refreshed before its time: it was refused
	renewed time.Time                      // when that was last so
	dead    string                         // an access token that was refused for good
	asked   *challenge                     // the last refusal; nil: there was none since the last login
	flow    *flow                          // that goes on; nil: none
	direct  *auth.AuthorizationCodeHandler // with Browse
}

var _ auth.OAuthHandler = (*Login)(nil)

// challenge is a request that was refused for want of a token.
type challenge struct {
	url    *url.URL
	status int
	header http.Header
}

// flow is a login that a person is in the middle of.
type flow struct {
	link   chan string                    // 1
	state  string                         // once there is a link
	answer chan *auth.AuthorizationResult // 1
	done   chan struct{}                  // closed at the end
	err    error                          // of the end
	cancel context.CancelFunc
}

// New makes a login.
func New(o Options) *Login {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Client == nil {
		o.Client = http.DefaultClient
	}
	return &Login{o: o, log: o.Log}
}

// Close ends a login that goes on, and waits.
func (l *Login) Close() {
	l.mu.Lock()
	l.closed = true
	if l.flow != nil {
		l.flow.cancel()
	}
	l.mu.Unlock()
	l.wg.Wait()
}

// TokenSource returns the source of tokens for requests within ctx; nil: there is none.
func (l *Login) TokenSource(ctx context.Context) (oauth2.TokenSource, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.grant.token() == nil {
		l.load(ctx) // also later: a command beside this program may have logged in
	}
	if l.grant.token() == nil {
		return nil, nil
	}
	return source{l, ctx}, nil
}

// load takes what was kept. l.mu is held.
func (l *Login) load(ctx context.Context) {
	if l.o.Keeper == nil {
		return
	}
	text, err := l.o.Keeper.Load(ctx, l.o.Server, l.o.Address)
	if err != nil {
		l.log.Warn("what a server has granted cannot be read", "server", l.o.Server, "err", err)
		return
	}
	l.loaded = true
	g, ok := readGrant(text)
	if !ok {
		return
	}
	if g.Access != "" && g.Access == l.dead {
		g = g.with(&oauth2.Token{})
		g.Refresh = ""
	}
	if made := l.grant.Registration; made.Endpoint != "" {
		g.Registration = made
	}
	if l.grant = g; g.token() != nil {
		l.asked = nil
	}
}

// source gives tokens to the requests within one context.
type source struct {
	login *Login
	ctx   context.Context //nolint:containedctx // as the library wants it
}

// Token returns a token that is good, as far as is known.
func (s source) Token() (*oauth2.Token, error) { return s.login.token(s.ctx) }

// errNoToken says that there is no token, as the SDK knows it: the request is sent without one.
var errNoToken = &oauth2.RetrieveError{ErrorCode: "invalid_grant", ErrorDescription: "there is no token"}

// token returns the token, refreshed where that is due. The refreshing goes on when ctx ends: what it brings must be kept.
func (l *Login) token(ctx context.Context) (*oauth2.Token, error) {
	l.refreshing.Lock()
	defer l.refreshing.Unlock()
	l.mu.Lock()
	g, stale := l.grant, l.stale
	l.mu.Unlock()
	t := g.token()
	switch {
	case t == nil:
		return nil, errNoToken
	case t.Valid() && t.AccessToken != stale, t.RefreshToken == "":
		return t, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refreshTime)
	defer cancel()
	t.Expiry = time.Unix(1, 0)
	fresh, err := g.config().TokenSource(context.WithValue(ctx, oauth2.HTTPClient, l.o.Client), t).Token()
	refused, is := errors.AsType[*oauth2.RetrieveError](err)
	switch {
	case is && (refused.ErrorCode == "invalid_grant" || refused.ErrorCode == "invalid_client"): // it was taken back
		l.drop(ctx, g, refused.ErrorCode)
		return nil, errNoToken
	case err != nil:
		return nil, fmt.Errorf("refresh the token: %w", err)
	}
	l.mu.Lock()
	same := l.grant.Refresh == g.Refresh
	if same {
		l.grant = l.grant.with(fresh)
	}
	l.mu.Unlock()
	if same {
		l.save(ctx)
	}
	return fresh, nil
}

// drop forgets tokens that are not taken any more, and the registration if it is that.
func (l *Login) drop(ctx context.Context, g grant, why string) {
	l.mu.Lock()
	if l.grant.Refresh != g.Refresh {
		l.mu.Unlock()
		return
	}
	l.grant.Access, l.grant.Refresh, l.grant.Expiry = "", "", time.Time{}
	if why == "invalid_client" {
		l.grant.Registration = registration{}
	}
	l.mu.Unlock()
	l.log.Warn("a login was taken back by the server", "server", l.o.Server, "why", why)
	l.save(ctx)
}

// save keeps the grant as it is now.
func (l *Login) save(ctx context.Context) {
	if l.o.Keeper == nil {
		return
	}
	l.saving.Lock()
	defer l.saving.Unlock()
	l.mu.Lock()
	text := l.grant.text()
	l.mu.Unlock()
	if err := l.o.Keeper.Save(context.WithoutCancel(ctx), l.o.Server, l.o.Address, text); err != nil {
		l.log.Error("what a server has granted cannot be kept: it asks again after a restart", "server", l.o.Server, "err", err)
	}
}

// Forget forgets tokens and registration. The server is asked for a login again.
func (l *Login) Forget(ctx context.Context) {
	l.mu.Lock()
	l.grant, l.loaded = grant{}, true
	l.mu.Unlock()
	l.save(ctx)
}

// State says whether there is a token, and whether somebody must log in, for the first time or for more rights.
func (l *Login) State() (in, wanted bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.grant.token() != nil, l.asked != nil
}

// Authorize notes that a request was refused. A person must log in before it is sent again: the error is [ErrWanted]. nil:
// it is sent again, with another token.
func (l *Login) Authorize(ctx context.Context, req *http.Request, resp *http.Response) error {
	if l.o.Browse != nil {
		h, err := l.handlerOnce(ctx)
		if err != nil {
			_ = resp.Body.Close()
			return err
		}
		return h.Authorize(ctx, req, resp)
	}
	_ = resp.Body.Close()
	challenges, err := oauthex.ParseWWWAuthenticate(resp.Header.Values("WWW-Authenticate"))
	if err != nil {
		return fmt.Errorf("read WWW-Authenticate: %w", err)
	}
	insufficient := slices.ContainsFunc(challenges, func(c oauthex.Challenge) bool { return c.Params["error"] == "insufficient_scope" })
	if resp.StatusCode == http.StatusForbidden && !insufficient {
		return nil // more rights would not help: the refusal is the answer
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if resp.StatusCode == http.StatusUnauthorized && l.renew(strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")) {
		return nil
	}
	l.asked = &challenge{url: req.URL, status: resp.StatusCode, header: resp.Header.Clone()}
	if resp.StatusCode == http.StatusUnauthorized {
		l.dead = l.grant.Access // what is kept stays: a server may refuse by mistake, and the next start tries it again
		l.grant.Access, l.grant.Refresh, l.grant.Expiry = "", "", time.Time{}
	}
	return ErrWanted
}

// renew reports whether a refused request can be sent again, with a token that is another one meanwhile or will be refreshed
// for it: not twice in a minute. l.mu is held.
func (l *Login) renew(refused string) bool {
	if l.grant.Access == "" || refused == "" {
		return false
	}
	if l.grant.Access != refused {
		return true
	}
	if l.grant.Refresh == "" || time.Since(l.renewed) < renewPause {
		return false
	}
	l.stale, l.renewed = refused, time.Now()
	return true
}

// handlerOnce is the one handler of a login without a person.
func (l *Login) handlerOnce(ctx context.Context) (*auth.AuthorizationCodeHandler, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.direct != nil {
		return l.direct, nil
	}
	var err error
	l.direct, err = l.handler(ctx, l.o.Redirect, func(ctx context.Context, a *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
		answer, err := l.o.Browse(ctx, a.URL)
		if err != nil {
			return nil, err
		}
		return resultOf(answer)
	})
	return l.direct, err
}

// resultOf reads the query with which a browser comes back.
func resultOf(answer url.Values) (*auth.AuthorizationResult, error) {
	if why := answer.Get("error"); why != "" {
		return nil, &RefusedError{Code: why, Why: answer.Get("error_description")}
	}
	return &auth.AuthorizationResult{Code: answer.Get("code"), State: answer.Get("state"), Iss: answer.Get("iss")}, nil
}

// RefusedError is the refusal of an authorization server, or of the person before it.
type RefusedError struct{ Code, Why string }

// Error returns the code, and the words of the server.
func (e *RefusedError) Error() string {
	if e.Why == "" {
		return "the login was refused: " + e.Code
	}
	return fmt.Sprintf("the login was refused: %s (%.200s)", e.Code, e.Why)
}

// handler makes a handler of the SDK with a way back. l.mu is held.
func (l *Login) handler(ctx context.Context, redirect string, fetch auth.AuthorizationCodeFetcher) (*auth.AuthorizationCodeHandler, error) {
	if !l.loaded {
		l.load(ctx)
	}
	known := l.grant
	client := *l.o.Client
	client.Transport = &registrar{login: l, redirect: redirect, next: cmp.Or(client.Transport, http.DefaultTransport)}
	c := &auth.AuthorizationCodeHandlerConfig{
		RedirectURL: redirect, AuthorizationCodeFetcher: fetch, Client: &client, RequestRefreshToken: true,
		ScopeFilter: func(named []string) []string {
			all := slices.Clone(named)
			for _, s := range slices.Concat(l.o.Scopes, known.Scopes) { // what was granted before is not lost with a step up
				if !slices.Contains(all, s) {
					all = append(all, s)
				}
			}
			return all
		},
		NewTokenSource: func(ctx context.Context, c *oauth2.Config, t *oauth2.Token) (oauth2.TokenSource, error) {
			return l.granted(ctx, c, t), nil
		},
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			RedirectURIs: []string{redirect}, ClientName: "xiaozhi", GrantTypes: []string{"authorization_code", "refresh_token"},
			ResponseTypes: []string{"code"},
		}},
	}
	if l.o.ClientURL != "" {
		c.ClientIDMetadataDocumentConfig = &auth.ClientIDMetadataDocumentConfig{URL: l.o.ClientURL}
	}
	if l.o.ClientID != "" {
		c.PreregisteredClient = &oauthex.ClientCredentials{ClientID: l.o.ClientID}
		if l.o.ClientSecret != "" {
			c.PreregisteredClient.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: l.o.ClientSecret}
		}
	}
	return auth.NewAuthorizationCodeHandler(c)
}

// granted takes a new token.
func (l *Login) granted(ctx context.Context, c *oauth2.Config, t *oauth2.Token) oauth2.TokenSource {
	l.mu.Lock()
	made := l.grant.Registration
	l.loaded, l.grant, l.asked, l.renewed = true, grantOf(c, t), nil, time.Time{}
	l.grant.Registration = made
	l.mu.Unlock()
	l.log.Info("logged in to a server", "server", l.o.Server, "scopes", c.Scopes, "until", t.Expiry)
	l.save(ctx)
	return source{l, ctx}
}
