// Package provision answers what a device asks before it connects: where to, what
// time it is, whether it must be activated (docs/protocol.md 1). To people who open
// the same address it shows a page.
package provision

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"html/template"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"xiaozhi/connection"
	"xiaozhi/connection/identity"
	"xiaozhi/connection/request"
	"xiaozhi/internal/lockout"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/mcp/rawjson"
)

// Options make a [Handler].
type Options struct {
	Registry *connection.Registry
	Requests *request.Reader
	Auth     request.Auth
	Book     *identity.Book // nil: every device is who it says it is
	Zone     *time.Location // the clock that devices show; nil means time.Local
	// ZoneOf returns the zone of a device, by its id; nil: that of all.
	ZoneOf func(id string) *time.Location
	// Report is told of each question and its answer. It must not wait. nil: nobody is told.
	Report func(Report)
	// PlainPort is the port of HTTP that people are told where the page is asked for by HTTPS with a certificate that
	// devices do not accept; "": they do.
	PlainPort string
	Log       *slog.Logger // nil: discarded
}

// Report is a question of a device and its answer.
type Report struct {
	Request *http.Request
	Body    []byte          // of the request, as far as it was read
	Peer    connection.Peer // as complete as it can be
	Papers  identity.Papers // what the device was told of itself; zero of one that asks too often, or cannot be known
	Board   string
	Version string // of the firmware
	Signal  int    // of its Wi-Fi in dBm; 0: it does not tell
	URL     string // of the socket that it was told
	Answer  []byte
	Poll    bool  // it asks whether it was accepted
	Waits   bool  // it was not
	Err     error // why it got neither token nor code; nil: it may have got them
}

// Why a device gets neither token nor code.
var (
	ErrNameless = errors.New("no Device-Id, neither as a header nor as device-id in the query")
	ErrOften    = errors.New("asked too often")
)

// Handler answers on the paths of OTA. It may be used by many goroutines at once.
type Handler struct {
	o         Options
	page      *template.Template
	limits    limits
	strangers *lockout.Lines
}

