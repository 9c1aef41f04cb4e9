package routine

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestFiles: routines of files count as they are written, when they change too; one that is wrong leaves in place what was there,
// and is told with its line.
func TestFiles(t *testing.T) {
	dir, secret := t.TempDir(), filepath.Join(t.TempDir(), "token")
	write := func(name, words string, mode os.FileMode) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, []byte(words), mode), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(secret, []byte("0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	write("a.yaml", "morning:\n  to: hall\n  when: every 10 minutes\n  prompt: the weather\n  late: 30m\ndoor:\n  to: all\n  on: {hook: true, token: \"${DOOR}\"}\n  say: It rings.\n", 0o644)
	write("b.yaml", "morning:\n  to: hall\n  when: every day at 8\n  say: x\nbell:\n  to: all\n  on: {hook: true, token_file: "+secret+"}\n  say: x\n", 0o644)
	synctest.Test(t, func(t *testing.T) {
		d, in := &doer{}, &kept{all: map[string]Routine{}}
		files := func(o *Options) {
			o.Folder = dir
			o.Variable = func(name string) (string, bool) { return "fedcba9876543210", name == "DOOR" }
		}
		b := opened(t, in, d, files)
		problems := func(want ...string) {
			t.Helper()
			got := b.Problems()
			for i, p := range got {
				if i >= len(want) || !strings.Contains(p.File+": "+p.What, want[i]) {
					t.Errorf("%s: %s", p.File, p.What)
				}
			}
			if len(got) != len(want) {
				t.Errorf("%d problems, want %q", len(got), want)
			}
		}
		problems("b.yaml: morning stands in a.yaml already")
		if err := errors.Join(b.Hook("door", "fedcba9876543210", ""), b.Hook("bell", "0123456789abcdef", "")); err != nil {
			t.Error(err)
		}
		if err := errors.Join(b.Hook("door", "${DOOR}", "")); err == nil {
			t.Error("the name of its variable is a token")
		}
		time.Sleep(11*time.Minute + time.Second) // files are written while nobody looks at them
		if got := d.taken(); !strings.HasSuffix(got, "; morning 01 00:10") {
			t.Errorf("it did %s", got)
		}
		for id, err := range map[string]error{"morning": b.Delete(t.Context(), "morning"), "door": func() error {
			_, err := b.Replace(t.Context(), "door", Definition{To: "x", When: "every day at 7", Say: "x"})
			return err
		}()} {
			if !errors.Is(err, ErrFile) {
				t.Errorf("%s: %v", id, err)
			}
		}

		write("a.yaml", "morning:\n  to: hall\n  when: every 10 minutes\n  prompt: the weather\n\nnoon:\n  to: hall\n  when: whenever\n  say: x\n", 0o644)
		write("b.yaml", "x:\n  too: hall\n", 0o644)
		write("c.yaml", "Night Owl: {to: hall, when: every day at 23, say: x}\n", 0o644)
		write("d.yaml", "plain:\n  to: all\n  on: {hook: true, token: 0123456789abcdef}\n  say: x\n", 0o644)
		write("e.yaml", "short:\n  to: all\n  on: {hook: true, token: \"12345\"}\n  say: x\nonce:\n  to: all\n  when: tomorrow at 7\n  say: x\n", 0o600)
		write("f.yaml", strings.Repeat("# long\n", maxFile), 0o600)
		write("g.yaml", "\t: [", 0o600)
		write("h.yaml", "", 0o600)
		write(".hidden.yaml", "x: [", 0o600)
		time.Sleep(lookFiles + time.Second)
		problems("b.yaml: yaml: unmarshal errors: line 2: field too not found", "b.yaml: morning stands in", "c.yaml: line 1, Night Owl", "d.yaml: ", "e.yaml: line 1, short",
			"f.yaml: the file is larger", "g.yaml: ", "a.yaml: noon: when")
		time.Sleep(10 * time.Minute)
		if got := d.taken(); got != "morning 01 00:20" {
			t.Errorf("it did %s", got)
		}

		b.Close() // what files say goes on after a restart; what was done is known
		if err := os.Remove(filepath.Join(dir, "b.yaml")); err != nil {
			t.Fatal(err)
		}
		b = opened(t, in.copied(), d, files)
		time.Sleep(5 * time.Minute)
		if got := d.taken(); got != "" {
			t.Errorf("it did %s", got)
		}
		if r, err := b.Find("morning"); err != nil || r.Runs != 2 {
			t.Errorf("%+v, %v", r.State, err)
		}
		if _, err := b.Find("bell"); !errors.Is(err, ErrNone) {
			t.Error(err)
		}
		if err := os.Remove(filepath.Join(dir, "a.yaml")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Minute)
		if got := d.taken(); got != "" {
			t.Errorf("after its file was deleted it did %s", got)
		}
	})
}

// FuzzFile: whatever stands in a file, it is routines that can be done, or a mistake.
func FuzzFile(f *testing.F) {
	f.Add([]byte("a:\n  to: all\n  when: every day at 7\n  tool: {name: x, arguments: {y: [1, {z: 2}]}}\n"))
	f.Add([]byte("a: {to: here, on: {tool: '[x'}, say: x, late: 5h, limit: -1}"))
	f.Add([]byte("a: &x {to: all}\nb: *x\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		all, _, err := decode(data)
		if err != nil {
			return
		}
		for _, d := range all {
			if d.check() != nil {
				continue
			}
			s, err := d.schedule(State{}, time.UTC, time.Now(), true)
			if err == nil && !d.Disabled && d.On == nil && s.Due.IsZero() {
				t.Errorf("%+v comes never", d)
			}
			d.On.fits(Event{Tool: "x", Server: "y", Resource: "z"})
		}
	})
}
