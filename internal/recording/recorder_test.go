package recording

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/audio"
	"xiaozhi/audio/file"
	"xiaozhi/store"
)

// sung encodes a tone.
func sung(tb testing.TB, f audio.Format, length time.Duration) *audio.Packets {
	tb.Helper()
	enc, err := audio.NewEncoder(f)
	if err != nil {
		tb.Fatal(err)
	}
	var p audio.Packets
	pcm, buf, phase := make([]int16, f.Samples()), make([]byte, audio.MaxPacket), 0.0
	for range length / f.Frame {
		for i := range pcm {
			phase += 2 * math.Pi * 440 / float64(f.Rate)
			pcm[i] = int16(10000 * math.Sin(phase))
		}
		n, err := enc.Encode(pcm, buf)
		if err != nil {
			tb.Fatal(err)
		}
		p.Add(buf[:n])
	}
	return &p
}

// played decodes a file: how long and how loud it is.
func played(t *testing.T, name string) (length time.Duration, rms float64) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	r, err := file.NewOpusReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(name, err)
	}
	pcm, samples, sum := make([]int16, 4096), 0, 0.0
	for {
		n, err := r.Read(pcm)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(name, err)
		}
		for _, v := range pcm[:n] {
			sum += float64(v) * float64(v)
		}
		samples += n
	}
	return time.Duration(samples) * time.Second / time.Duration(r.Rate()), math.Sqrt(sum / float64(max(samples, 1)))
}

// home is a data folder with a store, in which a device is known.
type home struct {
	t     testing.TB
	dir   string
	store *store.Store
	seq   int
}

const speaker = "aa:bb:cc:dd:ee:ff"

func newHome(tb testing.TB) *home {
	tb.Helper()
	h := &home{t: tb, dir: tb.TempDir()}
	s, err := store.Open(tb.Context(), store.Options{Path: filepath.Join(h.dir, "x.db")})
	if err != nil {
		tb.Fatal(err)
	}
	h.store = s
	device := store.Identity{ID: speaker, Address: speaker, State: store.DevicePaired, FirstAt: time.Now()}
	if err := s.Devices.Commit(tb.Context(), store.DeviceChange{Save: []store.Identity{device}}); err != nil {
		tb.Fatal(err)
	}
	return h
}

func (h *home) recordings() string { return filepath.Join(h.dir, "recordings") }

func (h *home) recorder(o Options) *Recorder {
	o.Dir, o.Table, o.Flush = h.recordings(), h.store.Recordings, h.store.Log.Flush
	if o.Keep == 0 {
		o.Keep = 7 * 24 * time.Hour
	}
	if o.Quota == 0 {
		o.Quota = 1 << 30
	}
	return New(h.t.Context(), o)
}

// turn hands a turn of a talk to the store, and returns it with sound.
func (h *home) turn(talk string, user, reply *audio.Packets) Turn {
	h.seq++
	now := time.Now()
	t := Turn{Device: speaker, Talk: talk, ID: store.NewID(), At: now, User: user, Reply: reply, Rate: 24000}
	h.store.Log.Put(&store.Entry{
		Conversation: store.Conversation{ID: talk, DeviceID: speaker, BeganAt: now},
		Turn:         store.Turn{ID: t.ID, Seq: h.seq, At: now, Kind: "user", Cause: "done"},
	})
	return t
}

