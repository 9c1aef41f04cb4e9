package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"xiaozhi/connection"
	"xiaozhi/internal/config"
	"xiaozhi/internal/text/message"
	"xiaozhi/mcp/gateway"
)

// drainTime limits the time from a signal to the end: running replies are played to
// their end, and listening users are told.
const drainTime = 10 * time.Second

// Run opens all addresses, says where they are, and serves until ctx ends; then
// it lets running replies finish. It may be called once, and not after Close.
func (a *App) Run(ctx context.Context) error {
	cfg := a.cfg
	if err := makeDataDir(a.options.Data); err != nil {
		return err
	}
	if err := a.record(cfg.Log.Record); err != nil {
		return err
	}
	listeners, err := listenAll(ctx, slices.Concat(cfg.Server.Listen, ownAddresses(cfg)))
	if err != nil {
		return err
	}
	if a.options.Profiles != "" {
		stop, err := serveProfiles(ctx, a.options.Profiles, a.options.Log)
		if err != nil {
			return err
		}
		defer stop()
	}
	banner(a.options.Banner, cfg, listeners[:len(cfg.Server.Listen)], a)
	outwardBanner(a.options.Banner, cfg, listeners)
	return a.serve(ctx, listeners)
}

// serve answers on all listeners until ctx ends, which it then closes.
func (a *App) serve(ctx context.Context, listeners []net.Listener) error {
	a.gateway.Start(context.WithoutCancel(ctx)) // it ends with its clients, after the devices
	s := &httpServer{
		log: a.options.Log, devices: a.devices, load: a.load, front: a.front, endpoint: a.endpoint, gateway: a.gateway,
		outward: a.gateway.DeviceAPI(a.outside),
	}
	s.http = &http.Server{
		Handler: s.routes(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10,
		ErrorLog: slog.NewLogLogger(a.options.Log.Handler(), slog.LevelDebug),
	}
	return s.run(ctx, listeners, a.life)
}

// NewLogger returns a logger that writes to w as the settings say.
func NewLogger(c config.Log, w io.Writer) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.Level)) // the config has checked it
	o := &slog.HandlerOptions{Level: level}
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

// makeDataDir makes the data folder and its parts, for the owner only.
func makeDataDir(dir string) error {
	for _, d := range []string{dir, filepath.Join(dir, "prompts"), filepath.Join(dir, "music"), filepath.Join(dir, "tools"), filepath.Join(dir, "cache")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return fmt.Errorf("%s: %w", message.Both("app/data-folder"), err)
		}
	}
	return nil
}

// httpServer is one handler behind all listeners.
type httpServer struct {
	log      *slog.Logger
	http     *http.Server
	devices  *connection.Registry
	load     load
	front    func(next http.Handler) http.Handler // the paths of devices
	outward  http.Handler                         // /api/devices
	endpoint http.Handler                         // nil: none
	gateway  *gateway.Gateway
	ready    atomic.Bool // the chains' first engines are loaded
}

// routes are everything that has an address. Devices follow no redirects, so
// their paths are matched before a mux could clean them.
func (s *httpServer) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !s.ready.Load() {
			http.Error(w, message.Both("app/loading"), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ready")
	})
	mux.Handle("/api/devices", s.outward)
	mux.Handle("/api/devices/", s.outward)
	if s.endpoint != nil {
		mux.Handle("/mcp/endpoint", s.endpoint)
		mux.Handle("/mcp/endpoint/{$}", s.endpoint)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, message.Both("app/nothing-here"), http.StatusNotFound)
	})
	return s.beforeMux(s.front(mux))
}

// bodyTime limits the time of reading a body where a handler sets no limit of its own.
const bodyTime = 10 * time.Second

// beforeMux takes the paths of the gateway out, which a mux would clean.
func (s *httpServer) beforeMux(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.gateway != nil && gateway.Serves(r.URL.Path) {
			s.gateway.ServeHTTP(w, r)
			return
		}
		if r.ContentLength != 0 { // what nobody reads is waited for by the server itself
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime))
		}
		next.ServeHTTP(w, r)
	})
}

// run serves until ctx ends, then lets running replies finish.
func (s *httpServer) run(ctx context.Context, listeners []net.Listener, life *lifecycle) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var wg sync.WaitGroup
	failed := make(chan error, len(listeners))
	for _, l := range listeners {
		wg.Go(func() {
			if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				failed <- fmt.Errorf("serve %s: %w", l.Addr(), err)
			}
		})
	}
	wg.Go(func() {
		life.warm(ctx)
		s.ready.Store(true)
		life.warmExtras(ctx)
		debug.FreeOSMemory() // loading has thrown away as much as it has kept
	})
	wg.Go(func() { s.load.Watch(ctx, s.devices.Connected) })
	wg.Go(func() { tidy(ctx, s.devices.Connected, debug.FreeOSMemory) })
	var err error
	select {
	case <-ctx.Done():
		s.log.Info("shutting down", "drain", drainTime)
	case err = <-failed:
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	if e := s.devices.Shutdown(drain); e != nil {
		s.log.Warn("conversations were cut at the end", "err", e)
	}
	if s.gateway != nil {
		s.gateway.Close()
	}
	if e := s.http.Shutdown(drain); e != nil {
		s.http.Close()
	}
	stop()
	wg.Wait()
	return err
}

// serveProfiles serves the runtime's profiles under /debug/pprof/ on a loopback
// address of their own: they tell too much for a network. The function that is
// returned ends it.
func serveProfiles(ctx context.Context, addr string, log *slog.Logger) (stop func(), err error) {
	host, _, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err == nil && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		err = errors.New(message.Both("app/loopback"))
	}
	if err != nil {
		return nil, fmt.Errorf("--pprof %q: %w", addr, err)
	}
	listeners, err := listenAll(ctx, []string{addr})
	if err != nil {
		return nil, fmt.Errorf("--pprof: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	var served sync.WaitGroup
	served.Go(func() {
		if err := server.Serve(listeners[0]); !errors.Is(err, http.ErrServerClosed) {
			log.Error("profiles are not served any more", "err", err)
		}
	})
	log.Info("profiles are served", "addr", listeners[0].Addr())
	return func() {
		server.Close()
		served.Wait()
	}, nil
}