// New makes a handler.
func New(o Options) (*Handler, error) {
	if o.Zone == nil {
		o.Zone = time.Local
	}
	if o.ZoneOf == nil {
		o.ZoneOf = func(string) *time.Location { return o.Zone }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Report == nil {
		o.Report = func(Report) {}
	}
	page, err := template.New("ota").Parse(pageHTML)
	if err != nil {
		return nil, err
	}
	return &Handler{o: o, page: page, limits: newLimits(), strangers: lockout.NewLines()}, nil
}

// Wrap serves the paths of OTA and gives all others to next.
func (h *Handler) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch request.Path(r) {
		case "/xiaozhi/ota", "/api/ota", "/api/device/ota":
			h.serve(w, r, h.provision, h.servePage)
		case "/xiaozhi/ota/activate", "/api/ota/activate", "/api/device/ota/activate":
			h.serve(w, r, h.activate, h.activate)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// Limits of an OTA request.
const (
	maxOTABody  = 64 << 10         // bytes that are read and judged
	otaReadTime = 10 * time.Second // for the whole body
)

// reply is the answer to a device (docs/protocol.md 1.3). Firmware writes every member
// of websocket to flash under its own name, so it has these three and no other;
// an mqtt member, even an empty one, would win over it.
type reply struct {
	ServerTime struct {
		Timestamp int64 `json:"timestamp"`       // ms since 1970, UTC
		Offset    int   `json:"timezone_offset"` // minutes
	} `json:"server_time"`
	Firmware struct {
		Version string `json:"version"` // the device's own: nothing to install
		URL     string `json:"url"`
	} `json:"firmware"`
	WebSocket struct {
		URL     string  `json:"url"`
		Token   *string `json:"token,omitempty"` // empty takes an older one away, nil leaves it
		Version int     `json:"version"`         // the framing
	} `json:"websocket"`
	Activation *activation `json:"activation,omitempty"` // nil: the device need not wait
}

// activation has a device show and say a code, and ask again until it was accepted
// (docs/protocol.md 1.4).
type activation struct {
	Code      string `json:"code"`
	Message   string `json:"message"`
	Challenge string `json:"challenge"`
	Timeout   int    `json:"timeout_ms"` // no firmware uses it
}

// description holds the members of a device's description that are used; all may be
// missing.
type description struct {
	language string
	version  string
	board    string
	signal   int  // of its Wi-Fi in dBm; 0: it does not tell
	firmware bool // only firmware describes its flash; it keeps a token that is left out
}

// serve answers a device, people who look, and browsers that ask for leave.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request, post, get http.HandlerFunc) {
	if !h.o.Requests.AllowPage(w, r) {
		return
	}
	switch r.Method {
	case http.MethodPost:
		post(w, r)
	case http.MethodGet, http.MethodHead:
		get(w, r)
	case http.MethodOptions:
		w.WriteHeader(http.StatusNoContent)
	default:
		request.NotAllowed(w, "GET, HEAD, POST, OPTIONS")
	}
}

func (h *Handler) provision(w http.ResponseWriter, r *http.Request) {
	who, err := h.o.Requests.Identify(r)
	if err == nil && who.Address == "" {
		err = ErrNameless
	}
	known := false
	if err == nil && h.o.Book != nil {
		_, known = h.o.Book.Knows(who.Visit)
	}
	say := h.log(known)
	if err == nil && !h.limits.allow(who, known) {
		say(h.o.Log.Warn, "ota answered without token and code: asked too often", "device_id", who.Address, "remote", r.RemoteAddr)
		asked := readOTA(r.Header, nil)
		h.answer(w, h.reply(h.o.Requests.BaseURL(r), asked.version, ""), Report{Request: r, Peer: who, Board: asked.board, Version: asked.version, Err: ErrOften})
		return
	}
	body, asked := h.read(w, r, say)
	papers := identity.Papers{Guest: identity.Guest{ID: who.Address}}
	if err != nil {
		say(h.o.Log.Warn, "ota request cannot be assigned to a device; answered all the same", "remote", r.RemoteAddr, "err", err)
		papers.Away = &identity.AwayError{Verdict: identity.Denied}
	} else {
		if h.o.Book != nil {
			papers = h.o.Book.Provision(r.Context(), who.Visit, identity.Description{Board: asked.board, Firmware: asked.version, Keeps: asked.firmware})
		}
		h.o.Registry.Asked(papers.ID, asked.language)
	}
	base := h.o.Requests.BaseURL(r)
	if !request.DeviceCanUse(base) {
		say(h.o.Log.Warn, "devices cannot use an IPv6 address; set server.public_url", "url", request.TalkURL(base))
	}
	answer := h.reply(base, asked.version, papers.ID)
	h.admit(&answer, papers)
	say(h.o.Log.Info, "ota answered", "device_id", papers.ID, "board", asked.board, "firmware", asked.version, "language", asked.language, "url", answer.WebSocket.URL)
	h.answer(w, answer, Report{Request: r, Body: body, Peer: who, Papers: papers, Board: asked.board, Version: asked.version, Signal: asked.signal, Err: err})
}

// answer writes the answer to a device, and tells of it.
func (h *Handler) answer(w http.ResponseWriter, a reply, of Report) {
	data, err := rawjson.Marshal(a)
	if err != nil {
		request.Refuse(w, http.StatusInternalServerError, "connection/internal")
		return
	}
	of.URL, of.Answer = a.WebSocket.URL, data
	h.o.Report(of)
	request.WriteBody(w, http.StatusOK, "application/json; charset=utf-8", data)
}

// log returns what writes lines about a device: all of them if it is known.
func (h *Handler) log(known bool) func(write func(msg string, args ...any), msg string, args ...any) {
	if known {
		return func(write func(msg string, args ...any), msg string, args ...any) { write(msg, args...) }
	}
	return h.strangers.Log
}

// read takes what a device tells of itself.
func (h *Handler) read(w http.ResponseWriter, r *http.Request, say func(write func(string, ...any), msg string, args ...any)) (body []byte, d description) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(otaReadTime)) // not every writer can
	body, err := io.ReadAll(io.LimitReader(r.Body, maxOTABody))
	if err != nil {
		say(h.o.Log.Debug, "ota body was cut off", "remote", r.RemoteAddr, "err", err)
	}
	return body, readOTA(r.Header, body)
}

func (h *Handler) reply(base *url.URL, version, device string) reply {
	now := time.Now().In(h.o.ZoneOf(device))
	_, offset := now.Zone()
	if !isNumericVersion(version) {
		version = "0.0.0"
	}
	var answer reply
	answer.ServerTime.Timestamp, answer.ServerTime.Offset = now.UnixMilli(), offset/60
	answer.Firmware.Version = version
	answer.WebSocket.URL, answer.WebSocket.Version = request.TalkURL(base), 1
	return answer
}

// admit adds what only this device may know: a token, or the code with which it waits.
func (h *Handler) admit(answer *reply, p identity.Papers) {
	switch {
	case p.Away != nil && p.Away.Code != "":
		lang := text.Lang(h.o.Registry.Language(p.ID))
		answer.Activation = &activation{
			Code: p.Away.Code, Message: message.In(lang, "connection/pair", p.Away.Code), Challenge: p.Challenge, Timeout: 30_000,
		}
	case p.Away != nil:
	case h.o.Auth.Enabled:
		answer.WebSocket.Token = &h.o.Auth.Token
	case h.o.Book == nil || p.Token != "":
		answer.WebSocket.Token = &p.Token
	}
}

