package e2e

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/devicetest"
	"xiaozhi/store"
)

// commanding runs commands of the program in a folder, with a standard input.
func commanding(ctx context.Context, dir string) func(in string, args ...string) (said string, err error) {
	return func(in string, args ...string) (string, error) {
		cmd := exec.CommandContext(ctx, binary, args...)
		cmd.Dir, cmd.Stdin, cmd.Env = dir, strings.NewReader(in), cleanEnv()
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
}

// TestRestoredElsewhere: a server is backed up while a speaker talks. Its database breaks; the next start refuses that, says
// how to go on, and changes nothing. Restored into an empty folder the same speaker talks on without pairing: its token,
// reminders, dialogue, name and agent are there, and so are the account and the sealed secret.
func TestRestoredElsewhere(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	const settings = "auth: {pairing: ask}\nllm: [mine, rules]\nproviders: {mine: {type: openai, model: m, base_url: 'http://127.0.0.1:1/v1', api_key: 'sealed:model'}}\n"
	dir := t.TempDir()
	run := commanding(ctx, dir)
	must := func(run func(in string, args ...string) (string, error), in string, args ...string) string {
		t.Helper()
		out, err := run(in, args...)
		if err != nil {
			t.Fatalf("%q: %v: %s", args, err, out)
		}
		return out
	}
	must(run, "sk-planted-0123456789", "secret", "set", "model", "http://127.0.0.1:1")
	must(run, "a long password of anna\n", "user", "add", "anna")
	s, err := launch(setup{config: settings, env: []string{"XIAOZHI_LLM=mine,rules"}}, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.end() })
	flash := &devicetest.Flash{}
	o := devicetest.Options{DeviceID: newDeviceID(), ClientID: "9a0c6b2e-7c60-4a3c-9c1c-0d5a3ad1c777", Flash: flash, Mode: devicetest.Manual, Waiting: devicetest.PollsOnce}
	boot := func(s *server, pair func(code string)) *devicetest.Device {
		t.Helper()
		p, err := devicetest.Boot(ctx, s.ota, o, pair)
		if err != nil {
			t.Fatal(err)
		}
		o := o
		o.URL, o.Token = p.URL, p.Token
		d, err := devicetest.Dial(ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	devices := func(s *server, args ...string) []string {
		return append([]string{"devices", "--server", strings.TrimSuffix(s.ota, "/xiaozhi/ota/")}, args...)
	}
	d := boot(s, func(code string) { must(run, "", devices(s, "pair", code)...) })
	must(run, "", devices(s, "rename", o.DeviceID, "Zanzibar")...)
	ask(ctx, t, d, "every weekday at 7 remind me to take the pills")
	ask(ctx, t, d, "be a teacher")
	time.Sleep(time.Second) // turns are written later
	archive := filepath.Join(dir, "mine.tar.gz")
	must(run, "", "backup", archive, "--key")
	ask(ctx, t, d, "set a timer for twenty minutes") // after the backup
	d.Close()
	if out, err := run("", "restore", archive); err == nil || !strings.Contains(out, "is used by another server") {
		t.Errorf("restored under a running server: %v %s", err, out)
	}
	if err := s.end(); err != nil {
		t.Fatal(err)
	}

	broken := filepath.Join(dir, "data", "xiaozhi.db")
	whole, err := os.ReadFile(broken)
	if err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Clone(whole)
	for i := 100; i < len(damaged)-100; i += 512 {
		copy(damaged[i:], "broken here, and here")
	}
	if err := os.WriteFile(broken, damaged, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"serve", "--listen", "127.0.0.1:0"}, {"serve", "--check"}} {
		out, err := run("", args...)
		if err == nil || !strings.Contains(out, "the database data/xiaozhi.db is damaged and was left as it is") || !strings.Contains(out, "已损坏") {
			t.Errorf("%q with a damaged database: %v %s", args, err, out)
		}
	}
	if now, err := os.ReadFile(broken); err != nil || !bytes.Equal(now, damaged) {
		t.Errorf("the damaged database was changed: %v", err)
	}

	fresh := t.TempDir()
	elsewhere := commanding(ctx, fresh)
	must(elsewhere, "", "restore", archive)
	kept, err := store.Open(ctx, store.Options{Path: filepath.Join(fresh, "data", "xiaozhi.db"), Look: true})
	if err != nil {
		t.Fatal(err)
	}
	turns, err := kept.Turns.List(ctx, o.DeviceID, store.Page{})
	if err := errors.Join(err, kept.Close()); err != nil || len(turns) != 2 || turns[0].Heard != "be a teacher" || !strings.Contains(turns[1].Said, "every weekday at 7:00") {
		t.Errorf("the dialogue: %+v %v", turns, err)
	}
	again, err := launch(setup{config: settings, env: []string{"XIAOZHI_LLM=mine,rules"}}, fresh)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = again.end()
		if t.Failed() {
			t.Logf("the server's log:\n%s", again.log.String())
		}
	})
	d = boot(again, func(string) { t.Error("it must be paired again") })
	defer d.Close()
	if r := ask(ctx, t, d, "what reminders do I have"); !strings.Contains(r.Text(), "take the pills, every weekday at 7:00") || strings.Contains(r.Text(), "timer") {
		t.Errorf("what is kept: %q", r.Text())
	}
	list := must(elsewhere, "", devices(again)...)
	if !strings.Contains(list, o.DeviceID+"  paired  Zanzibar") {
		t.Errorf("listed: %s", list)
	}
	if list := must(elsewhere, "", "user"); !strings.Contains(list, "anna") {
		t.Errorf("accounts: %s", list)
	}
	if list := must(elsewhere, "", "secret", "list"); !strings.Contains(list, "model  http://127.0.0.1:1") {
		t.Errorf("secrets: %s", list)
	}
	for _, folder := range []string{dir, fresh} {
		if where := holds(t, folder, "sk-planted"); where != "" {
			t.Errorf("the secret lies in %s", where)
		}
	}
	if log := s.log.String() + again.log.String(); strings.Contains(log, "sk-planted") {
		t.Error("the secret is in the log")
	}
}
