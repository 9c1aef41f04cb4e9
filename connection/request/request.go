// Package request reads the HTTP requests of devices: their sender, the address
// by which they reach this server, the token they show. It also holds the forms
// of answers that devices can read.
package request

import (
	"cmp"
	"crypto/subtle"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"xiaozhi/connection"
	"xiaozhi/connection/identity"
	"xiaozhi/internal/lockout"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/mcp/rawjson"
)

// Options make a [Reader]. The zero value works.
type Options struct {
	Auth       Auth   // the token that all devices share
	PublicURL  string // http(s)://host[:port][/prefix]; empty: what the request's Host says
	TrustProxy bool   // X-Forwarded-* counts
	Nameless   bool   // a device may come without a Device-Id

	Origins  []string // of web pages that may ask, beside this server's own and this machine's
	Hosts    []string // names of this server, beside its addresses and that of PublicURL
	Insecure bool     // tokens may go over plain http to any address
}

// Reader reads requests. Its methods may be called at the same time.
type Reader struct {
	o       Options
	public  *url.URL // nil: none is configured
	guesses *lockout.Guesses
}

// New checks the options and makes a reader.
func New(o Options) (*Reader, error) {
	if o.Auth.Enabled && o.Auth.Token == "" {
		return nil, errors.New("connection: auth is enabled but the token is empty")
	}
	public, err := parsePublicURL(o.PublicURL)
	return &Reader{o, public, lockout.New()}, err
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

// Identify reads the sender as [Reader.Sender] does, and looks at the token that all
// devices share.
func (rd *Reader) Identify(r *http.Request) (connection.Peer, error) {
	p, err := rd.Sender(r)
	if err != nil {
		return p, err
	}
	p.Unauthorized = rd.checkShared(r, p.From)
	p.Shared = rd.o.Auth.Enabled && p.Unauthorized == nil
	return p, nil
}

// Sender reads the sender from the headers, else from the query, where the
// names may be spelled in any way (device-id, Device-Id, deviceId, device_id). The
// peer is as complete as it can be if it comes with an error.
func (rd *Reader) Sender(r *http.Request) (connection.Peer, error) {
	query := looseQuery(r.URL)
	pick := func(header, key string) string {
		return cmp.Or(strings.TrimSpace(r.Header.Get(header)), strings.TrimSpace(query[key]))
	}
	p := connection.Peer{
		Visit: identity.Visit{
			Address: identity.Canonical(pick("Device-Id", "deviceid")), ClientID: pick("Client-Id", "clientid"),
			Token: Bearer(shown(r, query)), Secure: rd.secure(r) || rd.o.Insecure, Page: r.Header.Get("Origin") != "",
		},
		Protocol: pick("Protocol-Version", "protocolversion"),
		Remote:   r.RemoteAddr,
	}
	p.From, p.Near = rd.from(r)
	if p.Address == "" && !rd.o.Nameless {
		return p, errors.New("no Device-Id, neither as a header nor as device-id in the query")
	}
	if err := cmp.Or(connection.CheckID("Device-Id", p.Address), connection.CheckID("Client-Id", p.ClientID)); err != nil {
		return p, err
	}
	p.BaseURL = rd.BaseURL(r).String()
	return p, nil
}

// Page returns the peer of a page that is let in as a guest already: what its query says of ids counts for nothing.
func (rd *Reader) Page(r *http.Request, guest identity.Guest) connection.Peer {
	p := connection.Peer{
		Visit: identity.Visit{Address: guest.ID, Secure: rd.secure(r), Page: true},
		Guest: guest, BaseURL: rd.BaseURL(r).String(), Remote: r.RemoteAddr,
	}
	p.From, p.Near = rd.from(r)
	return p
}

// sharedName is what the token that all devices share is called where secrets have
// names.
const sharedName = "auth.token"

// checkShared looks at the token that all devices share. An address from which too many
// wrong ones came is not listened to for a while, unless the right one came from there
// before.
func (rd *Reader) checkShared(r *http.Request, from string) error {
	err := rd.o.Auth.Check(r)
	if !rd.o.Auth.Enabled || errors.Is(err, ErrNoToken) {
		return err
	}
	right, remote := "", net.JoinHostPort(from, "0")
	if err == nil {
		right = sharedName
	}
	if !rd.guesses.Listens(remote, right) {
		return ErrGuessing
	}
	if err != nil {
		rd.guesses.Wrong(remote)
	}
	return err
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
	ErrGuessing   = errors.New("too many wrong tokens came from this address")
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
	token := shown(r, looseQuery(r.URL))
	if token == "" {
		return ErrNoToken
	}
	if same(token, a.Token) || same(Bearer(token), a.Token) {
		return nil
	}
	return ErrWrongToken
}

// shown returns the token of a request as it came; "" for none.
func shown(r *http.Request, query map[string]string) string {
	return strings.TrimSpace(cmp.Or(r.Header.Get("Authorization"), query["authorization"], query["token"]))
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

// AllowPage lets the web pages ask that may, and reports whether the request is to be
// answered. To others it only shows what everybody may see; else they are refused.
func (rd *Reader) AllowPage(w http.ResponseWriter, r *http.Request) bool {
	h, origin := w.Header(), r.Header.Get("Origin")
	h.Add("Vary", "Origin")
	switch {
	case origin == "":
		return true
	case rd.OriginFits(r):
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		return true
	default:
		Refuse(w, http.StatusForbidden, "connection/origin", text.Shorten(origin, maxOrigin))
		return false
	}
	h.Set("Access-Control-Allow-Origin", origin)
	if r.Method != http.MethodOptions {
		return true
	}
	h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, OPTIONS")
	h.Set("Access-Control-Allow-Headers", "Content-Type, Authorization, Device-Id, Client-Id, Activation-Version, Serial-Number, Accept-Language, User-Agent")
	h.Set("Access-Control-Max-Age", "86400")
	if r.Header.Get("Access-Control-Request-Private-Network") == "true" {
		h.Set("Access-Control-Allow-Private-Network", "true")
	}
	return true
}

// WriteJSON answers with 200 and a Content-Length: devices cannot read chunks.
func WriteJSON(w http.ResponseWriter, v any) { WriteStatusJSON(w, http.StatusOK, v) }

// WriteStatusJSON is WriteJSON with another status.
func WriteStatusJSON(w http.ResponseWriter, status int, v any) {
	body, err := rawjson.Marshal(v)
	if err != nil {
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	WriteBody(w, status, "application/json; charset=utf-8", body)
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
