// Package request reads the HTTP requests of devices: their sender, the address
// by which they reach this server, the token they show. It also holds the forms
// of answers that devices can read.
package request

import (
	"cmp"
	"crypto/subtle"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"xiaozhi/connection"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/mcp/rawjson"
)

// Options make a [Reader]. The zero value works.
type Options struct {
	Auth       Auth   // only checked here: it needs a token
	PublicURL  string // http(s)://host[:port][/prefix]; empty: what the request's Host says
	TrustProxy bool   // X-Forwarded-Proto, -Host and -Port count
	Nameless   bool   // a device may come without a Device-Id
}

// Reader reads requests. Its methods may be called at the same time.
type Reader struct {
	o      Options
	public *url.URL // nil: none is configured
}

// New checks the options and makes a reader.
func New(o Options) (*Reader, error) {
	if o.Auth.Enabled && o.Auth.Token == "" {
		return nil, errors.New("connection: auth is enabled but the token is empty")
	}
	public, err := parsePublicURL(o.PublicURL)
	return &Reader{o, public}, err
}

// Path returns the path of a request without doubled and last slashes. Devices
// follow no redirect, so every path works with and without them. Dots are left
// alone.
func Path(r *http.Request) string {
	if strings.Contains(r.URL.Path, "/.") {
		return r.URL.Path
	}
	return path.Clean("/" + r.URL.Path)
}

// Identify reads the sender from the headers, else from the query, where the
// names may be spelled in any way (device-id, Device-Id, deviceId, device_id). The
// peer is as complete as it can be if it comes with an error.
func (rd *Reader) Identify(r *http.Request) (connection.Peer, error) {
	query := looseQuery(r.URL)
	pick := func(header, key string) string {
		return cmp.Or(strings.TrimSpace(r.Header.Get(header)), strings.TrimSpace(query[key]))
	}
	p := connection.Peer{
		DeviceID: strings.ToLower(pick("Device-Id", "deviceid")),
		ClientID: pick("Client-Id", "clientid"),
		Protocol: pick("Protocol-Version", "protocolversion"),
		Remote:   r.RemoteAddr,
	}
	if p.DeviceID == "" && !rd.o.Nameless {
		return p, errors.New("no Device-Id, neither as a header nor as device-id in the query")
	}
	if err := cmp.Or(connection.CheckID("Device-Id", p.DeviceID), connection.CheckID("Client-Id", p.ClientID)); err != nil {
		return p, err
	}
	p.BaseURL = rd.BaseURL(r).String()
	return p, nil
}

// Proxied reports whether a proxy has passed the request on and says so.
func Proxied(r *http.Request) bool {
	return slices.ContainsFunc([]string{"X-Forwarded-For", "X-Forwarded-Proto", "X-Real-Ip", "Forwarded", "Via"},
		func(name string) bool { return r.Header.Get(name) != "" })
}

// looseQuery gives the query by names in lower case without hyphens and
// underscores. Parts that cannot be read are left out.
func looseQuery(u *url.URL) map[string]string {
	loose := make(map[string]string)
	squeeze := strings.NewReplacer("-", "", "_", "")
	for name, values := range u.Query() {
		key := strings.ToLower(squeeze.Replace(name))
		if len(values) > 0 && loose[key] == "" {
			loose[key] = values[0]
		}
	}
	return loose
}

// Errors of a token.
var (
	ErrNoToken    = errors.New("no token")
	ErrWrongToken = errors.New("wrong token")
)

// Auth is the token that devices must show.
type Auth struct {
	Enabled bool   // false: everybody is let in
	Token   string // may not be empty if Enabled; handed out by OTA, never logged
}

// LogValue keeps the token out of logs.
func (a Auth) LogValue() slog.Value { return slog.BoolValue(a.Enabled) }

// Check compares the token of a request, in its headers or its query, with the
// one that is wanted, if one is.
func (a Auth) Check(r *http.Request) error {
	if !a.Enabled {
		return nil
	}
	query := looseQuery(r.URL)
	shown := strings.TrimSpace(cmp.Or(r.Header.Get("Authorization"), query["authorization"], query["token"]))
	if shown == "" {
		return ErrNoToken
	}
	if same(shown, a.Token) || same(Bearer(shown), a.Token) {
		return nil
	}
	return ErrWrongToken
}

// Bearer takes the scheme off a token; a device whose token holds a space sends
// it without one.
func Bearer(value string) string {
	scheme, token, ok := strings.Cut(value, " ")
	if ok && strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(token)
	}
	return value
}

// same compares in a time that does not tell how much was right.
func same(shown, want string) bool {
	return subtle.ConstantTimeCompare([]byte(shown), []byte(want)) == 1
}

// AllowBrowsers lets test pages from anywhere ask, also from a public page to
// a private network.
func AllowBrowsers(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "*")
	if r.Method != http.MethodOptions {
		return
	}
	h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, OPTIONS")
	h.Set("Access-Control-Allow-Headers", "Content-Type, Authorization, Device-Id, Client-Id, Activation-Version, Serial-Number, Accept-Language, User-Agent")
	h.Set("Access-Control-Max-Age", "86400")
	if r.Header.Get("Access-Control-Request-Private-Network") == "true" {
		h.Set("Access-Control-Allow-Private-Network", "true")
	}
}

// WriteJSON answers with 200 and a Content-Length: devices cannot read chunks.
func WriteJSON(w http.ResponseWriter, v any) {
	body, err := rawjson.Marshal(v)
	if err != nil {
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	WriteBody(w, http.StatusOK, "application/json; charset=utf-8", body)
}

// WriteText answers with plain text.
func WriteText(w http.ResponseWriter, status int, words string) {
	WriteBody(w, status, "text/plain; charset=utf-8", []byte(words))
}

// WriteBody answers with everything at once. A peer that is gone by then needs no answer.
func WriteBody(w http.ResponseWriter, status int, kind string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// Say gives a message of the catalogue in both languages, each in a line of its own.
func Say(id string, args ...any) string {
	return message.In(text.Chinese, id, args...) + "\n" + message.In(text.English, id, args...) + "\n"
}

// Refuse answers with an error, as [Say] gives it.
func Refuse(w http.ResponseWriter, status int, id string, args ...any) {
	WriteText(w, status, Say(id, args...))
}

// NotAllowed answers a method that a path does not have.
func NotAllowed(w http.ResponseWriter, allow string) {
	w.Header().Set("Allow", allow)
	Refuse(w, http.StatusMethodNotAllowed, "connection/method", allow)
}
