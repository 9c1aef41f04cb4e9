// Package openai speaks to every server with the OpenAI wire format: chat
// completions as a language model, audio/transcriptions as a recogniser and
// audio/speech as a voice.
//
// All three are safe for many connections at once; they hold nothing but their
// settings and the shared http.Client, and their requests end with the caller's context.
package openai

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/generation"
	"xiaozhi/providers/transport"
)

// DefaultBaseURL is used when Options.BaseURL is empty.
const DefaultBaseURL = "https://api.openai.com/v1"

// Options are the settings of a model. Model must be set; every other zero value works.
type Options struct {
	Name    string           // in the config and in logs; "openai" if empty
	BaseURL string           // with its version part, e.g. "http://127.0.0.1:8080/v1"
	APIKey  providers.Secret // "" for servers that want none

	Model string

	Temperature *float32       // nil leaves it to the server
	MaxTokens   int            // 0 leaves it to the server
	Extra       map[string]any // further keys of a chat request's body; they replace ours

	Quirks Quirks // of a server that is not OpenAI's own
	Vision bool   // the model understands pictures

	Headers  map[string]providers.Secret // sent with every request
	Retries  int                         // before the first token; 2 if 0, none if negative
	Timeouts Timeouts

	versioned  string       // where the server is if BaseURL lacks its version part; "": it does not
	HTTPClient *http.Client // of the section; nil: the model makes its own with NewHTTPClient
}

// Timeouts bound what a server may take. A zero value means the default.
type Timeouts struct {
	Connect    time.Duration // to be connected, TLS apart, 1.4 s: two that are out of reach are known in 3 s
	FirstToken time.Duration // of chat, all tries and waits together, 15 s
	NextToken  time.Duration // between two tokens, 10 s
}

// withDefaults fills what is zero.
func (t Timeouts) withDefaults() Timeouts {
	for field, value := range map[*time.Duration]time.Duration{
		&t.Connect:    1400 * time.Millisecond,
		&t.FirstToken: 15 * time.Second,
		&t.NextToken:  10 * time.Second,
	} {
		if *field <= 0 {
			*field = value
		}
	}
	return t
}

// prepare checks the settings and gives them with every default filled in.
func (o Options) prepare() (Options, error) {
	o.Name = cmp.Or(o.Name, "openai")
	o.BaseURL = strings.TrimRight(cmp.Or(o.BaseURL, DefaultBaseURL), "/")
	if err := generation.CheckURL(o.BaseURL); err != nil {
		return o, fmt.Errorf("%s: base_url: %w", o.Name, err)
	}
	if o.Model == "" {
		return o, fmt.Errorf("%s: model: none is named", o.Name)
	}
	o.Retries = cmp.Or(o.Retries, 2)
	o.Timeouts = o.Timeouts.withDefaults()
	o.Extra = maps.Clone(o.Extra)
	if o.HTTPClient == nil {
		o.HTTPClient = NewHTTPClient(o.Timeouts)
	}
	return o, nil
}

// NewHTTPClient makes a client that connects within the limit.
func NewHTTPClient(limits Timeouts) *http.Client {
	c, err := transport.NewHTTPClient(transport.HTTPOptions{Connect: limits.withDefaults().Connect})
	if err != nil {
		panic(err) // only a proxy can be wrong, and there is none
	}
	return c
}
