package app

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"

	"xiaozhi/internal/config"
	"xiaozhi/internal/text/message"
)

// report collects what was found and what was left out, in lines for people; both
// are logged too.
type report struct {
	lines []string
	left  map[string]error // what is not used, by role and name
	log   *slog.Logger
}

// found adds an engine or service that is used.
func (r *report) found(role, what string) {
	r.line(fmt.Sprintf("  %-4s %s", role, what))
	r.log.Info("engine", "role", role, "found", what)
}

// missing adds an engine or service that is not used, with the reason.
func (r *report) missing(role, name string, why error) { r.missingAt("", role, name, why) }

// missingAt is missing with where its section stands; "": it has none.
func (r *report) missingAt(place, role, name string, why error) {
	if place != "" {
		place += ": "
	}
	r.line(fmt.Sprintf("  %-4s - %s: %s: %s%v", role, name, message.Both("app/left-out"), place, readable(why)))
	if r.left == nil {
		r.left = map[string]error{}
	}
	r.left[role+" "+name] = why
	r.log.Warn("engine left out", "role", role, "provider", name, "err", why)
}

// readable is the sentence of an error for people, in both languages where it has one.
func readable(err error) string {
	if p, ok := errors.AsType[interface {
		error
		Both() string
	}](err); ok {
		return p.Both()
	}
	return err.Error()
}

func (r *report) line(text string) { r.lines = append(r.lines, text) }

func (r *report) write(w io.Writer) {
	for _, line := range r.lines {
		fmt.Fprintln(w, line)
	}
}

// leftOut adds an engine of the settings that is not used, with the reason and where its section stands.
func (r *report) leftOut(c *config.Config, role, name string, why error) {
	place := c.Providers[name].Place
	if _, ok := errors.AsType[noKeyError](why); ok { // it says itself what is to be set
		place = ""
	}
	r.missingAt(place, role, name, why)
}

// found notes what an engine is.
func (f *resolver) found(role, name, what string) {
	m := f.made[role+" "+name]
	m.about = what
	f.made[role+" "+name] = m
	f.report.found(role, name+": "+what)
}

// about says what the engines of a chain are.
func (f *resolver) about(role string, names []string) map[string]string {
	all := map[string]string{}
	for _, name := range names {
		all[name] = f.made[role+" "+name].about
	}
	return all
}

// banner tells a person what to type into a device, in both languages.
func banner(w io.Writer, cfg *config.Config, listeners []net.Listener, app *App) {
	fmt.Fprintf(w, "xiaozhi %s\n\n", Version)
	app.Report(w)
	fmt.Fprintf(w, "\n%s\n", message.Both("app/ota"))
	var urls []string
	if cfg.Server.PublicURL != "" {
		public := strings.TrimRight(cfg.Server.PublicURL, "/")
		if rest, ok := strings.CutPrefix(public, "ws"); ok { // ws and wss are http and https to ask for an address
			public = "http" + rest
		}
		urls = append(urls, public)
	}
	for _, l := range listeners {
		for _, host := range reachable(l.Addr()) {
			urls = append(urls, "http://"+host)
		}
	}
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

const tailLines = 200

// logTail keeps the last lines of the log. It may be read while it is written.
type logTail struct {
	mu    sync.Mutex
	lines [][]byte
}

// Write takes one record, as slog's handlers write them.
func (t *logTail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, bytes.Clone(p))
	if len(t.lines) > tailLines {
		t.lines = append([][]byte(nil), t.lines[len(t.lines)-tailLines:]...)
	}
	return len(p), nil
}

// Text is all lines, the oldest first.
func (t *logTail) Text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.Join(t.lines, nil))
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
