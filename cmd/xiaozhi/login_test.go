package main

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xiaozhi/internal/servicetest/mcpauth"
)

// protected is a server of tools that wants a login, in the file of a data folder.
func protected(t *testing.T) (s *mcpauth.Server, data string) {
	t.Helper()
	s = mcpauth.New(mcpauth.Toolbox())
	t.Cleanup(s.Close)
	data = t.TempDir()
	servers := `{"mcpServers":{"vault":{"url":"` + s.URL() + `"},"program":{"command":"/none"}}}`
	if err := os.WriteFile(filepath.Join(data, "mcp_servers.json"), []byte(servers), 0o600); err != nil {
		t.Fatal(err)
	}
	return s, data
}

// command runs "tools login". follow does with the link what a person does, and may write to the command's terminal.
func command(t *testing.T, data, name string, follow func(link string, typed io.Writer)) (code int, out, why string) {
	t.Helper()
	read, write := io.Pipe()
	typed, terminal := io.Pipe()
	var errs bytes.Buffer
	said := make(chan string)
	go func() {
		var all strings.Builder
		for lines := bufio.NewScanner(read); lines.Scan(); {
			all.WriteString(lines.Text() + "\n")
			if link := strings.TrimSpace(lines.Text()); strings.HasPrefix(link, "http") {
				go follow(link, terminal)
			}
		}
		said <- all.String()
	}()
	code = tools(t.Context(), []string{"login", "--config", os.DevNull, "--data", data, name}, typed, write, &errs)
	_ = write.Close()
	_ = terminal.Close()
	return code, <-said, errs.String()
}

// TestToolsLogin: a command logs in by a link: the browser of this machine comes back by itself, the address that another
// one was led to is pasted. What was granted is kept, so that the next time nobody is asked.
func TestToolsLogin(t *testing.T) {
	for _, paste := range []bool{false, true} {
		s, data := protected(t)
		code, out, why := command(t, data, "vault", func(link string, typed io.Writer) {
			led, err := mcpauth.Browse(link)
			if err != nil {
				t.Error(err)
				return
			}
			if paste {
				_, _ = io.WriteString(typed, "what?\nhttp://127.0.0.1/callback?state=other&code=x\n "+led.String()+"\n")
				return
			}
			for address, want := range map[string]int{"http://" + led.Host + "/callback?state=guess&code=x": 400, "http://" + led.Host + "/?" + led.RawQuery: 400} {
				if resp, err := http.Get(address); err != nil || resp.StatusCode != want {
					t.Errorf("%s: %v, %v", address, resp, err)
				}
			}
			resp, err := http.Get(led.String())
			if err != nil || resp.StatusCode != 200 {
				t.Errorf("%v, %v", resp, err)
			}
		})
		if code != 0 || !strings.Contains(out, "Logged in to vault. Tools: 1.") {
			t.Fatalf("pasted %v: %d\n%s\n%s", paste, code, out, why)
		}
		if code, out, _ = command(t, data, "vault", func(string, io.Writer) {}); code != 0 || strings.Contains(out, "http") || s.Asked("GET /authorize") != 1 {
			t.Errorf("again: %d\n%s", code, out)
		}
	}
}

// TestToolsLoginTrouble: what is no server, or wants no login, and a person who refuses.
func TestToolsLoginTrouble(t *testing.T) {
	s, data := protected(t)
	for name, want := range map[string]string{"nobody": "there is no server nobody", "program": "is asked without a login"} {
		if code, _, why := command(t, data, name, nil); code != 1 || !strings.Contains(why, want) {
			t.Errorf("%s: %d %s", name, code, why)
		}
	}
	s.Set(mcpauth.Faults{Deny: "access_denied"})
	code, _, why := command(t, data, "vault", func(link string, typed io.Writer) {
		led, err := mcpauth.Browse(link)
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(typed, led.String()+"\n")
	})
	if code != 1 || !strings.Contains(why, "access_denied") {
		t.Errorf("refused: %d %s", code, why)
	}
	if code, _, _ := command(t, data, "", nil); code == 0 {
		t.Error("no name is a name")
	}
}
