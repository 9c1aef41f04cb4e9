package app

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"

	"xiaozhi/internal/config"
	"xiaozhi/internal/engines"
	"xiaozhi/internal/version"
)

// inOrder checks that parts come one after the other in text.
func inOrder(t *testing.T, text string, parts ...string) {
	t.Helper()
	rest := text
	for _, p := range parts {
		_, after, found := strings.Cut(rest, p)
		if !found {
			t.Errorf("no %q (in this order) in\n%s", p, text)
			return
		}
		rest = after
	}
}

// TestBannerAddresses: a person sees the OTA URL of each interface and
// port, that of the public address first, and can type it into a device.
func TestBannerAddresses(t *testing.T) {
	all, err := net.Listen("tcp4", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer all.Close()
	one, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	_, port, _ := net.SplitHostPort(all.Addr().String())
	hosts := []string{one.Addr().String()}
	interfaces, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range interfaces {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLinkLocalUnicast() {
			hosts = append(hosts, n.IP.String()+":"+port)
		}
	}
	for public, want := range map[string][2]string{
		"":                             {},
		"https://speaker.example.org/": {"https://speaker.example.org/xiaozhi/ota/", "wss://speaker.example.org/xiaozhi/v1/"},
		"http://a.example.org:81/x":    {"http://a.example.org:81/x/xiaozhi/ota/", "ws://a.example.org:81/x/xiaozhi/v1/"},
		"wss://speaker.example.org":    {"https://speaker.example.org/xiaozhi/ota/", "wss://speaker.example.org/xiaozhi/v1/"},
		"ws://a.example.org":           {"http://a.example.org/xiaozhi/ota/", "ws://a.example.org/xiaozhi/v1/"},
	} {
		var out bytes.Buffer
		cfg := config.Default()
		cfg.Server.PublicURL = public
		found := engines.NewReport(slog.New(slog.DiscardHandler))
		found.Found("ASR", "ears")
		banner(&out, cfg, []net.Listener{all, one}, &App{report: found})
		lines := strings.Fields(out.String())
		inOrder(t, out.String(), "xiaozhi "+version.Number(), "ASR  ears", "OTA URL", "配网页面", want[0], "WebSocket:", want[1])
		for _, host := range hosts {
			if !slices.Contains(lines, "http://"+host+"/xiaozhi/ota/") || !slices.Contains(lines, "ws://"+host+"/xiaozhi/v1/") {
				t.Errorf("%s is not named in\n%s", host, out.String())
			}
		}
	}
}

// built makes the program of the environment's settings, with the given data folder
// and a free port of this machine.
func built(t *testing.T, data string, banner, log io.Writer) (*App, error) {
	t.Helper()
	cfg, _, err := config.Load(config.Options{DataDir: data, Env: os.Environ(), Listen: []string{"127.0.0.1:0"}})
	if err != nil {
		t.Fatal(err)
	}
	return Build(t.Context(), cfg, Options{Data: data, Banner: banner, Log: NewLogger(cfg.Log, log)})
}

// serving runs the program in-process on a free port of this machine and gives its
// address once the banner is out, and how to end it.
func serving(t *testing.T, data string) (base string, end func() (banner, log string, err error)) {
	t.Helper()
	t.Chdir(t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	read, write := io.Pipe()
	var out bytes.Buffer
	log := &lockedBuffer{}
	a, err := built(t, data, write, log)
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	work.Go(func() {
		err = a.Run(ctx)
		a.Close()
		write.Close()
	})
	address := make(chan string, 1)
	work.Go(func() {
		tee, b := io.TeeReader(read, &out), make([]byte, 512)
		for {
			_, err := tee.Read(b)
			if _, rest, found := strings.Cut(out.String(), "  http://"); found && strings.Contains(rest, "/xiaozhi/ota/") {
				select {
				case address <- rest[:strings.Index(rest, "/")]:
				default:
				}
			}
			if err != nil {
				close(address)
				return
			}
		}
	})
	var once sync.Once
	end = func() (string, string, error) {
		once.Do(func() { cancel(); work.Wait() })
		return out.String(), log.String(), err
	}
	t.Cleanup(func() { end() })
	host, ok := <-address
	if !ok {
		t.Fatalf("it did not start: %s", log)
	}
	return "http://" + host, end
}

func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultTransport.RoundTrip(req) // follows no redirect, as devices
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// TestServeInProcess: the banner's address answers at once, the data folder is
// there for its owner only, logs are JSON where asked for, and the end is clean.
func TestServeInProcess(t *testing.T) {
	t.Setenv("XIAOZHI_LOG__FORMAT", "json")
	t.Setenv("XIAOZHI_ASR", "openai") // nothing to load
	base, end := serving(t, "home/data")
	for path, want := range map[string]int{
		"/healthz": 200, "/xiaozhi/ota/": 200, "/xiaozhi/ota": 200, "/api/ota/": 200, "/api/device/ota": 200,
		"/nothing": 404, "/xiaozhi": 404, "/xiaozhi/": 404, "//xiaozhi/ota/": 200,
	} {
		if status, body := get(t, base+path); status != want {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	if _, body := get(t, base+"/nothing"); !strings.Contains(body, "/xiaozhi/ota/") || !strings.ContainsFunc(body, func(r rune) bool { return unicode.Is(unicode.Han, r) }) {
		t.Errorf("an unknown path does not say where to go: %s", body)
	}
	for status := 0; status != 200; {
		status, _ = get(t, base+"/readyz")
	}
	for _, dir := range []string{"home/data", "home/data/prompts", "home/data/music", "home/data/tools", "home/data/cache", "home/data/knowledge"} {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", dir, info, err)
		}
	}
	out, errs, err := end()
	if err != nil || !strings.Contains(errs, "shutting down") {
		t.Error(err)
	}
	for line := range strings.Lines(errs) {
		if !json.Valid([]byte(line)) {
			t.Errorf("not a JSON log record: %s", line)
		}
	}
	inOrder(t, out, "VAD", "ASR", "- openai: left out", "no recogniser for Chinese", "LLM", "rules", "TTS", "OTA URL", "WebSocket:")
}
