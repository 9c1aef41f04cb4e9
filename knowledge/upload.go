package knowledge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"xiaozhi/internal/text"
	"xiaozhi/knowledge/reader"
)

// Upload takes a document of an agent from a person, and has it read soon. It takes the place of one that was uploaded by the
// same name. The errors are [ErrLarge], [ErrEmpty], [ErrTooMany], [ErrNowhere], or of the disk or the store.
func (l *Library) Upload(ctx context.Context, agent, by, name string, body io.Reader) (Document, error) {
	if l.o.Incoming == "" {
		return Document{}, ErrNowhere
	}
	d := Document{ID: l.o.NewID(), Agent: agent, Name: nameOf(name), State: Waiting, By: by, At: stamp(time.Now())}
	file := filepath.Join(l.o.Incoming, d.ID)
	var err error
	if d.Size, d.Hash, err = store(file, body); err != nil {
		return Document{}, err
	}
	kept := false
	defer func() {
		if !kept {
			l.discard(filepath.Base(file))
		}
	}()
	l.changing.Lock()
	defer l.changing.Unlock()
	all := l.Documents(agent)
	same := slices.IndexFunc(all, func(o Document) bool { return o.Uploaded() && o.Name == d.Name })
	switch {
	case same >= 0 && all[same].Hash == d.Hash && all[same].State == Ready:
		return all[same], nil // it is what was read
	case same >= 0:
		d.ID = all[same].ID
		if err := os.Rename(file, filepath.Join(l.o.Incoming, d.ID)); err != nil {
			return Document{}, fmt.Errorf("keep the upload: %w", err)
		}
		file = filepath.Join(l.o.Incoming, d.ID)
	case len(all) >= MaxDocuments:
		return Document{}, ErrTooMany
	case len(slices.DeleteFunc(all, func(o Document) bool { return o.State != Waiting })) >= maxWaiting:
		return Document{}, ErrBusy
	}
	if err := l.o.Store.Put(ctx, d, nil); err != nil {
		return Document{}, fmt.Errorf("keep the upload: %w", err)
	}
	kept = true
	l.kept.set(d, nil)
	l.o.Changed(agent)
	l.Look()
	return d, nil
}

// store writes an upload to the disk.
func store(file string, body io.Reader) (size int64, hash string, err error) {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return 0, "", fmt.Errorf("keep the upload: %w", err)
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, "", fmt.Errorf("keep the upload: %w", err)
	}
	sum := sha256.New()
	size, err = io.Copy(io.MultiWriter(f, sum), io.LimitReader(body, reader.MaxFile+1))
	err = errors.Join(err, f.Sync(), f.Close())
	switch {
	case err != nil:
		err = fmt.Errorf("keep the upload: %w", err)
	case size > reader.MaxFile:
		err = ErrLarge
	case size == 0:
		err = ErrEmpty
	}
	if err != nil {
		return 0, "", errors.Join(err, os.Remove(file))
	}
	return size, hex.EncodeToString(sum.Sum(nil)), nil
}

// nameOf returns the name of an upload as people see it. It is never that of a file.
func nameOf(name string) string {
	name = text.Line(strings.ToValidUTF8(name, "?"))
	if i := strings.LastIndexAny(name, `/\`); i >= 0 { // which browsers of old send with its folder
		name = name[i+1:]
	}
	name = strings.TrimSpace(name)
	if ending := filepath.Ext(name); len(name) > maxName && len(ending) < 12 {
		name = text.Cut(strings.TrimSuffix(name, ending), maxName-len(ending)-len("…")) + ending
	}
	if name = text.Cut(name, maxName); strings.Trim(name, ".") == "" {
		return "document"
	}
	return name
}
