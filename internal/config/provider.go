package config

import (
	"cmp"
	"slices"
	"time"

	"xiaozhi/internal/text"
	"xiaozhi/providers"
)

// Provider configures one engine or service for every role that its type has.
type Provider struct {
	Type       string `koanf:"type"` // "": the name of the section is one
	BaseURL    string `koanf:"base_url"`
	Region     string `koanf:"region"`
	Keys       `koanf:",squash"`
	Headers    map[string]providers.Secret `koanf:"headers"`
	HeaderFile map[string]string           `koanf:"headers_file"` // names of headers to files whose content they become
	Model      string                      `koanf:"model"`
	ASRModel   string                      `koanf:"asr_model"`   // "": Model
	TTSModel   string                      `koanf:"tts_model"`   // "": Model
	EmbedModel string                      `koanf:"embed_model"` // "": Model, if that makes vectors
	Temp       *float64                    `koanf:"temperature"` // nil: the service's own
	MaxTokens  int                         `koanf:"max_tokens"`  // 0: the service's own
	Extra      map[string]any              `koanf:"extra"`       // further keys of the request body
	Vision     bool                        `koanf:"vision"`      // it understands pictures
	Decoders   int                         `koanf:"decoders"`    // utterances recognised at once; 0: the type's own
	Synthesis  `koanf:",squash"`
	Patience   `koanf:",squash"`
	Settings   map[string]any `koanf:",remain"` // further keys of the type

	// MissingEnv names the variables that its secrets refer to and that are
	// not set. A chain member with any is left out.
	MissingEnv []string `koanf:"-"`
	Place      string   `koanf:"-"` // FILE:LINE of the section, for people; "": there is none
}

// address returns the target of the section's requests; "" where only its type knows.
func (p Provider) address() string {
	k := knownTypes().kind(p.Type)
	return cmp.Or(p.BaseURL, k.Regions[p.Region], k.Address)
}

// Names reports whether any chain names a section. Those that none does are what "auto"
// takes first.
func (c *Config) Names(section string) bool {
	chains := [][]string{c.ASR, c.LLM, c.TTS, c.Vision, c.Realtime, c.Embed, c.Speakers}
	for _, a := range c.Agents {
		chains = append(chains, a.ASR, a.LLM, a.TTS, a.Vision, a.Realtime)
	}
	return slices.ContainsFunc(chains, func(chain []string) bool { return slices.Contains(chain, section) })
}

// Keys say who pays for a service. Which of them it wants depends on its type.
type Keys struct {
	APIKey        providers.Secret `koanf:"api_key"`
	APIKeyFile    string           `koanf:"api_key_file"` // its content becomes APIKey
	AppID         string           `koanf:"app_id"`
	APISecret     providers.Secret `koanf:"api_secret"`
	APISecretFile string           `koanf:"api_secret_file"` // its content becomes APISecret
	Price         Price            `koanf:"price"`
}

// Price holds what a service costs its owner, in the owner's money.
type Price struct {
	Input      float64 `koanf:"input"`      // of a million tokens that are sent
	Cached     float64 `koanf:"cached"`     // of those that the service had kept; 0: as Input
	Output     float64 `koanf:"output"`     // of a million tokens that are made
	Embed      float64 `koanf:"embed"`      // of a million tokens of which vectors are made; 0: as Input
	Minute     float64 `koanf:"minute"`     // of a minute of speech that is recognised
	Characters float64 `koanf:"characters"` // of a thousand characters that are spoken
}

// Tokens returns what a model's step costs.
func (p Price) Tokens(u providers.Usage) float64 {
	cached := cmp.Or(p.Cached, p.Input)
	return (float64(u.Prompt-u.Cached)*p.Input + float64(u.Cached)*cached + float64(u.Completion)*p.Output) / 1e6
}

// Embedding returns what making vectors of so many tokens costs.
func (p Price) Embedding(tokens int) float64 { return float64(tokens) * cmp.Or(p.Embed, p.Input) / 1e6 }

// Hearing returns what recognising so much sound costs.
func (p Price) Hearing(d time.Duration) float64 { return d.Minutes() * p.Minute }

// Spoken returns what speaking so many characters costs.
func (p Price) Spoken(characters int) float64 { return float64(characters) * p.Characters / 1000 }

// Synthesis configures the speech that a provider makes.
type Synthesis struct {
	Voice      Voices  `koanf:"voice"`
	Format     string  `koanf:"format"`      // of the sound, as the type names it; "": the type's own
	SampleRate int     `koanf:"sample_rate"` // in Hz; 0: the type's own
	Speed      float64 `koanf:"speed"`       // 1 is normal; 0: the type's own
}

// Patience limits how long a provider is waited for, and says how it is reached. Each of
// the first three is the time after which the next member of the chain is asked beside
// it; 0: 1.5 s.
type Patience struct {
	FirstToken time.Duration `koanf:"first_token"` // of a model's answer
	FirstSound time.Duration `koanf:"first_sound"` // of a sentence
	Transcript time.Duration `koanf:"transcript"`  // the final one, from the end of the sound
	Timeout    time.Duration `koanf:"timeout"`     // of one request; 0: the type's own
	Retries    *int          `koanf:"retries"`     // of a request before its first result; nil: the type's own
	Proxy      string        `koanf:"proxy"`       // URL; "": that of the environment; "none"
}

// Voices are the voice names of a provider by language. In a file this is one
// name for all, or a map by tags of languages.
type Voices map[string]string

// For returns the voice for the language of a tag, or the nearest one ([text.Find]), "" for the provider's own choice.
func (v Voices) For(lang string) string {
	if name, ok := text.Find(v, text.Lang(lang)); ok {
		return name
	}
	return v[""]
}
