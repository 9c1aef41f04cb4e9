package store

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"xiaozhi/internal/testall"
)

// fill writes turns of a hundred devices, ten in a conversation, straight into the tables.
func fill(t *testing.T, s *Store, turns int) {
	t.Helper()
	ctx := t.Context()
	want(t, s.Users.Add(ctx, User{ID: "ann", Name: "ann", Shown: "ann", Role: Member, CreatedAt: at(0)}), nil)
	for i := range 100 {
		id := fmt.Sprintf("d%02d", i)
		addDevice(t, s, id)
		if i < 5 {
			_, err := s.Devices.Edit(ctx, id, func(d *Device) error { d.OwnerID = "ann"; return nil })
			want(t, err, nil)
		}
	}
	for from := 0; from < turns; from += 10_000 {
		b := newBatch()
		for i := from; i < min(turns, from+10_000); i++ {
			device := fmt.Sprintf("d%02d", i/10%100)
			e := turnOf(device, fmt.Sprintf("%s-%d", device, i/10), i%10+1)
			e.Turn.At = at(0).Add(time.Duration(i) * time.Second)
			e.Conversation.BeganAt = at(0).Add(time.Duration(i/10*10) * time.Second)
			e.Turn.ConversationID, e.Turn.DeviceID = e.Conversation.ID, device
			b.entries = append(b.entries, e)
		}
		if err := s.Log.write(ctx, &b); err != nil {
			t.Fatal(err)
		}
	}
}

// used measures the processor's time that f takes, which a busy machine does not stretch. f must not start goroutines:
// the driver starts none for a context that cannot end.
func used(f func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	now := func() time.Duration {
		var u unix.Rusage
		_ = unix.Getrusage(unix.RUSAGE_THREAD, &u)
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	start := now()
	f()
	return now() - start
}

// TestMillion: however much was said, the store opens within a second and any list takes within 50 ms of the processor.
func TestMillion(t *testing.T) {
	turns := testall.Pick(1_000_000, 20_000)
	path := filepath.Join(t.TempDir(), "x.db")
	s, err := Open(t.Context(), Options{Path: path})
	want(t, err, nil)
	start := time.Now()
	fill(t, s, turns)
	took := time.Since(start)
	t.Logf("%d turns with their messages and calls in %v: %.0f a second", turns, took, float64(turns)/took.Seconds())
	want(t, s.Close(), nil)

	start = time.Now()
	s = openFile(t, path)
	if took := time.Since(start); took > time.Second {
		t.Errorf("it opens in %v", took)
	} else {
		t.Logf("it opens in %v", took)
	}
	half := Cursor{at(0).Add(time.Duration(turns/2) * time.Second), "x"}
	ctx := context.WithoutCancel(t.Context())
	for name, f := range map[string]func() (int, error){
		"turns":           func() (int, error) { all, err := s.Turns.List(ctx, "", Page{}); return len(all), err },
		"turns from half": func() (int, error) { all, err := s.Turns.List(ctx, "", Page{Before: half}); return len(all), err },
		"turns of one":    func() (int, error) { all, err := s.Turns.List(ctx, "d07", Page{Before: half}); return len(all), err },
		"conversations": func() (int, error) {
			all, err := s.Conversations.List(ctx, "", Page{Before: half})
			return len(all), err
		},
		"conversations of one": func() (int, error) { all, err := s.Conversations.List(ctx, "d07", Page{}); return len(all), err },
		"calls":                func() (int, error) { all, err := s.Turns.Calls(ctx, "", Page{Before: half}); return len(all), err },
		"calls of one":         func() (int, error) { all, err := s.Turns.Calls(ctx, "d07", Page{Before: half}); return len(all), err },
		"talks":                func() (int, error) { return talksOfMillion(s, TalkFilter{}, half) },
		"talks of a member":    func() (int, error) { return talksOfMillion(s, TalkFilter{Owner: "ann"}, half) },
		"words not found":      func() (int, error) { return talksOfMillion(s, TalkFilter{Text: "neither nor"}, half) },
		"words of a member":    func() (int, error) { return talksOfMillion(s, TalkFilter{Text: "nine", Owner: "ann"}, Cursor{}) },
		"a tool not found":     func() (int, error) { return talksOfMillion(s, TalkFilter{Tool: "nothing"}, half) },
		"slow, failed and cut": func() (int, error) {
			return talksOfMillion(s, TalkFilter{Slower: 1, Failed: true, Interrupted: true}, half)
		},
		"what one talk has": func() (int, error) { n, err := s.Talks.With(ctx, "d07-7", 0, 50); return len(n.Messages), err },
		"one talk":          func() (int, error) { all, err := s.Turns.Of(ctx, "d07-7", 0, 50); return len(all), err },
		"devices":           func() (int, error) { all, err := s.Devices.List(ctx, Page{}); return len(all), err },
	} {
		var all []time.Duration
		for range 5 {
			all = append(all, used(func() {
				if n, err := f(); err != nil || n == 0 {
					t.Errorf("%s: %d rows, %v", name, n, err)
				}
			}))
		}
		slices.Sort(all)
		if all[2] > 50*time.Millisecond {
			t.Errorf("%s: %v", name, all)
		}
		t.Logf("%s: %v, %v at first", name, all[2], all[4])
	}
}

// talksOfMillion counts what a list of talks gives: its rows, and whether it goes on.
func talksOfMillion(s *Store, f TalkFilter, from Cursor) (int, error) {
	l, err := s.Talks.List(context.Background(), f, Page{Before: from})
	n := len(l.Talks)
	if l.Next != (Cursor{}) {
		n++
	}
	return n, err
}

// TestSustained: two hundred turns a second are written as they come, for as long as they do, by both engines.
func TestSustained(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		addDevice(t, s, "m")
		seconds := testall.Pick(20, 2)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		most := 0
		for i := range 200 * seconds {
			<-tick.C
			s.Log.Put(turnOf("m", "c", i))
			most = max(most, s.Log.Stats().Waiting)
		}
		flush(t, s)
		if st := s.Log.Stats(); st.Written != uint64(200*seconds) || st.Dropped > 0 {
			t.Errorf("%+v", st)
		}
		t.Logf("at most %d waited", most)
	})
}
