package app

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"xiaozhi/internal/config"
)

func TestProfiles(t *testing.T) {
	var log bytes.Buffer
	stop, err := serveProfiles(t.Context(), "127.0.0.1:0", slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	found := regexp.MustCompile(`msg="profiles are served" addr=(\S+)`).FindStringSubmatch(log.String())
	if found == nil {
		t.Fatalf("the log does not say where: %s", log.String())
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+found[1]+"/debug/pprof/goroutine?debug=2", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(string(body), "goroutine ") {
		t.Errorf("%s, %v: %.100s", resp.Status, err, body)
	}
}

// Profiles tell of the program's inside: they are for this machine only.
func TestProfilesLoopbackOnly(t *testing.T) {
	for _, addr := range []string{":6060", "0.0.0.0:6060", "192.168.1.2:6060", "example.org:6060", "127.0.0.1", ""} {
		if stop, err := serveProfiles(t.Context(), addr, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "--pprof") {
			t.Errorf("%q: %v", addr, err)
			if stop != nil {
				stop()
			}
		}
	}
}

// Without the profiles that were asked for nothing is served, and no port is held.
func TestProfilesFirst(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	cfg := config.Default()
	cfg.Server.Listen = []string{l.Addr().String()}
	a := newApp(cfg, Options{Data: t.TempDir(), Profiles: "0.0.0.0:0", Banner: io.Discard, Log: slog.New(slog.DiscardHandler)})
	if err := a.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "--pprof") {
		t.Errorf("%v", err)
	}
	again, err := net.Listen("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}
