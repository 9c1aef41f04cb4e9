package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"xiaozhi/internal/admintoken"
	"xiaozhi/internal/openaitest"
)

// server is one running binary, in a folder of its own.
type server struct {
	cmd  *exec.Cmd
	dir  string
	base string // http://127.0.0.1:PORT
	over chan struct{}
	err  error // of the process; read once over is closed

	mu  sync.Mutex
	log bytes.Buffer // of standard error
}

// settings are the same for every talk; what a talk adds comes from data/config.yaml.
const settings = `asr: [cloud]
llm: [cloud]
tts: [cloud]
vision: [cloud]
providers:
  cloud: {type: openai, base_url: %q, api_key: k, model: chat-1, asr_model: ears-1, tts_model: voice-1, vision: true,
    first_token: 30s, first_sound: 30s, transcript: 30s}
server: {max_lateness: 0s}
voice: {slow_notice: 0s, loudness: false} # loudness depends on the pieces in which sound arrives
log: {format: json}
`

var banner = regexp.MustCompile(`(http://127\.0\.0\.1:\d+)/xiaozhi/ota/`)

// startServer runs a binary and waits until it is ready.
func startServer(ctx context.Context, binary string, t talk, cloud *openaitest.Server) (*server, error) {
	dir, err := os.MkdirTemp("", "wirediff-")
	if err != nil {
		return nil, err
	}
	s := &server{dir: dir, over: make(chan struct{})}
	if err := s.start(ctx, binary, t, cloud); err != nil {
		s.end()
		return nil, fmt.Errorf("start %s: %w\n%s", binary, err, s.logged())
	}
	return s, nil
}

func (s *server) start(ctx context.Context, binary string, t talk, cloud *openaitest.Server) error {
	files := map[string]string{"config.yaml": fmt.Sprintf(settings, cloud.URL()), "data/config.yaml": t.config}
	maps.Copy(files, t.files)
	for name, text := range files {
		path := filepath.Join(s.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	full, err := filepath.Abs(binary)
	if err != nil {
		return err
	}
	s.cmd = exec.Command(full, "serve", "--listen", "127.0.0.1:0") //nolint:gosec // the user names it; end stops it in order
	s.cmd.Dir, s.cmd.Env, s.cmd.Stderr = s.dir, environment(), s
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		s.cmd = nil
		return err
	}
	found := make(chan string, 1)
	go func() {
		defer close(s.over)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if m := banner.FindStringSubmatch(lines.Text()); m != nil {
				select {
				case found <- m[1]:
				default:
				}
			}
		}
		s.err = s.cmd.Wait()
	}()
	select {
	case s.base = <-found:
	case <-s.over:
		return errors.New("it ended at once")
	case <-ctx.Done():
		return ctx.Err()
	}
	return s.ready(ctx)
}

// authorize shows the owner's token to the gateway. Older builds have none, and let in
// whoever is on this machine.
func (s *server) authorize(headers http.Header, path string) {
	if !strings.HasPrefix(path, "/api/") && !strings.HasPrefix(path, "/mcp/ws") {
		return
	}
	if token, err := admintoken.Read(filepath.Join(s.dir, "data")); err == nil {
		headers.Set("Authorization", "Bearer "+token)
	}
}

// ready waits until the engines are loaded.
func (s *server) ready(ctx context.Context) error {
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+"/readyz", nil)
		if err != nil {
			return err
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Write keeps what the server logs.
func (s *server) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(p)
}

func (s *server) logged() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

// entries lists the log messages with their level and keys, each kind once.
func (s *server) entries() []string {
	var kinds []string
	for line := range strings.Lines(s.logged()) {
		var entry map[string]any
		if json.Unmarshal([]byte(line), &entry) != nil {
			continue
		}
		level, msg := entry["level"], entry["msg"]
		for _, key := range []string{"time", "level", "msg"} {
			delete(entry, key)
		}
		kinds = append(kinds, fmt.Sprint(level, " ", msg, ": ", strings.Join(slices.Sorted(maps.Keys(entry)), " ")))
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// signal asks the server to end.
func (s *server) signal() { _ = s.cmd.Process.Signal(syscall.SIGTERM) } // it may have ended by itself

// end stops the server, waits for it and removes its folder. It returns its exit state.
func (s *server) end() string {
	defer os.RemoveAll(s.dir)
	if s.cmd == nil {
		return "never started"
	}
	s.signal()
	select {
	case <-s.over:
	case <-time.After(30 * time.Second):
		_ = s.cmd.Process.Kill()
		<-s.over
	}
	return s.cmd.ProcessState.String()
}

// environment is this program's without what would change a server.
func environment() []string {
	var out []string
	for _, kv := range os.Environ() {
		key, _, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(key, "XIAOZHI_") && !strings.HasPrefix(key, "OPENAI_") && !strings.HasSuffix(key, "_API_KEY") {
			out = append(out, kv)
		}
	}
	return out
}
