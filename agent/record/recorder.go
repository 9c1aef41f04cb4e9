package record

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"xiaozhi/internal/wire"
)

// Bounds of what is written, in bytes.
const (
	maxFile  = 64 << 20  // of one conversation: a quarter of an hour of talk; then it goes on unrecorded
	maxTotal = 512 << 20 // of all; the oldest recordings make room
	block    = 4 << 10   // what the smallest file takes of a disk
)

// suffix ends the names of recordings. Files with other names are not touched.
const suffix = ".talk.jsonl"

// Options make a Recorder.
type Options struct {
	Dir      string       // where recordings go; made with mode 0700 if it is not there
	MaxFile  int64        // bytes of one recording; 0 means 64 MiB
	MaxTotal int64        // bytes of all recordings; 0 means 512 MiB
	Log      *slog.Logger // nil: discarded
}

// Recorder writes a file for each conversation into a folder. A nil Recorder
// records nothing. Its methods may be called at the same time.
type Recorder struct {
	o     Options
	codec string

	mu    sync.Mutex
	files []*file // by age, the oldest first
	used  int64
	sick  bool // writing failed, and that was logged
}

// file is one recording on the disk.
type file struct {
	name string
	size int64
	open bool
}

// New makes a recorder. A folder that others can look into is refused: what
// people say at home is nobody else's business.
func New(o Options) (*Recorder, error) {
	o.MaxFile, o.MaxTotal = cmp.Or(o.MaxFile, maxFile), cmp.Or(o.MaxTotal, maxTotal)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of recordings: %w", err)
	}
	info, err := os.Stat(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("look at the folder of recordings: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, fmt.Errorf("the folder of recordings %s has mode %04o: others could listen; name a new folder or set mode 0700", o.Dir, mode)
	}
	r := &Recorder{o: o, codec: Codec()}
	return r, r.scan()
}

// scan counts the recordings that are there.
func (r *Recorder) scan() error {
	entries, err := os.ReadDir(r.o.Dir) // by name, which begins with the time
	if err != nil {
		return fmt.Errorf("list the recordings: %w", err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || !strings.HasSuffix(e.Name(), suffix) {
			continue
		}
		size := max(info.Size(), block)
		r.files = append(r.files, &file{name: e.Name(), size: size})
		r.used += size
	}
	return nil
}

// Tape makes the tape of one conversation; nil of a nil Recorder. Its file is
// made when the conversation runs.
func (r *Recorder) Tape(s wire.Session) *Tape {
	if r == nil {
		return nil
	}
	w := &writer{recorder: r, queue: make(chan Entry, queueEntries), log: r.o.Log.With("device_id", s.DeviceID, "session_id", s.SessionID)}
	t := newTape(s, r.codec, w.put)
	t.open = func() error { return w.begin(fileName(t.began, s)) }
	t.close = w.end
	return t
}

// fileName is made of the time and of signs that no file system minds.
func fileName(began time.Time, s wire.Session) string {
	plain := func(text string, most int) string {
		text = strings.Map(func(r rune) rune {
			if ('0' <= r && r <= '9') || ('a' <= r && r <= 'z') || ('A' <= r && r <= 'Z') {
				return r
			}
			return -1
		}, text)
		return cmp.Or(text[:min(len(text), most)], "none")
	}
	return began.UTC().Format("20060102T150405.000") + "-" + plain(s.DeviceID, 32) + "-" + plain(s.SessionID, 32) + suffix
}

// create makes the file of a recording, after room was made for it.
func (r *Recorder) create(name string) (*os.File, *file, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := &file{name: name, open: true}
	if err := r.grow(f, block); err != nil {
		return nil, nil, err
	}
	out, err := os.OpenFile(filepath.Join(r.o.Dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		r.used -= f.size
		return nil, nil, fmt.Errorf("make a recording: %w", err)
	}
	r.files = append(r.files, f)
	return out, f, nil
}

// take claims room for n bytes more of a recording that has written so much.
func (r *Recorder) take(f *file, written, n int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if written+n > r.o.MaxFile {
		return fmt.Errorf("the recording has reached %d bytes", r.o.MaxFile)
	}
	return r.grow(f, written+n)
}

// grow gives a file that size, and removes the oldest recordings if there is no
// room. The caller holds mu.
func (r *Recorder) grow(f *file, size int64) error {
	more := size - f.size
	if more <= 0 {
		return nil
	}
	for r.used+more > r.o.MaxTotal {
		i := slices.IndexFunc(r.files, func(old *file) bool { return !old.open })
		if i < 0 {
			return errors.New("recordings have no room left") // all is taken by conversations that go on
		}
		if err := os.Remove(filepath.Join(r.o.Dir, r.files[i].name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the oldest recording: %w", err)
		}
		r.used -= r.files[i].size
		r.files = slices.Delete(r.files, i, i+1)
	}
	f.size, r.used = size, r.used+more
	return nil
}

// finished lets a recording be removed when room is needed. failed: it is not whole.
func (r *Recorder) finished(f *file, failed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f.open = false
	r.sick = r.sick && failed
}

// failed logs that recordings cannot be written, the first time and each time
// after it had gone well in between.
func (r *Recorder) failed(log *slog.Logger, err error) {
	r.mu.Lock()
	was := r.sick
	r.sick = true
	r.mu.Unlock()
	if !was {
		log.Warn("conversation is not recorded", "err", err)
	}
}