// files lists the files of the folder, by their paths within it.
func (h *home) files() (names []string) {
	h.t.Helper()
	err := filepath.WalkDir(h.recordings(), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			h.t.Errorf("%s has mode %v", path, info.Mode())
		}
		if !d.IsDir() {
			name, _ := filepath.Rel(h.recordings(), path)
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return names
}

// idle waits until nothing waits for the disk.
func idle(tb testing.TB, r *Recorder) {
	tb.Helper()
	if err := r.Forget(tb.Context(), "nobody"); err != nil { // it is done after all that waited
		tb.Fatal(err)
	}
	for r.Stats().Waiting > 0 {
		time.Sleep(time.Millisecond)
	}
	if err := r.Forget(tb.Context(), "nobody"); err != nil {
		tb.Fatal(err)
	}
}

// TestRecorder: the sound of a turn is in files that play, and rows name them.
func TestRecorder(t *testing.T) {
	h := newHome(t)
	defer h.store.Close()
	r := h.recorder(Options{})
	defer r.Close()
	reply := sung(t, audio.Reply, 3*time.Second)
	reply.Cut(2 * time.Second)
	turn := h.turn("talk-1", sung(t, audio.Recognition, 1200*time.Millisecond), reply)
	r.Put(turn)
	typed := h.turn("talk-1", nil, sung(t, audio.Reply, time.Second))
	r.Put(typed)
	r.Put(Turn{Device: speaker, Talk: "talk-1", ID: "unheard"})
	idle(t, r)
	rows, err := h.store.Recordings.Of(t.Context(), turn.ID)
	if err != nil || len(rows) != 2 || rows[0].Side != "reply" || rows[1].Side != "user" {
		t.Fatalf("%+v %v", rows, err)
	}
	for i, want := range []time.Duration{2 * time.Second, 1200 * time.Millisecond} {
		name := filepath.Join(h.recordings(), rows[i].Path)
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		length, rms := played(t, name)
		if rows[i].Length != want || length < want || length > want+60*time.Millisecond || rms < 6000 || rms > 8000 {
			t.Errorf("%s: %v, decoded %v, rms %.0f", rows[i].Side, rows[i].Length, length, rms)
		}
		if info.Size() != int64(rows[i].Bytes) || rows[i].EndsAt.Sub(turn.At).Round(time.Second) != 7*24*time.Hour || info.Mode().Perm() != 0o600 {
			t.Errorf("%+v, %d bytes, mode %v", rows[i], info.Size(), info.Mode())
		}
	}
	if got := h.files(); len(got) != 3 || !strings.HasPrefix(got[0], "aa_bb_cc_dd_ee_ff/talk-1/") {
		t.Errorf("%q", got)
	}
	if s := r.Stats(); s.Written != 2 || s.Dropped != 0 || s.Err != nil {
		t.Errorf("%+v", s)
	}
}

// TestNothingIsMade: a recorder that is given nothing leaves nothing, and one that is not there takes everything.
func TestNothingIsMade(t *testing.T) {
	h := newHome(t)
	defer h.store.Close()
	r := h.recorder(Options{})
	idle(t, r)
	r.Close()
	if _, err := os.Stat(h.recordings()); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a folder is there:", err)
	}
	var none *Recorder
	none.Put(Turn{User: sung(t, audio.Recognition, time.Second)})
	none.Erase("a", "b")
	none.Drop("a")
	none.Close()
	if err := none.Forget(t.Context(), "a"); err != nil || none.Stats() != (Stats{}) {
		t.Error(err)
	}
}

// TestGone: what is erased or forgotten has no file, and what belongs to no turn gets none.
func TestGone(t *testing.T) {
	h := newHome(t)
	defer h.store.Close()
	r := h.recorder(Options{})
	defer r.Close()
	sound := sung(t, audio.Recognition, time.Second)
	stray := h.turn("talk-1", sound, nil)
	stray.ID = "nobody"
	r.Put(stray)
	r.Put(h.turn("talk-1", sound, nil))
	r.Put(h.turn("talk-2", sound, nil))
	idle(t, r)
	if got := h.files(); len(got) != 2 {
		t.Fatalf("%q", got)
	}
	h.store.Log.Erase("talk-1")
	r.Erase(speaker, "talk-1")
	idle(t, r)
	if got := h.files(); len(got) != 1 || !strings.Contains(got[0], "talk-2") {
		t.Errorf("after one talk was erased: %q", got)
	}
	one, other := h.turn("talk-2", sound, sound), h.turn("talk-2", sound, nil)
	r.Put(one)
	r.Put(other)
	idle(t, r)
	rows, err := h.store.Recordings.Of(t.Context(), one.ID)
	if err != nil || len(rows) != 2 {
		t.Fatalf("%+v, %v", rows, err)
	}
	f, err := r.Open(rows[0].Path)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if _, err := r.Open("../x.db"); err == nil {
		t.Error("a file outside of the folder is opened")
	}
	if err := errors.Join(h.store.DeleteTurn(t.Context(), one.ID), r.Remove(t.Context(), speaker, "talk-2", one.ID)); err != nil {
		t.Fatal(err)
	}
	if got := h.files(); len(got) != 2 || strings.Contains(got[0]+got[1], one.ID) {
		t.Errorf("after a turn was deleted: %q", got)
	}
	if err := errors.Join(h.store.DeleteTalk(t.Context(), "talk-2"), r.Remove(t.Context(), speaker, "talk-2", "")); err != nil {
		t.Fatal(err)
	}
	if got := h.files(); len(got) != 0 {
		t.Errorf("after a talk was deleted: %q", got)
	}
	late := h.turn("talk-2", sound, nil)
	if _, err := h.store.Forget(t.Context(), speaker); err != nil {
		t.Fatal(err)
	}
	r.Put(late) // of a connection that has just ended
	if err := r.Forget(t.Context(), speaker); err != nil {
		t.Fatal(err)
	}
	if got := h.files(); len(got) != 0 {
		t.Errorf("after the device was forgotten: %q", got)
	}
	r.Put(late)
	idle(t, r)
	if got := h.files(); len(got) != 0 {
		t.Errorf("of a device that is forgotten: %q", got)
	}
	if n, err := h.store.Recordings.Bytes(t.Context()); n != 0 || err != nil {
		t.Error(n, err)
	}
	if s := r.Stats(); s.Err != nil || s.Dropped != 0 {
		t.Errorf("%+v", s)
	}
}

