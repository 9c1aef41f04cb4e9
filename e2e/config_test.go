package e2e

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/openaitest"
)

// ended is a program that has come to its end by itself.
type ended struct {
	code   int
	stdout string
	stderr string
}

// runOnce runs the program in a folder until it ends.
func runOnce(t *testing.T, dir string, env []string, args ...string) ended {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Dir = dir
	cmd.Env = append(append(cleanEnv(), "GORACE=atexit_sleep_ms=0"), env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatal(err)
	}
	if ctx.Err() != nil {
		t.Fatalf("the program did not end by itself:\n%s%s", out.String(), errs.String())
	}
	return ended{code: cmd.ProcessState.ExitCode(), stdout: out.String(), stderr: errs.String()}
}

// TestCheckJudgesSettings gives serve --check what people get wrong. What is
// wrong is named with its place, on stderr, and secrets are printed nowhere.
func TestCheckJudgesSettings(t *testing.T) {
	t.Parallel()
	const secret = "sk-Xy7secretXy7"
	for name, c := range map[string]struct {
		config string // of config.yaml
		env    []string
		args   []string
		code   int
		stdout []string
		stderr []string
	}{
		"no file":  {stdout: []string{"the settings are fine", "VAD", "ASR", "LLM", "TTS"}},
		"comments": {config: "# nothing is set here\n", stdout: []string{"the settings are fine"}},
		"good": {
			config: "server: {language: en, timezone: Europe/Berlin}\nvoice: {idle_close: 60s}\ndevices: {\"24:6F:28:AA:10:02\": {name: kitchen}}\n",
			stdout: []string{"the settings are fine"},
		},
		"tabs": {config: "server:\n\tlanguage: zh\n", code: 1, stderr: []string{"config.yaml:2", "tab"}},
		"unknown key": {
			config: "server:\n  public_url: \"\"\n  langage: zh\n", code: 1,
			stderr: []string{"config.yaml:3", "server.langage", "server.language"},
		},
		"two mistakes": {config: "sever: {}\nlog:\n  lvl: info\n", code: 1, stderr: []string{"config.yaml:1", "server", "config.yaml:3", "log.level"}},
		"wrong value":  {config: "log:\n  level: loud\n", code: 1, stderr: []string{"config.yaml:2", "log.level", "loud", "debug, info, warn, error"}},
		"unknown type": {
			config: "llm: [mine]\nproviders:\n  mine:\n    type: opnai\n", code: 1,
			stderr: []string{"config.yaml:4", "opnai", "openai"},
		},
		"no such section": {config: "tts: [local, mine]\n", code: 1, stderr: []string{"config.yaml:1", "mine"}},
		"key not set": {
			config: "llm: [mine, rules]\nproviders: {mine: {type: openai, model: m, api_key: \"${NO_SUCH_KEY}\"}}\n",
			env:    []string{"XIAOZHI_LLM=mine,rules"},
			stdout: []string{"mine", "left out", "NO_SUCH_KEY", "the settings are fine"},
		},
		"key set": {
			config: "providers: {mine: {type: openai, model: m, base_url: \"http://127.0.0.1:1/v1\", api_key: \"${MY_KEY}\"}}\n",
			env:    []string{"XIAOZHI_LLM=mine,rules", "MY_KEY=" + secret},
			stdout: []string{"mine: m at http://127.0.0.1:1/v1", "the settings are fine"},
		},
		"secret beside a mistake": {
			config: "auth: {enabled: true, token: " + secret + "}\nproviders: {mine: {type: openai, api_key: " + secret + ", api_kee: " + secret + "}}\n",
			code:   1, stderr: []string{"config.yaml:2", "api_kee"},
		},
		"secret of a wrong kind": {config: "auth: {enabled: true, token: [" + secret + "]}\n", code: 1, stderr: []string{"config.yaml:1", "auth.token"}},
		"auth without token":     {config: "auth:\n  enabled: true\n", code: 1, stderr: []string{"config.yaml:2", "auth.token"}},
		"auth by variable":       {env: []string{"XIAOZHI_AUTH__ENABLED=true"}, code: 1, stderr: []string{"XIAOZHI_AUTH__ENABLED", "auth.token"}},
		"unknown variable":       {env: []string{"XIAOZHI_SERVER__LISTN=:1"}, code: 1, stderr: []string{"XIAOZHI_SERVER__LISTN", "listen"}},
		"value of a variable":    {env: []string{"XIAOZHI_VOICE__IDLE_CLOSE=soon"}, code: 1, stderr: []string{"XIAOZHI_VOICE__IDLE_CLOSE", "soon"}},
		"file that is not there": {args: []string{"--config", "nowhere.yaml"}, code: 1, stderr: []string{"nowhere.yaml"}},
		"unknown flag":           {args: []string{"--cheque"}, code: 2, stderr: []string{"cheque"}},
		"too many words":         {args: []string{"now"}, code: 2, stderr: []string{"now"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if c.config != "" {
				if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(c.config), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			r := runOnce(t, dir, c.env, slices.Concat([]string{"serve", "--check"}, c.args)...)
			if r.code != c.code {
				t.Errorf("exit code %d, want %d", r.code, c.code)
			}
			for _, want := range c.stdout {
				if !strings.Contains(r.stdout, want) {
					t.Errorf("stdout lacks %q", want)
				}
			}
			for _, want := range c.stderr {
				if !strings.Contains(r.stderr, want) {
					t.Errorf("stderr lacks %q", want)
				}
			}
			if strings.Contains(r.stdout+r.stderr, secret) {
				t.Error("a secret was printed")
			}
			if entries, err := os.ReadDir(dir); err != nil || len(entries) > 1 {
				t.Errorf("--check left files behind: %v, %v", entries, err)
			}
			if t.Failed() {
				t.Logf("stdout:\n%s\nstderr:\n%s", r.stdout, r.stderr)
			}
		})
	}
}

// TestEmptyConfigServes starts on a config file without a byte in it.
func TestEmptyConfigServes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty.yaml")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx := limit(t)
	s := start(t, setup{args: []string{"--config", empty, "--listen", "127.0.0.1:0"}})
	d := s.dial(ctx, t, devicetest.Options{NoMCP: true})
	if r := ask(ctx, t, d, "what time is it"); r.Frames == 0 {
		t.Error("no answer")
	}
}

