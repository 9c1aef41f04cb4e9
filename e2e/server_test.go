package e2e

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/openaitest"
	"xiaozhi/internal/testall"
)

// binary is the program under test. TestMain builds it, for make test-all with
// the race detector; what asks for it with the race detector in any case (setup.race)
// has raceBinary build it. tempDir is removed at the end.
var (
	binary     string
	raceBinary = sync.OnceValues(func() (string, error) { return build("race", []string{"-race"}, serverPackage) })
	// measured is the program whose memory and times are measured: without the race detector, in make test-all too.
	measured = sync.OnceValues(func() (string, error) { return build("plain", nil, serverPackage, simulatorPackage) })
	tempDir  string
)

// The programs: the simulator is beside the server that TestMain builds only.
const (
	serverPackage    = "xiaozhi/cmd/xiaozhi"
	simulatorPackage = "xiaozhi/cmd/xiaozhi-sim"
)

// build builds programs into a folder of the project's tools and returns the first one:
// the next run does not link them again. They get no tables for debuggers, whose linking takes a third of the time.
func build(folder string, flags []string, programs ...string) (program string, err error) {
	dir, err := filepath.Abs(filepath.Join("..", ".tools", "e2e", folder))
	if err != nil {
		return "", err
	}
	args := slices.Concat([]string{"build", "-ldflags=-w", "-o", dir + string(filepath.Separator)}, flags, programs)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the programs: %w\n%s", err, out)
	}
	return filepath.Join(dir, "xiaozhi"), nil
}

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
	tempDir = dir
	if testall.Running() {
		binary, err = build("all", []string{"-race"}, serverPackage, simulatorPackage)
	} else {
		binary, err = build("plain", nil, serverPackage, simulatorPackage)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	endBrowser()
	for _, s := range []*sharedServer{&plainServer, &echoServer, &consoleServer, &homeServer, &journeyServer} {
		if err := s.close(); err != nil {
			fmt.Fprintf(os.Stderr, "a server that tests share: %v\n", err)
			code = 1
		}
	}
	return code
}

// server is one running program.
type server struct {
	cmd    *exec.Cmd
	dir    string // its working folder
	ota    string
	ws     string
	banner syncBuffer
	over   chan struct{} // closed when the process has ended
	err    error         // how it ended
	log    syncBuffer
	shared bool // other tests use it too

	flashes sync.Map // of the devices, by both ids
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

// setup configures a server. The zero value starts a plain one.
type setup struct {
	race     bool // with the race detector
	measured bool // without the race detector, whatever runs, and with garbage collected as people have it
	profiles bool // with the runtime's profiles
	hears    bool // with the recogniser that it has by default, which takes half of the processor time of a start
	speaks   bool // with the voice that it has by default; else each sentence is said in brief, so that nobody waits for its end
	unpinned bool // with nothing in the environment that the console could not change
	env      []string
	config   string   // content of config.yaml
	args     []string // after serve
}

var otaLine = regexp.MustCompile(`http://127\.0\.0\.1:\d+/xiaozhi/ota/`)

// start runs the program on a free port and waits until devices can connect.
func start(tb testing.TB, s setup) *server {
	tb.Helper()
	srv, err := launch(s, tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		srv.stop(tb)
		if tb.Failed() {
			tb.Logf("the server's log:\n%s", srv.log.String())
		}
	})
	return srv
}

