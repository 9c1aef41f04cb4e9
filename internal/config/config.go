// Package config reads the settings: defaults, config.yaml, the data folder's
// config.yaml, environment variables and the command line, later ones over earlier
// ones. What is wrong is told with file and line, all at once, in both languages.
package config

import (
	"cmp"
	"path/filepath"
	"time"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/internal/timezone"
	"xiaozhi/mcp"
	"xiaozhi/providers"
)

// Schema is the number of the keys of config.yaml and what they mean. It is raised when a program would read a file of
// the one before it in another way: when a key goes, or means something else. New keys leave it as it is.
const Schema = 1

// Config is everything that can be set (docs/configuration.md). It does not change: other settings are another Config.
type Config struct {
	Server    Server `koanf:"server"`
	Auth      Auth   `koanf:"auth"`
	Chains    `koanf:",squash"`
	Providers map[string]Provider `koanf:"providers"`
	Voice     Voice               `koanf:"voice"`
	Agent     Agent               `koanf:"agent"`
	Agents    map[string]Persona  `koanf:"agents"`
	Tools     Tools               `koanf:"tools"`
	MCP       MCP                 `koanf:"mcp"`
	Memory    Memory              `koanf:"memory"`
	Reminders Reminders           `koanf:"reminders"`
	Quiet     Quiet               `koanf:"quiet"`
	Store     Store               `koanf:"store"`
	Console   Console             `koanf:"console"`
	Recording Recording           `koanf:"recording"`
	Devices   Devices             `koanf:"devices"`
	Log       Log                 `koanf:"log"`

	around around
}

// Chains are names of providers, first to last.
type Chains struct {
	ASR      []string `koanf:"asr"`
	LLM      []string `koanf:"llm"`
	TTS      []string `koanf:"tts"`
	Vision   []string `koanf:"vision"`     // empty: members of LLM that are marked vision
	Realtime []string `koanf:"realtime"`   // of members that hear and speak by themselves; empty: none
	Embed    []string `koanf:"embed"`      // the first that can be used makes vectors of what is remembered; empty: none
	Speakers []string `koanf:"voiceprint"` // of members that tell people apart; the first that is there counts
}

// around holds what settings depend on and is not set in a file.
type around struct {
	cloudVoices bool           // "auto" stands for a voice other than the local one
	data        string         // the data folder; "": the usual one
	sealed      []sealedSecret // that [Config.Unseal] puts into their place

	read *reading // nil: they were read from nothing
}

// defaultData is the data folder unless the command line names another.
const defaultData = "data"

// ModelsFolder returns the folder of the models of speech that [xiaozhi/internal/models] fetches.
func (c *Config) ModelsFolder() string {
	return filepath.Join(cmp.Or(c.around.data, defaultData), "models")
}

// Server configures how devices reach the server.
type Server struct {
	Listen     []string `koanf:"listen"`      // host:port, each with the same handler
	PublicURL  string   `koanf:"public_url"`  // "": the address a device asked at
	Timezone   string   `koanf:"timezone"`    // IANA name; "": that of the machine
	Language   string   `koanf:"language"`    // a tag such as zh, en or ja, or auto
	TrustProxy bool     `koanf:"trust_proxy"` // X-Forwarded-* counts
	MaxDevices int      `koanf:"max_devices"` // connections at once
	Origins    []string `koanf:"origins"`     // of web pages that may be devices, beside our own and those of this machine
	TLS        TLS      `koanf:"tls"`

	MaxLateness time.Duration `koanf:"max_lateness"` // of the process, before new devices are turned away; 0: any
}

// TLS configures the listener for browsers by HTTPS.
type TLS struct {
	Listen string `koanf:"listen"` // host:port, with the same content as Server.Listen; "": none
	Cert   string `koanf:"cert"`   // PEM file; "": the certificate is made
	Key    string `koanf:"key"`    // PEM file of its key
}

// Console configures how people manage the server.
type Console struct {
	Enabled      bool     `koanf:"enabled"`       // there are pages
	Listen       []string `koanf:"listen"`        // host:port where pages and the API of people answer; empty: wherever the server does
	Owner        string   `koanf:"owner"`         // name of the account that is made while nobody owns the server; "": none is
	PasswordFile string   `koanf:"password_file"` // holds its password
	Currency     string   `koanf:"currency"`      // of the prices of services, as it is shown; "": not named
	Edit         bool     `koanf:"edit"`          // settings can be changed while the server runs
	Commands     bool     `koanf:"commands"`      // tool servers that are programs can be set so too
}

