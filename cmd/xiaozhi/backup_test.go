package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/devicetest"
	"xiaozhi/store"
)

const asking = "asr: [openai]\nauth: {pairing: ask}\n"

// ledger looks at the reminders of a data folder beside the server that may use it, and adds one if it is named.
func ledger(t *testing.T, data, device, add string) (texts []string) {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{Path: filepath.Join(data, "xiaozhi.db"), Tool: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if add != "" {
		r := store.Reminder{ID: add, DeviceID: device, Kind: "alert", Text: add, DueAt: time.Now().Add(time.Hour), State: "armed"}
		if err := s.Reminders.Add(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	all, err := s.Reminders.Find(t.Context(), store.ReminderQuery{DeviceID: device})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		texts = append(texts, r.Text)
	}
	return texts
}

// TestBackupAndRestore: what a running server knows is backed up, and in an empty folder the same speaker talks on.
func TestBackupAndRestore(t *testing.T) {
	t.Setenv("XIAOZHI_MCP_TOKEN", "")
	const id = "24:6f:28:aa:10:02"
	base, end := serving(t, asking)
	flash := &devicetest.Flash{}
	o := devicetest.Options{DeviceID: id, Flash: flash, Waiting: devicetest.PollsOnce}
	if _, err := devicetest.Boot(t.Context(), base+"/xiaozhi/ota/", o, func(code string) { runDevices(t, base, "pair", code) }); err != nil {
		t.Fatal(err)
	}
	runDevices(t, base, "rename", id, "Kitchen")
	ledger(t, "data", id, "tea")
	if err := os.MkdirAll("data/prompts", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("data/prompts/pirate.en.md", []byte("Arr."), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "my.tar.gz")
	if code, out, errs := runMain(t, "backup", file); code != 0 || !strings.Contains(out, "backed up to "+file) || !strings.Contains(out, "已备份到") {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	ledger(t, "data", id, "after the backup")

	if code, out, errs := runMain(t, "restore", file); code != 1 || !strings.Contains(errs, "is used by another server") || strings.Contains(out, "restored") {
		t.Errorf("under a running server: exit %d: %s%s", code, out, errs)
	}
	if code := end(); code != 0 {
		t.Fatalf("exit %d", code)
	}
	if code, out, errs := runMain(t, "restore", file); code != 0 || !strings.Contains(out, "what was there before is in data/before-restore-") {
		t.Errorf("over what is there: exit %d: %s%s", code, out, errs)
	}
	if got := ledger(t, "data", id, ""); len(got) != 1 || got[0] != "tea" {
		t.Errorf("%q", got)
	}
	kept, _ := filepath.Glob("data/before-restore-*")
	if len(kept) != 1 {
		t.Fatalf("%q", kept)
	}
	if got := ledger(t, kept[0], id, ""); len(got) != 2 {
		t.Errorf("what was set aside: %q", got)
	}

	t.Chdir(t.TempDir())
	if code, out, errs := runMain(t, "restore", "--data", "new", file); code != 0 || strings.Contains(out, "before-restore") {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	if err := os.Rename("new", "data"); err != nil {
		t.Fatal(err)
	}
	base, _ = servingHere(t, asking)
	p, err := devicetest.Boot(t.Context(), base+"/xiaozhi/ota/", o, func(string) { t.Error("it must be paired again") })
	if err != nil {
		t.Fatal(err)
	}
	o.URL, o.Token = p.URL, p.Token
	d, err := devicetest.Dial(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, out, errs := runDevices(t, base); !strings.Contains(out, id+"  paired  Kitchen") || !strings.Contains(out, "connected") {
		t.Errorf("%s%s", out, errs)
	}
	if got := ledger(t, "data", id, ""); len(got) != 1 || got[0] != "tea" {
		t.Errorf("%q", got)
	}
	if words, err := os.ReadFile("data/prompts/pirate.en.md"); err != nil || string(words) != "Arr." {
		t.Errorf("%q %v", words, err)
	}
}

// TestBackupParts: the key and sound are left out unless they are asked for, and seven of the folder are kept.
func TestBackupParts(t *testing.T) {
	bare(t)
	t.Chdir(t.TempDir())
	if s, err := store.Open(t.Context(), store.Options{Path: "data/xiaozhi.db"}); err != nil || s.Close() != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"key", "admin-token", "music/a.mp3", "config.yaml"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join("data", name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join("data", name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for args, want := range map[string]string{"a": "config.yaml", "b --sound": "config.yaml music/a.mp3", "--key c": "config.yaml key", "--sound --key z": "config.yaml key music/a.mp3"} {
		if code, _, errs := runMain(t, append([]string{"backup"}, strings.Fields(args)...)...); code != 0 {
			t.Fatalf("%s: exit %d: %s", args, code, errs)
		}
		name := strings.Trim(args, "- soundkey")
		if code, _, errs := runMain(t, "restore", name, "--data", "to-"+name); code != 0 {
			t.Fatalf("%s: exit %d: %s", args, code, errs)
		}
		var got []string
		for _, file := range []string{"admin-token", "config.yaml", "key", "music/a.mp3"} {
			if info, err := os.Stat(filepath.Join("to-"+name, file)); err == nil && info.Mode().Perm() == 0o600 {
				got = append(got, file)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q", args, got)
		}
	}
	for i := range 7 {
		name := filepath.Join("data/backups", "xiaozhi-2026010"+string(rune('1'+i))+"T030000Z.tar.gz")
		if err := os.MkdirAll("data/backups", 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	code, out, errs := runMain(t, "backup")
	if all, _ := filepath.Glob("data/backups/xiaozhi-*"); code != 0 || len(all) != 7 || !strings.Contains(out, all[6]) {
		t.Errorf("exit %d: %q %s%s", code, all, out, errs)
	}
}

// TestBackupMistakes: each is said in both languages, and changes nothing.
func TestBackupMistakes(t *testing.T) {
	bare(t)
	t.Chdir(t.TempDir())
	if s, err := store.Open(t.Context(), store.Options{Path: "data/xiaozhi.db"}); err != nil || s.Close() != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("letter", []byte("a letter"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("none.yaml", []byte("store: {driver: none}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile("data/xiaozhi.db")
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]struct {
		code int
		says string
	}{
		"backup letter":               {1, "is there already"},
		"backup --data nowhere x":     {1, "没有可以备份的内容"},
		"backup --config none.yaml x": {1, "store.driver is none"},
		"backup x y":                  {2, `"y"`},
		"backup --voice x":            {2, "-sound"},
		"restore letter":              {1, "不是完整的备份"},
		"restore nowhere":             {1, "nowhere"},
		"restore":                     {2, "usage"},
		"restore letter --data .":     {1, "不是本程序的数据文件夹"},
		"restore letter x":            {2, `"x"`},
		"restore --help":              {0, "Stop the server first"},
	} {
		code, _, errs := runMain(t, strings.Fields(line)...)
		if code != want.code || !strings.Contains(errs, want.says) {
			t.Errorf("%s: exit %d: %s", line, code, errs)
		}
	}
	after, err := os.ReadFile("data/xiaozhi.db")
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the database was changed: %v", err)
	}
	for _, name := range []string{"nowhere", "x"} {
		if _, err := os.Lstat(name); err == nil {
			t.Error(name + " was made")
		}
	}
}
