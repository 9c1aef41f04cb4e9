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
	"time"

	"xiaozhi/connection/pairing"
	"xiaozhi/connection/request"
	"xiaozhi/internal/access"
	"xiaozhi/internal/admintoken"
	"xiaozhi/internal/config"
	"xiaozhi/internal/documents"
	"xiaozhi/internal/engines"
	"xiaozhi/internal/settings"
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
	if a.options.Profiles != "" {
		stop, err := serveProfiles(ctx, a.options.Profiles, a.options.Log)
		if err != nil {
			return err
		}
		defer stop()
	}
	if err := checkDataDir(a.options.Data); err != nil {
		return err
	}
	a.recorders.report(a.crew.settings(), a.options.Data, a.report, a.log)
	token, err := admintoken.Ensure(a.options.Data)
	if err != nil {
		return err
	}
	a.gateway.SetOwner(token)
	a.web.guard.SetAdmin(token)
	if err := foundOwner(ctx, a.accounts, cfg.Console); err != nil {
		return err
	}
	safe, err := a.web.https.open(ctx, a.web.names)
	if err != nil {
		return err
	}
	listeners, err := listenAll(ctx, slices.Concat(cfg.Server.Listen, ownAddresses(cfg)))
	if err != nil {
		for _, l := range safe {
			l.Close()
		}
		return err
	}
	banner(a.options.Banner, cfg, listeners[:len(cfg.Server.Listen)], a)
	a.seen.dangers = warnings(cfg, os.Geteuid(), listeners)
	warn(a.options.Banner, a.seen.tail, a.seen.dangers)
	a.seen.open, a.seen.safe = addressesOf(listeners), addressesOf(safe)
	if !a.options.Terminal {
		token = ""
	}
	outwardBanner(a.options.Banner, cfg, listeners, admintoken.Path(a.options.Data), token)
	a.web.https.banner(a.options.Banner, safe, listeners)
	a.ownerBanner(ctx, a.options.Banner, listeners[:len(cfg.Server.Listen)])
	return a.serve(ctx, listeners, safe...)
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
	for _, d := range []string{dir, filepath.Join(dir, "prompts"), filepath.Join(dir, "music"), filepath.Join(dir, "tools"), filepath.Join(dir, "cache"), filepath.Join(dir, documents.Folder)} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return fmt.Errorf("%s: %w", message.Both("app/data-folder"), err)
		}
	}
	return nil
}

// bodyTime limits the time of reading a body where a handler sets no limit of its own.
const bodyTime = 10 * time.Second

// beforeMux takes the paths of the gateway out, which a mux would clean.
func (a *App) beforeMux(next http.Handler) http.Handler {
	outward := http.Handler(a.gateway)
	if a.web.told != nil {
		outward = a.web.guard.Headers(a.web.told(outward))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a.gateway != nil && gateway.Serves(r.URL.Path) {
			outward.ServeHTTP(w, r)
			return
		}
		if r.ContentLength != 0 { // what nobody reads is waited for by the server itself
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime))
		}
		next.ServeHTTP(w, r)
	})
}

