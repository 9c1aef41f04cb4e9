package external

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"xiaozhi/mcp"
)

// Transport names the way to a server.
type Transport string

// The transports.
const (
	Stdio     Transport = "stdio"     // a program of ours, over its standard input and output
	SSE       Transport = "sse"       // HTTP with server-sent events, as in the revision of 2024-11-05
	HTTP      Transport = "http"      // streamable HTTP
	WebSocket Transport = "websocket" // one JSON-RPC message in each WebSocket message
)

// defaultTimeout ends a call for which neither its caller nor the config sets a time.
const defaultTimeout = 60 * time.Second

// maxTimeout is the longest that may be set for one call.
const maxTimeout = time.Hour

// Config is one external server, checked. Make it with Entry.Config.
type Config struct {
	Transport Transport
	Guessed   bool // the transport was not named: HTTP falls back on SSE

	Command string
	Args    []string
	Env     map[string]string // beside the few variables that every program gets
	Dir     string            // working folder; "" is ours

	URL     string
	Headers map[string]string
	Careful bool // no address is asked at which machines find their own settings: people typed the URL

	Allow   []string            // patterns of tool names; where there are any, nothing else is offered
	Deny    []string            // patterns of tool names that are not offered
	Kinds   map[string]mcp.Kind // patterns of tool names to how they are called
	Timeout time.Duration       // of one call; 0: none is set
	Trust   bool                // tools that say nothing of what they destroy run without the user's yes
	Legacy  bool                // begin with initialize, never with server/discover

	ClientID, ClientSecret string   // of a login by OAuth, registered by hand; "": one is registered when it is needed
	Scopes                 []string // of such a login, beside those that the server names

	Sampling int // answers of our model that it may have in an hour; 0: it is not told that there is one

	Roots []string // file URIs of folders that the server may work in; none: it is not told of any

	Defaults bool // accept a form that the server asks a person to fill in, if its defaults are enough; else it is not told that we answer
}

// Entry is one server as desktop clients write it down. Spellings that mean
// the same are all taken.
type Entry struct {
	Type      string          `json:"type"`
	Transport string          `json:"transport"`
	Command   string          `json:"command"`
	Args      []Text          `json:"args"`
	Env       map[string]Text `json:"env"`
	Cwd       string          `json:"cwd"`
	URL       string          `json:"url"`
	Headers   map[string]Text `json:"headers"`

	EnvFile     map[string]string `json:"env_file"` // files whose contents become variables
	URLFile     string            `json:"url_file"`
	HeadersFile map[string]string `json:"headers_file"`

	Disabled bool                `json:"disabled"`
	Allow    []string            `json:"allow"`
	Deny     []string            `json:"deny"`
	Kinds    map[string]mcp.Kind `json:"kinds"`
	Timeout  Text                `json:"timeout"`
	Trust    bool                `json:"trust"`
	Protocol string              `json:"protocol"`

	ClientID         Text     `json:"client_id"` // of a login by OAuth that was registered by hand
	ClientSecret     Text     `json:"client_secret"`
	ClientSecretFile string   `json:"client_secret_file"`
	Scopes           []string `json:"scopes"`

	Roots []Text `json:"roots"` // folders that it may work in: absolute paths, or file URIs

	Sampling int `json:"sampling"` // answers of our model that it may have in an hour

	Elicitation string `json:"elicitation"` // of its questions: decline, which "" means, or defaults

	Enabled   *bool  `json:"enabled"`   // false means disabled
	IsActive  *bool  `json:"isActive"`  // the same
	BaseURL   string `json:"baseUrl"`   // url
	ServerURL string `json:"serverUrl"` // url
	HTTPURL   string `json:"httpUrl"`   // url, and the transport is http
}

// Off reports whether the entry is switched off.
func (e Entry) Off() bool {
	no := func(b *bool) bool { return b != nil && !*b }
	return e.Disabled || no(e.Enabled) || no(e.IsActive)
}

func (e Entry) program() string { return strings.TrimSpace(e.Command) }

