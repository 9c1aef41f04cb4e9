package app

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"

	"xiaozhi/connection/request"
	"xiaozhi/internal/admintoken"
	"xiaozhi/internal/config"
	"xiaozhi/internal/private"
	"xiaozhi/internal/text/message"
)

// checkDataDir refuses a data folder in which other users of the machine could put
// tools, prompts, settings or backups of their own, change what the server knows, or
// read its keys.
func checkDataDir(dir string) error {
	places := []string{dir}
	for _, folder := range []string{"tools", "prompts", "cache", backupsFolder, recordingsFolder} {
		places = append(places, filepath.Join(dir, folder))
	}
	for _, files := range []string{"prompts/*", databaseFile + "*", backupsFolder + "/*", recordingsFolder + "/*"} {
		places = append(places, find(dir, files)...)
	}
	for _, place := range places {
		if err := private.Check(place); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for _, secret := range []string{keyFile, filepath.Base(admintoken.Path(dir))} {
		if err := private.CheckSecret(filepath.Join(dir, secret)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// find lists what is in a folder by a pattern of paths. The name of the folder may hold the signs of patterns.
func find(dir, pattern string) []string {
	names, _ := fs.Glob(os.DirFS(dir), pattern) // the patterns are right
	for i, name := range names {
		names[i] = filepath.Join(dir, name)
	}
	return names
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
