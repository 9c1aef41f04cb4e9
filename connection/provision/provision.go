// Package provision answers what a device asks before it connects: where to, what
// time it is, whether it must be activated (docs/protocol.md 1). To people who open
// the same address it shows a page.
package provision

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"html/template"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"xiaozhi/connection"
	"xiaozhi/connection/request"
	"xiaozhi/internal/text"
)

// Options make a [Handler].
type Options struct {
	Registry *connection.Registry
	Requests *request.Reader
	Auth     request.Auth
	Zone     *time.Location // the clock that devices show; nil means time.Local
	Log      *slog.Logger   // nil: discarded
}

// Handler answers on the paths of OTA. It may be used by many goroutines at once.
type Handler struct {
	o    Options
	page *template.Template
}

// New makes a handler.
func New(o Options) (*Handler, error) {
	if o.Zone == nil {
		o.Zone = time.Local
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	page, err := template.New("ota").Parse(pageHTML)
	if err != nil {
		return nil, err
	}
	return &Handler{o: o, page: page}, nil
}

// Wrap serves the paths of OTA and gives all others to next.
func (h *Handler) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch request.Path(r) {
		case "/xiaozhi/ota", "/api/ota", "/api/device/ota":
			serve(w, r, h.provision, h.servePage)
		case "/xiaozhi/ota/activate", "/api/ota/activate", "/api/device/ota/activate":
			serve(w, r, activate, activate)
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
		URL     string `json:"url"`
		Token   string `json:"token"`   // empty takes an older one away
		Version int    `json:"version"` // the framing
	} `json:"websocket"`
}

// description holds the members of a device's description that are used; all may be
// missing.
type description struct {
	language string
	version  string
	board    string
}

// serve answers a device, people who look, and browsers that ask for leave.
func serve(w http.ResponseWriter, r *http.Request, post, get http.HandlerFunc) {
	request.AllowBrowsers(w, r)
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
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(otaReadTime)) // not every writer can
	body, err := io.ReadAll(io.LimitReader(r.Body, maxOTABody))
	if err != nil {
		h.o.Log.Debug("ota body was cut off", "remote", r.RemoteAddr, "err", err)
	}
	asked := readOTA(r.Header, body)
	who, err := h.o.Requests.Identify(r)
	if err != nil {
		h.o.Log.Warn("ota request cannot be assigned to a device; answered all the same", "remote", r.RemoteAddr, "err", err)
	} else {
		h.o.Registry.SetLanguage(who.DeviceID, asked.language)
	}
	base := h.o.Requests.BaseURL(r)
	if !request.DeviceCanUse(base) {
		h.o.Log.Warn("devices cannot use an IPv6 address; set server.public_url", "url", request.TalkURL(base))
	}
	answer := h.reply(base, asked.version)
	h.o.Log.Info("ota answered", "device_id", who.DeviceID, "client_id", who.ClientID, "board", asked.board,
		"firmware", asked.version, "language", asked.language, "url", answer.WebSocket.URL)
	request.WriteJSON(w, answer)
}

func (h *Handler) reply(base *url.URL, version string) reply {
	now := time.Now().In(h.o.Zone)
	_, offset := now.Zone()
	if !isNumericVersion(version) {
		version = "0.0.0"
	}
	var answer reply
	answer.ServerTime.Timestamp, answer.ServerTime.Offset = now.UnixMilli(), offset/60
	answer.Firmware.Version = version
	answer.WebSocket.URL, answer.WebSocket.Version = request.TalkURL(base), 1
	if h.o.Auth.Enabled {
		answer.WebSocket.Token = h.o.Auth.Token
	}
	return answer
}

// readOTA takes what it can from headers and body. The body is often broken:
// devices do not escape the name of their network.
func readOTA(header http.Header, body []byte) description {
	var b struct{ Language, Application, Board json.RawMessage }
	var app struct{ Version json.RawMessage }
	var board struct{ Type json.RawMessage }
	if json.Unmarshal(body, &b) == nil {
		// Members of a wrong type are as good as missing.
		_ = json.Unmarshal(b.Application, &app)
		_ = json.Unmarshal(b.Board, &board)
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
	asked := description{language: connection.LanguageOf(language), version: text.Cut(version, 32), board: text.Cut(kind, 64)}
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

// activate answers devices that ask whether they are bound: none is bound here, so
// every device is (docs/protocol.md 1.4).
func activate(w http.ResponseWriter, _ *http.Request) {
	request.WriteJSON(w, struct {
		Activated bool   `json:"activated"`
		Message   string `json:"message"`
	}{true, "nothing to activate"})
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
	request.WriteBody(w, http.StatusOK, "text/html; charset=utf-8", page.Bytes())
}
