// Package service describes the services and engines that can be set up: what each is
// called in the settings, which keys and settings it takes, what it can do, and how its
// providers are made. A kind stands in the folder of its technology; the list of all is
// in providers/catalog.
package service

import (
	"log/slog"
	"net/http"
	"time"

	"xiaozhi/providers"
)

// Role is a part that a provider plays in a conversation.
type Role string

// The roles, as the settings and the log name them.
const (
	ASR      Role = "asr"
	LLM      Role = "llm"
	TTS      Role = "tts"
	Vision   Role = "vision"
	Realtime Role = "realtime"
	Embed    Role = "embed" // it makes vectors of what is remembered

	Voiceprint Role = "voiceprint"
)

// Section holds the settings of one service, whatever its kind. A zero value
// leaves the choice to the kind. It is read-only.
type Section struct {
	Name string // in the settings, in logs and in errors

	Key    providers.Secret // api_key: the key, or the part of it that names the account
	ID     string           // app_id: the application, where a service has those
	Secret providers.Secret // api_secret: the part of the key that signs

	BaseURL string // replaces the kind's scheme, host and path prefix
	Region  string // one of the kind's regions
	Proxy   string // URL of a proxy; "": as the environment says; "none": none

	Models  map[Role]string   // by role
	Voices  map[string]string // by language tag; "" for all others
	Format  string            // of speech; "": the kind's own
	Rate    int               // of speech in Hz; 0: the kind's own
	Speed   float64           // of speech; 1 is normal; 0: the kind's own
	Retries *int              // of a request before its first result; nil: the kind's own

	Temperature *float64
	MaxTokens   int
	Vision      bool // its model understands pictures

	Extra    map[string]any              // further keys of the request body
	Headers  map[string]providers.Secret // sent with every request
	Settings map[string]any              // further keys that the kind declares
	Timeouts Timeouts

	Log    *slog.Logger // nil: nothing is logged
	Client *http.Client // shared by the roles of the section; nil: each makes its own

	Careful bool // no address is asked at which machines find their own settings, whatever a name leads to
}

// Timeouts bound what a service may take. A zero value means the kind's own.
type Timeouts struct {
	Connect time.Duration // to be connected, TLS and upgrade included
	First   time.Duration // to the first result of a request, or from the end of the sound to the final text
	Next    time.Duration // between two results
}

// Model returns the model for a role, or what is meant otherwise.
func (s Section) Model(r Role, otherwise string) string {
	if m := s.Models[r]; m != "" {
		return m
	}
	return otherwise
}

// Text returns a setting that is a text, or what is meant otherwise.
func (s Section) Text(name, otherwise string) string {
	if v, ok := s.Settings[name].(string); ok && v != "" {
		return v
	}
	return otherwise
}

// Flag returns a setting that is true or false, or what is meant otherwise.
func (s Section) Flag(name string, otherwise bool) bool {
	if v, ok := s.Settings[name].(bool); ok {
		return v
	}
	return otherwise
}

// Number returns a setting that is a number, or what is meant otherwise.
func (s Section) Number(name string, otherwise float64) float64 {
	switch v := s.Settings[name].(type) {
	case int:
		return float64(v)
	case float64:
		return v
	}
	return otherwise
}

// Within returns a setting that is a number, put into the range that the service takes, or
// what is meant otherwise.
func (s Section) Within(name string, otherwise, least, most float64) float64 {
	return min(max(s.Number(name, otherwise), least), most)
}

// Tries returns how often a request that gives nothing is made, or 0, which leaves that to
// the kind.
func (s Section) Tries() int {
	if s.Retries == nil {
		return 0
	}
	return max(*s.Retries, 0) + 1
}

// Address returns where the service is: base_url, else that of the region, else what is
// meant otherwise.
func (s Section) Address(regions map[string]string, otherwise string) string {
	if s.BaseURL != "" {
		return s.BaseURL
	}
	if at, ok := regions[s.Region]; ok {
		return at
	}
	return otherwise
}

// Field is one of the keys by which a section says who pays.
type Field string

// The fields, as the settings name them.
const (
	Key    Field = "api_key"
	ID     Field = "app_id"
	Secret Field = "api_secret"
)

// Env names the variable of the environment that fills a field when no section does.
type Env struct {
	Field Field
	Name  string
}

// Setting is a further key that a kind takes.
type Setting struct {
	Name   string
	Values []string // those that it may have; empty: any
	Type   Type
}

// Type is the type of a setting's value.
type Type int

// The types of settings.
const (
	Text Type = iota
	Flag
	Number
	List
)

// Voice is a voice of a service.
type Voice struct {
	Name     string   `json:"name"`                // as the settings want it
	Title    string   `json:"title,omitempty"`     // for people; may be empty
	Language []string `json:"languages,omitempty"` // BCP-47 tags that it speaks; empty: not said
}

// Kind is a sort of service: what one needs to set one up, and what it can do. A role
// whose maker is nil is not played. Kinds are made by functions and are read-only.
type Kind struct {
	Type    string // in the settings
	Title   string // the vendor's own name
	Env     []Env
	Needs   []Field                    // that a section must have; a base_url of one's own needs none
	Regions map[string]string          // names to addresses; nil: there is one
	Address string                     // of the service, or of its first region; "": base_url must be set
	Models  map[Role][]string          // known ones, the default first; others may work too
	Voices  []Voice                    // known ones, the default first; others may work too
	At      func(Section, Role) string // the address of a role, where it is not that of all; nil: it always is
	Formats []string                   // of speech that may be asked for, the default first
	Extra   bool                       // further keys of the request body are taken
	Schemes []string                   // that base_url may begin with; nil: see [Kind.Begins]
	Lacks   []string                   // settings of all kinds that this one cannot do anything with
	More    []Setting
	Free    bool // it costs nothing and needs no key
	// Here tells of an engine on this machine whether what it needs for a role is there; nil: it is a service.
	Here func(Section, Role) bool

	ASR      func(Section) (providers.ASR, error)
	LLM      func(Section) (providers.LLM, error)
	TTS      func(Section) (providers.TTS, error)
	Realtime func(Section) (providers.Duplex, error)
	Embed    func(Section) (providers.Embedder, error)

	Voiceprint func(Section) (providers.Voiceprint, error)
	// ListVoices asks the service for its voices; nil: those in Voices are all that is known.
	ListVoices VoiceLister
}

// Begins lists what base_url may begin with: for models http and https, else also ws and wss, unless the kind says it.
func (k Kind) Begins() []string {
	switch {
	case k.Schemes != nil:
		return k.Schemes
	case k.LLM != nil:
		return []string{"http", "https"}
	}
	return []string{"http", "https", "ws", "wss"}
}

// Roles lists what a kind can do.
func (k Kind) Roles() []Role {
	var out []Role
	if k.ASR != nil {
		out = append(out, ASR)
	}
	if k.LLM != nil {
		out = append(out, LLM)
	}
	if k.TTS != nil {
		out = append(out, TTS)
	}
	if k.Realtime != nil {
		out = append(out, Realtime)
	}
	if k.Embed != nil {
		out = append(out, Embed)
	}
	if k.Voiceprint != nil {
		out = append(out, Voiceprint)
	}
	return out
}
