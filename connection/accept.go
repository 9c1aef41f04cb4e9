package connection

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gorilla/websocket"
)

// maxID is how long a Device-Id or Client-Id may be, in bytes.
const maxID = 128

// serveTalk lets a device in, or says why not.
func (s *Server) serveTalk(w http.ResponseWriter, r *http.Request) {
	if !websocket.IsWebSocketUpgrade(r) {
		s.serveAlive(w, r)
		return
	}
	who, err := s.identify(r)
	if err != nil {
		s.log.Warn("device refused", "remote", r.RemoteAddr, "err", err)
		refuse(w, http.StatusBadRequest, "无法识别设备。", "The device cannot be identified: "+err.Error()+".")
		return
	}
	if err := s.authorize(r); err != nil {
		s.log.Warn("device refused", "device_id", who.deviceID, "remote", r.RemoteAddr, "err", err)
		w.Header().Set("WWW-Authenticate", "Bearer")
		refuse(w, http.StatusUnauthorized, "令牌缺失或不正确。", "The token is missing or wrong.")
		return
	}
	switch s.reserve(who.key) {
	case refusedFull:
		s.log.Warn("device refused", "device_id", who.deviceID, "err", string(refusedFull), "max_devices", s.opts.MaxDevices)
		w.Header().Set("Retry-After", "30")
		refuse(w, http.StatusServiceUnavailable, "服务器已满，请稍后再试。", fmt.Sprintf("The server is full (%d devices). Try again later.", s.opts.MaxDevices))
		return
	case refusedStopping:
		w.Header().Set("Retry-After", "10")
		refuse(w, http.StatusServiceUnavailable, "服务器正在停止。", "The server is stopping.")
		return
	}
	s.talkWith(w, r, who)
}

// talkWith upgrades a device for which there is room, and begins to talk with
// it. The connection outlives the request, so its context ends with nothing but
// the connection's own end.
func (s *Server) talkWith(w http.ResponseWriter, r *http.Request, who identity) {
	ws, err := s.upgrader.Upgrade(w, r, nil)
	if err != nil {
		s.abandon(who.key)
		s.log.Warn("websocket upgrade failed", "device_id", who.deviceID, "remote", r.RemoteAddr, "err", err)
		return
	}
	shrinkSendBuffer(ws.NetConn())
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(r.Context()))
	c := newConn(s, who, rand.Text(), ws)
	c.cancel = cancel
	s.admit(c)
	c.start(ctx)
}

// What the system may hold for a device, in bytes. Its own choice, up to
// megabytes, would hide for minutes that a device does not read.
const (
	sendBuffer = 8 << 10 // sent and not acknowledged, or not sent
	maxUnsent  = 1 << 10 // not sent: a third of a second of sound
)

// shrinkSendBuffer makes a write wait soon after the device has stopped to
// read, so that the write deadline begins then and not when a buffer is full.
// A system that cannot do so notices stuck devices later, and that is all.
func shrinkSendBuffer(nc net.Conn) {
	if tcp, ok := nc.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(sendBuffer)
		limitUnsent(tcp, maxUnsent)
	}
}

// serveAlive answers people and probes that ask the WebSocket path by HTTP.
func (s *Server) serveAlive(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		notAllowed(w, "GET, HEAD")
		return
	}
	base := s.baseURL(r)
	writeText(w, http.StatusOK, "小智服务器正在运行。设备通过 WebSocket 连接此地址： "+talkURL(base)+"\n"+
		"The xiaozhi server is running. Devices connect to this address by WebSocket: "+talkURL(base)+"\n"+
		"OTA: "+base.String()+otaPath+"\n")
}

// identify reads who asks: from the headers, else from the query, where the
// names may be spelled in any way (device-id, Device-Id, deviceId, device_id).
func (s *Server) identify(r *http.Request) (identity, error) {
	query := looseQuery(r.URL)
	pick := func(header, key string) string {
		if v := strings.TrimSpace(r.Header.Get(header)); v != "" {
			return v
		}
		return strings.TrimSpace(query[key])
	}
	who := identity{
		deviceID: strings.ToLower(pick("Device-Id", "deviceid")),
		clientID: pick("Client-Id", "clientid"),
		protocol: pick("Protocol-Version", "protocolversion"),
		remote:   r.RemoteAddr,
		proxied:  slices.ContainsFunc(proxyHeaders(), func(h string) bool { return r.Header.Get(h) != "" }),
	}
	if who.deviceID == "" && s.opts.NewLight == nil {
		return who, errors.New("no Device-Id, neither as a header nor as device-id in the query")
	}
	if err := checkID("Device-Id", who.deviceID); err != nil {
		return who, err
	}
	if err := checkID("Client-Id", who.clientID); err != nil {
		return who, err
	}
	if who.key = who.deviceID; who.key == "" {
		who.key = namelessKey()
	}
	who.baseURL = s.baseURL(r).String()
	return who, nil
}

// proxyHeaders are those that a proxy adds to a request that it passes on.
func proxyHeaders() []string {
	return []string{"X-Forwarded-For", "X-Forwarded-Proto", "X-Real-Ip", "Forwarded", "Via"}
}

// checkID refuses ids that are too long or not printable ASCII.
func checkID(name, id string) error {
	if len(id) > maxID {
		return fmt.Errorf("%s is longer than %d bytes", name, maxID)
	}
	for _, c := range id {
		if c < ' ' || c > '~' {
			return fmt.Errorf("%s holds signs that are not printable ASCII", name)
		}
	}
	return nil
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

// Why a token was refused.
var (
	errNoToken    = errors.New("no token")
	errWrongToken = errors.New("wrong token")
)

// authorize checks the token, if one is asked for.
func (s *Server) authorize(r *http.Request) error {
	if !s.opts.Auth.Enabled {
		return nil
	}
	query := looseQuery(r.URL)
	shown := r.Header.Get("Authorization")
	if shown == "" {
		shown = query["authorization"]
	}
	if shown == "" {
		shown = query["token"]
	}
	shown = strings.TrimSpace(shown)
	if shown == "" {
		return errNoToken
	}
	if sameToken(shown, s.opts.Auth.Token) || sameToken(withoutBearer(shown), s.opts.Auth.Token) {
		return nil
	}
	return errWrongToken
}

// withoutBearer takes off the scheme; a device whose token holds a space sends
// it without one.
func withoutBearer(value string) string {
	scheme, token, ok := strings.Cut(value, " ")
	if ok && strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(token)
	}
	return value
}

// sameToken compares in a time that does not tell how much was right.
func sameToken(shown, want string) bool {
	return subtle.ConstantTimeCompare([]byte(shown), []byte(want)) == 1
}

// refuse answers with an error in both languages.
func refuse(w http.ResponseWriter, status int, zh, en string) {
	writeText(w, status, zh+"\n"+en+"\n")
}

// notAllowed answers a method that a path does not have.
func notAllowed(w http.ResponseWriter, allow string) {
	w.Header().Set("Allow", allow)
	refuse(w, http.StatusMethodNotAllowed, "此地址不支持该请求方法。", "This address has no such method; it has "+allow+".")
}