// Store configures what is kept when the program ends.
type Store struct {
	Driver string           `koanf:"driver"` // auto or none
	URL    providers.Secret `koanf:"url"`    // of PostgreSQL; "": SQLite in the data folder
	Backup int              `koanf:"backup"` // that are kept of those made each night; 0: none is made

	KeepDays int    `koanf:"keep_days"` // so long talks and calls are kept; 0: for ever
	URLFile  string `koanf:"url_file"`  // its content becomes URL
	KeyFile  string `koanf:"key_file"`  // of what seals secrets; "": key in the data folder
}

// Memory configures what keeps the facts that are remembered of people.
type Memory struct {
	Engine     string           `koanf:"engine"`   // own, mem0 or memobase
	BaseURL    string           `koanf:"base_url"` // of a server of one's own; "": the cloud of the engine
	APIKey     providers.Secret `koanf:"api_key"`
	APIKeyFile string           `koanf:"api_key_file"` // its content becomes APIKey
	Proxy      string           `koanf:"proxy"`        // "": as the environment says; none: none
}

// The engines of [Memory].
const (
	OwnMemory = "own"
	Mem0      = "mem0"
	Memobase  = "memobase"
)

// Reminders configures timers and reminders.
type Reminders struct {
	PerDevice int           `koanf:"per_device"` // more are refused
	KeepOpen  time.Duration `koanf:"keep_open"`  // one that is due so soon keeps the device's channel open
}

// Quiet configures when devices say nothing that nobody has asked for.
type Quiet struct {
	Hours string `koanf:"hours"` // spans of the day as package hours reads them; of a device "": as all others, none: never
}

// Auth configures who may talk.
type Auth struct {
	Pairing     string           `koanf:"pairing"`      // auto, open, ask or closed: how a device becomes known
	InsecureOTA bool             `koanf:"insecure_ota"` // tokens go to public addresses over plain http too
	Enabled     bool             `koanf:"enabled"`      // all devices must show Token
	Token       providers.Secret `koanf:"token"`        // one for all
	TokenFile   string           `koanf:"token_file"`   // its content becomes Token
}

// Voice configures listening and speaking.
type Voice struct {
	IdleClose   time.Duration `koanf:"idle_close"`
	VAD         VAD           `koanf:"vad"`
	Endpointing Endpointing   `koanf:"endpointing"`
	Pacing      Pacing        `koanf:"pacing"`
	Opus        Opus          `koanf:"opus"`
	BargeIn     time.Duration `koanf:"barge_in"`    // voice that interrupts a reply in realtime mode
	EchoGuard   bool          `koanf:"echo_guard"`  // words of the reply itself do not interrupt it
	SlowNotice  time.Duration `koanf:"slow_notice"` // after so long without a sound, the engine that is slow is told aloud; 0: never
	Loudness    bool          `koanf:"loudness"`    // bring all voices to one loudness
	Identify    string        `koanf:"identify"`    // off or on: whether it is looked for who is speaking
}

// VAD holds thresholds of the probability of speech, 0 to 1.
type VAD struct {
	Start float64 `koanf:"start"` // speech begins at this
	End   float64 `koanf:"end"`   // and goes on down to this
}

// Endpointing configures how the end of an utterance is found.
type Endpointing struct {
	PreRoll   time.Duration `koanf:"pre_roll"`   // kept from before the first voice
	MinSpeech time.Duration `koanf:"min_speech"` // less is no utterance
	Trigger   time.Duration `koanf:"trigger"`    // silence after which work may begin
	Commit    time.Duration `koanf:"commit"`     // silence that ends the utterance
	MaxSpeech time.Duration `koanf:"max_speech"` // an utterance ends here at the latest
	Trials    int           `koanf:"trials"`     // answers begun at a pause, before it is known that it is the end
}

// Pacing configures how sound is sent.
type Pacing struct {
	Lead time.Duration `koanf:"lead"` // sound that is sent ahead of being played
}

// Opus configures how speech is encoded for devices.
type Opus struct {
	Bitrate    int `koanf:"bitrate"`    // bit/s on average
	Complexity int `koanf:"complexity"` // 0 to 10
}

