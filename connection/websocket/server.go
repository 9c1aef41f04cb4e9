// Package websocket carries sessions over WebSockets: the upgrade, the frames of
// sound in three framings, the signs of life of a device, and the close codes
// (docs/protocol.md 2).
package websocket

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/gorilla/websocket"
	"golang.org/x/time/rate"

	"xiaozhi/connection"
	"xiaozhi/connection/identity"
	"xiaozhi/connection/request"
	"xiaozhi/internal/text"
)

// Options make a [Server]. Registry and Requests must be set; every other zero
// value works.
type Options struct {
	Registry *connection.Registry
	Requests *request.Reader
	// Report is told of each device that asks for a socket, before it gets one. It must not wait. nil: nobody is told.
	Report  func(Report)
	Tickets Tickets      // nil: pages have none
	Log     *slog.Logger // nil: discarded
}

// Report is the request of a device for a socket.
type Report struct {
	Request *http.Request
	Peer    connection.Peer // as complete as it can be; with its guest, if it was let in
	Err     error           // why it gets none; nil: it gets one
}

// Why a device gets no socket, beside the errors of [request.Reader.Identify], of its token and of [connection.Registry.Reserve].
var (
	ErrOrigin    = errors.New("the web page's origin is not listed in server.origins")
	ErrNoUpgrade = errors.New("the request did not ask for a WebSocket")
	ErrHandshake = errors.New("the handshake failed")
)

// Tickets let the pages of people in, who have logged in.
type Tickets interface {
	// Redeem returns the device of the page that asks for a socket with a ticket, which is used up, or why it may not come.
	Redeem(r *http.Request, ticket string) (identity.Guest, error)
}

// Server upgrades the requests of devices. It may be used by many goroutines at
// once.
type Server struct {
	o        Options
	upgrader websocket.Upgrader
	refusals rate.Sometimes // limits the lines in the log about requests that are refused
}

// New makes a server. It starts nothing.
func New(o Options) *Server {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Report == nil {
		o.Report = func(Report) {}
	}
	return &Server{o: o, upgrader: websocket.Upgrader{
		HandshakeTimeout: writeTimeout,
		ReadBufferSize:   readBuffer,
		WriteBufferSize:  writeBuffer,
		CheckOrigin:      func(*http.Request) bool { return true }, // serve has looked
	}, refusals: rate.Sometimes{First: 20, Interval: time.Second}}
}

// Wrap serves the paths of talks and gives all others to next.
func (s *Server) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch request.Path(r) {
		case "/xiaozhi/v1", "/ws/xiaozhi/v1":
			s.serve(w, r)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// serve admits a device, or says why not.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if !websocket.IsWebSocketUpgrade(r) {
		s.serveAlive(w, r)
		return
	}
	requests, log := s.o.Requests, s.o.Log
	refused := func(args ...any) { s.refusals.Do(func() { log.Warn("device refused", args...) }) }
	if !requests.OriginFits(r) {
		origin := text.Shorten(r.Header.Get("Origin"), 100)
		refused("remote", r.RemoteAddr, "origin", origin, "err", ErrOrigin)
		sender, _ := requests.Sender(r)
		s.o.Report(Report{r, sender, fmt.Errorf("%w: %s", ErrOrigin, origin)})
		request.Refuse(w, http.StatusForbidden, "connection/origin", origin)
		return
	}
	if r.URL.Query().Has("ticket") {
		s.serveTicket(w, r, refused)
		return
	}
	peer, err := requests.Identify(r)
	if err != nil {
		s.o.Report(Report{r, peer, err})
		refused("remote", r.RemoteAddr, "err", err)
		request.Refuse(w, http.StatusBadRequest, "connection/unknown", err)
		return
	}
	if err := peer.Unauthorized; err != nil {
		s.o.Report(Report{r, peer, err})
		refused("device_id", peer.Address, "remote", r.RemoteAddr, "err", err)
		refuseToken(w, err)
		return
	}
	s.admit(w, r, peer, refused)
}

// serveTicket admits the page of a person.
func (s *Server) serveTicket(w http.ResponseWriter, r *http.Request, refused func(args ...any)) {
	err := errors.New("there are no tickets here")
	var guest identity.Guest
	if s.o.Tickets != nil {
		guest, err = s.o.Tickets.Redeem(r, r.URL.Query().Get("ticket"))
	}
	if err != nil {
		refused("remote", r.RemoteAddr, "err", err)
		request.Refuse(w, http.StatusForbidden, "connection/ticket")
		return
	}
	s.admit(w, r, s.o.Requests.Page(r, guest), refused)
}

