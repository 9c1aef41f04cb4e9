package store

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// File is a file that a backup holds beside the database.
type File struct {
	Name string // within the data folder, with slashes
	Path string
}

// manifest begins each archive.
type manifest struct {
	Format int       `json:"format"`
	Made   time.Time `json:"made"`
	Engine Engine    `json:"engine"` // the database is part of the archive if it is SQLite
	Cause  Cause     `json:"cause,omitempty"`
}

const (
	archiveFormat = 1
	manifestName  = "manifest.json"
	databaseName  = "xiaozhi.db" // in the archive
	filesFolder   = "files"
)

// Backup writes the database, as it is at one moment, and files into one archive (tar, gzip) for the owner only, while
// the store is used. The copy is checked. Of PostgreSQL only the files are written: pg_dump is for the rest. There is
// either a whole archive of that name afterwards or none.
func (s *Store) Backup(ctx context.Context, name string, files []File) error {
	return s.archive(ctx, name, ByHand, files)
}

func (s *Store) archive(ctx context.Context, name string, cause Cause, files []File) (err error) {
	part := name + partEnd
	f, err := createPart(part)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("back up to %s: %w", name, err), os.RemoveAll(part))
		}
	}()
	if err := errors.Join(s.fill(ctx, f, name+copyEnd, cause, files), f.Close()); err != nil {
		return err
	}
	return publish(part, name)
}

// Ends of the names of files that are not whole yet, or needed on the way only.
const (
	partEnd = ".part"
	copyEnd = ".db"
)

// createPart makes a file for the owner only, and its folder. One that was left behind goes.
func createPart(name string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return nil, err
	}
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// publish gives a file that is whole its name. Both are on the disk then.
func publish(part, name string) error {
	if err := syncFile(part); err != nil {
		return err
	}
	if err := os.Rename(part, name); err != nil {
		return err
	}
	return syncFile(filepath.Dir(name))
}

// syncFile has a file, or the names within a folder, on the disk.
func syncFile(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	err = f.Sync()
	if errors.Is(err, syscall.EINVAL) { // some file systems cannot do that with folders
		err = nil
	}
	return errors.Join(err, f.Close())
}

// fill writes the content of an archive; copied names a file that may be used on the way.
func (s *Store) fill(ctx context.Context, to io.Writer, copied string, cause Cause, files []File) error {
	zip := gzip.NewWriter(to)
	out := tar.NewWriter(zip)
	head, err := json.Marshal(manifest{Format: archiveFormat, Made: s.db.clock().UTC(), Engine: s.db.engine, Cause: cause})
	if err != nil {
		return err
	}
	if err := out.WriteHeader(&tar.Header{Name: manifestName, Mode: 0o600, Size: int64(len(head)), ModTime: s.db.clock()}); err != nil {
		return err
	}
	if _, err := out.Write(head); err != nil {
		return err
	}
	if s.db.engine == SQLite {
		if err := s.db.copyTo(ctx, copied); err != nil {
			return err
		}
		err := pack(out, databaseName, copied)
		if err := errors.Join(err, os.Remove(copied)); err != nil {
			return err
		}
	}
	for _, file := range files {
		err := pack(out, filesFolder+"/"+file.Name, file.Path)
		if errors.Is(err, os.ErrNotExist) { // it was deleted since they were listed
			continue
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(out.Close(), zip.Close())
}

// pack adds a regular file to an archive.
func pack(out *tar.Writer, name, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file", path)
	}
	if err := out.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: info.Size(), ModTime: info.ModTime()}); err != nil {
		return err
	}
	_, err = io.CopyN(out, f, info.Size())
	return err
}

// ErrArchive says that a file is no backup, or not a whole one.
var ErrArchive = errors.New("it is no whole backup")

// unpack writes the content of an archive below a folder that is empty, and returns what it begins with and the names
// of its files.
func unpack(archive, dir string) (m manifest, names []string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w: %w", archive, ErrArchive, err)
		}
	}()
	f, err := os.Open(archive)
	if err != nil {
		return m, nil, err
	}
	defer f.Close()
	zip, err := gzip.NewReader(f)
	if err != nil {
		return m, nil, err
	}
	for in := tar.NewReader(zip); ; {
		head, err := in.Next()
		if errors.Is(err, io.EOF) {
			_, err = io.Copy(io.Discard, zip) // its checksum is at the end
			return m, names, err
		}
		if err != nil {
			return m, nil, err
		}
		name := filepath.FromSlash(head.Name)
		switch {
		case head.Typeflag != tar.TypeReg || !filepath.IsLocal(name) || filepath.Clean(name) != name: // files/x/../../y leads out of files
			return m, nil, fmt.Errorf("%q does not belong into it", head.Name)
		case head.Name == manifestName:
			if m, err = readManifest(in); err != nil {
				return m, nil, err
			}
			continue
		case m.Format == 0:
			return m, nil, errors.New("it does not begin with " + manifestName)
		}
		if err := writeFile(filepath.Join(dir, name), in); err != nil {
			return m, nil, err
		}
		names = append(names, name)
	}
}

// manifestOf reads the beginning of an archive.
func manifestOf(archive string) (m manifest, err error) {
	f, err := os.Open(archive)
	if err != nil {
		return m, err
	}
	defer f.Close()
	zip, err := gzip.NewReader(f)
	if err != nil {
		return m, err
	}
	in := tar.NewReader(zip)
	head, err := in.Next()
	if err != nil {
		return m, err
	}
	if head.Name != manifestName {
		return m, fmt.Errorf("it begins with %q", head.Name)
	}
	return readManifest(in)
}

func readManifest(in io.Reader) (m manifest, err error) {
	if err := json.NewDecoder(io.LimitReader(in, 64<<10)).Decode(&m); err != nil {
		return m, err
	}
	if m.Format != archiveFormat {
		return m, fmt.Errorf("its format is %d, and %d is known", m.Format, archiveFormat)
	}
	return m, nil
}

// writeFile writes a file for the owner only, and its folders.
func writeFile(name string, from io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
