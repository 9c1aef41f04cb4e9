package world

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"xiaozhi/internal/config"
	"xiaozhi/internal/servicetest"
	"xiaozhi/internal/servicetest/homeassistant"
)

// TestHome: one line has the things at home known; the token may be in the environment.
func TestHome(t *testing.T) {
	f := homeassistant.NewHouse(t, homeassistant.Thing{ID: "light.kitchen", Area: "Kitchen", State: "off", Attributes: map[string]any{"friendly_name": "Kitchen Light"}})
	log := slog.New(slog.DiscardHandler)
	if h, err := Home(config.Home{}, log); h != nil || err != nil {
		t.Errorf("nothing set: %v, %v", h, err)
	}
	t.Setenv("HOME_ASSISTANT_TOKEN", "")
	if _, err := Home(config.Home{URL: f.URL()}, log); !errors.Is(err, ErrNoToken) {
		t.Errorf("no token: %v", err)
	}
	t.Setenv("HOME_ASSISTANT_TOKEN", servicetest.Key)
	h, err := Home(config.Home{URL: f.URL()}, log)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer h.Stop()
	for begun := time.Now(); !h.IsReady(); time.Sleep(time.Millisecond) { // a real socket knows no fake time
		if time.Since(begun) > 10*time.Second {
			t.Fatal("the things are not known")
		}
	}
	if !h.HasTool("home_switch") {
		t.Error("the light cannot be switched")
	}
}

// TestHomeServer: with mcp its own server is used in place of that.
func TestHomeServer(t *testing.T) {
	t.Setenv("HOME_ASSISTANT_TOKEN", "t0ken")
	c, is, err := HomeServer(config.Home{URL: "http://homeassistant.local:8123/", MCP: true})
	if err != nil || !is || c.URL != "http://homeassistant.local:8123/api/mcp" || c.Headers["Authorization"] != "Bearer t0ken" || !c.Trust {
		t.Errorf("%+v, %v, %v", c, is, err)
	}
	if h, err := Home(config.Home{URL: "http://homeassistant.local:8123", MCP: true}, nil); h != nil || err != nil {
		t.Errorf("both: %v, %v", h, err)
	}
	if _, is, err := HomeServer(config.Home{URL: "http://x"}); is || err != nil {
		t.Errorf("not wanted: %v, %v", is, err)
	}
	t.Setenv("HOME_ASSISTANT_TOKEN", "")
	if _, _, err := HomeServer(config.Home{URL: "http://x", MCP: true}); !errors.Is(err, ErrNoToken) {
		t.Error(err)
	}
}