// Agent configures the persona and the limits of the model.
type Agent struct {
	Name          string   `koanf:"name"`
	Prompt        string   `koanf:"prompt"` // name of a prompt or an agent: that of all devices which have no other
	MaxSteps      int      `koanf:"max_steps"`
	HistoryTokens int      `koanf:"history_tokens"`
	WakeWords     []string `koanf:"wake_words"`
	ExitWords     []string `koanf:"exit_words"`
	StopWords     []string `koanf:"stop_words"` // beside those that are built in

	PromptPlace string `koanf:"-"` // where Prompt is set, for people; "": nowhere
}

// Tools configures the tools of all devices. Patterns are those of [path.Match].
type Tools struct {
	Kinds map[string]mcp.Kind `koanf:"kinds"` // pattern of a name to control or query
	Deny  []string            `koanf:"deny"`  // patterns of names that are not offered

	Jobs    []string `koanf:"jobs"`    // patterns of names that take long: the talk goes on meanwhile
	Confirm []string `koanf:"confirm"` // patterns of names that need a spoken yes

	Timeouts  map[string]time.Duration `koanf:"timeouts"`   // pattern of a name to how long a call may take
	ConfirmBy map[string][]string      `koanf:"confirm_by"` // patterns of names that need that of one of these people

	MaxPerTurn int `koanf:"max_per_turn"` // calls in one turn
	MaxPerDay  int `koanf:"max_per_day"`  // calls of one device's turns in a day, by UTC

	Weather Weather `koanf:"weather"`
	News    News    `koanf:"news"`
	Search  Search  `koanf:"search"`
	Music   Music   `koanf:"music"`
	Home    Home    `koanf:"home"`

	External External `koanf:"external"`
	Endpoint Endpoint `koanf:"endpoint"`
	Offer    []Offer  `koanf:"offer"`
}

// MCP configures the gateway: what other programs may use of this server.
type MCP struct {
	Enabled      bool     `koanf:"enabled"`       // the gateway is there
	AutoRegister bool     `koanf:"auto_register"` // it offers devices, our tools and prompts; else what is registered by hand
	Listen       []string `koanf:"listen"`        // addresses of its own, beside server.listen
	Port         int      `koanf:"port"`          // a port of its own on the hosts of server.listen; 0: none
	Hosts        []string `koanf:"hosts"`         // names that it may be asked for by
	Origins      []string `koanf:"origins"`       // origins of web pages that may ask; "*": all
	PassOn       []string `koanf:"pass_on"`       // patterns of the names of external servers whose tools are offered
	Transcripts  bool     `koanf:"transcripts"`   // what is said with devices can be read
	Tokens       []Token  `koanf:"tokens"`        // beside the admin token of the data folder
}

// Token is one bearer token of the gateway.
type Token struct {
	Name      string           `koanf:"name"` // for the log
	Token     providers.Secret `koanf:"token"`
	TokenFile string           `koanf:"token_file"`
	ReadOnly  bool             `koanf:"read_only"` // it may look, and call only what changes nothing
	Streams   []string         `koanf:"streams"`   // patterns of the streams that it may see; empty: all
	Rate      int              `koanf:"rate"`      // requests in a second; 0: no limit
}

// Devices configures devices.
type Devices struct {
	Unknown string            `koanf:"unknown"` // what strangers may do: local_only, refuse or all
	ByID    map[string]Device `koanf:",remain"` // by Device-Id, in its one spelling
}

// Device configures one device.
type Device struct {
	Name     string      `koanf:"name"`
	Language string      `koanf:"language"` // a tag such as zh, en or ja; "": what the device says itself
	Voice    string      `koanf:"voice"`
	Zone     string      `koanf:"zone"`   // IANA name; "": that of the server
	Agent    string      `koanf:"agent"`  // "": that of all
	Record   string      `koanf:"record"` // off, user, both or "": that of its agent
	Groups   []string    `koanf:"groups"` // that are spoken to together; empty: none
	Quiet    Quiet       `koanf:"quiet"`
	Tools    DeviceTools `koanf:"tools"`

	People map[string]string `koanf:"people"` // names of people to the agents that they talk to on it

	AgentPlace string `koanf:"-"` // where Agent is set, for people
}

// DeviceTools restricts the tools of one device.
type DeviceTools struct {
	Allow []string `koanf:"allow"` // patterns; empty: all
	Deny  []string `koanf:"deny"`
}

// Log configures level, form and recordings of the log.
type Log struct {
	Level  string `koanf:"level"`  // debug, info, warn or error
	Format string `koanf:"format"` // text or json
	Record string `koanf:"record"` // folder of recordings of conversations; "": none are made
}