// launch is start without a test. Whoever calls it ends the server.
func launch(s setup, dir string) (*server, error) {
	srv := &server{dir: dir, over: make(chan struct{})}
	if s.config != "" {
		if err := os.WriteFile(filepath.Join(srv.dir, "config.yaml"), []byte(s.config), 0o600); err != nil {
			return nil, err
		}
	}
	args := append([]string{"serve"}, s.args...)
	if len(s.args) == 0 {
		args = append(args, "--listen", "127.0.0.1:0")
	}
	if s.profiles {
		args = append(args, "--pprof", "127.0.0.1:0")
	}
	program := binary
	if s.race && !testall.Running() {
		var err error
		if program, err = raceBinary(); err != nil {
			return nil, err
		}
	}
	if s.measured {
		var err error
		if program, err = measured(); err != nil {
			return nil, err
		}
	}
	srv.cmd = exec.Command(program, args...)
	srv.cmd.Dir = srv.dir
	srv.cmd.Env = slices.Concat(cleanEnv(), deaf(s), voice(s))
	if s.unpinned {
		srv.cmd.Env = slices.DeleteFunc(srv.cmd.Env, func(kv string) bool { return strings.HasPrefix(kv, "XIAOZHI_") })
	}
	if s.measured {
		srv.cmd.Env = slices.DeleteFunc(srv.cmd.Env, func(kv string) bool { return strings.HasPrefix(kv, "GOGC=") })
	}
	srv.cmd.Env = append(srv.cmd.Env, s.env...)
	srv.cmd.Stderr = &srv.log
	out, err := srv.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := srv.cmd.Start(); err != nil {
		return nil, err
	}
	found := make(chan struct{})
	go srv.readBanner(out, found)
	select {
	case <-found:
	case <-srv.over:
		return nil, fmt.Errorf("the server ended at once: %w\n%s", srv.err, srv.log.String())
	}
	return srv, nil
}

// readBanner looks for the addresses, and then waits for the end of the process.
func (s *server) readBanner(out interface{ Read([]byte) (int, error) }, found chan struct{}) {
	defer close(s.over)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		fmt.Fprintln(&s.banner, lines.Text())
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
	// Tests that want a model, or to hear that something is slow or the server too
	// busy, say so: a busy machine is slow for no fault of the server. Garbage is collected
	// less often than by default, which saves a tenth of what 130 starts take.
	return append(out, "GOGC=400", "XIAOZHI_LLM=rules", "XIAOZHI_VOICE__SLOW_NOTICE=0", "XIAOZHI_SERVER__MAX_LATENESS=0")
}

// deaf is the environment of a server whose recogniser cannot be reached, unless s wants one.
func deaf(s setup) []string {
	if s.hears || strings.Contains(s.config, "asr:") {
		return nil
	}
	section := "XIAOZHI_PROVIDERS__DEAF__"
	return []string{
		"XIAOZHI_ASR=deaf", section + "TYPE=openai", section + "BASE_URL=http://127.0.0.1:9/v1",
		section + "API_KEY=none", section + "ASR_MODEL=none",
	}
}

// voice is the environment of a server that has another voice than by default.
func voice(s setup) []string {
	if s.speaks || strings.Contains(s.config, "tts:") {
		return nil
	}
	section := "XIAOZHI_PROVIDERS__BRIEF__"
	return []string{
		"XIAOZHI_TTS=brief", section + "TYPE=openai", section + "BASE_URL=" + briefVoice().URL(),
		section + "API_KEY=none", section + "TTS_MODEL=none",
	}
}

// briefVoice is a voice that says each sentence in 180 ms, which ends with the process.
var briefVoice = sync.OnceValue(func() *openaitest.Server {
	cloud, err := openaitest.New()
	if err != nil {
		panic(err)
	}
	cloud.Handle(openaitest.Speak, func(*openaitest.Request) openaitest.Reply {
		return openaitest.Sound("audio/pcm", openaitest.Tone(24000, 440, 180*time.Millisecond), 4800)
	})
	return cloud
})

// stop ends the server as an operator would, and expects exit code 0.
func (s *server) stop(tb testing.TB) {
	tb.Helper()
	if err := s.end(); err != nil {
		tb.Error(err)
	}
}

// end is stop without a test. It may be called again.
func (s *server) end() error {
	select {
	case <-s.over:
		return s.raced()
	default:
	}
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.over:
		if s.err != nil {
			return errors.Join(fmt.Errorf("the server ended with %w", s.err), s.raced())
		}
		return s.raced()
	case <-time.After(30 * time.Second):
		_ = s.cmd.Process.Kill()
		<-s.over
		return errors.New("the server did not end within 30 s of SIGTERM")
	}
}

