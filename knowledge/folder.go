package knowledge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"xiaozhi/knowledge/reader"
)

// Bounds of a look at a folder.
const (
	MaxEntries = 100_000          // files and folders
	maxLevels  = 24               // of folders within one another
	listed     = 500              // entries of a folder that are read at once
	settles    = 3 * time.Second  // a file that has just been changed may still be written
	believed   = 10 * time.Minute // after which a folder that is suddenly empty is taken to be: a disk that is not mounted looks so
	verified   = 8 << 20          // bytes of files that are read in each look although nothing says that they have changed
	maxPath    = 1000             // bytes of the path of a file in its folder
)

// ErrManyFiles says that a folder has more files than are looked at.
var ErrManyFiles = fmt.Errorf("there are more than %d files: what is beyond is not read", MaxEntries)

// ErrFileName says that the name of a file is not Unicode.
var ErrFileName = errors.New("names of files are not in UTF-8: they are left out")

// look looks at all folders.
func (l *Library) look() {
	if err := l.follow(); err != nil && l.ctx.Err() == nil {
		l.o.Log.Warn("the list of documents cannot be read", "err", err)
		return
	}
	l.forgetAgents()
	folders := l.o.Folders()
	l.forgetFolders(folders)
	for agent, paths := range folders {
		for _, path := range paths {
			if l.ctx.Err() != nil {
				return
			}
			l.lookAt(agent, path)
		}
	}
}

// forgetAgents deletes the documents of agents that were deleted.
func (l *Library) forgetAgents() {
	for _, agent := range l.kept.agents() {
		gone, err := l.o.Gone(l.ctx, agent)
		if gone && err == nil {
			err = l.Drop(l.ctx, agent)
		}
		if err != nil && l.ctx.Err() == nil {
			l.o.Log.Warn("documents of an agent that may be gone are still there", "agent", agent, "err", err)
		}
	}
}

// forgetFolders deletes the documents of folders that no agent has any more.
func (l *Library) forgetFolders(folders map[string][]string) {
	l.changing.Lock()
	defer l.changing.Unlock()
	for _, agent := range l.kept.agents() {
		var gone []Document
		for _, d := range l.Documents(agent) {
			if !d.Uploaded() && !slices.Contains(folders[agent], d.Folder) {
				gone = append(gone, d)
			}
		}
		if err := l.drop(l.ctx, agent, gone...); err != nil && l.ctx.Err() == nil {
			l.o.Log.Warn("documents of a folder are not forgotten", "agent", agent, "err", err)
		}
	}
	l.kept.keepFolders(folders)
}