// admit opens the socket of a peer, if there is room.
func (s *Server) admit(w http.ResponseWriter, r *http.Request, peer connection.Peer, refused func(args ...any)) {
	peer.Transport = "websocket"
	room, err := s.o.Registry.Reserve(peer) //nolint:contextcheck // it asks whether a session has ended, by its own context
	if err != nil {
		s.o.Report(Report{r, peer, err})
	}
	switch {
	case errors.Is(err, connection.ErrFull):
		most := s.o.Registry.MaxDevices()
		refused("device_id", peer.Address, "err", err.Error(), "max_devices", most)
		w.Header().Set("Retry-After", "30")
		request.Refuse(w, http.StatusServiceUnavailable, "connection/full", most)
		return
	case errors.Is(err, connection.ErrCrowded):
		refused("device_id", peer.Address, "remote", r.RemoteAddr, "err", err.Error())
		w.Header().Set("Retry-After", "30")
		request.Refuse(w, http.StatusServiceUnavailable, "connection/crowded")
		return
	case err != nil:
		w.Header().Set("Retry-After", "10")
		request.Refuse(w, http.StatusServiceUnavailable, "connection/stopping")
		return
	}
	in := &meteredConn{}
	ws, err := s.upgrader.Upgrade(hijacker{w, in}, r, nil)
	if err != nil {
		room.Cancel()
		s.o.Report(Report{r, peer, fmt.Errorf("%w: %w", ErrHandshake, err)})
		refused("handshake", "failed", "device_id", peer.Address, "remote", r.RemoteAddr, "err", err)
		return
	}
	s.o.Report(Report{r, room.Peer(), nil})
	shrinkSendBuffer(in.Conn)
	c := newConn(ws, in, request.Proxied(r))
	// The handler returns, since net/http keeps 12 KiB of buffers and a grown stack
	// for as long as one runs: 60 KiB instead of 45 for an idle device (M12). So the
	// context ends with nothing but the session's own end.
	room.Admit(context.WithoutCancel(r.Context()), c, c)
}

// refuseToken answers a device that does not show the token that all devices share.
func refuseToken(w http.ResponseWriter, err error) {
	if errors.Is(err, request.ErrGuessing) {
		w.Header().Set("Retry-After", "60")
		request.Refuse(w, http.StatusTooManyRequests, "connection/guessing")
		return
	}
	w.Header().Set("WWW-Authenticate", "Bearer")
	request.Refuse(w, http.StatusUnauthorized, "connection/token")
}

// serveAlive answers people and probes that ask the path by HTTP.
func (s *Server) serveAlive(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		request.NotAllowed(w, "GET, HEAD")
		return
	}
	if sender, err := s.o.Requests.Sender(r); err == nil && sender.Address != "" { // a device asks for nothing else here
		s.o.Report(Report{r, sender, ErrNoUpgrade})
	}
	base := s.o.Requests.BaseURL(r)
	request.WriteText(w, http.StatusOK, request.Say("connection/alive", request.TalkURL(base))+
		"OTA: "+base.String()+request.OTAPath+"\n")
}

// What the system may hold for a device, in bytes. Its own choice, up to
// megabytes, would hide for minutes that a device does not read.
const (
	sendBuffer = 8 << 10 // sent and not acknowledged, or not sent
	maxUnsent  = 1 << 10 // not sent: a third of a second of sound
)

// shrinkSendBuffer makes a write wait soon after the device has stopped to read,
// so that the write deadline begins then and not when a buffer is full. A system
// that cannot do so notices stuck devices later, and that is all.
func shrinkSendBuffer(nc net.Conn) {
	if tcp, ok := nc.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(sendBuffer)
		limitUnsent(tcp, maxUnsent)
	}
}

// Time limits and buffers of one connection.
const (
	firstPing    = time.Second            // from the hello to the first ping of ours
	pingEvery    = 30 * time.Second       // pings of ours
	deadAfter    = 60 * time.Second       // without data or a pong: two pings missed
	writeTimeout = 5 * time.Second        // of one write
	closeTimeout = 500 * time.Millisecond // from our close frame to the end of TCP

	// The buffers hold a frame of sound with its header. What is longer goes past
	// them; larger ones would lie idle in every connection.
	readBuffer  = 512
	writeBuffer = 512
)
