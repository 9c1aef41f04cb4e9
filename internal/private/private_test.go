package private

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// write makes a file with these rights, whatever the umask is.
func write(t *testing.T, mode fs.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOpenFiles(t *testing.T) {
	for mode, want := range map[fs.FileMode]struct{ write, secret bool }{ // refused
		0o600: {false, false}, 0o400: {false, false}, 0o644: {false, true}, 0o640: {false, true}, 0o604: {false, true},
		0o602: {true, true}, 0o666: {true, true}, 0o622: {true, true}, 0o777: {true, true}, 0o601: {false, true},
	} {
		path := write(t, mode)
		for what, c := range map[string]struct {
			err     error
			refused bool
		}{
			"check":  {Check(path), want.write},
			"read":   {second(Read(path)), want.write},
			"secret": {second(ReadSecret(path)), want.secret},
			"keys":   {CheckSecret(path), want.secret},
		} {
			open, is := errors.AsType[*OpenError](c.err)
			if is != c.refused || (c.err != nil) != c.refused {
				t.Errorf("%s of %o: %v", what, mode, c.err)
			}
			if is && (open.Path != path || !strings.Contains(c.err.Error(), "chmod") || !strings.Contains(c.err.Error(), path)) {
				t.Errorf("%s of %o: says %q", what, mode, c.err)
			}
		}
	}
}

func second(_ []byte, err error) error { return err }

// A group that has the number of the owner is the owner's own; another may be
// that of many.
func TestCheckGroup(t *testing.T) {
	path := write(t, 0o664)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	stat := info.Sys().(*syscall.Stat_t)
	own := stat.Uid == stat.Gid
	if err := Check(path); (err == nil) != own {
		t.Errorf("group %d of owner %d: %v", stat.Gid, stat.Uid, err)
	}
	if os.Geteuid() != 0 {
		return
	}
	for group, want := range map[int]bool{0: true, 1234: false} {
		if err := os.Chown(path, 0, group); err != nil {
			t.Skip(err)
		}
		if err := Check(path); (err == nil) != want {
			t.Errorf("group %d of root: %v", group, err)
		}
	}
}

func TestReadNoFile(t *testing.T) {
	dir := t.TempDir()
	for what, err := range map[string]error{
		"folder": second(Read(dir)), "secret folder": second(ReadSecret(dir)),
	} {
		if err == nil || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := Read(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("none: %v", err)
	}
	large := filepath.Join(dir, "large")
	if err := os.WriteFile(large, bytes.Repeat([]byte("x"), maxSecret+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadSecret(large); err == nil {
		t.Error("a secret of any size was read")
	}
	if data, err := Read(large); err != nil || len(data) != maxSecret+1 {
		t.Errorf("a large file: %d bytes, %v", len(data), err)
	}
}

// Of many who make the same file at once one does, all read the same, and nothing
// half-made is left.
func TestCreateSecretOnce(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "secret")
	var wg sync.WaitGroup
	made := make(chan byte, 16)
	for i := range byte(16) {
		wg.Go(func() {
			switch err := CreateSecret(path, bytes.Repeat([]byte{'a' + i}, 1000)); {
			case err == nil:
				made <- 'a' + i
			case !errors.Is(err, fs.ErrExist):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	close(made)
	if len(made) != 1 {
		t.Fatalf("made %d times", len(made))
	}
	data, err := ReadSecret(path)
	if err != nil || !bytes.Equal(data, bytes.Repeat([]byte{<-made}, 1000)) {
		t.Errorf("%.10q, %v", data, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%d files in the folder, %v", len(entries), err)
	}
}

func TestCreateSecretMode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	old := syscall.Umask(0)
	err := CreateSecret(path, []byte("x"))
	syscall.Umask(old)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := CreateSecret(filepath.Join(path, "below"), nil); err == nil {
		t.Error("made in a file")
	}
}