// needRace builds the program with the race detector, for tests whose time limit
// begins after that.
func needRace(tb testing.TB) {
	tb.Helper()
	if testall.Running() {
		return // it is
	}
	if _, err := raceBinary(); err != nil {
		tb.Fatal(err)
	}
}

// raced is an error if the race detector has found something in the server.
func (s *server) raced() error {
	if log := s.log.String(); strings.Contains(log, "DATA RACE") {
		return fmt.Errorf("data race in the server:\n%s", log)
	}
	return nil
}

// sharedServer is a server for many tests: those that need no settings of their
// own, look at nothing but their own device, and end with it. It starts when
// the first of them asks for it and ends after the last test.
type sharedServer struct {
	once    sync.Once
	setup   func() (setup, error)
	furnish func(dir string) error // nil: its folder is empty
	srv     *server
	err     error

	owned sync.Once // somebody has become its owner
	owner string    // their cookie
}

var (
	// plainServer has no settings: rules answer.
	plainServer = sharedServer{setup: func() (setup, error) { return setup{hears: true}, nil }}
	// echoServer has a model that repeats what it is asked.
	echoServer = sharedServer{setup: func() (setup, error) {
		cloud, err := openaitest.New() // ends with the process
		if err != nil {
			return setup{}, err
		}
		cloud.Handle(openaitest.Chat, echo)
		return setup{hears: true, env: cloudEnv(cloud)}, nil
	}}
)

// use returns the server, which gives a device without an id one of its own.
func (s *sharedServer) use(tb testing.TB) *server {
	tb.Helper()
	s.once.Do(func() {
		var with setup
		if with, s.err = s.setup(); s.err != nil {
			return
		}
		var dir string
		if dir, s.err = os.MkdirTemp(tempDir, "server-"); s.err != nil { //nolint:usetesting // it outlives the test that asks first
			return
		}
		if s.furnish != nil {
			if s.err = s.furnish(dir); s.err != nil {
				return
			}
		}
		if s.srv, s.err = launch(with, dir); s.err == nil {
			s.srv.shared = true
		}
	})
	if s.err != nil {
		tb.Fatal(s.err)
	}
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("the log of the server that tests share:\n%s", s.srv.log.String())
		}
	})
	return s.srv
}

// close ends the server if it was ever used.
func (s *sharedServer) close() error {
	if s.srv == nil {
		return nil
	}
	return s.srv.end()
}

var devices atomic.Int64

// newDeviceID is an id that no other device of this run has.
func newDeviceID() string {
	n := devices.Add(1)
	return fmt.Sprintf("24:6f:28:ee:%02x:%02x", n>>8&0xff, n&0xff)
}

// limit is the context of a whole test. A test in parallel to others takes one when it begins, not its parent's: it may have to
// wait for its turn.
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

// provision asks where to connect as the device of these options, whose flash lasts
// as long as the server's log.
func (s *server) provision(ctx context.Context, tb testing.TB, o devicetest.Options) (url, token string) {
	tb.Helper()
	flash, _ := s.flashes.LoadOrStore([2]string{strings.ToLower(o.DeviceID), o.ClientID}, &devicetest.Flash{})
	o.Flash = flash.(*devicetest.Flash)
	p, err := devicetest.Provision(ctx, s.ota, o)
	if err != nil {
		tb.Fatal(err)
	}
	for _, v := range p.Violations {
		tb.Errorf("ota: %s", v)
	}
	return p.URL, p.Token
}

// dial connects a strict device by way of OTA. Its violations fail the test.
func (s *server) dial(ctx context.Context, tb testing.TB, o devicetest.Options) *devicetest.Device {
	tb.Helper()
	if o.DeviceID == "" && s.shared {
		o.DeviceID = newDeviceID()
	}
	o.URL, o.Token = s.provision(ctx, tb, o)
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