// serve answers on all listeners, on safe ones by TLS, until ctx ends, then lets running replies finish.
func (a *App) serve(ctx context.Context, listeners []net.Listener, safe ...net.Listener) error {
	log := a.options.Log
	routes, err := a.routes()
	if err != nil {
		return err
	}
	a.gateway.Start(context.WithoutCancel(ctx)) // it ends with its clients, after the devices
	server := &http.Server{
		Handler: routes, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	if len(safe) > 0 {
		server.TLSConfig = a.web.https.source.Config()
		server.TLSConfig.NextProtos = []string{"h2", "http/1.1"}
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var wg sync.WaitGroup
	failed := make(chan error, len(listeners)+len(safe))
	listen := func(l net.Listener, serve func(net.Listener) error) {
		wg.Go(func() {
			if err := serve(l); !errors.Is(err, http.ErrServerClosed) {
				failed <- fmt.Errorf("serve %s: %w", l.Addr(), err)
			}
		})
	}
	for _, l := range listeners {
		listen(l, server.Serve)
	}
	for _, l := range safe {
		listen(l, func(l net.Listener) error { return server.ServeTLS(l, "", "") })
	}
	wg.Go(func() {
		a.life.warm(ctx)
		a.life.ready.Store(true)
		a.life.warmExtras(ctx)
		if err := a.options.Collector.Settle(); err != nil {
			a.log.Debug("memory of the program is kept", "err", err)
		}
	})
	keep, kept := context.WithCancel(context.WithoutCancel(ctx)) // as long as devices are there
	wg.Go(func() { a.book.Run(keep) })
	wg.Go(func() { watchServices(ctx, a, a.web.console) })
	wg.Go(func() { a.backUp(ctx) })
	wg.Go(func() { a.outside.quiet.Run(ctx) })
	wg.Go(func() {
		trimmer{store: a.stored, log: a.log}.run(ctx, func() int { return a.base().Store.KeepDays })
	})
	wg.Go(func() { a.watchStore(keep) })
	wg.Go(func() { a.web.desk.Run(keep) })
	if a.accounts != nil {
		wg.Go(func() { a.accounts.Run(keep) })
	}
	wg.Go(func() { a.crew.rewarm(ctx) })
	if a.stored != nil {
		wg.Go(func() { a.crew.roster.Follow(ctx) })
	}
	wg.Go(func() { a.load.Watch(ctx, a.devices.Connected) })
	wg.Go(func() { a.options.Manager.Watch(ctx, a.load.Beats) })
	wg.Go(func() { a.seen.doctor.Watch(ctx) })
	wg.Go(func() { tidy(ctx, a.devices.Connected, debug.FreeOSMemory) })
	a.options.Manager.Ready()
	select {
	case <-ctx.Done():
		log.Info("shutting down", "drain", drainTime)
	case err = <-failed:
	}
	a.options.Manager.Stopping()
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	if e := a.devices.Shutdown(drain); e != nil {
		log.Warn("conversations were cut at the end", "err", e)
	}
	a.gateway.Close()
	a.web.console.Close()
	if e := server.Shutdown(drain); e != nil {
		server.Close()
	}
	stop()
	kept()
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

// routes are everything that has an address. Devices follow no redirects, so their paths, and those of the gateway, are
// matched before a mux could clean them; here they only say who they are for.
func (a *App) routes() (http.Handler, error) {
	mux, err := a.web.guard.Mux(a.allRoutes())
	if err != nil {
		return nil, err
	}
	return a.beforeMux(a.web.front(mux)), nil
}

// allRoutes lists all paths.
func (a *App) allRoutes() []access.Route {
	agents := a.crew.api(a.web.guard, a.stored)
	return a.web.console.Leading(slices.Concat(
		a.declared(), a.web.guard.Routes(), ownDevices(a, agents.DeviceOwner), a.web.desk.Routes(a.web.guard), agents.Routes(), forPrograms(a, agents.DeviceOwner), a.web.more,
		talkRoutes(a), memoryRoutes(a, agents.DeviceOwner), examiner{a}.routes(agents.DeviceOwner), (&settings.API{Settings: a.settings, Guard: a.web.guard}).Routes(),
	))
}

// declared lists all paths but those of accounts and agents, with who they are for.
func (a *App) declared() []access.Route {
	nothing := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, message.Both("app/nothing-here"), http.StatusNotFound)
	})
	routes := []access.Route{
		{Pattern: "/", For: access.Anyone, Handler: nothing},
		{Pattern: "GET /healthz", For: access.Anyone, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })},
		{Pattern: "GET /readyz", For: access.Anyone, Handler: http.HandlerFunc(a.readyz)},
		{Pattern: "GET " + authorityPath, For: access.Anyone, Handler: a.web.https},
	}
	add := func(who access.Audience, h http.Handler, paths ...string) {
		if who == access.Bearers {
			h = a.web.told(h)
		}
		for _, path := range paths {
			routes = append(routes, access.Route{Pattern: path, For: who, Handler: h})
		}
	}
	add(access.Devices, a.web.front(nothing), request.TalkPath, request.OTAPath, request.VisionPath)
	add(access.Bearers, a.gateway, "/api/mcp", "/api/mcp/", "/mcp/ws")
	add(access.Bearers, a.gateway.DeviceAPI(a.outside), "/api/devices", "/api/devices/")
	known := a.gateway.ForOwner(pairing.New(pairing.Options{
		Book: a.book, Connected: a.devices.Talks, Agent: a.crew.agentOf, Forget: a.forget, Keeping: keepingIn(a.stored), Audit: auditOf(a.accounts), Callers: a.seen.callers, Who: callerName, Log: a.log,
	}))
	add(access.Bearers, known, pairing.Path, pairing.Path+"/")
	add(access.Bearers, a.gateway.ForOwner(condition{a}), engines.StatesPath)
	if a.forces.endpoint != nil {
		add(access.Bearers, a.forces.endpoint, "/mcp/endpoint", "/mcp/endpoint/{$}")
	}
	return routes
}

// readyz tells whether devices can be served.
func (a *App) readyz(w http.ResponseWriter, _ *http.Request) {
	if !a.life.ready.Load() {
		http.Error(w, message.Both("app/loading"), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, readiness(a))
}