// TestPortInUse starts on two addresses of which the second is taken: exit 1,
// the holder is named, and nobody was told that the server runs.
func TestPortInUse(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	first := free.Addr().String()
	free.Close()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	r := runOnce(t, t.TempDir(), nil, "serve", "--listen", first, "--listen", taken.Addr().String())
	if r.code != 1 {
		t.Errorf("exit code %d, want 1", r.code)
	}
	last := r.stderr[strings.LastIndex(strings.TrimSpace(r.stderr), "\n")+1:]
	if !strings.Contains(last, port) || !strings.Contains(last, "e2e.test") || strings.Contains(last, "goroutine") {
		t.Errorf("the last line does not name port %s and its holder: %s", port, last)
	}
	if strings.Contains(r.stdout, "ws://") {
		t.Errorf("addresses were announced:\n%s", r.stdout)
	}
	again, err := net.Listen("tcp", first)
	if err != nil {
		t.Errorf("the first address is still held: %v", err)
	} else {
		again.Close()
	}
}

// TestDataFolderUnusable puts a file where the data folder should be.
func TestDataFolderUnusable(t *testing.T) {
	t.Parallel()
	for name, data := range map[string]string{"a file": "taken", "below a file": "taken/data", "nobody's": "/proc/nowhere"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "taken"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			r := runOnce(t, dir, nil, "serve", "--data", data, "--listen", "127.0.0.1:0")
			if r.code != 1 || !strings.Contains(r.stderr, data) || strings.Contains(r.stdout, "ws://") {
				t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
			}
		})
	}
}

