package e2e

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestJourneyUpgrade (J18): a database that a server of an older schema has left is opened by this one, after a copy was made, and the
// pages show what was in it.
func TestJourneyUpgrade(t *testing.T) {
	journey(t, phoneByNight, func(t *testing.T, l look) {
		left, err := filepath.Glob(filepath.Join("testdata", "schema-*.db.gz"))
		if err != nil || len(left) == 0 {
			t.Fatal("no database of an older schema", err)
		}
		for _, file := range left {
			dir := t.TempDir()
			unpack(t, file, filepath.Join(dir, "data", "xiaozhi.db"))
			s, err := launch(setup{config: "store: {keep_days: 0}\n"}, dir)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.stop(t) })
			v := l.visit(t, s, s.own(limit(t), t), "devices")
			v.pressText("Attic of the first schema")
			v.sees("24:6f:28:01:00:01")
			v.open("conversations?text=who+were+you")
			v.pressText("who were you")
			v.sees("I was of the first schema.")
			v.sees("self.lamp.get_state")
			v.reads("conversations/has-failed")
			v.done()
			if copies, err := filepath.Glob(filepath.Join(dir, "data", "backups", strings.TrimSuffix(filepath.Base(file), ".db.gz")+"-*")); err != nil || len(copies) != 1 {
				t.Errorf("%s: copies before the upgrade: %q %v", file, copies, err)
			}
		}
	})
}

// unpack writes what a packed file holds.
func unpack(t *testing.T, from, to string) {
	t.Helper()
	f, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	packed, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := io.ReadAll(packed)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, whole, 0o600); err != nil {
		t.Fatal(err)
	}
}
