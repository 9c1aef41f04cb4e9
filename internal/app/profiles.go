package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"sync"
	"time"

	"xiaozhi/internal/text/message"
)

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