// TestRetention: recordings end after their days, those of before a change too, and the oldest make room.
func TestRetention(t *testing.T) {
	sound := sung(t, audio.Recognition, 6*time.Second)
	synctest.Test(t, func(t *testing.T) {
		h := newHome(t)
		defer h.store.Close()
		r := h.recorder(Options{Keep: 30 * 24 * time.Hour})
		r.Put(h.turn("old", sound, nil))
		idle(t, r)
		time.Sleep(10 * 24 * time.Hour)
		r.Put(h.turn("new", sound, nil))
		idle(t, r)
		if got := h.files(); len(got) != 2 {
			t.Fatalf("%q", got)
		}
		r.Close()
		r = h.recorder(Options{Keep: 7 * 24 * time.Hour})
		idle(t, r)
		if got := h.files(); len(got) != 1 || !strings.Contains(got[0], "/new/") {
			t.Errorf("seven days are kept, and there is %q", got)
		}
		time.Sleep(7*24*time.Hour + time.Hour)
		idle(t, r)
		if got := h.files(); len(got) != 0 {
			t.Errorf("after seven days: %q", got)
		}
		if _, err := os.Stat(filepath.Join(h.recordings(), "aa_bb_cc_dd_ee_ff")); !errors.Is(err, fs.ErrNotExist) {
			t.Error("an empty folder is left:", err)
		}
		r.Close()

		size := int64(sound.Bytes())
		r = h.recorder(Options{Quota: 5 * size})
		for i := range 12 {
			r.Put(h.turn(fmt.Sprintf("talk-%02d", i), sound, nil))
			idle(t, r)
			time.Sleep(time.Minute)
			n, err := h.store.Recordings.Bytes(t.Context())
			if err != nil || int64(n) > 5*size {
				t.Errorf("%d of %d bytes, %v", n, 5*size, err)
			}
		}
		got := h.files()
		if len(got) < 3 || len(got) > 5 || !strings.Contains(got[len(got)-1], "talk-11") || !strings.Contains(got[0], fmt.Sprintf("talk-%02d", 12-len(got))) {
			t.Errorf("the last ones are not what is left: %q", got)
		}
		long := &audio.Packets{}
		for range 6 {
			long.Append(sound)
		}
		r.Put(h.turn("large", long, nil))
		idle(t, r)
		if s := r.Stats(); !errors.Is(s.Err, errQuota) || s.Dropped != 1 {
			t.Errorf("%+v", s)
		}
		r.SetLimits(time.Hour, 3*size)
		r.Put(h.turn("talk-later", sound, nil))
		idle(t, r)
		if n, err := h.store.Recordings.Bytes(t.Context()); err != nil || int64(n) > 3*size || r.Stats().Err != nil {
			t.Errorf("%d bytes after the quota was lowered, %v, %+v", n, err, r.Stats())
		}
		r.Close()
		r = h.recorder(Options{Quota: 2 * size}) // less than there is
		idle(t, r)
		if n, err := h.store.Recordings.Bytes(t.Context()); err != nil || int64(n) > 2*size {
			t.Errorf("%d bytes, %v", n, err)
		}
		r.Close()
	})
}