func (e Entry) address() string {
	return strings.TrimSpace(cmp.Or(e.URL, e.HTTPURL, e.ServerURL, e.BaseURL))
}

// Config checks the entry. The error joins everything that is wrong with it.
func (e Entry) Config() (Config, error) {
	c := Config{
		Command: e.program(), Args: texts(e.Args), Env: textMap(e.Env), Dir: e.Cwd,
		URL:     e.address(),
		Headers: textMap(e.Headers), Allow: e.Allow, Deny: e.Deny, Kinds: e.Kinds, Trust: e.Trust,
		ClientID: string(e.ClientID), ClientSecret: string(e.ClientSecret), Scopes: e.Scopes,
	}
	var errs []error
	var err error
	if c.Sampling = e.Sampling; e.Sampling < 0 || e.Sampling > maxSampling {
		errs = append(errs, fmt.Errorf("sampling: %d is not between 0 and %d answers an hour", e.Sampling, maxSampling))
	}
	if c.Roots, err = rootsOf(texts(e.Roots)); err != nil {
		errs = append(errs, err)
	}
	c.Transport, c.Guessed, err = e.transport(c.Command, c.URL)
	errs = append(errs, err)
	if err == nil {
		errs = append(errs, c.check())
	}
	c.Timeout, err = parseTimeout(string(e.Timeout))
	errs = append(errs, err, e.checkNames())
	either := func(key, value, usual, other string) bool {
		if value != "" && value != usual && value != other {
			errs = append(errs, fmt.Errorf("%s: %q is neither %s nor %s", key, value, usual, other))
		}
		return value == other
	}
	c.Legacy = either("protocol", e.Protocol, "auto", "legacy")
	c.Defaults = either("elicitation", e.Elicitation, "decline", "defaults")
	return c, errors.Join(errs...)
}

// transport is the one that is named, or the one that command and url call for.
func (e Entry) transport(command, address string) (t Transport, guessed bool, err error) {
	named := cmp.Or(e.Transport, e.Type)
	if named == "" && e.HTTPURL != "" {
		named = "http"
	}
	spellings := map[string]Transport{
		"stdio": Stdio, "sse": SSE, "ws": WebSocket, "wss": WebSocket, "websocket": WebSocket,
		"http": HTTP, "https": HTTP, "streamablehttp": HTTP, "streamable": HTTP, "httpstream": HTTP,
	}
	spelled := strings.ToLower(strings.NewReplacer("-", "", "_", "", " ", "").Replace(named))
	if t, ok := spellings[spelled]; ok {
		return t, false, nil
	}
	if spelled != "" {
		return "", false, fmt.Errorf("type: %q is none of stdio, sse, http, websocket", named)
	}
	switch u, err := url.Parse(address); {
	case command != "" && address != "":
		return "", false, errors.New("there are both a command and a url: name the type, or leave one out")
	case command != "":
		return Stdio, false, nil
	case address == "":
		return "", false, errors.New("there is neither a command nor a url")
	case err != nil:
		return "", false, errAddress
	case u.Scheme == "ws" || u.Scheme == "wss":
		return WebSocket, false, nil
	case strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/sse"):
		return SSE, false, nil
	}
	return HTTP, true, nil
}

// errAddress names no address, since one may hold a secret.
var errAddress = errors.New("url: this is no full address such as https://tools.example.org/mcp")

// check looks at what the transport needs.
func (c Config) check() error {
	if c.Transport == Stdio {
		if c.Command == "" {
			return errors.New("command: a program is needed for the type stdio")
		}
		for name := range c.Env {
			if name == "" || strings.ContainsAny(name, "=\x00") {
				return fmt.Errorf("env: %q is no name of a variable", name)
			}
		}
		return nil
	}
	schemes := []string{"http", "https"}
	if c.Transport == WebSocket {
		schemes = []string{"ws", "wss"}
	}
	u, err := url.Parse(c.URL)
	if err != nil || u.Host == "" || u.Opaque != "" {
		return errAddress
	}
	if c.ClientSecret != "" && c.ClientID == "" {
		return errors.New("client_secret: there is no client_id that it belongs to")
	}
	if !slices.Contains(schemes, u.Scheme) {
		return fmt.Errorf("url: the type %s wants an address that begins with %s://", c.Transport, strings.Join(schemes, ":// or "))
	}
	for name, value := range c.Headers {
		if name == "" || strings.ContainsAny(name, " :\r\n") || strings.ContainsAny(value, "\r\n") {
			return fmt.Errorf("headers: %q is no header", name)
		}
	}
	return nil
}

