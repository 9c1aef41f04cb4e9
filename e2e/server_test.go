package e2e

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"xiaozhi/internal/devicetest"
)

// binary is the program under test, built once with the race detector.
var binary string

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == curlName {
		os.Exit(curlMain(os.Args[1:]))
	}
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "xiaozhi-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "xiaozhi")
	build := exec.Command("go", "build", "-race", "-o", dir+string(filepath.Separator), "xiaozhi/cmd/xiaozhi", "xiaozhi/cmd/xiaozhi-sim")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the programs: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// server is one running program.
type server struct {
	cmd    *exec.Cmd
	dir    string // its working folder
	ota    string
	ws     string
	banner string
	over   chan struct{} // closed when the process has ended
	err    error         // how it ended
	log    syncBuffer
}

// syncBuffer is a buffer that a process writes while a test reads.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// setup says how a server is started. The zero value is a plain one.
type setup struct {
	env    []string
	config string   // content of config.yaml
	args   []string // after serve
}

var otaLine = regexp.MustCompile(`http://127\.0\.0\.1:\d+/xiaozhi/ota/`)

// start runs the program on a free port and waits until devices can connect.
func start(tb testing.TB, s setup) *server {
	tb.Helper()
	srv := &server{dir: tb.TempDir(), over: make(chan struct{})}
	if s.config != "" {
		if err := os.WriteFile(filepath.Join(srv.dir, "config.yaml"), []byte(s.config), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	args := append([]string{"serve"}, s.args...)
	if len(s.args) == 0 {
		args = append(args, "--listen", "127.0.0.1:0")
	}
	srv.cmd = exec.Command(binary, args...)
	srv.cmd.Dir = srv.dir
	srv.cmd.Env = append(cleanEnv(), s.env...)
	srv.cmd.Stderr = &srv.log
	out, err := srv.cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := srv.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	found := make(chan struct{})
	go srv.readBanner(out, found)
	tb.Cleanup(func() {
		srv.stop(tb)
		if tb.Failed() {
			tb.Logf("the server's log:\n%s", srv.log.String())
		}
		if strings.Contains(srv.log.String(), "DATA RACE") {
			tb.Errorf("data race in the server:\n%s", srv.log.String())
		}
	})
	select {
	case <-found:
	case <-srv.over:
		tb.Fatalf("the server ended at once: %v\n%s", srv.err, srv.log.String())
	}
	return srv
}

// readBanner looks for the addresses, and then waits for the end of the process.
func (s *server) readBanner(out interface{ Read([]byte) (int, error) }, found chan struct{}) {
	defer close(s.over)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		s.banner += lines.Text() + "\n"
		if u := otaLine.FindString(lines.Text()); u != "" && s.ota == "" {
			s.ota = u
			s.ws = "ws" + strings.TrimPrefix(strings.Replace(u, "/ota/", "/v1/", 1), "http")
		}
		if strings.Contains(lines.Text(), "ws://127.0.0.1") && found != nil {
			close(found)
			found = nil
		}
	}
	s.err = s.cmd.Wait()
}

// cleanEnv is the environment without what would change the server.
func cleanEnv() []string {
	var out []string
	for _, kv := range os.Environ() {
		key, _, _ := strings.Cut(kv, "=")
		if strings.HasPrefix(key, "XIAOZHI_") || strings.HasSuffix(key, "_API_KEY") || strings.HasPrefix(key, "OPENAI_") {
			continue
		}
		out = append(out, kv)
	}
	// Tests that want a model, or to hear that something is slow, say so: a busy
	// machine is slow for no fault of the server.
	return append(out, "XIAOZHI_LLM=rules", "XIAOZHI_VOICE__SLOW_NOTICE=0")
}

// stop ends the server as an operator would, and expects exit code 0.
func (s *server) stop(tb testing.TB) {
	tb.Helper()
	select {
	case <-s.over:
		return
	default:
	}
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.over:
		if s.err != nil {
			tb.Errorf("the server ended with %v", s.err)
		}
	case <-time.After(30 * time.Second):
		_ = s.cmd.Process.Kill()
		<-s.over
		tb.Error("the server did not end within 30 s of SIGTERM")
	}
}

// limit is the context of a whole test.
func limit(tb testing.TB) context.Context {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 2*time.Minute)
	tb.Cleanup(cancel)
	return ctx
}

// waitReady waits until the engines are loaded.
func (s *server) waitReady(ctx context.Context, tb testing.TB) {
	tb.Helper()
	url := strings.TrimSuffix(s.ota, "/xiaozhi/ota/") + "/readyz"
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			tb.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			tb.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			return
		}
		<-tick.C
	}
}

// dial connects a strict device by way of OTA. Its violations fail the test.
func (s *server) dial(ctx context.Context, tb testing.TB, o devicetest.Options) *devicetest.Device {
	tb.Helper()
	p, err := devicetest.Provision(ctx, s.ota, o)
	if err != nil {
		tb.Fatal(err)
	}
	for _, v := range p.Violations {
		tb.Errorf("ota: %s", v)
	}
	o.URL, o.Token = p.URL, p.Token
	if o.Limits.Tolerance == 0 {
		o.Limits.Tolerance = 500 * time.Millisecond // the race detector on a busy machine; agent's scenes hold the times in fake time
	}
	d, err := devicetest.Dial(ctx, o)
	if err != nil {
		tb.Fatal(err)
	}
	if o.Mode != devicetest.Manual && !o.OpenListen { // a device listens as soon as it is connected
		mode := o.Mode
		if mode == "" {
			mode = devicetest.Auto
		}
		if err := d.ListenStart(mode); err != nil {
			tb.Fatal(err)
		}
	}
	tb.Cleanup(func() {
		d.Close()
		for _, v := range d.Violations() {
			tb.Errorf("device: %s", v)
		}
	})
	return d
}

// reply waits for the next reply.
func reply(ctx context.Context, tb testing.TB, d *devicetest.Device) *devicetest.Reply {
	tb.Helper()
	r, err := d.WaitReply(ctx)
	if err != nil {
		tb.Fatalf("no reply: %v", err)
	}
	return r
}

// ask types a text and waits for the answer.
func ask(ctx context.Context, t *testing.T, d *devicetest.Device, text string) *devicetest.Reply {
	t.Helper()
	if err := d.Detect(text); err != nil {
		t.Fatal(err)
	}
	r := reply(ctx, t, d)
	if r.Heard != text {
		t.Errorf("typed %q, stt said %q", text, r.Heard)
	}
	return r
}
