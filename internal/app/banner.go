package app

import (
	"fmt"
	"io"
	"net"
	"strings"

	"xiaozhi/internal/config"
	"xiaozhi/internal/text/message"
)

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

// outwardBanner tells a person what to type into an MCP client: without a token
// only the addresses that are let in.
func outwardBanner(w io.Writer, cfg *config.Config, listeners []net.Listener) {
	if !cfg.MCP.Enabled {
		return
	}
	fmt.Fprintln(w, "MCP (Cursor, Claude, VS Code …):")
	for _, l := range listeners {
		for _, host := range reachable(l.Addr()) {
			if name, _, err := net.SplitHostPort(host); len(cfg.MCP.Tokens) == 0 && (err != nil || !net.ParseIP(name).IsLoopback()) {
				continue
			}
			fmt.Fprintf(w, "  http://%s/api/mcp/jsonrpc\n", host)
		}
	}
	if len(cfg.MCP.Tokens) == 0 {
		fmt.Fprintf(w, "  %s: mcp.tokens\n", message.Both("app/needs-token"))
	}
	fmt.Fprintln(w)
}
