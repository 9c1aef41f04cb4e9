package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"xiaozhi/internal/version"
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
		{[]string{"sevre"}, 2, false, []string{`unknown command "sevre"`, `没有 "sevre" 这个命令`, "serve"}},
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
	if code, out, _ := runMain(t, "version"); code != 0 || out != "xiaozhi "+version.Number()+"\n" {
		t.Errorf("version: exit %d, %q", code, out)
	}
}

// serving runs serve in-process on a free port of this machine, with the settings of
// a config.yaml, and gives its address once the banner is out and how to end it.
func serving(t *testing.T, settings string) (base string, end func() (code int)) {
	t.Helper()
	bare(t)
	t.Chdir(t.TempDir())
	return servingHere(t, settings)
}

// servingHere is serving in the working folder.
func servingHere(t *testing.T, settings string) (base string, end func() (code int)) {
	t.Helper()
	if err := os.WriteFile("config.yaml", []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	read, write := io.Pipe()
	var errs bytes.Buffer
	var code int
	var work sync.WaitGroup
	work.Go(func() {
		code = run(ctx, []string{"serve", "--listen", "127.0.0.1:0"}, write, &errs)
		write.Close()
	})
	address := make(chan string, 1)
	work.Go(func() {
		defer close(address)
		for banner := bufio.NewScanner(read); banner.Scan(); {
			if host, _, found := strings.Cut(banner.Text(), "/xiaozhi/ota/"); found {
				address <- strings.TrimSpace(host)
				_, _ = io.Copy(io.Discard, read)
			}
		}
	})
	var once sync.Once
	end = func() int {
		once.Do(func() { cancel(); work.Wait() })
		return code
	}
	t.Cleanup(func() { end() })
	base, ok := <-address
	if !ok {
		t.Fatalf("it did not start: %s", errs.String())
	}
	return base, end
}

// bare hides the keys of services that this machine may have.
func bare(t *testing.T) {
	t.Helper()
	for _, name := range []string{"OPENAI_API_KEY", "DEEPSEEK_API_KEY", "DASHSCOPE_API_KEY"} {
		t.Setenv(name, "")
	}
}

// TestServe checks that serve answers at the address it shows, and ends with 0.
func TestServe(t *testing.T) {
	base, end := serving(t, "asr: [openai]")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/healthz", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if code := end(); code != 0 || resp.StatusCode != http.StatusOK {
		t.Errorf("exit %d, %s", code, resp.Status)
	}
}

// TestCheck checks that serve --check names the engines and opens nothing.
func TestCheck(t *testing.T) {
	bare(t)
	t.Chdir(t.TempDir())
	code, out, errs := runMain(t, "serve", "--check")
	if _, err := os.Stat("data"); code != 0 || err == nil {
		t.Errorf("exit %d: %s", code, errs)
	}
	inOrder(t, out, "VAD", "ASR", "LLM", "TTS", "the settings are fine", "配置没有问题")
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
		"data below a file":    {[]string{"--listen", "127.0.0.1:0", "--data", "file/data"}, "file/data"},
		"data in no folder":    {[]string{"--listen", "127.0.0.1:0", "--data", "/proc/nowhere"}, "/proc/nowhere"},
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

// FuzzServeFlags checks that no command line of serve crashes, and that a refusal has a reason.
func FuzzServeFlags(f *testing.F) {
	for _, seed := range []string{"--listen\x00:1", "--config\x00x", "--check", "--\x00x", "-", "--pprof=\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		var out, errs bytes.Buffer
		if _, err := parseServe(strings.Split(line, "\x00"), &out, &errs); err != nil && errs.Len() == 0 && out.Len() == 0 {
			t.Errorf("no reason: %v", err)
		}
	})
}

// TestServeTellsManager: the service manager hears that devices can connect once they can, and that the server stops.
func TestServeTellsManager(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	heard := func() string {
		b := make([]byte, 100)
		n, err := socket.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
	bare(t)
	t.Setenv("NOTIFY_SOCKET", path)
	t.Chdir(t.TempDir())
	base, end := servingHere(t, "asr: [openai]")
	if got := heard(); got != "READY=1" {
		t.Errorf("heard %q at start", got)
	}
	if r, err := http.Get(base + "/healthz"); err != nil {
		t.Error(err)
	} else if r.Body.Close(); r.StatusCode != http.StatusOK {
		t.Errorf("ready, but not well: %s", r.Status)
	}
	if code := end(); code != 0 {
		t.Errorf("exit %d", code)
	}
	if got := heard(); got != "STOPPING=1" {
		t.Errorf("heard %q at the end", got)
	}
}
