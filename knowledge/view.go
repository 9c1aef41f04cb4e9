package knowledge

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"
	"unicode/utf8"
)

// file is one that may be a document, as a look has found it.
type file struct {
	name     string // path in the folder, with slashes
	size     int64
	modified time.Time
	outside  bool // a link that leads out of the folder
}

// view holds the files that were found in a folder.
type view struct {
	files   []file
	entries int
	others  int      // files of other kinds
	unread  []string // folders that could not be read: what was in them is not gone
	err     error    // the first that was met
}

// through lists what is in a folder and below it. Links are followed to files within the folder, and to nothing else.
func through(ctx context.Context, root *os.Root) view {
	v := view{}
	v.folder(ctx, root, ".", 0)
	return v
}

func (v *view) trouble(err error) {
	if v.err == nil {
		v.err = err
	}
}

// folder lists a folder and what is below it.
func (v *view) folder(ctx context.Context, root *os.Root, dir string, level int) {
	in, err := root.Open(dir)
	if err != nil {
		v.trouble(err)
		v.unread = append(v.unread, dir)
		return
	}
	defer in.Close()
	for {
		entries, err := in.ReadDir(listed)
		for _, e := range entries {
			if v.entries++; v.entries > MaxEntries {
				v.trouble(ErrManyFiles)
				v.unread = append(v.unread, ".") // nobody knows what is gone
				return
			}
			if !skipped(e.Name()) {
				v.entry(ctx, root, path.Join(dir, e.Name()), e, level)
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return
		case err != nil:
			v.trouble(err)
			v.unread = append(v.unread, dir)
			return
		case ctx.Err() != nil:
			v.unread = append(v.unread, ".")
			return
		}
	}
}

// entry takes in one entry of a folder.
func (v *view) entry(ctx context.Context, root *os.Root, name string, e fs.DirEntry, level int) {
	link := e.Type()&fs.ModeSymlink != 0
	switch {
	case e.IsDir() && level < maxLevels:
		v.folder(ctx, root, name, level+1)
		return
	case e.IsDir():
		v.unread = append(v.unread, name)
		return
	case !e.Type().IsRegular() && !link:
		return
	case !document(name):
		v.others++
		return
	case !utf8.ValidString(name) || len(name) > maxPath:
		v.trouble(ErrFileName)
		return
	}
	info, err := root.Stat(name)
	switch {
	case err != nil && link:
		if _, err := root.Lstat(name); err != nil {
			return // gone since it was listed
		}
		v.files = append(v.files, file{name: name, outside: true})
	case err != nil:
		if !errors.Is(err, fs.ErrNotExist) {
			v.trouble(err)
			v.unread = append(v.unread, path.Dir(name))
		}
	case info.Mode().IsRegular():
		v.files = append(v.files, file{name: name, size: info.Size(), modified: stamp(info.ModTime())})
	}
}

// skipped reports whether a name is of what programs keep beside documents.
func skipped(name string) bool {
	switch name {
	case "@eaDir", "#recycle", "$RECYCLE.BIN", "System Volume Information", "lost+found", "Thumbs.db", "desktop.ini":
		return true
	}
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "~$")
}

// document reports whether a file of a folder is taken to be a document. What it really is its content tells.
func document(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".txt", ".text", ".md", ".markdown", ".html", ".htm", ".xhtml", ".docx", ".pdf", ".doc":
		return true
	}
	return false
}
