package app

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"xiaozhi/connection/request"
	"xiaozhi/internal/admintoken"
	"xiaozhi/internal/config"
	"xiaozhi/internal/private"
	"xiaozhi/internal/text/message"
	"xiaozhi/internal/version"
)

// banner tells a person what to type into a device, in both languages.
func banner(w io.Writer, cfg *config.Config, listeners []net.Listener, app *App) {
	fmt.Fprintf(w, "xiaozhi %s\n\n", version.Number())
	app.Report(w)
	fmt.Fprintf(w, "\n%s\n", message.Both("app/ota"))
	var at []net.Addr
	for _, l := range listeners {
		at = append(at, l.Addr())
	}
	urls := bases(cfg, at)
	for _, u := range urls {
		fmt.Fprintf(w, "  %s/xiaozhi/ota/\n", u)
	}
	fmt.Fprintf(w, "WebSocket:\n")
	for _, u := range urls {
		fmt.Fprintf(w, "  %s/xiaozhi/v1/\n", "ws"+strings.TrimPrefix(u, "http"))
	}
	fmt.Fprintln(w)
}

// outwardBanner tells a person what to type into an MCP client. token is the admin
// token, which the file holds; "" where it must not be shown.
func outwardBanner(w io.Writer, cfg *config.Config, listeners []net.Listener, file, token string) {
	if !cfg.MCP.Enabled {
		return
	}
	fmt.Fprintln(w, "MCP (Cursor, Claude, VS Code …):")
	var addresses []string
	for _, l := range listeners {
		for _, host := range reachable(l.Addr()) {
			addresses = append(addresses, "http://"+host+"/api/mcp/jsonrpc")
		}
	}
	for _, address := range addresses {
		fmt.Fprintf(w, "  %s\n", address)
	}
	if len(addresses) > 0 {
		here := max(0, slices.IndexFunc(addresses, func(a string) bool { return strings.HasPrefix(a, "http://127.") }))
		fmt.Fprintf(w, "  {\"mcpServers\": {\"xiaozhi\": {\"url\": %q, \"headers\": {\"Authorization\": %q}}}}\n",
			addresses[here], "Bearer "+cmp.Or(token, "TOKEN"))
	}
	if token == "" {
		fmt.Fprintf(w, "  TOKEN: %s\n", message.Both("app/token-is", file))
	}
	fmt.Fprintln(w)
}

// Lines of the log that are kept for pages, and that programs are told.
const (
	tailLines = 5000
	toldLines = 200
)

// logTail keeps the last lines of the log. It may be read while it is written.
type logTail struct {
	mu      sync.Mutex
	lines   [][]byte
	changed func() // nil: nobody is told
}

// tell has f called after each line. f must not wait.
func (t *logTail) tell(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changed = f
}

// Write takes one record, as slog's handlers write them.
func (t *logTail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, bytes.Clone(p))
	if len(t.lines) >= 2*tailLines {
		t.lines = slices.Clone(t.lines[len(t.lines)-tailLines:])
	}
	if t.changed != nil {
		t.changed()
	}
	return len(p), nil
}

// Text is the last lines for programs, the oldest first.
func (t *logTail) Text() string { return t.last(toldLines) }

// All is all lines that are kept, the oldest first.
func (t *logTail) All() string { return t.last(tailLines) }

func (t *logTail) last(n int) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.Join(t.lines[max(0, len(t.lines)-n):], nil))
}

// tailOptions leave out of the tail what may hold people's words, unless these
// may be read.
func tailOptions(cfg *config.Config) *slog.HandlerOptions {
	if cfg.MCP.Transcripts {
		return nil
	}
	return &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == "arguments" {
			return slog.Attr{}
		}
		return a
	}}
}

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

// warn tells the warnings where people look, and keeps them for the page of the log: screens show the log beside what is said to people,
// and once is enough there.
func warn(w io.Writer, tail *logTail, lines []string) {
	log := slog.New(slog.NewTextHandler(tail, nil))
	for _, line := range lines {
		fmt.Fprintf(w, "! %s\n", line)
		log.Warn("unsafe start", "why", line)
	}
}
