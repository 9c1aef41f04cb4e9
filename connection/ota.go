package connection

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Limits of an OTA request.
const (
	maxOTABody  = 64 << 10         // bytes that are read and judged
	otaReadTime = 10 * time.Second // for the whole body
)

// otaReply is what a device is told (section 1.3). Firmware writes every member
// of websocket to flash under its own name, so it has these three and no other;
// an mqtt member, even an empty one, would win over it.
type otaReply struct {
	ServerTime otaTime      `json:"server_time"`
	Firmware   otaFirmware  `json:"firmware"`
	WebSocket  otaWebSocket `json:"websocket"`
}

type otaTime struct {
	Timestamp int64 `json:"timestamp"`       // ms since 1970, UTC
	Offset    int   `json:"timezone_offset"` // minutes
}

type otaFirmware struct {
	Version string `json:"version"` // the device's own: nothing to install
	URL     string `json:"url"`
}

type otaWebSocket struct {
	URL     string `json:"url"`
	Token   string `json:"token"` // empty takes an older one away
	Version int    `json:"version"`
}

// otaRequest is what we read of a device's description; all of it may be missing.
type otaRequest struct {
	language string
	version  string
	board    string
}

// serveOTA answers a device that has just started, and people who look.
func (s *Server) serveOTA(w http.ResponseWriter, r *http.Request) {
	allowBrowsers(w, r)
	switch r.Method {
	case http.MethodPost:
		s.provision(w, r)
	case http.MethodGet, http.MethodHead:
		s.serveOTAPage(w, r)
	case http.MethodOptions:
		w.WriteHeader(http.StatusNoContent)
	default:
		notAllowed(w, "GET, HEAD, POST, OPTIONS")
	}
}

// provision tells a device where to connect.
func (s *Server) provision(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(otaReadTime)) // not every writer can
	body, err := io.ReadAll(io.LimitReader(r.Body, maxOTABody))
	if err != nil {
		s.log.Debug("ota body was cut off", "remote", r.RemoteAddr, "err", err)
	}
	asked := readOTA(r.Header, body)
	who, err := s.identify(r)
	if err != nil {
		s.log.Warn("ota request cannot be assigned to a device; answered all the same", "remote", r.RemoteAddr, "err", err)
	} else {
		s.languages.set(who.deviceID, asked.language)
	}
	base := s.baseURL(r)
	if !deviceCanUse(base) {
		s.log.Warn("devices cannot use an IPv6 address; set server.public_url", "url", talkURL(base))
	}
	reply := s.otaReply(base, asked.version)
	s.log.Info("ota answered", "device_id", who.deviceID, "client_id", who.clientID, "board", asked.board,
		"firmware", asked.version, "language", asked.language, "url", reply.WebSocket.URL)
	writeJSON(w, reply)
}

// otaReply says what a device with that firmware is told.
func (s *Server) otaReply(base *url.URL, version string) otaReply {
	now := s.now()
	_, offset := now.Zone()
	if !isNumericVersion(version) {
		version = "0.0.0"
	}
	reply := otaReply{
		ServerTime: otaTime{Timestamp: now.UnixMilli(), Offset: offset / 60},
		Firmware:   otaFirmware{Version: version},
		WebSocket:  otaWebSocket{URL: talkURL(base), Version: s.opts.Framing},
	}
	if s.opts.Auth.Enabled {
		reply.WebSocket.Token = s.opts.Auth.Token
	}
	return reply
}

// readOTA takes what it can from headers and body. The body is often broken:
// devices do not escape the name of their network.
func readOTA(header http.Header, body []byte) otaRequest {
	var b struct {
		Language    json.RawMessage `json:"language"`
		Application json.RawMessage `json:"application"`
		Board       json.RawMessage `json:"board"`
	}
	var app struct {
		Version json.RawMessage `json:"version"`
	}
	var board struct {
		Type json.RawMessage `json:"type"`
	}
	if json.Unmarshal(body, &b) == nil {
		// Members of a wrong type are as good as missing.
		_ = json.Unmarshal(b.Application, &app)
		_ = json.Unmarshal(b.Board, &board)
	}
	language, _ := stringIn(b.Language)
	version, _ := stringIn(app.Version)
	kind, _ := stringIn(board.Type)
	// User-Agent is "<board>/<version>".
	if name, v, ok := strings.Cut(header.Get("User-Agent"), "/"); ok {
		if version == "" && isNumericVersion(v) {
			version = v
		}
		if kind == "" {
			kind = name
		}
	}
	asked := otaRequest{language: languageOf(language), version: clip(version, 32), board: clip(kind, 64)}
	if asked.language == "" {
		asked.language = languageOf(header.Get("Accept-Language"))
	}
	return asked
}

// isNumericVersion reports whether v is dotted decimal numbers: anything else
// makes firmware crash while it boots (section 1.3).
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

// serveActivate answers devices that ask whether they are bound: we bind none,
// so every device is (section 1.4).
func (s *Server) serveActivate(w http.ResponseWriter, r *http.Request) {
	allowBrowsers(w, r)
	switch r.Method {
	case http.MethodPost, http.MethodGet, http.MethodHead:
		writeJSON(w, activateReply{Activated: true, Message: "nothing to activate"})
	case http.MethodOptions:
		w.WriteHeader(http.StatusNoContent)
	default:
		notAllowed(w, "GET, HEAD, POST, OPTIONS")
	}
}

type activateReply struct {
	Activated bool   `json:"activated"`
	Message   string `json:"message"`
}

// allowBrowsers lets test pages from anywhere ask, also from a public page to
// a private network.
func allowBrowsers(w http.ResponseWriter, r *http.Request) {
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

// writeJSON answers with 200 and a Content-Length: devices cannot read chunks.
func writeJSON(w http.ResponseWriter, v any) {
	body, err := encode(v)
	if err != nil {
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	writeBody(w, http.StatusOK, "application/json; charset=utf-8", body)
}

// writeText answers with plain text.
func writeText(w http.ResponseWriter, status int, text string) {
	writeBody(w, status, "text/plain; charset=utf-8", []byte(text))
}

// writeBody answers with everything at once. A peer that is gone by then needs no answer.
func writeBody(w http.ResponseWriter, status int, kind string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
