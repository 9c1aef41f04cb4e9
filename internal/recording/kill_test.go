package recording

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"xiaozhi/audio"
	"xiaozhi/internal/testall"
	"xiaozhi/store"
)

// childEnv names the data folder in which the test's own program works as a server that will be killed.
const childEnv = "RECORDING_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		runChild(dir)
		return
	}
	os.Exit(m.Run())
}

// runChild records turns as fast as it can.
func runChild(dir string) {
	s, err := store.Open(context.Background(), store.Options{Path: filepath.Join(dir, "x.db")})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	r := New(context.Background(), Options{Dir: filepath.Join(dir, "recordings"), Table: s.Recordings, Flush: s.Log.Flush, Keep: time.Hour, Quota: 300 << 10})
	packets := &audio.Packets{}
	for i := range 200 {
		packets.Add(append([]byte{0x58}, make([]byte, 60+i)...))
	}
	for i := 0; ; i++ {
		now := time.Now()
		t := Turn{Device: speaker, Talk: fmt.Sprint("talk-", now.UnixNano()/1e8), ID: store.NewID(), At: now, User: packets, Reply: packets, Rate: 24000}
		s.Log.Put(&store.Entry{
			Conversation: store.Conversation{ID: t.Talk, DeviceID: speaker, BeganAt: now},
			Turn:         store.Turn{ID: t.ID, Seq: i, At: now, Kind: "user", Cause: "done"},
		})
		r.Put(t)
		time.Sleep(time.Millisecond)
	}
}

// TestKill: whenever the program is killed, each row names a whole file, and files without a row go at the next start.
func TestKill(t *testing.T) {
	h := newHome(t)
	h.store.Close()
	written := 0
	for range testall.Pick(100, 8) {
		child := exec.CommandContext(t.Context(), os.Args[0])
		child.Env = append(os.Environ(), childEnv+"="+h.dir)
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100*time.Millisecond + time.Duration(rand.Int64N(int64(400*time.Millisecond))))
		if err := child.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = child.Wait() // it was killed
		written = max(written, checkKilled(t, h))
	}
	if written == 0 {
		t.Error("nothing was ever recorded")
	}
}

// checkKilled returns how many recordings there are.
func checkKilled(t *testing.T, h *home) int {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{Path: filepath.Join(h.dir, "x.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	h.store = s
	rows, err := s.Recordings.Oldest(t.Context(), 10000)
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		info, err := os.Stat(filepath.Join(h.recordings(), rows[i].Path))
		if err != nil || info.Size() != int64(rows[i].Bytes) {
			t.Errorf("%+v: %v", rows[i], err)
		}
	}
	if len(rows) > 0 {
		last := rows[len(rows)-1]
		if length, _ := played(t, filepath.Join(h.recordings(), last.Path)); length != last.Length {
			t.Errorf("%v, want %v", length, last.Length)
		}
	}
	r := h.recorder(Options{Keep: time.Hour, Quota: 300 << 10})
	idle(t, r)
	r.Close()
	rows, err = s.Recordings.Oldest(t.Context(), 10000)
	if got := h.files(); err != nil || len(got) != len(rows) {
		t.Errorf("%d files of %d rows, %v: %q", len(got), len(rows), err, got)
	}
	return len(rows)
}
