// Package openai speaks to every server with the OpenAI wire format: chat
// completions as a language model, audio/transcriptions as a recogniser and
// audio/speech as a voice.
//
// One Options serves all three. LLM, ASR and TTS are safe for many connections
// at once; they hold nothing but their settings and the shared http.Client.
// Requests are made on the goroutine of the caller and end with its context.
package openai

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/sound"
	"xiaozhi/providers/transport"
)

// DefaultBaseURL is used when Options.BaseURL is empty.
const DefaultBaseURL = "https://api.openai.com/v1"

// Options are the settings of one endpoint. BaseURL and the name of the model of
// the role in question must be set; every other zero value works.
type Options struct {
	Name    string           // in the config and in logs; "openai" if empty
	BaseURL string           // with its version part, e.g. "http://127.0.0.1:8080/v1"
	APIKey  providers.Secret // "" for servers that want none

	Model    string // of all roles that have no model of their own
	ASRModel string // "" means Model
	TTSModel string // "" means Model

	Voice  string            // for every language that Voices does not name; "alloy" if empty
	Voices map[string]string // by tag of the language; the nearest counts
	Format string            // of speech: pcm (if empty), wav, mp3 or opus
	Rate   int               // Hz of raw pcm; 24000 if 0

	Temperature *float32       // nil leaves it to the server
	MaxTokens   int            // 0 leaves it to the server
	Extra       map[string]any // further keys of a chat request's body; they replace ours

	Quirks Quirks // of a server that is not OpenAI's own
	Vision bool   // the model understands pictures

	Headers  map[string]providers.Secret // sent with every request
	Retries  int                         // before the first token; 2 if 0, none if negative
	Timeouts Timeouts

	// HTTPClient is shared by all roles that are made from the same Options.
	// NewHTTPClient makes a fitting one; if it is nil, each role makes its own.
	HTTPClient *http.Client
}

// Timeouts bound what a server may take. A zero value means the default.
type Timeouts struct {
	Connect    time.Duration // to be connected, TLS apart, 1.4 s: two that are out of reach are known in 3 s
	FirstToken time.Duration // of chat, all tries and waits together, 15 s
	NextToken  time.Duration // between two tokens, 10 s
	Transcribe time.Duration // for a whole transcription, 20 s
	FirstSound time.Duration // of speech, 10 s
	NextSound  time.Duration // between two pieces of sound, 5 s
}

// withDefaults fills what is zero.
func (t Timeouts) withDefaults() Timeouts {
	for field, value := range map[*time.Duration]time.Duration{
		&t.Connect:    1400 * time.Millisecond,
		&t.FirstToken: 15 * time.Second,
		&t.NextToken:  10 * time.Second,
		&t.Transcribe: 20 * time.Second,
		&t.FirstSound: 10 * time.Second,
		&t.NextSound:  5 * time.Second,
	} {
		if *field <= 0 {
			*field = value
		}
	}
	return t
}

// prepare checks the settings and gives them with every default filled in.
func (o Options) prepare(model string) (Options, error) {
	o.Name = cmp.Or(o.Name, "openai")
	o.BaseURL = strings.TrimRight(cmp.Or(o.BaseURL, DefaultBaseURL), "/")
	if err := checkBaseURL(o.BaseURL); err != nil {
		return o, fmt.Errorf("%s: base_url: %w", o.Name, err)
	}
	if o.Model = cmp.Or(model, o.Model); o.Model == "" {
		return o, fmt.Errorf("%s: model: none is named", o.Name)
	}
	if o.Format = cmp.Or(o.Format, "pcm"); !slices.Contains([]string{"pcm", "wav", "mp3", "opus"}, o.Format) {
		return o, fmt.Errorf("%s: format: %q is none of pcm, wav, mp3, opus", o.Name, o.Format)
	}
	o.Voice = cmp.Or(o.Voice, "alloy")
	o.Rate, o.Retries = cmp.Or(o.Rate, 24000), cmp.Or(o.Retries, 2)
	if o.Rate < sound.MinRate || o.Rate > sound.MaxRate {
		return o, fmt.Errorf("%s: rate: %d Hz is not within %d to %d", o.Name, o.Rate, sound.MinRate, sound.MaxRate)
	}
	o.Timeouts = o.Timeouts.withDefaults()
	o.Extra = maps.Clone(o.Extra)
	if o.HTTPClient == nil {
		o.HTTPClient = NewHTTPClient(o.Timeouts)
	}
	return o, nil
}

// checkBaseURL wants http or https and a host. It never shows the URL, which may hold a key.
func checkBaseURL(raw string) error {
	u, err := url.Parse(raw)
	if err != nil {
		return errors.New("it is not a URL")
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("it begins with %q, not with http or https", u.Scheme)
	}
	if u.Host == "" {
		return errors.New("it names no host")
	}
	return nil
}

// NewHTTPClient makes the client that all roles of one Options share.
func NewHTTPClient(limits Timeouts) *http.Client {
	c, err := transport.NewHTTPClient(transport.HTTPOptions{Connect: limits.withDefaults().Connect})
	if err != nil {
		panic(err) // only a proxy can be wrong, and there is none
	}
	return c
}
