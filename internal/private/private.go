// Package private reads files that nobody but their owner may change, and makes
// those that nobody else may read.
package private

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
)

const (
	groupWrites  fs.FileMode = 0o020
	othersWrite  fs.FileMode = 0o002
	othersAtAll  fs.FileMode = 0o077
	ownerOnly    fs.FileMode = 0o600
	maxSecret                = 64 << 10 // bytes of a secret
	tempPattern              = ".new-*"
	idOpenWrite              = "private/open-write"
	idOpenSecret             = "private/open-secret"
)

// OpenError says that a file or folder is open to other users of the machine.
type OpenError struct {
	Path  string
	id    string // of the message
	mount bool   // the command may change nothing on its file system
}

// Error says in both languages what is open, and the command that closes it, or what to do where that changes nothing.
func (e *OpenError) Error() string {
	in := func(lang text.Lang) string {
		said := message.In(lang, e.id, e.Path)
		if e.mount {
			said += message.In(lang, "private/open-mount", os.Getuid())
		}
		return said
	}
	return in(text.English) + " / " + in(text.Chinese)
}

func open(path, id string) error { return &OpenError{path, id, mayKeepNoRights(path)} }

// Check reports a file or folder that other users may write, as an [*OpenError]. The
// group may, if it is the owner's own: its number is that of the owner.
func Check(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return checkWrite(path, info)
}

// CheckSecret reports a file that other users may read or write, as an [*OpenError].
func CheckSecret(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return checkSecret(path, info)
}

func checkSecret(path string, info fs.FileInfo) error {
	if info.Mode()&othersAtAll != 0 {
		return open(path, idOpenSecret)
	}
	return nil
}

func checkWrite(path string, info fs.FileInfo) error {
	mode := info.Mode()
	if mode&othersWrite != 0 || mode&groupWrites != 0 && !ownGroup(info) {
		return open(path, idOpenWrite)
	}
	return nil
}

// ownGroup reports whether the group of a file is that of its owner alone, as systems
// number the group that they make for each user.
func ownGroup(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Uid == stat.Gid
}

// Read reads a file that nobody else may write. Otherwise it returns an [*OpenError].
func Read(path string) ([]byte, error) {
	return read(path, func(info fs.FileInfo) error { return checkWrite(path, info) }, -1)
}

// ReadSecret reads a file of up to 64 KiB that nobody else may read or write.
// Otherwise it returns an [*OpenError].
func ReadSecret(path string) ([]byte, error) {
	return read(path, func(info fs.FileInfo) error { return checkSecret(path, info) }, maxSecret)
}

// read reads a file that check has found right: the same one, whatever takes its name meanwhile.
func read(path string, check func(fs.FileInfo) error, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %w", path, errors.New(message.Both("private/no-file")))
	}
	if err := check(info); err != nil {
		return nil, err
	}
	if limit < 0 {
		return io.ReadAll(f)
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%s: %w", path, errors.New(message.Both("private/large", fmt.Sprint(limit))))
	}
	return data, err
}

// CreateSecret makes a file that nobody else may read. It is there whole or not at
// all, also after a loss of power. One that is there already is [fs.ErrExist].
func CreateSecret(path string, data []byte) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, filepath.Base(path)+tempPattern) // readable by its owner only
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // it is not there when all went well
	err = f.Chmod(ownerOnly)
	if err == nil {
		_, err = f.Write(data)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := publish(f.Name(), path); err != nil {
		return err
	}
	return syncFolder(dir)
}

// publish gives a finished file its name, which must be free.
func publish(temp, path string) error {
	err := os.Link(temp, path)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	if _, err := os.Lstat(path); err == nil { // a file system without links
		return fs.ErrExist
	}
	return os.Rename(temp, path)
}

// syncFolder makes the names in a folder last.
func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) { // some file systems cannot
		return fmt.Errorf("write %s: %w", dir, err)
	}
	return nil
}