// checkNames looks at the patterns of tool names and at the kinds.
func (e Entry) checkNames() error {
	for _, p := range slices.Concat(e.Allow, e.Deny, slices.Sorted(maps.Keys(e.Kinds))) {
		if _, err := path.Match(p, ""); err != nil || p == "" {
			return fmt.Errorf("allow, deny, kinds: %q is no pattern of names", p)
		}
	}
	for _, p := range slices.Sorted(maps.Keys(e.Kinds)) {
		if k := e.Kinds[p]; k != mcp.Control && k != mcp.Query {
			return fmt.Errorf("kinds.%s: %q is neither control nor query", p, string(k))
		}
	}
	return nil
}

// parseTimeout reads 30s, or a number: of seconds, or of milliseconds from 1000
// on, since desktop clients use both and no call takes 1000 seconds. "" is 0.
func parseTimeout(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if n, nerr := strconv.ParseFloat(text, 64); nerr == nil && n >= 0 && n <= float64(maxTimeout/time.Millisecond) {
		err = nil
		if d = time.Duration(n * float64(time.Second)); n >= 1000 {
			d = time.Duration(n * float64(time.Millisecond))
		}
	}
	if err != nil || d <= 0 || d > maxTimeout {
		return 0, fmt.Errorf("timeout: %q is no time such as 30s, at most %v", text, maxTimeout)
	}
	return d, nil
}

// rootsOf makes file URIs of folders.
func rootsOf(folders []string) (uris []string, err error) {
	for _, folder := range folders {
		u, err := url.Parse(folder)
		switch {
		case filepath.IsAbs(folder):
			u = &url.URL{Scheme: "file", Path: filepath.ToSlash(filepath.Clean(folder))}
		case err != nil || u.Scheme != "file" || u.Host != "" || u.Path == "":
			return nil, fmt.Errorf("roots: %q is neither an absolute path nor a file:// address", folder)
		}
		uris = append(uris, u.String())
	}
	return uris, nil
}

// LogsIn reports whether the server may ask for a login: what the entry sends itself counts before.
func (c Config) LogsIn() bool {
	for name := range c.Headers {
		if http.CanonicalHeaderKey(name) == "Authorization" {
			return false
		}
	}
	return c.Transport == HTTP || c.Transport == SSE
}

// LogValue shows where a server is, without what may be secret.
func (c Config) LogValue() slog.Value {
	if c.Transport == Stdio {
		return slog.GroupValue(slog.String("transport", string(c.Transport)), slog.String("command", c.Command))
	}
	return slog.GroupValue(slog.String("transport", string(c.Transport)), slog.String("url", PublicURL(c.URL)))
}

// PublicURL is an address without its user, query and fragment, where people
// put their keys.
func PublicURL(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "(unreadable)"
	}
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	return shown.String()
}

// Text is a string of an entry. A number or a switch is taken as it is written.
type Text string

// UnmarshalJSON reads a string, a number, true or false.
func (t *Text) UnmarshalJSON(data []byte) error {
	switch data[0] {
	case '"':
		var s string
		if err := json.Unmarshal(data, &s); err != nil {
			return err
		}
		*t = Text(s)
	case '{', '[':
		return errors.New("want text")
	case 'n':
	default:
		*t = Text(data)
	}
	return nil
}

func texts(list []Text) []string {
	var out []string
	for _, t := range list {
		out = append(out, string(t))
	}
	return out
}

func textMap(m map[string]Text) map[string]string {
	if len(m) == 0 {
		return nil
	}
	out := make(map[string]string, len(m))
	for name, t := range m {
		out[name] = string(t)
	}
	return out
}
