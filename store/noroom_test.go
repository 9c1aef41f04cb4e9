package store

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"github.com/mattn/go-sqlite3"
)

// TestNoRoom: a full disk is known whoever tells of it.
func TestNoRoom(t *testing.T) {
	for err, want := range map[error]bool{
		nil: false, errors.New("full of joy"): false, sqlite3.Error{Code: sqlite3.ErrCorrupt}: false,
		fmt.Errorf("change: %w", sqlite3.Error{Code: sqlite3.ErrFull}): true,
		&fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}:     true,
	} {
		if got := NoRoom(err); got != want {
			t.Errorf("%v: %t", err, got)
		}
	}
}
