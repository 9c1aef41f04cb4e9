package world

import (
	"errors"
	"log/slog"
	"os"
	"strings"

	"xiaozhi/internal/config"
	"xiaozhi/mcp/external"
	"xiaozhi/mcp/home"
	"xiaozhi/mcp/local/web"
)

// HomeName is the name of Home Assistant's own MCP server among other people's servers.
const HomeName = "home"

// ErrNoToken says that there is no token for Home Assistant.
var ErrNoToken = errors.New("HOME_ASSISTANT_TOKEN is not set, and tools.home has no token")

// maxHome is how much Home Assistant may answer, in bytes: all states of a large house.
const maxHome = 16 << 20

// Home makes the source of Home Assistant's things; nil: there is none, or its own MCP server is used.
func Home(h config.Home, log *slog.Logger) (*home.Home, error) {
	if h.URL == "" || h.MCP {
		return nil, nil
	}
	token := h.Key(os.Getenv)
	if token == "" {
		return nil, ErrNoToken
	}
	client, err := web.NewClient(web.ClientOptions{Base: h.URL, Headers: map[string]string{"Authorization": "Bearer " + token}, Timeout: h.Timeout, Most: maxHome, Keep: true})
	if err != nil {
		return nil, err
	}
	return home.New(home.Options{Client: client, Show: h.Show, Hide: h.Hide, Doors: h.Doors, Refresh: h.Refresh, Log: log}), nil
}

// HomeServer returns Home Assistant's own MCP server, whose tools need no yes: the owner has chosen there what they may work. ok is
// false where it is not used.
func HomeServer(h config.Home) (c external.Config, ok bool, err error) {
	if h.URL == "" || !h.MCP {
		return c, false, nil
	}
	token := h.Key(os.Getenv)
	if token == "" {
		return c, true, ErrNoToken
	}
	c, err = external.Entry{
		URL: strings.TrimRight(h.URL, "/") + "/api/mcp", Transport: "http", Headers: map[string]external.Text{"Authorization": external.Text("Bearer " + token)}, Trust: true,
	}.Config()
	return c, true, err
}