// Zone returns the time zone that was set. [Load] has checked that it exists. Who tells times while the server runs asks the
// [timezone.Zone] that is made of it.
func (s Server) Zone() *time.Location {
	zone, err := timezone.Load(s.Timezone)
	if err != nil {
		return time.UTC
	}
	return zone
}

// ZoneOf returns the time zone that a device has for itself, by its id; nil: it has that of the server.
func (c *Config) ZoneOf(device string) *time.Location {
	if name := c.Devices.ByID[device].Zone; name != "" {
		if zone, err := timezone.Load(name); err == nil {
			return zone
		}
	}
	return nil
}

func words(id string) []string {
	return append(message.List(text.Chinese, id), message.List(text.English, id)...)
}

// Default returns the settings that hold where nothing is set.
func Default() *Config {
	return &Config{
		Server: Server{Listen: []string{":8000", ":8003"}, Timezone: "Asia/Shanghai", Language: "auto", MaxDevices: 1000, MaxLateness: 20 * time.Millisecond, Origins: []string{}},
		Auth:   Auth{Pairing: "auto"},
		Chains: Chains{
			ASR: []string{"auto", "pocketsphinx"}, LLM: []string{"auto", "rules"}, TTS: []string{"auto", "local"}, Vision: []string{}, Realtime: []string{}, Embed: []string{},
			Speakers: []string{"auto"},
		},
		Voice: Voice{
			IdleClose: 100 * time.Second,
			VAD:       VAD{Start: 0.5, End: 0.35},
			Endpointing: Endpointing{
				PreRoll: 500 * time.Millisecond, MinSpeech: 150 * time.Millisecond,
				Trigger: 200 * time.Millisecond, Commit: 700 * time.Millisecond, MaxSpeech: time.Minute, Trials: 3,
			},
			Pacing:  Pacing{Lead: 240 * time.Millisecond},
			Opus:    Opus{Bitrate: 24000, Complexity: 5},
			BargeIn: 280 * time.Millisecond, EchoGuard: true, SlowNotice: 2500 * time.Millisecond,
			Loudness: true, Identify: Off,
		},
		Agent: Agent{
			Name: message.In(text.Chinese, "config/assistant-name"), Prompt: "default", MaxSteps: 5, HistoryTokens: 6000,
			WakeWords: words("config/wake-words"), ExitWords: words("config/exit-words"), StopWords: words("config/stop-words"),
		},
		Tools: Tools{
			Kinds: map[string]mcp.Kind{}, Deny: []string{}, Jobs: []string{}, Confirm: []string{}, ConfirmBy: map[string][]string{}, Timeouts: map[string]time.Duration{}, MaxPerTurn: 16, MaxPerDay: 2000,
			Weather: Weather{Headers: map[string]providers.Secret{}, HeaderFile: map[string]string{}, Units: "metric", Timeout: 10 * time.Second},
			News:    News{Headers: map[string]providers.Secret{}, HeaderFile: map[string]string{}, Feeds: map[string][]string{}, Items: 10, Timeout: 10 * time.Second},
			Search:  Search{Service: "auto", Results: 3, Timeout: 10 * time.Second},
			Music:   Music{Stations: map[string]string{}},
			Home:    Home{Show: []string{}, Hide: []string{}, Refresh: 5 * time.Minute, Timeout: 10 * time.Second},
			Offer:   []Offer{}, External: External{MCPServers: map[string]MCPServer{}}, Endpoint: Endpoint{Tokens: []EndpointToken{}},
		},
		MCP: MCP{
			Enabled: true, AutoRegister: true, Listen: []string{}, Hosts: []string{}, Origins: []string{}, PassOn: []string{}, Tokens: []Token{},
		},
		Providers: map[string]Provider{}, Agents: map[string]Persona{},
		Memory:    Memory{Engine: OwnMemory},
		Reminders: Reminders{PerDevice: 32, KeepOpen: 30 * time.Minute},
		Console:   Console{Enabled: true, Listen: []string{}, Edit: true},
		Store:     Store{Driver: "auto", Backup: 7, KeepDays: 90},
		Recording: Recording{Sound: RecordOff, Days: 7, Quota: 2 << 30},
		Devices:   Devices{Unknown: "local_only", ByID: map[string]Device{}},
		Log:       Log{Level: "info", Format: "text"},
	}
}
