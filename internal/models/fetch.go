package models

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// Limits of a download.
const (
	maxFile = 16 << 30 // bytes
	tries   = 4        // of one source, each going on where the former ended
	idle    = 30 * time.Second
	pause   = time.Second // before the second try; longer before each one more
)

// Progress tells how far a download is.
type Progress struct {
	File        string
	Done, Total int64 // bytes; Total is 0 when it is not known
	Unpacking   bool  // it is here, and being unpacked
}

// fetcher fetches files over the network or from the disk.
type fetcher struct {
	client *http.Client
	idle   time.Duration
	pause  time.Duration
	tell   func(Progress)
}

// Failures of a download.
var (
	errChecksum = errors.New("the checksum is wrong")
	errTooLong  = errors.New("it is longer than it should be")
	errIdle     = errors.New("nothing has come for too long")
	errFinal    = errors.New("it is not there")
)

// fetch puts what a source gives into a file and returns its checksum. What the file holds already of it counts: that
// it was the same is told by the checksum in the end, or else by the server's tag of the file.
func (f *fetcher) fetch(ctx context.Context, s Source, file string) (sum string, err error) {
	for try := range tries {
		if try > 0 {
			select {
			case <-time.After(f.pause << (try - 1)):
			case <-ctx.Done():
				return "", ctx.Err()
			}
		}
		if err = f.more(ctx, s, file); err == nil || ctx.Err() != nil || errors.Is(err, errFinal) || errors.Is(err, errTooLong) {
			break
		}
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		return "", err
	}
	if sum, err = checksumOf(ctx, file); err != nil {
		return "", err
	}
	if s.SHA256 != "" && sum != s.SHA256 {
		return "", errors.Join(fmt.Errorf("%w: %s, want %s", errChecksum, sum, s.SHA256), os.Remove(file))
	}
	return sum, nil
}

// more fetches what the file lacks.
func (f *fetcher) more(ctx context.Context, s Source, file string) error {
	out, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	at, err := out.Seek(0, io.SeekEnd)
	if err == nil {
		if s.Size > 0 && at >= s.Size && s.SHA256 != "" { // whole: its checksum tells
			return out.Close()
		}
		err = f.body(ctx, s, out, at)
	}
	return errors.Join(err, out.Close())
}

// body asks for the rest of a source and appends it.
func (f *fetcher) body(ctx context.Context, s Source, out *os.File, at int64) error {
	if path, ok := strings.CutPrefix(s.URL, "file://"); ok {
		if u, err := url.Parse(s.URL); err == nil {
			path = u.Path
		}
		return f.local(ctx, s, path, out)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(f.idle, func() { cancel(errIdle) })
	defer watch.Stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept-Encoding", "identity")
	tag := out.Name() + ".tag"
	if at > 0 && s.SHA256 == "" {
		known, _ := os.ReadFile(tag)
		req.Header.Set("If-Range", cmp.Or(string(known), "none")) // none: the server begins anew
	}
	if at > 0 {
		req.Header.Set("Range", "bytes="+strconv.FormatInt(at, 10)+"-")
	}
	res, err := f.client.Do(req)
	if err != nil {
		return because(ctx, err)
	}
	defer res.Body.Close()
	switch res.StatusCode {
	case http.StatusOK:
		if err := restart(out); err != nil {
			return err
		}
		at = 0
		if err := os.WriteFile(tag, []byte(strongTag(res)), 0o600); err != nil {
			return err
		}
	case http.StatusPartialContent:
		if !strings.HasPrefix(res.Header.Get("Content-Range"), "bytes "+strconv.FormatInt(at, 10)+"-") {
			return errors.Join(errors.New("the server sent another piece than was asked for"), restart(out))
		}
	case http.StatusRequestedRangeNotSatisfiable:
		return errors.Join(errors.New("the server has less than is here already"), restart(out))
	case http.StatusNotFound, http.StatusForbidden, http.StatusUnauthorized, http.StatusGone:
		return fmt.Errorf("%w: %s", errFinal, res.Status)
	default:
		return fmt.Errorf("the server answered %s", res.Status)
	}
	total := s.Size
	if res.ContentLength >= 0 {
		total = at + res.ContentLength
	}
	if s.SHA256 != "" && s.Size > 0 && total > s.Size {
		return fmt.Errorf("%w: %d bytes, want %d", errTooLong, total, s.Size)
	}
	err = f.copy(ctx, out, res.Body, at, total, s, func() { watch.Reset(f.idle) })
	return because(ctx, err)
}

// strongTag is the server's tag of a file that is the same byte for byte, or "".
func strongTag(res *http.Response) string {
	if tag := res.Header.Get("ETag"); strings.HasPrefix(tag, `"`) && len(tag) < 1024 {
		return tag
	}
	return ""
}

// because gives the cause of an ended context in place of the error that it led to.
func because(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// restart empties a file.
func restart(out *os.File) error {
	_, err := out.Seek(0, io.SeekStart)
	return errors.Join(err, out.Truncate(0))
}

// local copies a file of this machine.
func (f *fetcher) local(ctx context.Context, s Source, path string, out *os.File) error {
	in, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("%w: %w", errFinal, err)
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%w: %s is no file", errFinal, path)
	}
	if err := restart(out); err != nil {
		return err
	}
	return f.copy(ctx, out, in, 0, info.Size(), s, func() {})
}

// copy appends a stream to a file, and tells of it.
func (f *fetcher) copy(ctx context.Context, out io.Writer, in io.Reader, at, total int64, s Source, alive func()) error {
	limit := int64(maxFile)
	if s.Size > 0 && s.SHA256 != "" {
		limit = s.Size
	}
	buf := make([]byte, 256<<10)
	for {
		n, err := in.Read(buf)
		alive()
		if at += int64(n); at > limit {
			return fmt.Errorf("%w: more than %d bytes", errTooLong, limit)
		}
		if _, err := out.Write(buf[:n]); err != nil {
			return err
		}
		if n > 0 && f.tell != nil {
			f.tell(Progress{File: s.file(), Done: at, Total: total})
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, io.EOF) && total > 0 && at < total:
			return io.ErrUnexpectedEOF
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// checksumOf computes the SHA-256 of a file.
func checksumOf(ctx context.Context, file string) (string, error) {
	in, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer in.Close()
	h, buf := sha256.New(), make([]byte, 1<<20)
	for {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		n, err := in.Read(buf)
		h.Write(buf[:n])
		if errors.Is(err, io.EOF) {
			return hex.EncodeToString(h.Sum(nil)), nil
		}
		if err != nil {
			return "", err
		}
	}
}
