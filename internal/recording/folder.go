package recording

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"xiaozhi/audio"
	"xiaozhi/audio/file"
)

const (
	suffix  = ".opus" // of files; others are nobody's business here
	part    = ".part" // behind it while a file is written
	maxName = 200     // bytes of a name
)

// Unfinished reports whether a file of the folder is being written, or was when the program was killed.
func Unfinished(name string) bool { return strings.HasSuffix(name, suffix+part) }

// name makes the name of a file or folder of an id: another one of each id, whatever signs it has, and none that leads
// anywhere else. Of a MAC address the colons become underscores.
func name(id string) string {
	var b strings.Builder
	for _, c := range []byte(id) {
		switch {
		case '0' <= c && c <= '9', 'a' <= c && c <= 'z', c == '-':
			b.WriteByte(c)
		case c == ':':
			b.WriteByte('_')
		default:
			fmt.Fprintf(&b, "%%%02x", c)
		}
	}
	switch {
	case b.Len() == 0:
		return "%"
	case b.Len() > maxName:
		sum := sha256.Sum256([]byte(id))
		return "%%" + hex.EncodeToString(sum[:])
	}
	return b.String()
}

// folder is the folder of recordings. It is opened when it is used first, and made when something is written. Paths are
// within it, with slashes, and lead nowhere else, by links either. It is for one goroutine.
type folder struct {
	path string
	root *os.Root
}

func (f *folder) close() {
	if f.root != nil {
		_ = f.root.Close() // nothing is written by it
		f.root = nil
	}
}

// open opens the folder. One that others may look into is closed to them. false: it is not there.
func (f *folder) open(create bool) (bool, error) {
	if f.root != nil {
		return true, nil
	}
	if create {
		if err := os.MkdirAll(f.path, 0o700); err != nil {
			return false, err
		}
	}
	root, err := os.OpenRoot(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	info, err := root.Stat(".")
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		err = root.Chmod(".", 0o700)
	}
	if err != nil {
		return false, errors.Join(err, root.Close())
	}
	f.root = root
	return true, nil
}

// write makes a file, which is on the disk as a whole when it returns nil, and not there otherwise.
func (f *folder) write(name string, p *audio.Packets, rate int) (size int64, err error) {
	if _, err := f.open(true); err != nil {
		return 0, err
	}
	err = f.root.MkdirAll(path.Dir(name), 0o700)
	if errors.Is(err, fs.ErrNotExist) { // somebody has deleted the folder
		f.close()
		if _, err = f.open(true); err == nil {
			err = f.root.MkdirAll(path.Dir(name), 0o700)
		}
	}
	if err != nil {
		return 0, err
	}
	if size, err = f.fill(name+part, p, rate); err == nil {
		err = f.root.Rename(name+part, name)
	}
	if err == nil {
		err = f.sync(path.Dir(name))
	}
	if err != nil {
		return 0, errors.Join(err, f.remove(name+part), f.remove(name))
	}
	return size, nil
}

func (f *folder) fill(name string, p *audio.Packets, rate int) (size int64, err error) {
	out, err := f.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return 0, err
	}
	b := bufio.NewWriter(out)
	err = file.WriteOpus(b, p, rate)
	if err == nil {
		err = b.Flush()
	}
	if err == nil {
		err = out.Sync()
	}
	if err == nil {
		var info fs.FileInfo
		if info, err = out.Stat(); err == nil {
			size = info.Size()
		}
	}
	return size, errors.Join(err, out.Close())
}

// sync has the names within a folder on the disk.
func (f *folder) sync(name string) error {
	dir, err := f.root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// remove deletes a file, and the folders above it that are empty then. One that is not there is no error.
func (f *folder) remove(name string) error {
	if there, err := f.open(false); !there {
		return err
	}
	if err := f.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	dir := path.Dir(name)
	for dir != "." && f.root.Remove(dir) == nil { // until something is in one
		dir = path.Dir(dir)
	}
	return nil
}

// removeAll deletes a folder within this one.
func (f *folder) removeAll(name string) error {
	if there, err := f.open(false); !there {
		return err
	}
	if err := f.root.RemoveAll(name); err != nil {
		return err
	}
	if above := path.Dir(name); above != "." {
		_ = f.root.Remove(above) // if it is empty
	}
	return nil
}

// list lists what is in a folder.
func (f *folder) list(name string) ([]fs.DirEntry, error) { return fs.ReadDir(f.root.FS(), name) }

// sweep deletes the files that are not named by the rows of their talk, and those that are not whole.
func (f *folder) sweep(named func(talk string) (map[string]bool, error)) error {
	if there, err := f.open(false); !there {
		return err
	}
	devices, err := f.list(".")
	if err != nil {
		return err
	}
	for _, device := range devices {
		if !device.IsDir() {
			continue
		}
		talks, err := f.list(device.Name())
		if err != nil {
			return err
		}
		for _, talk := range talks {
			if !talk.IsDir() {
				continue
			}
			if err := f.sweepTalk(device.Name()+"/"+talk.Name(), talk.Name(), named); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *folder) sweepTalk(dir, talk string, named func(talk string) (map[string]bool, error)) error {
	rows, err := named(talk)
	if err != nil {
		return err
	}
	files, err := f.list(dir)
	if err != nil {
		return err
	}
	for _, one := range files {
		at := dir + "/" + one.Name()
		whole := strings.HasSuffix(at, suffix)
		if rows[at] || !whole && !Unfinished(at) {
			continue
		}
		if err := f.remove(at); err != nil {
			return err
		}
	}
	return nil
}