// TestStalledDisk: while the disk does not answer nobody waits; what there is no room for is counted, and what waited is
// written when it does again.
func TestStalledDisk(t *testing.T) {
	h := newHome(t)
	defer h.store.Close()
	stall := make(chan struct{})
	disk := folder{path: h.recordings()}
	r := h.recorder(Options{write: func(path string, p *audio.Packets, rate int) (int64, error) {
		<-stall
		return disk.write(path, p, rate)
	}})
	sound := sung(t, audio.Recognition, time.Second)
	var turns []Turn
	for range 200 {
		turns = append(turns, h.turn("talk", sound, nil))
	}
	began := time.Now()
	for _, turn := range turns {
		r.Put(turn)
	}
	if took := time.Since(began); took > 100*time.Millisecond {
		t.Errorf("200 turns were handed over in %v", took)
	}
	s := r.Stats()
	if s.Dropped < 200-maxWaiting-batchTurns || s.Dropped > 200-maxWaiting || s.Waiting > maxWaiting || s.DroppedAt.IsZero() {
		t.Errorf("%+v", s)
	}
	close(stall)
	idle(t, r)
	if got := r.Stats(); got.Written+got.Dropped != 200 || got.Waiting != 0 || got.Err != nil || len(h.files()) != int(got.Written) {
		t.Errorf("%+v, %d files", got, len(h.files()))
	}
	r.Close()
	r.Put(turns[0])
	if got := r.Stats(); got.Waiting != 0 {
		t.Errorf("%+v after the end", got)
	}
	for i := range turns {
		turns[i].User = &audio.Packets{}
		for turns[i].User.Bytes() < 900<<10 {
			turns[i].User.Append(sound)
		}
		if i == 20 {
			break
		}
	}
	stall = make(chan struct{})
	r = h.recorder(Options{write: func(string, *audio.Packets, int) (int64, error) { <-stall; return 0, errors.New("gone") }})
	for _, turn := range turns[:20] {
		r.Put(turn)
		r.Put(turn)
	}
	if s := r.Stats(); s.WaitingBytes > maxWaitingBytes || s.Dropped == 0 {
		t.Errorf("%+v", s)
	}
	close(stall)
	r.Close()
}

// bare is a table without rows.
type bare struct{ Table }

func (bare) Shorten(context.Context, time.Duration) error          { return nil }
func (bare) Ended(context.Context, int) ([]store.Recording, error) { return nil, nil }
func (bare) Bytes(context.Context) (int, error)                    { return 0, nil }
func (bare) DeleteAll(context.Context, []store.Recording) error    { return nil }

// TestCloseInTime: a store that does not answer is given up ten seconds after the end.
func TestCloseInTime(t *testing.T) {
	dir, sound := t.TempDir(), sung(t, audio.Recognition, time.Second)
	synctest.Test(t, func(t *testing.T) {
		r := New(t.Context(), Options{
			Dir: dir, Table: bare{}, Quota: 1 << 20,
			Flush: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
			write: func(string, *audio.Packets, int) (int64, error) { return 1, nil },
		})
		r.Put(Turn{Device: "m", Talk: "c", ID: "t", User: sound})
		began := time.Now()
		r.Close()
		<-r.done
		if took := time.Since(began); took != closeTime || r.Stats().Dropped != 1 {
			t.Errorf("closed after %v: %+v", took, r.Stats())
		}
	})
}

// TestFullDisk: a turn is dropped and counted, nothing is left of it, and the next is recorded when there is room.
func TestFullDisk(t *testing.T) {
	h := newHome(t)
	defer h.store.Close()
	full := true
	disk := folder{path: h.recordings()}
	r := h.recorder(Options{write: func(path string, p *audio.Packets, rate int) (int64, error) {
		if full && strings.HasSuffix(path, "-reply.opus") {
			return 0, &fs.PathError{Op: "write", Path: path, Err: syscall.ENOSPC}
		}
		return disk.write(path, p, rate)
	}})
	defer r.Close()
	sound := sung(t, audio.Reply, time.Second)
	r.Put(h.turn("talk", sound, sound))
	idle(t, r)
	if s := r.Stats(); !errors.Is(s.Err, syscall.ENOSPC) || s.Dropped != 1 || s.Written != 0 || len(h.files()) != 0 {
		t.Errorf("%+v %q", s, h.files())
	}
	full = false
	r.Put(h.turn("talk", sound, sound))
	idle(t, r)
	if s := r.Stats(); s.Err != nil || s.Written != 1 || len(h.files()) != 2 {
		t.Errorf("%+v %q", s, h.files())
	}
}