// readOTA takes what it can from headers and body. The body is often broken:
// devices do not escape the name of their network.
func readOTA(header http.Header, body []byte) description {
	var b struct {
		Language, Application, Board json.RawMessage

		Flash     json.RawMessage `json:"flash_size"`
		Partition json.RawMessage `json:"partition_table"`
	}
	var app struct{ Version json.RawMessage }
	var board struct{ Type, RSSI json.RawMessage }
	firmware := bytes.Contains(body, []byte(`"partition_table"`)) // counts in a broken body only
	if json.Unmarshal(body, &b) == nil {
		// Members of a wrong type are as good as missing.
		_ = json.Unmarshal(b.Application, &app)
		_ = json.Unmarshal(b.Board, &board)
		firmware = b.Flash != nil || b.Partition != nil
	}
	signal := 0
	if json.Unmarshal(board.RSSI, &signal) != nil || signal < -128 || signal > 0 {
		signal = 0
	}
	language, version, kind := stringIn(b.Language), stringIn(app.Version), stringIn(board.Type)
	// User-Agent is "<board>/<version>".
	if name, v, ok := strings.Cut(header.Get("User-Agent"), "/"); ok {
		if version == "" && isNumericVersion(v) {
			version = v
		}
		if kind == "" {
			kind = name
		}
	}
	asked := description{language: connection.LanguageOf(language), version: text.Cut(text.Line(version), 32), board: text.Cut(text.Line(kind), 64), signal: signal, firmware: firmware}
	if asked.language == "" {
		asked.language = connection.LanguageOf(header.Get("Accept-Language"))
	}
	return asked
}

// stringIn reads a JSON string; "" for anything else.
func stringIn(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s) // what is no string is as good as missing
	return s
}

// isNumericVersion reports whether v is dotted decimal numbers: anything else
// makes firmware crash while it boots (docs/protocol.md 1.3).
func isNumericVersion(v string) bool {
	if len(v) > 32 {
		return false
	}
	for part := range strings.SplitSeq(v, ".") {
		if part == "" || len(part) > 9 || strings.Trim(part, "0123456789") != "" {
			return false
		}
	}
	return true
}

// activate answers devices that ask whether they must go on waiting: 202 until a person
// has accepted or refused them, else 200 (docs/protocol.md 1.4). What they send is not
// looked at: the headers say who they are, and nobody but their maker knows the key
// of their serial number. Who asks too often is told to wait.
func (h *Handler) activate(w http.ResponseWriter, r *http.Request) {
	status, answer := http.StatusOK, struct {
		Activated bool   `json:"activated"`
		Message   string `json:"message"`
	}{true, "nothing to activate"}
	who, err := h.o.Requests.Identify(r)
	if err == nil && who.Address != "" && h.o.Book != nil && (!h.limits.allowPoll(who) || h.o.Book.Activate(who.Visit)) {
		status, answer.Activated, answer.Message = http.StatusAccepted, false, "waiting for a person to accept the code"
	}
	if r.Method == http.MethodPost {
		h.o.Report(Report{Request: r, Peer: who, Poll: true, Waits: !answer.Activated, Err: err})
	}
	request.WriteStatusJSON(w, status, answer)
}

// pageHTML is for a person who opens the OTA address in a browser.
//
//go:embed page.html
var pageHTML string

type view struct {
	OTA, Talk string
	Connected int
	Auth      bool
	IPv6      bool // the address is one that devices cannot use
	Loopback  bool // the address is one that only this machine can use
}

func (h *Handler) servePage(w http.ResponseWriter, r *http.Request) {
	base := h.o.Requests.BaseURL(r)
	if r.TLS != nil && h.o.PlainPort != "" {
		base = &url.URL{Scheme: "http", Host: net.JoinHostPort(base.Hostname(), h.o.PlainPort)}
	}
	var page bytes.Buffer
	err := h.page.Execute(&page, view{
		OTA: base.String() + request.OTAPath, Talk: request.TalkURL(base), Connected: h.o.Registry.Connected(),
		Auth: h.o.Auth.Enabled, IPv6: !request.DeviceCanUse(base), Loopback: request.IsLoopback(base.Hostname()),
	})
	if err != nil {
		h.o.Log.Error("ota page cannot be made", "err", err)
		request.Refuse(w, http.StatusInternalServerError, "connection/internal")
		return
	}
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	request.WriteBody(w, http.StatusOK, "text/html; charset=utf-8", page.Bytes())
}
