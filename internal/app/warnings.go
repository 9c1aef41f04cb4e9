package app

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"

	"xiaozhi/connection/request"
	"xiaozhi/internal/config"
	"xiaozhi/internal/private"
	"xiaozhi/internal/text/message"
)

// checkDataDir refuses a data folder in which other users of the machine could put
// tools, prompts or settings of their own, or change what the server knows.
func checkDataDir(dir string) error {
	places := []string{dir, filepath.Join(dir, "tools"), filepath.Join(dir, "prompts")}
	for _, files := range []string{"prompts/*", "xiaozhi.db*"} {
		found, err := filepath.Glob(filepath.Join(dir, files))
		if err != nil {
			return fmt.Errorf("--data %s: %w", dir, err)
		}
		places = append(places, found...)
	}
	for _, place := range places {
		if err := private.Check(place); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// warnings lists dangers of the way in which the server was started, for people.
// user is the number of the user that it runs as.
func warnings(cfg *config.Config, user int, listeners []net.Listener) []string {
	var out []string
	if user == 0 {
		out = append(out, message.Both("app/warn-root"))
	}
	if !cfg.Server.TrustProxy && !cfg.Auth.Enabled && !cfg.Auth.InsecureOTA && request.IsPublic(cfg.Server.PublicURL) {
		out = append(out, message.Both("app/warn-proxy"))
	}
	open := !cfg.Auth.Enabled && cfg.Auth.Pairing != "ask" && cfg.Auth.Pairing != "closed"
	for _, l := range listeners {
		for _, host := range reachable(l.Addr()) {
			if open && isPublic(host) {
				return append(out, message.Both("app/warn-public", host))
			}
		}
	}
	return out
}

// isPublic reports whether an address with its port can be reached from the Internet.
func isPublic(host string) bool {
	at, err := netip.ParseAddrPort(host)
	if err != nil {
		return false
	}
	shared := netip.MustParsePrefix("100.64.0.0/10") // behind the NAT of a provider (RFC 6598)
	a := at.Addr().Unmap()
	return a.IsGlobalUnicast() && !a.IsPrivate() && !shared.Contains(a)
}

// warn tells the warnings where people look and in the log.
func warn(w io.Writer, log *slog.Logger, lines []string) {
	for _, line := range lines {
		fmt.Fprintf(w, "! %s\n", line)
		log.Warn("unsafe start", "why", line)
	}
}