// TestSweep: what no row names and what is not whole is deleted at start; files of others stay.
func TestSweep(t *testing.T) {
	h := newHome(t)
	defer h.store.Close()
	r := h.recorder(Options{})
	r.Put(h.turn("talk", sung(t, audio.Recognition, time.Second), nil))
	idle(t, r)
	r.Close()
	kept := h.files()
	for _, name := range []string{"aa_bb_cc_dd_ee_ff/talk/x-user.opus", "aa_bb_cc_dd_ee_ff/talk/y-user.opus.part", "other/lost/z-reply.opus", "aa_bb_cc_dd_ee_ff/talk/notes.txt"} {
		at := filepath.Join(h.recordings(), name)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte("OggS"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(h.recordings(), 0o755); err != nil {
		t.Fatal(err)
	}
	r = h.recorder(Options{})
	idle(t, r)
	if got := h.files(); len(got) != 2 || got[0] != kept[0] && got[1] != kept[0] {
		t.Errorf("%q", got)
	}
	if err := os.RemoveAll(h.recordings()); err != nil { // while it is open
		t.Fatal(err)
	}
	r.Put(h.turn("talk", sung(t, audio.Recognition, time.Second), nil))
	idle(t, r)
	if got := h.files(); len(got) != 1 || r.Stats().Err != nil {
		t.Errorf("%q %+v", got, r.Stats())
	}
	r.Close()
}

// TestNames: no id leads out of the folder, by links either, and no two have one name.
func TestNames(t *testing.T) {
	h := newHome(t)
	defer h.store.Close()
	outside := t.TempDir()
	if err := os.MkdirAll(h.recordings(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(h.recordings(), "trap")); err != nil {
		t.Fatal(err)
	}
	disk := folder{path: h.recordings()}
	defer disk.close()
	if _, err := disk.write("trap/talk/x-user.opus", sung(t, audio.Recognition, time.Second), 16000); err == nil {
		t.Error("a link was followed out of the folder")
	}
	for _, id := range []string{"..", ".", "", "../../etc/passwd", "/", "a/b", "a\\b", "A", strings.Repeat("x", 5000), "con\x00", "设备", "%", "%2e", "aa:bb", "aa_bb", "aa-bb"} {
		checkName(t, id)
		if _, err := disk.write(name(id)+"/talk/x-user.opus", sung(t, audio.Recognition, time.Second), 16000); err != nil {
			t.Errorf("%q: %v", id, err)
		}
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 0 {
		t.Error(entries, err)
	}
}

func checkName(t *testing.T, id string) {
	t.Helper()
	n := name(id)
	if !filepath.IsLocal(n) || strings.ContainsAny(n, "/\\\x00.") || len(n) > maxName || n == "" || strings.ToLower(n) != n {
		t.Errorf("%q is called %q", id, n)
	}
}

func FuzzName(f *testing.F) {
	f.Add("aa:bb:cc:dd:ee:ff", "../..")
	f.Add("", "%")
	f.Fuzz(func(t *testing.T, a, b string) {
		checkName(t, a)
		if (name(a) == name(b)) != (a == b) {
			t.Errorf("%q and %q are both called %q", a, b, name(a))
		}
	})
}

// BenchmarkPut is the time that a conversation spends on a recording while the disk does not answer.
func BenchmarkPut(b *testing.B) {
	h := newHome(b)
	defer h.store.Close()
	stall := make(chan struct{})
	r := h.recorder(Options{write: func(string, *audio.Packets, int) (int64, error) { <-stall; return 0, context.Canceled }})
	turn := h.turn("talk", sung(b, audio.Recognition, 3*time.Second), sung(b, audio.Reply, 8*time.Second))
	b.ReportAllocs()
	for b.Loop() {
		r.Put(turn)
	}
	close(stall)
	r.Close()
}
