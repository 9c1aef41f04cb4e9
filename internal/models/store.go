package models

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// recordFile holds what is known of the files in the folder of a model that was fetched.
const recordFile = "installed.json"

// lockFile keeps two programs from changing the folder at once.
const lockFile = ".lock"

// Store is the folder of all models. Its methods may be called by one goroutine at a time; other programs are kept
// out by a lock.
type Store struct {
	Dir    string
	Mirror string // address of a folder, https, http or file, that has the files in place of their sources; "": none
	Client *http.Client
	Tell   func(Progress) // nil: nobody is told
	// Inspect looks at the files of a model before it is put into its place, and whenever it is checked; nil: only
	// checksums count.
	Inspect func(role, dir string) error
	// Idle is how long nothing may come, and Pause the time before another try; 0: 30 s and 1 s.
	Idle, Pause time.Duration
}

// Record notes how a model was fetched, and its files.
type Record struct {
	Name     string          `json:"name"`
	Role     string          `json:"role"`
	Licence  string          `json:"licence,omitempty"`
	Sources  []string        `json:"sources"`
	Verified bool            `json:"verified"` // all checksums were known before
	When     time.Time       `json:"when"`
	Files    map[string]File `json:"files"`
}

// File notes size and checksum of a file.
type File struct {
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// State tells how much of an entry is here.
type State string

// The states of an entry.
const (
	Absent   State = "absent"
	Partly   State = "partly" // a download was interrupted
	Present  State = "present"
	OwnFiles State = "own" // the owner put it there
)

// Failures that a person can do something about.
var (
	ErrUnknown = errors.New("it is not in the catalogue")
	ErrBusy    = errors.New("another program changes the models")
	ErrAbsent  = errors.New("it is not there")
	ErrName    = errors.New("this cannot be the name of a model")
	ErrChanged = errors.New("files have changed since the download")
)

// Path is the folder of a model.
func (s *Store) Path(model string) string { return filepath.Join(s.Dir, model) }

// parts is the folder of downloads that are not complete.
func (s *Store) parts(model string) string { return filepath.Join(s.Dir, "."+model+".part") }

// State tells what there is of a model.
func (s *Store) State(model string) State {
	if _, err := s.record(model); err == nil {
		return Present
	}
	if info, err := os.Stat(s.Path(model)); err == nil && info.IsDir() {
		return OwnFiles
	}
	if _, err := os.Stat(s.parts(model)); err == nil {
		return Partly
	}
	return Absent
}

// Names are the models that are there, in order.
func (s *Store) Names() ([]string, error) {
	entries, err := os.ReadDir(s.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// record reads what is known of a model that was fetched.
func (s *Store) record(model string) (Record, error) {
	var r Record
	if !name.MatchString(model) {
		return r, fmt.Errorf("%w: %.80q", ErrName, model)
	}
	text, err := os.ReadFile(filepath.Join(s.Path(model), recordFile))
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	return r, err
}

// lock keeps other programs out until the returned function is called.
func (s *Store) lock() (func(), error) {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(s.Dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, ErrBusy
	}
	return func() { f.Close() }, nil
}

// Get fetches an entry, verifies it and puts it into its place. What is there already stays if it is whole. An
// interrupted download goes on where it was.
func (s *Store) Get(ctx context.Context, e Entry) (Record, error) {
	if err := e.check(); err != nil {
		return Record{}, err
	}
	unlock, err := s.lock()
	if err != nil {
		return Record{}, err
	}
	defer unlock()
	switch s.State(e.Name) {
	case Present:
		if r, err := s.Check(ctx, e.Name); err == nil || ctx.Err() != nil {
			return r, err
		}
	case OwnFiles:
		return Record{}, fmt.Errorf("%s: %w", s.Path(e.Name), fs.ErrExist)
	case Absent, Partly:
	}
	r, err := s.fetch(ctx, e)
	if err != nil {
		return Record{}, err
	}
	return r, os.RemoveAll(s.parts(e.Name))
}

// fetch fetches the parts of an entry into a folder beside its place, and renames it.
func (s *Store) fetch(ctx context.Context, e Entry) (Record, error) {
	parts := s.parts(e.Name)
	fresh := filepath.Join(parts, "unpacked")
	if err := errors.Join(os.RemoveAll(fresh), os.MkdirAll(fresh, 0o700)); err != nil {
		return Record{}, err
	}
	r := Record{Name: e.Name, Role: e.Role, Licence: e.Licence, Verified: true, When: time.Now().UTC(), Files: make(map[string]File)}
	for i, p := range e.Parts {
		source, err := s.part(ctx, p, fmt.Sprintf("%s/%d-", parts, i), fresh)
		if err != nil {
			return r, err
		}
		r.Sources = append(r.Sources, source.URL)
		r.Verified = r.Verified && source.SHA256 != ""
	}
	if s.Inspect != nil {
		if err := s.Inspect(e.Role, fresh); err != nil {
			return r, err
		}
	}
	var err error
	if r.Files, err = list(ctx, fresh); err != nil {
		return r, err
	}
	text, err := json.MarshalIndent(r, "", "\t")
	if err == nil {
		err = os.WriteFile(filepath.Join(fresh, recordFile), text, 0o600)
	}
	if err != nil {
		return r, err
	}
	return r, errors.Join(os.RemoveAll(s.Path(e.Name)), os.Rename(fresh, s.Path(e.Name)))
}

// part fetches a part from the first source that has it, and puts its files into a folder.
func (s *Store) part(ctx context.Context, p Part, prefix, dir string) (Source, error) {
	f := &fetcher{client: s.Client, idle: s.Idle, pause: s.Pause, tell: s.Tell}
	if f.client == nil {
		f.client = http.DefaultClient
	}
	if f.idle == 0 {
		f.idle = idle
	}
	if f.pause == 0 {
		f.pause = pause
	}
	var failed []error
	for _, source := range s.sources(p) {
		file := prefix + source.file() + ".part"
		if _, err := f.fetch(ctx, source, file); err != nil {
			if ctx.Err() != nil {
				return source, ctx.Err()
			}
			failed = append(failed, fmt.Errorf("%s: %w", shown(source.URL), err))
			continue
		}
		if err := s.place(ctx, p, source, file, dir); err != nil {
			return source, fmt.Errorf("%s: %w", source.file(), err)
		}
		return source, nil
	}
	return Source{}, errors.Join(failed...)
}

// place puts the files of a fetched part into a folder.
func (s *Store) place(ctx context.Context, p Part, source Source, file, dir string) error {
	if !archived(source.file()) {
		return os.Rename(file, filepath.Join(dir, source.file()))
	}
	inner := filepath.Join(dir, ".archive")
	if err := os.Mkdir(inner, 0o700); err != nil {
		return err
	}
	if err := unpack(ctx, file, source.file(), inner, p, s.Tell); err != nil {
		return err
	}
	entries, err := os.ReadDir(inner)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := os.Rename(filepath.Join(inner, e.Name()), filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return os.Remove(inner)
}

// sources lists the addresses of a part: those at the mirror alone, if there is one.
func (s *Store) sources(p Part) []Source {
	var out []Source
	for _, source := range p.Sources {
		if s.Mirror != "" {
			source.URL = strings.TrimRight(s.Mirror, "/") + "/" + url.PathEscape(source.file())
		}
		if strings.Contains(source.URL, "://") {
			out = append(out, source)
		}
	}
	return out
}

// shown is an address without what could be secret.
func shown(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "?"
	}
	u.RawQuery, u.User = "", nil
	return u.String()
}

// list computes size and checksum of every file below a folder, by its path in there.
func list(ctx context.Context, dir string) (map[string]File, error) {
	files := make(map[string]File)
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, file)
		if err != nil || rel == recordFile {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		sum, err := checksumOf(ctx, file)
		files[filepath.ToSlash(rel)] = File{info.Size(), sum}
		return err
	})
	return files, err
}

// Check compares a model with what was noted when it was fetched, and looks at its files. A model that the owner put
// there is only looked at. It reads all of it.
func (s *Store) Check(ctx context.Context, model string) (Record, error) {
	r, err := s.record(model)
	switch {
	case errors.Is(err, ErrName):
		return r, err
	case errors.Is(err, fs.ErrNotExist):
		if s.State(model) != OwnFiles {
			return r, fmt.Errorf("%s: %w", model, ErrAbsent)
		}
		r = Record{Name: model}
	case err != nil:
		return r, err
	default:
		now, err := list(ctx, s.Path(model))
		if err != nil {
			return r, err
		}
		if changed := differ(r.Files, now); len(changed) > 0 {
			return r, fmt.Errorf("%w: %s", ErrChanged, strings.Join(changed, ", "))
		}
	}
	if s.Inspect == nil {
		return r, nil
	}
	return r, s.Inspect(r.Role, s.Path(model))
}

// differ lists the files that are gone or other than they were, ten at most.
func differ(then, now map[string]File) []string {
	var changed []string
	for file, was := range then {
		if now[file] != was {
			changed = append(changed, file)
		}
	}
	slices.Sort(changed)
	return changed[:min(10, len(changed))]
}

// Remove removes a model, and what was fetched of it.
func (s *Store) Remove(model string) error {
	if !name.MatchString(model) {
		return fmt.Errorf("%w: %.80q", ErrName, model)
	}
	if s.State(model) == Absent {
		return fmt.Errorf("%s: %w", model, ErrAbsent)
	}
	unlock, err := s.lock()
	if err != nil {
		return err
	}
	defer unlock()
	return errors.Join(os.RemoveAll(s.Path(model)), os.RemoveAll(s.parts(model)))
}

// Find returns the entry of a name. The address of a file becomes an entry of its own, named as the file is.
func Find(entries []Entry, what string) (Entry, error) {
	if i := slices.IndexFunc(entries, func(e Entry) bool { return e.Name == what }); i >= 0 {
		return entries[i], nil
	}
	u, err := url.Parse(what)
	if err != nil || u.Scheme == "" {
		return Entry{}, fmt.Errorf("%s: %w", what, ErrUnknown)
	}
	base := strings.ToLower(path.Base(u.Path))
	for _, end := range []string{".tar.bz2", ".tar.gz", ".tgz", ".tar", ".zip"} {
		base = strings.TrimSuffix(base, end)
	}
	base = strings.Map(func(r rune) rune {
		if r == '_' {
			return '-'
		}
		return r
	}, base)
	e := Entry{Name: base, Role: "asr", Licence: "?", Parts: []Part{{Sources: []Source{{URL: what}}}}}
	return e, e.check()
}
