package app

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"xiaozhi/store"
)

// TestStoreError: why a store cannot be opened is said in both languages, in one line, with what to do.
func TestStoreError(t *testing.T) {
	for _, c := range []struct {
		err  error
		says []string
	}{
		{&fs.PathError{Op: "open", Path: "data/xiaozhi.db.lock", Err: fs.ErrPermission}, []string{"data/xiaozhi.db.lock", "chown", "写不进去"}},
		{&fs.PathError{Op: "open", Path: "data/x", Err: syscall.EROFS}, []string{"--data", "数据文件夹"}},
		{&fs.PathError{Op: "write", Path: "data/x", Err: syscall.ENOSPC}, []string{"make room", "磁盘满了"}},
		{&store.UnreachableError{Err: errors.New("refused:\n\t127.0.0.1:1\n")}, []string{"store.url", "refused: 127.0.0.1:1", "连不上"}},
		{&store.NewerError{Path: "x.db", Has: 9, Knows: 1}, []string{"none was found / x.db", "没有找到"}},
	} {
		said := storeError(c.err).Error()
		for _, part := range c.says {
			if !strings.Contains(said, part) {
				t.Errorf("%v: no %q in %s", c.err, part, said)
			}
		}
		if strings.Contains(said, "\n") || strings.Count(said, " / ") != 1 {
			t.Errorf("%v: %s", c.err, said)
		}
	}
}
