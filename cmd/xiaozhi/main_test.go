package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"

	"xiaozhi/internal/config"
)

func runMain(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}

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

// TestUsage: help that was asked for goes to stdout and ends with 0, misuse to
// stderr and ends with 2, and both are in both languages.
func TestUsage(t *testing.T) {
	for _, c := range []struct {
		args   []string
		code   int
		stdout bool
		want   []string
	}{
		{nil, 0, true, []string{"serve", "talk", "version", "启动服务"}},
		{[]string{"help"}, 0, true, []string{"serve", "启动服务"}},
		{[]string{"--help"}, 0, true, []string{"serve", "启动服务"}},
		{[]string{"serve", "--help"}, 0, true, []string{"-config", "-data", "-listen", "-check", "数据目录"}},
		{[]string{"serve", "-h"}, 0, true, []string{"-config", "监听地址"}},
		{[]string{"sevre"}, 2, false, []string{`unknown command "sevre"`, "没有这个命令", "serve"}},
		{[]string{"serve", "--listne", ":1"}, 2, false, []string{"-listne", "-listen"}},
		{[]string{"serve", "--listen"}, 2, false, []string{"-listen"}},
		{[]string{"serve", "stray"}, 2, false, []string{`"stray"`, "多余的参数"}},
	} {
		code, out, errs := runMain(t, c.args...)
		said, silent := out, errs
		if !c.stdout {
			said, silent = errs, out
		}
		if code != c.code || silent != "" {
			t.Errorf("%q: exit %d, and on the other output %q", c.args, code, silent)
		}
		for _, want := range c.want {
			if !strings.Contains(said, want) {
				t.Errorf("%q does not say %q:\n%s", c.args, want, said)
			}
		}
	}
	if code, out, _ := runMain(t, "version"); code != 0 || out != "xiaozhi "+version+"\n" {
		t.Errorf("version: exit %d, %q", code, out)
	}
}

// TestBannerNamesEveryAddress: a person sees the OTA URL of each interface and
// port, that of the public address first, and can type it into a device.
func TestBannerNamesEveryAddress(t *testing.T) {
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
		banner(&out, cfg, []net.Listener{all, one}, &rooms{lines: []string{"  ASR  ears"}})
		lines := strings.Fields(out.String())
		inOrder(t, out.String(), "xiaozhi "+version, "ASR  ears", "OTA URL", "配网页面", want[0], "WebSocket:", want[1])
		for _, host := range hosts {
			if !slices.Contains(lines, "http://"+host+"/xiaozhi/ota/") || !slices.Contains(lines, "ws://"+host+"/xiaozhi/v1/") {
				t.Errorf("%s is not named in\n%s", host, out.String())
			}
		}
	}
}

// serving runs serve in-process on a free port of this machine and gives its
// address once the banner is out, and how to end it.
func serving(t *testing.T, args ...string) (base string, end func() (code int, stdout, stderr string)) {
	t.Helper()
	bare(t)
	t.Chdir(t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	read, write := io.Pipe()
	var out, errs bytes.Buffer
	var code int
	var work sync.WaitGroup
	work.Go(func() {
		code = run(ctx, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...), write, &errs)
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
	end = func() (int, string, string) {
		once.Do(func() { cancel(); work.Wait() })
		return code, out.String(), errs.String()
	}
	t.Cleanup(func() { end() })
	host, ok := <-address
	if !ok {
		t.Fatalf("it did not start: %s", errs.String())
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
	base, end := serving(t, "--data", "home/data")
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
	for _, dir := range []string{"home/data", "home/data/prompts", "home/data/music", "home/data/tools", "home/data/cache"} {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", dir, info, err)
		}
	}
	code, out, errs := end()
	if code != 0 || !strings.Contains(errs, "shutting down") {
		t.Errorf("exit %d", code)
	}
	for line := range strings.Lines(errs) {
		if !json.Valid([]byte(line)) {
			t.Errorf("not a JSON log record: %s", line)
		}
	}
	inOrder(t, out, "VAD", "ASR", "- openai: left out", "no recogniser for Chinese", "LLM", "rules", "TTS", "OTA URL", "WebSocket:")
}

// TestServeRefusesToStart: what cannot work stops the start with 1, says why on
// stderr in both languages, and leaves nothing open or half made.
func TestServeRefusesToStart(t *testing.T) {
	bare(t)
	taken, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join("odd", "prompts"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join("odd", "prompts", "phrases.zh.yaml"), []byte("no_such_phrase: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"second address taken": {[]string{"--listen", "127.0.0.1:0", "--listen", taken.Addr().String()}, "already used by"},
		"address of nobody":    {[]string{"--listen", "192.0.2.1:0"}, "cannot listen on 192.0.2.1:0 / 无法监听"},
		"no address":           {[]string{"--listen", "8000"}, "--listen: server.listen"},
		"empty address":        {[]string{"--listen", ""}, "--listen: server.listen"},
		"data is a file":       {[]string{"--listen", "127.0.0.1:0", "--data", "file"}, "无法"},
		"odd phrases":          {[]string{"--listen", "127.0.0.1:0", "--data", "odd"}, "no_such_phrase"},
		"config is a folder":   {[]string{"--config", "odd"}, "odd: cannot be read"},
	} {
		code, out, errs := runMain(t, append([]string{"serve"}, c.args...)...)
		if code != 1 || !strings.Contains(errs, c.want) || strings.Contains(out, "OTA URL") {
			t.Errorf("%s: exit %d\n%s\n%s", name, code, out, errs)
		}
		if strings.Contains(errs, "goroutine ") {
			t.Errorf("%s: a crash", name)
		}
	}
}
