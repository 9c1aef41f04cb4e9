package oauth

import (
	"context"
	"encoding/json"
	"time"

	"golang.org/x/oauth2"
)

// Keeper keeps what servers have granted, each for its host only. Its methods may be called at the same time.
type Keeper interface {
	// Load returns what was kept of a server at an address; "": nothing.
	Load(ctx context.Context, server, address string) (string, error)
	// Save keeps it; "" forgets it.
	Save(ctx context.Context, server, address, grant string) error
}

// grant holds our registration at the authorization server of a server, and the tokens from there.
type grant struct {
	ClientID     string           `json:"client_id"`
	ClientSecret string           `json:"client_secret,omitempty"`
	AuthURL      string           `json:"auth_url"`
	TokenURL     string           `json:"token_url"`
	Style        oauth2.AuthStyle `json:"style,omitempty"`
	Redirect     string           `json:"redirect"`
	Scopes       []string         `json:"scopes,omitempty"`
	Registration registration     `json:"registration,omitzero"`

	Access  string    `json:"access,omitempty"` // "": it was taken back, the registration may still be good
	Type    string    `json:"type,omitempty"`
	Refresh string    `json:"refresh,omitempty"`
	Expiry  time.Time `json:"expiry,omitzero"`
}

// registration is that of this server as a client, as an authorization server has answered it.
type registration struct {
	Endpoint string          `json:"endpoint,omitempty"`
	Redirect string          `json:"redirect,omitempty"`
	Answer   json.RawMessage `json:"answer,omitempty"`
}

// grantOf joins a configuration of the library with a token.
func grantOf(c *oauth2.Config, t *oauth2.Token) grant {
	return grant{
		ClientID: c.ClientID, ClientSecret: c.ClientSecret, AuthURL: c.Endpoint.AuthURL, TokenURL: c.Endpoint.TokenURL, Style: c.Endpoint.AuthStyle,
		Redirect: c.RedirectURL, Scopes: c.Scopes, Access: t.AccessToken, Type: t.TokenType, Refresh: t.RefreshToken, Expiry: t.Expiry,
	}
}

// config is the configuration of the library that refreshes the token.
func (g grant) config() *oauth2.Config {
	return &oauth2.Config{
		ClientID: g.ClientID, ClientSecret: g.ClientSecret, RedirectURL: g.Redirect, Scopes: g.Scopes,
		Endpoint: oauth2.Endpoint{AuthURL: g.AuthURL, TokenURL: g.TokenURL, AuthStyle: g.Style},
	}
}

// token is the token as it was kept; nil: there is none.
func (g grant) token() *oauth2.Token {
	if g.Access == "" && g.Refresh == "" {
		return nil
	}
	return &oauth2.Token{AccessToken: g.Access, TokenType: g.Type, RefreshToken: g.Refresh, Expiry: g.Expiry}
}

// with returns the grant with another token.
func (g grant) with(t *oauth2.Token) grant {
	g.Access, g.Type, g.Expiry = t.AccessToken, t.TokenType, t.Expiry
	if t.RefreshToken != "" {
		g.Refresh = t.RefreshToken
	}
	return g
}

// maxText is how long a grant may be that is kept, in bytes. A longer one is kept without the access token, and at last
// without the registration: a refresh brings the first again, and a login the second.
const maxText = 8 << 10

// text is the form in which it is kept, on one line; "": there is nothing to keep.
func (g grant) text() string {
	if g.token() == nil && g.Registration.Endpoint == "" {
		return ""
	}
	data, err := json.Marshal(g)
	if err == nil && len(data) > maxText && g.Refresh != "" {
		g.Access, g.Expiry = "-", time.Unix(1, 0)
		data, err = json.Marshal(g)
	}
	if err == nil && len(data) > maxText {
		g.Registration = registration{}
		data, err = json.Marshal(g)
	}
	if err != nil {
		return "" // texts and times always have a form
	}
	return string(data)
}

func readGrant(text string) (g grant, ok bool) {
	return g, text != "" && json.Unmarshal([]byte(text), &g) == nil
}
