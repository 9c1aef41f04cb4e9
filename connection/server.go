package connection

import (
	"context"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
)

// Server lets devices in and holds the set of those that are connected. Its
// methods may be called at the same time.
type Server struct {
	opts      Options
	public    *url.URL // nil: none is configured
	log       *slog.Logger
	languages *languages
	looks     *looks
	page      *template.Template
	upgrader  websocket.Upgrader

	mu      sync.Mutex
	conns   map[string]*conn // by Device-Id, in lower case (identity.key)
	pending map[string]int   // devices between admission and the end of the upgrade
	live    int              // devices between reserve and release
	closing bool
	idle    chan struct{} // closed once closing and live is 0

	few  int          // fewDevices
	busy atomic.Bool  // new devices are told so and turned away
	late atomic.Int64 // Lateness
}

// NewServer checks the options and makes a server. It starts nothing.
func NewServer(o Options) (*Server, error) {
	opts, public, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	page, err := template.New("ota").Parse(otaPage)
	if err != nil {
		return nil, err
	}
	return &Server{
		opts: opts, public: public, log: opts.Log, page: page,
		languages: newLanguages(rememberedLanguages),
		looks:     newLooks(),
		conns:     make(map[string]*conn),
		pending:   make(map[string]int),
		idle:      make(chan struct{}),
		few:       fewDevices,
		upgrader: websocket.Upgrader{
			HandshakeTimeout: writeTimeout,
			ReadBufferSize:   1, // the library does not read: frames.go
			WriteBufferSize:  writeBuffer,
			// Devices send no Origin; test pages come from anywhere.
			CheckOrigin: func(*http.Request) bool { return true },
		},
	}, nil
}

// Handler serves the paths of devices and gives all others to next (nil: 404).
// Devices follow no redirect, so every path works with and without its last
// slash and with doubled slashes; that is why this stands before a ServeMux.
func (s *Server) Handler(next http.Handler) http.Handler {
	if next == nil {
		next = http.NotFoundHandler()
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch devicePath(r.URL.Path) {
		case "/xiaozhi/v1", "/ws/xiaozhi/v1":
			s.serveTalk(w, r)
		case "/xiaozhi/ota", "/api/ota", "/api/device/ota":
			s.serveOTA(w, r)
		case "/xiaozhi/ota/activate", "/api/ota/activate", "/api/device/ota/activate":
			s.serveActivate(w, r)
		case visionPath, "/api/vision", "/xiaozhi/api/vision":
			if s.opts.Explainer == nil {
				next.ServeHTTP(w, r)
				return
			}
			s.serveVision(w, r)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// devicePath is a path without doubled and last slashes. Dots are left alone.
func devicePath(p string) string {
	if strings.Contains(p, "/.") {
		return p
	}
	return path.Clean("/" + p)
}

// Connected is how many devices are connected now.
func (s *Server) Connected() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// refusal is why a device was not let in.
type refusal string

// The refusals before the upgrade.
const (
	refusedFull     refusal = "server is full"
	refusedStopping refusal = "server is stopping"
)

// reserve makes room for a device, or says why there is none. A device that is
// connected already, or about to be, needs no more room than it has.
func (s *Server) reserve(deviceID string) refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return refusedStopping
	}
	known := s.conns[deviceID] != nil || s.pending[deviceID] > 0
	if !known && s.taken() >= s.opts.MaxDevices {
		return refusedFull
	}
	s.pending[deviceID]++
	s.live++
	return ""
}

// taken counts the devices that are connected or about to be.
func (s *Server) taken() int {
	n := len(s.conns)
	for id := range s.pending {
		if s.conns[id] == nil {
			n++
		}
	}
	return n
}

// admit puts an upgraded connection into the set, in the place of an older one
// of the same device, which ends. Neither waits for the other.
func (s *Server) admit(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle(c.who.key)
	if old := s.conns[c.who.key]; old != nil {
		c.returns = true
		old.end(ErrReplaced)
	}
	s.conns[c.who.key] = c
	if s.closing {
		c.end(ErrShutdown)
	}
}

// settle takes a device off the pending ones.
func (s *Server) settle(deviceID string) {
	if s.pending[deviceID]--; s.pending[deviceID] <= 0 {
		delete(s.pending, deviceID)
	}
}

// abandon gives back the room of a device whose upgrade failed.
func (s *Server) abandon(deviceID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle(deviceID)
	s.leave()
}

// release takes a connection that has ended out of the set.
func (s *Server) release(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns[c.who.key] == c {
		delete(s.conns, c.who.key)
	}
	s.leave()
}

// leave counts a device out.
func (s *Server) leave() {
	s.live--
	if s.closing && s.live == 0 {
		close(s.idle)
	}
}

// stopAccepting refuses devices from now on and gives those that are here.
func (s *Server) stopAccepting() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closing {
		s.closing = true
		if s.live == 0 {
			close(s.idle)
		}
	}
	conns := make([]*conn, 0, len(s.conns))
	for _, c := range s.conns {
		conns = append(conns, c)
	}
	return conns
}

// Shutdown lets nobody in any more, asks all conversations to end, and waits
// for them. A reply may go on for up to 9.5 s before it is cut; whoever is being
// listened to is told of the end. When ctx ends first, the rest is closed as by
// Close and the error of ctx comes back.
func (s *Server) Shutdown(ctx context.Context) error {
	conns := s.stopAccepting()
	for _, c := range conns {
		c.drain()
	}
	patience := time.NewTimer(replyDrain)
	defer patience.Stop()
	for {
		select {
		case <-s.idle:
			return nil
		case <-patience.C:
			for _, c := range conns {
				c.end(ErrShutdown)
			}
		case <-ctx.Done():
			s.Close()
			return ctx.Err()
		}
	}
}

// Close lets nobody in any more and closes all sockets at once, without last
// words. It does not wait for the conversations; Shutdown does.
func (s *Server) Close() {
	for _, c := range s.stopAccepting() {
		c.end(errClosed)
		c.ws.Close()
	}
}

// now is the time in the zone of the devices.
func (s *Server) now() time.Time { return time.Now().In(s.opts.Zone) }