// TestVariablesOverride sets by environment what a file sets too, and sees
// which counts on the wire.
func TestVariablesOverride(t *testing.T) {
	t.Parallel()
	const token = "dvc-5f2e9c-do-not-print"
	ctx := limit(t)
	s := start(t, setup{
		config: "server: {listen: [\":1\"], public_url: \"http://file.example:1\"}\nauth: {enabled: false}\n",
		env: []string{
			"XIAOZHI_SERVER__LISTEN=127.0.0.1:0", "XIAOZHI_SERVER__PUBLIC_URL=", "XIAOZHI_server__timezone=Asia/Kathmandu",
			"XIAOZHI_AUTH__ENABLED=true", "XIAOZHI_AUTH__TOKEN=" + token, "XIAOZHI_LOG__LEVEL=debug",
		},
		args: []string{"--data", "elsewhere"},
	})
	p, err := devicetest.Provision(ctx, s.ota, devicetest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if p.Token != token || p.URL != s.ws || p.Zone != 5*time.Hour+45*time.Minute {
		t.Errorf("the device was told %s", p.Raw)
	}
	d := s.dial(ctx, t, devicetest.Options{NoMCP: true})
	if r := ask(ctx, t, d, "what time is it"); r.Frames == 0 {
		t.Error("no answer")
	}
	if _, err := devicetest.Dial(ctx, devicetest.Options{URL: s.ws, Token: "wrong-" + token}); err == nil {
		t.Error("a wrong token was let in")
	}
	d.Close()
	s.stop(t)
	if strings.Contains(s.log.String()+s.banner, token) {
		t.Error("the token was printed")
	}
	if info, err := os.Stat(filepath.Join(s.dir, "elsewhere")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("data folder: %v, %v", info, err)
	}
}

// TestSignalEndsInOrder ends the server while one device hears a reply, one is
// listened to, one is idle, one has not said hello and a browser holds an idle
// connection: exit 0, the reply is heard to its end, who is listened to hears
// that the server stops, every device is told by a close frame outside a reply.
func TestSignalEndsInOrder(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	cloud := startCloud(t)
	cloud.Reply(openaitest.Chat, openaitest.Text("One sentence to begin with. ", "And a second one, which is longer than the first. ", "And a third one to end it all."))
	s := start(t, setup{env: cloudEnv(cloud)})
	talking := s.dial(ctx, t, devicetest.Options{NoMCP: true})
	idle := s.dial(ctx, t, devicetest.Options{NoMCP: true, DeviceID: "24:6f:28:aa:40:01"})
	mute := dialRaw(t, s, "24:6f:28:aa:40:02")
	listening := s.dial(ctx, t, devicetest.Options{NoMCP: true, DeviceID: "24:6f:28:aa:40:03", OpenListen: true})
	browser := &http.Client{Transport: &http.Transport{}}
	resp, err := browser.Get(s.ota)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if err := talking.Detect("tell me a story"); err != nil {
		t.Fatal(err)
	}
	if _, err := talking.WaitText(ctx, "tts", "sentence_start"); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if _, err := listening.WaitText(ctx, "tts", "start"); err != nil {
		t.Fatal(err)
	}
	if _, answer, err := websocket.DefaultDialer.DialContext(ctx, s.ws, http.Header{"Device-Id": {"late"}}); err == nil || answer == nil || answer.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a device that comes too late is answered %v, %v", answer, err)
	}
	if reply, err := talking.WaitReply(ctx); err != nil || len(reply.Sentences) != 3 || reply.Dropped != 0 {
		t.Errorf("the reply was not heard to its end: %+v, %v", reply, err)
	}
	if reply, err := listening.WaitReply(ctx); err != nil || reply.Text() != "The server is shutting down. Please try again in a moment." || reply.Duration() < 2*time.Second || reply.Dropped != 0 {
		t.Errorf("who is listened to is not told: %+v, %v", reply, err)
	}
	for name, d := range map[string]*devicetest.Device{"talking": talking, "idle": idle, "listening": listening} {
		select {
		case <-d.Done():
		case <-ctx.Done():
			t.Fatalf("the %s device was not hung up", name)
		}
		events := d.Events()
		if last := events[len(events)-1]; last.Kind != devicetest.KindClosed || !strings.Contains(last.Text, "1000") {
			t.Errorf("the %s device: %s %s", name, last.Kind, last.Text)
		}
	}
	if code, reason := mute.awaitClose(ctx); code != 1000 {
		t.Errorf("the device without hello got %d %q", code, reason)
	}
	s.stop(t)
	if !strings.Contains(s.log.String(), "shutting down") {
		t.Error("the log does not say that the server stops")
	}
}