// lookAt brings the documents of a folder up to what is in it.
func (l *Library) lookAt(agent, path string) {
	key := folderKey{agent, path}
	before := l.kept.folder(key)
	now := Folder{Path: path, Looked: time.Now(), emptied: before.emptied}
	root, err := os.OpenRoot(path)
	if err != nil {
		now.Err = err
	} else {
		defer root.Close()
		v := through(l.ctx, root)
		now.Others, now.Err = v.others, v.err
		now.Beyond = l.bring(agent, path, root, v, &now)
	}
	if l.ctx.Err() != nil {
		return
	}
	l.kept.setFolder(key, now)
	if errText(before.Err) != errText(now.Err) || before.Others != now.Others || before.Beyond != now.Beyond {
		if now.Err != nil {
			l.o.Log.Warn("a folder of documents cannot be read whole", "folder", path, "agent", agent, "err", now.Err)
		}
		l.o.Changed(agent)
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// bring reads what is new or changed in a folder, and forgets what is gone. It returns how many documents are too many.
func (l *Library) bring(agent, folder string, root *os.Root, v view, now *Folder) (beyond int) {
	known, others := map[string]Document{}, 0
	for _, d := range l.Documents(agent) {
		if d.Folder == folder {
			known[d.Name] = d
		} else {
			others++
		}
	}
	if len(v.files) == 0 && len(known) > 0 && v.err == nil {
		if now.emptied.IsZero() {
			now.emptied = now.Looked
		}
		if now.Looked.Sub(now.emptied) < believed {
			return 0
		}
	} else {
		now.emptied = time.Time{}
	}
	slices.SortFunc(v.files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	if room := max(0, MaxDocuments-others); len(v.files) > room {
		v.files, beyond = v.files[:room], len(v.files)-room
	}
	gone := missing(known, v)
	check := int64(verified)
	for _, f := range v.files {
		if l.ctx.Err() != nil {
			return beyond
		}
		d, there := known[f.name]
		began := time.Now()
		switch {
		case !there:
			d = Document{ID: l.o.NewID(), Agent: agent, Folder: folder, Name: f.name, At: stamp(began)}
			l.refresh(root, f, d, gone)
		case d.Size != f.size || !d.Modified.Equal(f.modified) || d.Reader != reader.Version || d.Fault == Closed || (d.Fault == Outside) != f.outside || d.Fault == Full && l.kept.room() > roomy:
			l.refresh(root, f, d, nil)
		case check >= f.size && d.Hash != "" && d.turn(now.Looked): // its time may be what it was although it is another
			check -= f.size
			l.refresh(root, f, d, nil)
		default:
			continue
		}
		l.rest(began)
		l.uploads() // people wait for them
	}
	l.changing.Lock()
	defer l.changing.Unlock()
	var all []Document
	for _, d := range gone {
		all = append(all, d)
	}
	if err := l.drop(l.ctx, agent, all...); err != nil && l.ctx.Err() == nil {
		l.o.Log.Warn("documents that are gone are not forgotten", "agent", agent, "err", err)
	}
	return beyond
}

// turn reports whether it is a document's turn to be read whole although nothing says that it has changed: each comes once in
// a hundred looks, in another one than most others.
func (d *Document) turn(at time.Time) bool {
	sum := 0
	for _, c := range d.ID {
		sum = sum*31 + int(c)
	}
	return (sum+int(at.Unix()/30))%100 == 0
}

// missing returns the documents that a look has not found, by their hashes, or ids where there is none. Those below folders
// that could not be read are not among them.
func missing(known map[string]Document, v view) map[string]Document {
	there := map[string]bool{}
	for _, f := range v.files {
		there[f.name] = true
	}
	gone := map[string]Document{}
	for name, d := range known {
		unread := slices.ContainsFunc(v.unread, func(dir string) bool { return dir == "." || strings.HasPrefix(name, dir+"/") })
		if !there[name] && !unread {
			key := d.Hash
			if _, twice := gone[key]; key == "" || twice {
				key = d.ID
			}
			gone[key] = d
		}
	}
	return gone
}

// refresh reads a file if it is another than what is known of it. One that is only somewhere else is not read again: then it
// is taken out of gone.
func (l *Library) refresh(root *os.Root, f file, d Document, gone map[string]Document) {
	if f.outside {
		d.Size, d.Modified = f.size, f.modified
		l.keep(d, reader.Document{}, &reader.FaultError{Fault: Outside})
		return
	}
	if since := time.Since(f.modified); since >= 0 && since < settles {
		return
	}
	in, info, err := openFile(root, f.name)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return // gone since it was seen
		}
		if d.Fault != Closed {
			d.Size, d.Modified, d.Hash = f.size, f.modified, ""
			l.keep(d, reader.Document{}, &reader.FaultError{Fault: Closed, Err: err})
		}
		return
	}
	defer in.Close()
	before := d
	d.Size, d.Modified = info.Size(), stamp(info.ModTime())
	if d.Size > reader.MaxFile {
		d.Hash = ""
		l.keep(d, reader.Document{}, &reader.FaultError{Fault: reader.Large})
		return
	}
	if d.Hash, err = sum(l.ctx, in); err != nil {
		if l.ctx.Err() == nil && before.Fault != Closed {
			d.Hash = ""
			l.keep(d, reader.Document{}, &reader.FaultError{Fault: Closed, Err: err})
		}
		return
	}
	if old, moved := gone[d.Hash]; moved && old.Size == d.Size && old.Reader == reader.Version {
		delete(gone, d.Hash)
		old.Name, old.Modified = d.Name, d.Modified
		l.renamed(old)
		return
	}
	if before.Hash == d.Hash && before.Reader == reader.Version && !again(&before, &d) {
		if !before.Modified.Equal(d.Modified) {
			l.noted(d)
		}
		return
	}
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		return
	}
	read, err := l.o.Read(l.ctx, in, d.Name)
	if after, e := in.Stat(); e == nil && (after.Size() != d.Size || !stamp(after.ModTime()).Equal(d.Modified)) {
		return // it was written meanwhile: the next look reads it
	}
	l.keep(d, read, err)
}

// again reports whether a file that is as it was is read again: it was short of room, or its time says that somebody wants it, for
// it was short of memory or time, which others may have taken.
func again(before, now *Document) bool {
	switch before.Fault {
	case Full:
		return true
	case reader.Slow, reader.Heavy:
		return !before.Modified.Equal(now.Modified)
	}
	return false
}

// noted commits that a file has another time, and nothing else.
func (l *Library) noted(d Document) {
	l.changing.Lock()
	defer l.changing.Unlock()
	if err := l.o.Store.Note(l.ctx, d); err == nil {
		l.kept.note(d)
	}
}

// renamed commits that a document has another name, by which it is found.
func (l *Library) renamed(d Document) {
	l.noted(d)
	if d.Pieces > 0 {
		if err := l.index(d); err != nil && l.ctx.Err() == nil {
			l.o.Log.Warn("a document is found by its former name", "document", d.Name, "agent", d.Agent, "err", err)
		}
	}
	l.o.Changed(d.Agent)
}

// openFile opens a file that is none of the other things that have names, such as a pipe, which would hold up who opens it.
func openFile(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no file", name)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// sum returns the hash of a file.
func sum(ctx context.Context, f io.Reader) (string, error) {
	h, room := sha256.New(), make([]byte, 256<<10)
	for {
		n, err := f.Read(room)
		h.Write(room[:n])
		switch {
		case errors.Is(err, io.EOF):
			return hex.EncodeToString(h.Sum(nil)), nil
		case err != nil:
			return "", err
		case ctx.Err() != nil:
			return "", ctx.Err()
		}
	}
}
