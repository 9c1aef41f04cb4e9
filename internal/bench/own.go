package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Times that our own server has to come up and to go down.
const (
	startLimit = 30 * time.Second
	readyLimit = 60 * time.Second
	stopLimit  = 30 * time.Second
	pollEvery  = 20 * time.Millisecond
)

// settings are the settings of a server that the bench starts for a scenario.
type settings struct {
	commit time.Duration // 0: 700 ms
	ears   string        // the recogniser; empty: the stub
	store  string        // store.driver; empty: as it is usual
	more   string        // lines of more sections of providers
	last   string        // lines of more sections

	garbage string // GOGC; empty: as the server sets it
}

// own is our server, started by the bench.
type own struct {
	cmd  *exec.Cmd
	end  context.CancelFunc // tells it to end, as an operator would
	dir  string             // its working folder, with its log
	over chan struct{}
	err  error // how it ended; set before over is closed
	base string
	prof string // URL of its profiles
}

var (
	otaLine     = regexp.MustCompile(`http://127\.0\.0\.1:\d+/xiaozhi/ota/`)
	profileLine = regexp.MustCompile(`msg="profiles are served" addr=(127\.0\.0\.1:\d+)`)
)

// startOwn starts a server that hears, thinks and speaks by the stubs, on a
// free port of 127.0.0.1, and waits until devices can connect.
func startOwn(ctx context.Context, program, stubs string, core int, s settings) (*own, error) {
	dir, err := os.MkdirTemp("", "xiaozhi-bench-")
	if err != nil {
		return nil, err
	}
	o := &own{dir: dir, over: make(chan struct{})}
	if err := o.start(ctx, program, stubs, core, s); err != nil {
		return nil, errors.Join(fmt.Errorf("start our own server: %w", err), os.RemoveAll(dir))
	}
	if err := o.up(ctx); err != nil {
		return nil, errors.Join(err, o.stop())
	}
	return o, nil
}

func (o *own) start(ctx context.Context, program, stubs string, core int, s settings) error {
	config := filepath.Join(o.dir, "config.yaml")
	if err := os.WriteFile(config, []byte(s.config(stubs)), 0o600); err != nil {
		return err
	}
	out, err := os.Create(filepath.Join(o.dir, "log"))
	if err != nil {
		return err
	}
	defer out.Close()
	ctx, o.end = context.WithCancel(context.WithoutCancel(ctx)) // stop ends it
	o.cmd = exec.CommandContext(ctx, program, "serve", "--config", config, "--data", filepath.Join(o.dir, "data"),
		"--listen", "127.0.0.1:0", "--pprof", "127.0.0.1:0")
	o.cmd.Dir, o.cmd.Stdout, o.cmd.Stderr, o.cmd.Env = o.dir, out, out, s.environment(os.Environ())
	o.cmd.Cancel, o.cmd.WaitDelay = func() error { return o.cmd.Process.Signal(syscall.SIGTERM) }, stopLimit
	if err := onCore(core, o.cmd.Start); err != nil {
		o.end()
		return err
	}
	go func() {
		defer close(o.over)
		o.err = o.cmd.Wait()
	}()
	return nil
}

// environment is that of this process without what would change the server.
func (s settings) environment(from []string) []string {
	env := slices.DeleteFunc(from, func(kv string) bool {
		key, _, _ := strings.Cut(kv, "=")
		return strings.HasPrefix(key, "XIAOZHI_") || strings.HasPrefix(key, "OPENAI_") || strings.HasSuffix(key, "_API_KEY") ||
			key == "GOMAXPROCS" || key == "GOGC"
	})
	if s.garbage != "" {
		env = append(env, "GOGC="+s.garbage)
	}
	return env
}

