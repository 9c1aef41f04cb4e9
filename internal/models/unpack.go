package models

import (
	"archive/tar"
	"archive/zip"
	"compress/bzip2"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Limits of an archive.
const (
	maxUnpacked = 8 << 30 // bytes in all
	maxGrowth   = 40      // times the archive, or minGrowth
	minGrowth   = 64 << 20
	maxFiles    = 20000
	maxDepth    = 12
)

// Reasons for which an archive is refused.
var (
	errPath   = errors.New("a name leads out of the folder")
	errLink   = errors.New("it holds links or devices")
	errBomb   = errors.New("it would become too large")
	errFormat = errors.New("it is no archive of a known sort")
)

// archived reports whether a file is an archive by its name.
func archived(file string) bool {
	for _, end := range []string{".tar.bz2", ".tar.gz", ".tgz", ".tar", ".zip"} {
		if strings.HasSuffix(file, end) {
			return true
		}
	}
	return false
}

// unpacker writes the files of an archive below a folder that is its own.
type unpacker struct {
	dir   string
	part  Part
	limit int64 // bytes that may still come
	files int
}

// unpack writes the files of an archive into an empty folder, without the folder in which an archive has everything.
// named is the name that tells its format.
func unpack(ctx context.Context, archive, named, dir string, part Part, tell func(Progress)) error {
	in, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	u := &unpacker{dir: dir, part: part, limit: min(maxUnpacked, max(minGrowth, info.Size()*maxGrowth))}
	src := &interrupted{Reader: in, over: ctx.Err, tell: tell, at: Progress{File: named, Total: info.Size(), Unpacking: true}}
	switch {
	case strings.HasSuffix(named, ".zip"):
		err = u.zip(in, info.Size(), ctx.Err)
	case strings.HasSuffix(named, ".tar.bz2"):
		err = u.tar(bzip2.NewReader(src))
	case strings.HasSuffix(named, ".tar"):
		err = u.tar(src)
	default:
		var gz *gzip.Reader
		if gz, err = gzip.NewReader(src); err == nil {
			err = u.tar(gz)
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return err
	}
	if u.files == 0 {
		return fmt.Errorf("%w: there is nothing in it", errFormat)
	}
	return hoist(dir)
}

// hoist takes away the folder in which an archive has everything.
func hoist(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || !entries[0].IsDir() {
		return err
	}
	inner := filepath.Join(dir, entries[0].Name())
	entries, err = os.ReadDir(inner)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == filepath.Base(inner) { // it would take the place of the folder itself
			return nil
		}
	}
	for _, e := range entries {
		if err := os.Rename(filepath.Join(inner, e.Name()), filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return os.Remove(inner)
}

// interrupted is a file whose reading ends with a context, and that tells how far it was read.
type interrupted struct {
	io.Reader
	over func() error
	tell func(Progress) // nil: nobody is told
	at   Progress
}

func (i *interrupted) Read(b []byte) (int, error) {
	if err := i.over(); err != nil {
		return 0, err
	}
	n, err := i.Reader.Read(b)
	if i.at.Done += int64(n); i.tell != nil {
		i.tell(i.at)
	}
	return n, err
}

func (u *unpacker) tar(r io.Reader) error {
	t := tar.NewReader(r)
	for {
		head, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: %w", errFormat, err)
		}
		switch head.Typeflag {
		case tar.TypeDir, tar.TypeXGlobalHeader:
			continue
		case tar.TypeReg:
		default:
			return fmt.Errorf("%w: %q", errLink, head.Name)
		}
		if err := u.write(head.Name, head.Size, t); err != nil {
			return err
		}
	}
}

func (u *unpacker) zip(r io.ReaderAt, size int64, over func() error) error {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return fmt.Errorf("%w: %w", errFormat, err)
	}
	for _, f := range z.File {
		if f.Mode().IsDir() {
			continue
		}
		if !f.Mode().IsRegular() {
			return fmt.Errorf("%w: %q", errLink, f.Name)
		}
		in, err := f.Open()
		if err != nil {
			return fmt.Errorf("%w: %w", errFormat, err)
		}
		if err := errors.Join(u.write(f.Name, int64(min(f.UncompressedSize64, 1<<62)), &interrupted{Reader: in, over: over}), in.Close()); err != nil {
			return err
		}
	}
	return nil
}

// write writes one file.
func (u *unpacker) write(named string, size int64, in io.Reader) error {
	if u.files++; u.files > maxFiles || size > u.limit {
		return errBomb
	}
	rel, err := inside(named)
	if err != nil {
		return err
	}
	if !u.wanted(rel) {
		u.limit -= size
		return nil
	}
	if u.part.Flat {
		rel = path.Base(rel)
	}
	file := filepath.Join(u.dir, filepath.FromSlash(rel))
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	out, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(out, io.LimitReader(in, u.limit+1))
	if u.limit -= n; u.limit < 0 {
		err = errBomb
	}
	return errors.Join(err, out.Close())
}

// inside checks a name of an archive and returns it without "./".
func inside(named string) (string, error) {
	rel := path.Clean(strings.ReplaceAll(named, "\\", "/"))
	switch {
	case strings.ContainsAny(named, "\x00:"), path.IsAbs(rel), rel == "..", strings.HasPrefix(rel, "../"), rel == ".", len(rel) > 512,
		strings.Count(rel, "/") > maxDepth:
		return "", fmt.Errorf("%w: %.80q", errPath, named)
	}
	return rel, nil
}

// wanted reports whether a file of an archive is to be kept.
func (u *unpacker) wanted(rel string) bool {
	base := path.Base(rel)
	if base == recordFile {
		return false
	}
	for _, k := range u.part.Keep {
		if ok, _ := path.Match(k, base); ok {
			return true
		}
	}
	return u.part.Keep == nil && !strings.Contains("/"+rel, "/test_wavs/") && !strings.HasSuffix(base, ".wav") && !strings.HasSuffix(base, ".py")
}
