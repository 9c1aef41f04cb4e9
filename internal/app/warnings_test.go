package app

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/config"
)

// at is a listener of an address.
type at struct {
	net.Listener
	address string
}

func (l at) Addr() net.Addr {
	address, err := net.ResolveTCPAddr("tcp", l.address)
	if err != nil {
		panic(err)
	}
	return address
}

func TestWarnings(t *testing.T) {
	for _, c := range []struct {
		address string
		user    int
		pairing string
		auth    bool
		want    string // parts of the warnings
	}{
		{"192.168.1.2:8000", 1000, "auto", false, ""},
		{"127.0.0.1:8000", 1000, "open", false, ""},
		{"[fd00::1]:8000", 1000, "open", false, ""},
		{"100.64.1.1:8000", 1000, "open", false, ""},
		{"169.254.1.1:8000", 1000, "open", false, ""},
		{"192.168.1.2:8000", 0, "auto", false, "as root"},
		{"203.0.113.9:8000", 1000, "auto", false, "203.0.113.9:8000"},
		{"203.0.113.9:8000", 1000, "open", false, "203.0.113.9:8000"},
		{"[2001:db8::1]:8000", 0, "open", false, "as root|2001:db8::1"},
		{"203.0.113.9:8000", 1000, "ask", false, ""},
		{"203.0.113.9:8000", 1000, "closed", false, ""},
		{"203.0.113.9:8000", 1000, "auto", true, ""},
	} {
		cfg := config.Default()
		cfg.Auth.Pairing, cfg.Auth.Enabled = c.pairing, c.auth
		got := warnings(cfg, c.user, []net.Listener{at{nil, "127.0.0.1:1"}, at{nil, c.address}})
		parts := strings.Split(c.want, "|")
		if c.want == "" {
			parts = nil
		}
		if len(got) != len(parts) {
			t.Errorf("%+v: %q", c, got)
			continue
		}
		for i, part := range parts {
			if !strings.Contains(got[i], part) {
				t.Errorf("%+v: %q", c, got)
			}
		}
	}
}

// A folder or a prompt that others may change stops the start.
func TestCheckDataDir(t *testing.T) {
	for open, closes := range map[string]string{
		"": "go-w", "tools": "go-w", "prompts": "go-w", "cache": "go-w", "prompts/default.en.md": "go-w", "xiaozhi.db": "go-w", "xiaozhi.db-wal": "go-w", "xiaozhi.db.lock": "go-w",
		"backups": "go-w", "backups/xiaozhi-1.tar.gz": "go-w", "recordings": "go-w", "recordings/24:6f": "go-w", "key": "600", "admin-token": "600",
	} {
		dir := filepath.Join(t.TempDir(), "data [nas]") // the signs of a pattern
		if err := makeDataDir(dir); err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{
			"prompts/default.en.md", "xiaozhi.db", "xiaozhi.db-wal", "xiaozhi.db.lock", "backups/xiaozhi-1.tar.gz", "recordings/24:6f/1.opus", "key", "admin-token",
		} {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, file), []byte("Be kind."), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := checkDataDir(dir); err != nil {
			t.Errorf("nothing is open: %v", err)
		}
		path := filepath.Join(dir, open)
		if err := os.Chmod(path, 0o777); err != nil {
			t.Fatal(err)
		}
		archive := filepath.Join(t.TempDir(), "mine.tar.gz")
		if err := os.WriteFile(archive, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		_, backup := Backup(t.Context(), config.Default(), BackupOptions{Data: dir})
		_, restore := Restore(t.Context(), dir, archive, time.Now())
		for what, err := range map[string]error{"start": checkDataDir(dir), "backup": backup, "restore": restore} {
			if err == nil || !strings.Contains(err.Error(), "chmod "+closes+" "+path) {
				t.Errorf("%s: %q is open: %v", what, open, err)
			}
		}
	}
}

// TestWarnsOfUntrustedProxy: nobody would get a token.
func TestWarnsOfUntrustedProxy(t *testing.T) {
	for _, c := range []struct {
		url    string
		change func(*config.Config)
		warns  bool
	}{
		{"https://speak.example.org", func(*config.Config) {}, true},
		{"http://nas.local:8000", func(*config.Config) {}, false},
		{"", func(*config.Config) {}, false},
		{"https://speak.example.org", func(c *config.Config) { c.Server.TrustProxy = true }, false},
		{"https://speak.example.org", func(c *config.Config) { c.Auth.Enabled = true }, false},
	} {
		cfg := &config.Config{}
		cfg.Server.PublicURL = c.url
		c.change(cfg)
		if got := len(warnings(cfg, 1000, nil)) > 0; got != c.warns {
			t.Errorf("%q: %v", c.url, got)
		}
	}
}