// config is the server's config.yaml.
func (s settings) config(stubs string) string {
	return fmt.Sprintf(`server: {max_devices: 5000}
asr: [%s]
llm: [stub]
tts: [stub]
providers:
  stub: {type: openai, base_url: %q, api_key: stub, model: stub}
%svoice: {endpointing: {trigger: 200ms, commit: %s}}
store: {driver: %s}
%s`, cmp.Or(s.ears, "stub"), stubs, s.more, cmp.Or(s.commit, ownSilence), cmp.Or(s.store, storeOn), s.last)
}

// up waits until the server has said where it is.
func (o *own) up(ctx context.Context) error {
	return o.await(ctx, startLimit, "did not say where it listens", func(context.Context) bool {
		out := o.log()
		found, url := profileLine.FindStringSubmatch(out), otaLine.FindString(out)
		if found == nil || url == "" || !strings.Contains(out, "ws://127.0.0.1") {
			return false
		}
		o.prof, o.base = "http://"+found[1]+"/debug/pprof/", strings.TrimSuffix(url, "/xiaozhi/ota/")
		return true
	})
}

// ready asks whether all engines are loaded.
func (o *own) ready(ctx context.Context) bool {
	_, err := get(ctx, o.base+"/readyz")
	return err == nil
}

// await waits until something is so, at most for a while; the server's end is an error.
func (o *own) await(ctx context.Context, limit time.Duration, not string, so func(context.Context) bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for !so(ctx) {
		select {
		case <-o.over:
			return fmt.Errorf("our own server ended: %w\n%s", o.err, o.logged())
		case <-ctx.Done():
			return fmt.Errorf("our own server %s: %w\n%s", not, ctx.Err(), o.logged())
		case <-time.After(pollEvery):
		}
	}
	return nil
}

// log is all that it has written; "" before the first of it.
func (o *own) log() string {
	data, _ := os.ReadFile(filepath.Join(o.dir, "log"))
	return string(data)
}

// logged is the end of its log.
func (o *own) logged() string {
	log := o.log()
	return log[max(0, len(log)-2000):]
}

// stop ends the server, if it has not ended by itself, and removes its folder.
func (o *own) stop() error {
	how := "with"
	select {
	case <-o.over:
		how = "by itself"
	default:
	}
	o.end()
	<-o.over
	log := o.logged()
	err := os.RemoveAll(o.dir)
	if how == "by itself" || !errors.Is(o.err, context.Canceled) { // which stands for a good end when told to
		err = errors.Join(fmt.Errorf("our own server ended %s: %w\n%s", how, o.err, log), err)
	}
	return err
}

// profiles asks a Go server for its profiles. The zero value has none.
type profiles struct {
	url string // ends in /debug/pprof/; empty: none
	dir string // where to put them; empty: nowhere
}

func get(ctx context.Context, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, resp.Status)
	}
	return io.ReadAll(resp.Body)
}

// take writes the processor profile of that long and then the heap's.
func (p profiles) take(ctx context.Context, name string, length time.Duration) error {
	if p.dir == "" {
		return nil
	}
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return err
	}
	for _, q := range []struct{ ask, file string }{
		{fmt.Sprintf("profile?seconds=%d", max(1, int(length.Seconds()))), "-cpu.pprof"},
		{"heap", "-heap.pprof"},
	} {
		data, err := get(ctx, p.url+q.ask)
		if err == nil {
			err = os.WriteFile(filepath.Join(p.dir, name+q.file), data, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// goroutines counts the server's goroutines without those of its idle
// connections to providers, which come and go by themselves.
func (p profiles) goroutines(ctx context.Context) (int, error) {
	if p.url == "" {
		return 0, errors.New("no profiles of this server")
	}
	dump, err := get(ctx, p.url+"goroutine?debug=2")
	return countGoroutines(string(dump)), err
}

func countGoroutines(dump string) int {
	n := 0
	for stack := range strings.SplitSeq(dump, "\n\n") {
		if strings.HasPrefix(strings.TrimSpace(stack), "goroutine ") && !strings.Contains(stack, "net/http.(*persistConn)") {
			n++
		}
	}
	return n
}
