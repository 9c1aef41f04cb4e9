package admintoken

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"xiaozhi/internal/private"
)

func TestEnsure(t *testing.T) {
	data := t.TempDir()
	if _, err := Read(data); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("before the first start: %v", err)
	}
	token, err := Ensure(data)
	if err != nil || len(token) != 64 {
		t.Fatalf("%d characters, %v", len(token), err)
	}
	if again, err := Ensure(data); again != token || err != nil {
		t.Errorf("the second time: another one, %v", err)
	}
	if read, err := Read(data); read != token || err != nil {
		t.Errorf("read: another one, %v", err)
	}
	if other, err := Ensure(t.TempDir()); other == token || err != nil {
		t.Errorf("the same in two folders, %v", err)
	}
}

// A token that others can read or write, or that somebody has shortened, is refused
// and stays as it is.
func TestEnsureRefuses(t *testing.T) {
	for _, mode := range []fs.FileMode{0o640, 0o604, 0o620, 0o602} {
		data := t.TempDir()
		if _, err := Ensure(data); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(Path(data), mode); err != nil {
			t.Fatal(err)
		}
		token, err := Ensure(data)
		if _, is := errors.AsType[*private.OpenError](err); !is || token != "" {
			t.Errorf("%o: %v", mode, err)
		}
	}
	for _, text := range []string{"", "\n", "short", strings.Repeat("a", 63), strings.Repeat("g", 64), strings.Repeat("a", 66)} {
		data := t.TempDir()
		if err := os.WriteFile(Path(data), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		token, err := Ensure(data)
		if err == nil || token != "" || !strings.Contains(err.Error(), Path(data)) || text != "" && len(text) > 1 && strings.Contains(err.Error(), text) {
			t.Errorf("%q: %q, %v", text, token, err)
		}
		if kept, _ := os.ReadFile(Path(data)); string(kept) != text {
			t.Errorf("%q was changed", text)
		}
	}
	if _, err := Ensure("/nonexistent/folder"); err == nil {
		t.Error("made in no folder")
	}
}
