package store

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mattn/go-sqlite3"

	"xiaozhi/internal/testall"
)

// turnOf makes the nth turn of a device's conversation.
func turnOf(device, conversation string, n int) *Entry {
	id := fmt.Sprintf("%s-%06d", conversation, n)
	when := at(0).Add(time.Duration(n) * time.Second)
	return &Entry{
		Conversation: Conversation{ID: conversation, DeviceID: device, BeganAt: at(0)},
		Turn:         Turn{ID: id, DeviceID: device, Seq: n, At: when, Kind: "user", Cause: "done", Heard: "what time is it", Said: "It is nine."},
		Messages:     []Message{{Role: "user", Body: `"what time is it"`}, {Role: "assistant", Body: `"It is nine."`}},
		Calls:        []Call{{ID: id + "-c", At: when, Caller: "model", Name: "time.now", Source: "local", Kind: "query"}},
	}
}

func flush(t *testing.T, s *Store) {
	t.Helper()
	if err := s.Log.Flush(t.Context()); err != nil {
		t.Fatal("flush:", err)
	}
}

// TestLogRow: a turn comes back with all that belongs to it.
func TestLogRow(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		addDevice(t, s, "m")
		talk := Conversation{ID: "c", DeviceID: "m", AgentID: "a", UserID: "u", BeganAt: at(0), Title: "时间"}
		turn := Turn{
			ID: "t", ConversationID: "c", DeviceID: "m", Seq: 1, At: at(1), Kind: "user", Mode: "auto", AgentID: "a", AgentRev: 2, Language: "zh", Heard: "几点了", Said: "九点。",
			Cause: "done", Fault: "f", EOU: time.Second, ASR: 2, TTFT: 3 * time.Millisecond, TTFS: 4 * time.Millisecond, TTFB: 5 * time.Millisecond, Added: 6 * time.Millisecond,
			E2E: 7 * time.Millisecond, LeadMin: -8 * time.Millisecond, Frames: 9, Underruns: 10, Steps: 11, Speculation: "adopted", ASRName: "x", LLMName: "y", TTSName: "z",
			TokensIn: 12, TokensOut: 13, TTSChars: 14, ASRSound: 15 * time.Millisecond, CostMicros: new(16), Rating: -1, Spans: "[]", Speaker: "p", SpeakerSure: 71,
		}
		turn.ASR = 2 * time.Millisecond
		messages := []Message{{TurnID: "t", Seq: 1, Role: "user", Body: "a"}, {TurnID: "t", Seq: 2, Role: "assistant", Body: "b"}}
		calls := []Call{{
			ID: "k", TurnID: "t", DeviceID: "m", At: at(1), Caller: "model", Name: "n", Source: "s", Kind: "query", Arguments: "{}", Action: 2, Result: "r", Fault: "f",
			Consent: "yes", Took: time.Second, ArgumentsDigest: "a1", ResultDigest: "b2", Refusal: "denied", Late: true,
		}}
		s.Log.Put(&Entry{Conversation: talk, Turn: turn, Messages: messages, Calls: calls})
		s.Log.Put(&Entry{Conversation: talk, Turn: Turn{ID: "t2", Seq: 2, At: at(2), Kind: "server", Cause: "done"}})
		s.Log.Ended("c", at(3), "idle")
		s.Log.Seen("m", Seen{HelloAt: at(4), Firmware: "2.5.0"})
		s.Log.Seen("m", Seen{Language: "en", Firmware: "2.5.1"})
		s.Log.Learned("m", "pause", `{"ms":700}`)
		s.Log.Learned("m", "role", "x")
		s.Log.Learned("m", "role", "")
		s.Log.Learned("nobody", "role", "x")
		flush(t, s)

		gotTurn, gotMessages, gotCalls, err := s.Turns.Get(ctx, "t")
		if err != nil || !reflect.DeepEqual(gotTurn, turn) || !reflect.DeepEqual(gotMessages, messages) || !reflect.DeepEqual(gotCalls, calls) {
			t.Errorf("%+v\n%+v\n%+v\n%v", gotTurn, gotMessages, gotCalls, err)
		}
		talk.Turns, talk.EndedAt, talk.Cause = 2, at(3), "idle"
		if got, err := s.Conversations.Get(ctx, "c"); err != nil || !reflect.DeepEqual(got, talk) {
			t.Errorf("%+v %v", got, err)
		}
		d, err := s.Devices.Get(ctx, "m")
		if err != nil || !d.HelloAt.Equal(at(4)) || !d.TurnAt.Equal(at(2)) || d.Firmware != "2.5.1" || d.Language != "en" {
			t.Errorf("%+v %v", d, err)
		}
		learned, err := s.Devices.Learned(ctx, "m")
		if err != nil || !reflect.DeepEqual(learned, map[string]string{"pause": `{"ms":700}`}) {
			t.Errorf("%v %v", learned, err)
		}
		want(t, s.Turns.Rate(ctx, "t2", 1), nil)
		want(t, s.Turns.Rate(ctx, "t3", 1), ErrNotFound)
		for list, want := range map[string]string{"m": "t2 t", "": "t2 t", "other": ""} {
			turns, err := s.Turns.List(ctx, list, Page{})
			var ids []string
			for _, turn := range turns {
				ids = append(ids, turn.ID)
			}
			if got := strings.Join(ids, " "); got != want || err != nil {
				t.Errorf("turns of %q: %s %v", list, got, err)
			}
		}
		if turns, err := s.Turns.Of(ctx, "c", 1, 10); err != nil || len(turns) != 1 || turns[0].ID != "t2" || turns[0].Rating != 1 {
			t.Errorf("%+v %v", turns, err)
		}
		if calls, err := s.Turns.Calls(ctx, "m", Page{}); err != nil || len(calls) != 1 {
			t.Errorf("%+v %v", calls, err)
		}
		want(t, s.Conversations.Keep(ctx, "c", true), nil)
		if n, err := s.Conversations.Trim(ctx, "m", at(50), 10); n != 0 || err != nil {
			t.Error(n, err)
		}
		want(t, s.Conversations.Keep(ctx, "c", false), nil)
		if n, err := s.Conversations.Trim(ctx, "m", at(50), 10); n != 1 || err != nil {
			t.Error(n, err)
		}
		if calls, err := s.Turns.Calls(ctx, "", Page{}); err != nil || len(calls) != 0 {
			t.Errorf("calls outlive their turn: %+v %v", calls, err)
		}
	})
}

// TestDialogue: the last conversation of a device comes back, with no more of it than is asked for, and nothing of what
// was erased.
func TestDialogue(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		s.db.clock = func() time.Time { return at(30) } // what is of later is not looked at
		addDevice(t, s, "m")
		addDevice(t, s, "n")
		if _, err := s.Turns.Dialogue(ctx, "m", 10); !errors.Is(err, ErrNotFound) {
			t.Error(err)
		}
		for i, talk := range []string{"a", "b", "b", "b"} {
			s.Log.Put(turnOf("m", talk, i))
		}
		s.Log.Put(turnOf("n", "c", 9))
		s.Log.Ended("b", at(5), "gone")
		flush(t, s)
		d, err := s.Turns.Dialogue(ctx, "m", 2)
		var ids []string
		for _, m := range d.Messages {
			ids = append(ids, m.TurnID+" "+m.Role)
		}
		if got := strings.Join(ids, ", "); err != nil || d.Conversation.ID != "b" || d.Conversation.Turns != 3 || !d.Conversation.EndedAt.Equal(at(5)) || d.Last.Seq != 3 ||
			got != "b-000002 user, b-000002 assistant, b-000003 user, b-000003 assistant" {
			t.Errorf("%+v %v", d, err)
		}
		s.Log.Put(turnOf("m", "b", 4))
		flush(t, s)
		if d, err = s.Turns.Dialogue(ctx, "m", 2); err != nil || !d.Conversation.EndedAt.IsZero() || d.Conversation.Cause != "" {
			t.Errorf("it goes on: %+v %v", d.Conversation, err)
		}
		s.Log.Put(turnOf("m", "b", 5)) // it waits when the talk is erased
		s.Log.Erase("b")
		if st := s.Log.Stats(); st.WaitingBytes != 0 || st.Waiting != 0 {
			t.Errorf("%+v", st)
		}
		flush(t, s)
		if d, err = s.Turns.Dialogue(ctx, "m", 2); err != nil || d.Conversation.ID != "a" {
			t.Errorf("%+v %v", d, err)
		}
		if n, err := count(ctx, s.db.read, "SELECT COUNT(*) FROM messages"); n != 4 || err != nil {
			t.Errorf("%d messages are left, %v", n, err)
		}
	})
}

// TestLogBatch: what was handed over is written soon without being asked for.
func TestLogBatch(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		addDevice(t, s, "m")
		for i := range 600 {
			s.Log.Put(turnOf("m", "c", i))
		}
		until(t, func() bool { return s.Log.Stats().Written == 600 })
		if n, err := count(t.Context(), s.db.read, "SELECT COUNT(*) FROM messages"); n != 1200 || err != nil {
			t.Error(n, err)
		}
		if st := s.Log.Stats(); st.Waiting != 0 || st.WaitingBytes != 0 || st.Dropped != 0 || st.Rejected != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// TestLogRejects: a turn or a call that can never be written does not hold up the others.
func TestLogRejects(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		addDevice(t, s, "m")
		s.Log.Put(turnOf("m", "c", 1))
		s.Log.Put(turnOf("forgotten", "d", 1))
		bad := turnOf("m", "c", 2)
		bad.Calls = append(bad.Calls, bad.Calls[0]) // half of it could be written
		s.Log.Put(bad)
		s.Log.Put(turnOf("m", "c", 3))
		for range 2 {
			s.Log.Call(Call{ID: "once", DeviceID: "m", At: at(1), Caller: "outside", Name: "lamp"})
		}
		s.Log.Learned("m", "pause", "1")
		flush(t, s)
		if docs, err := s.Devices.Learned(t.Context(), "m"); err != nil || docs["pause"] != "1" {
			t.Errorf("%v %v", docs, err)
		}
		turns, err := s.Turns.List(t.Context(), "", Page{})
		if err != nil || len(turns) != 2 || turns[0].Seq != 3 || turns[1].Seq != 1 {
			t.Errorf("%+v %v", turns, err)
		}
		if n, err := count(t.Context(), s.db.read, "SELECT COUNT(*) FROM messages"); n != 4 || err != nil {
			t.Errorf("%d messages, %v", n, err)
		}
		if st := s.Log.Stats(); st.Written != 2 || st.Rejected != 2 {
			t.Errorf("%+v", st)
		}
	})
}

// TestLogAfter: a turn that is handed over before its device is known is written with it, once that can be.
func TestLogAfter(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		tries := 0
		s.Log.After(func(context.Context) error {
			if tries++; tries == 1 {
				return errors.New("the disk is away")
			}
			addDevice(t, s, "m")
			return nil
		})
		s.Log.Put(turnOf("m", "c", 1))
		s.Log.Learned("m", "pause", "1")
		s.Log.Call(Call{DeviceID: "m", At: at(1), Caller: "outside", Name: "lamp"})
		s.Log.Call(Call{DeviceID: "nobody", At: at(1), Caller: "outside", Name: "lamp"})
		until(t, func() bool { return s.Log.Stats().Written == 1 })
		calls, err := s.Turns.Calls(t.Context(), "m", Page{})
		if err != nil || len(calls) != 2 {
			t.Errorf("%+v %v", calls, err)
		}
		if docs, err := s.Devices.Learned(t.Context(), "m"); err != nil || docs["pause"] != "1" {
			t.Errorf("%v %v", docs, err)
		}
		if n, err := s.Turns.TrimCalls(t.Context(), "m", at(2), 9); n != 1 || err != nil {
			t.Errorf("%d calls trimmed: %v", n, err)
		}
		if calls, err = s.Turns.Calls(t.Context(), "m", Page{}); err != nil || len(calls) != 1 || calls[0].TurnID == "" {
			t.Errorf("%+v %v", calls, err)
		}
	})
}

// TestLogForgetsWhatFails: what could not be written of a device is not tried again once the device is forgotten.
func TestLogForgetsWhatFails(t *testing.T) {
	s := openFile(t, filepath.Join(t.TempDir(), "x.db"))
	addDevice(t, s, "m")
	addDevice(t, s, "n")
	began, goOn, tries := make(chan bool), make(chan bool), 0
	s.Log.After(func(context.Context) error {
		if tries++; tries > 1 {
			return nil
		}
		close(began)
		<-goOn
		return errors.New("the disk is away")
	})
	s.Log.Put(turnOf("m", "c", 1))
	s.Log.Put(turnOf("n", "d", 1))
	s.Log.Call(Call{DeviceID: "m", At: at(1), Caller: "outside", Name: "lamp"})
	<-began
	s.Log.forget("m")
	close(goOn)
	until(t, func() bool { return s.Log.Stats().Written == 1 })
	if calls, err := s.Turns.Calls(t.Context(), "", Page{}); err != nil || len(calls) != 1 || calls[0].DeviceID != "n" {
		t.Errorf("%+v %v", calls, err)
	}
}

// TestLogClose: what waits when the store is closed is written.
func TestLogClose(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	s, err := Open(t.Context(), Options{Path: path})
	want(t, err, nil)
	addDevice(t, s, "m")
	for i := range 10 {
		s.Log.Put(turnOf("m", "c", i))
	}
	want(t, s.Close(), nil)
	want(t, s.Log.Flush(t.Context()), errClosed)
	s = openFile(t, path)
	if turns, err := s.Turns.List(t.Context(), "m", Page{}); err != nil || len(turns) != 10 {
		t.Error(len(turns), err)
	}
}

// TestLogCloseInTime: a database that does not answer holds up the end of the program for ten seconds at most.
func TestLogCloseInTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(t.Context(), Options{Path: path})
		want(t, err, nil)
		s.Log.After(func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
		s.Log.Put(turnOf("m", "c", 1))
		time.Sleep(time.Second) // it is being written
		start := time.Now()
		want(t, s.Close(), nil)
		if took := time.Since(start); took > 10*time.Second {
			t.Error("closed after", took)
		}
	})
}

// TestEnds: a conversation has ended after its last turn only, however the turns are written.
func TestEnds(t *testing.T) {
	s := openFile(t, filepath.Join(t.TempDir(), "x.db"))
	addDevice(t, s, "m")
	began, goOn, tries := make(chan bool), make(chan bool), 0
	s.Log.After(func(context.Context) error {
		if tries++; tries > 1 {
			return nil
		}
		close(began)
		<-goOn
		return errors.New("the disk is away")
	})
	ended := func(want bool) {
		t.Helper()
		until(t, func() bool { return s.Log.Stats().Waiting == 0 })
		flush(t, s)
		if c, err := s.Conversations.Get(t.Context(), "c"); c.EndedAt.IsZero() == want || err != nil {
			t.Errorf("%d turns: ended at %v, %v", c.Turns, c.EndedAt, err)
		}
	}
	s.Log.Put(turnOf("m", "c", 0))
	s.Log.Ended("c", at(1), "away")
	<-began
	for i := range batchRows + 1 { // two batches
		s.Log.Put(turnOf("m", "c", 1+i))
	}
	close(goOn)
	ended(false)
	for i := range batchRows + 1 {
		s.Log.Put(turnOf("m", "c", 1000+i))
	}
	s.Log.Ended("c", at(2), "away")
	ended(true)
	s.Log.Ended("c", at(3), "away")
	s.Log.Put(turnOf("m", "c", 5000))
	ended(false)
}

func until(t *testing.T, ok func() bool) {
	t.Helper()
	for limit := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatal("it does not come about")
		}
	}
}

// slowest hands turns over and returns the longest time that one took.
func slowest(s *Store, from, to int) (longest time.Duration) {
	var all []time.Duration
	for i := from; i < to; i++ {
		e := turnOf("m", "c", i)
		start := time.Now()
		s.Log.Put(e)
		all = append(all, time.Since(start))
	}
	slices.Sort(all)
	return all[len(all)*999/1000] // the scheduler may take the processor away now and then
}

// TestStall: while the disk stalls nothing waits for it, and afterwards all is there.
func TestStall(t *testing.T) {
	stall := testall.Pick(5*time.Second, 400*time.Millisecond)
	d := &disk{}
	s := open(t, Options{Path: filepath.Join(t.TempDir(), "x.db"), hooks: hooks{wrap: d.under}})
	addDevice(t, s, "m")
	d.set(stall, nil)
	for i := range 4 {
		if took := slowest(s, i*500, (i+1)*500); took > 20*time.Millisecond {
			t.Errorf("handing over took %v", took)
		}
		time.Sleep(stall / 4)
	}
	d.set(0, nil)
	flush(t, s)
	if st := s.Log.Stats(); st.Written != 2000 || st.Dropped != 0 {
		t.Errorf("%+v", st)
	}
	h := s.Health()
	if slow := stall >= slowWrite; slow != slices.Contains(h.Trouble, TroubleSlow) || slow != (h.Slowest >= slowWrite) {
		t.Errorf("%+v", h)
	}
}

// TestDiskFull: when the disk is full, promises are refused, turns wait, the oldest are dropped and counted; when it
// has room again all goes on.
func TestDiskFull(t *testing.T) {
	s := openFile(t, filepath.Join(t.TempDir(), "x.db"))
	ctx := t.Context()
	addDevice(t, s, "m")
	limit := func(pages int) {
		_, err := s.db.now.ExecContext(ctx, fmt.Sprintf("PRAGMA max_page_count = %d", pages))
		want(t, err, nil)
		_, err = s.db.later.ExecContext(ctx, fmt.Sprintf("PRAGMA max_page_count = %d", pages))
		want(t, err, nil)
	}
	limit(1) // SQLite takes what the file has
	err := s.Reminders.Add(ctx, Reminder{ID: "r", DeviceID: "m", Kind: "alert", State: "armed", DueAt: at(1), Text: strings.Repeat("x", 100_000)})
	if e, ok := errors.AsType[sqlite3.Error](err); !ok || e.Code != sqlite3.ErrFull {
		t.Errorf("a full disk took a reminder: %v", err)
	}
	if h := s.Health(); !slices.Contains(h.Trouble, TroubleFull) || h.Err == nil || h.Since.IsZero() {
		t.Errorf("%+v", h)
	}
	for i := range 5000 {
		s.Log.Put(turnOf("m", "c", i))
	}
	if err := s.Log.Flush(ctx); err == nil {
		t.Error("a full disk took turns")
	}
	if st := s.Log.Stats(); st.Dropped != 5000-maxWaiting || st.Waiting != maxWaiting {
		t.Errorf("%+v", st)
	}
	if h := s.Health(); !slices.Contains(h.Trouble, TroubleDropped) {
		t.Errorf("%+v", h)
	}
	limit(1 << 30)
	flush(t, s)
	turns, err := s.Turns.List(ctx, "m", Page{Limit: 1})
	if err != nil || len(turns) != 1 || turns[0].Seq != 4999 {
		t.Errorf("%+v %v", turns, err)
	}
	if n, err := count(ctx, s.db.read, "SELECT COUNT(*) FROM turns"); n != maxWaiting || err != nil {
		t.Error(n, err)
	}
	// A batch that was being written when there were too many is not dropped.
	const newest = maxWaiting - batchRows
	if n, err := count(ctx, s.db.read, "SELECT COUNT(*) FROM turns WHERE seq >= $1", 5000-newest); n != newest || err != nil {
		t.Error(n, err)
	}
	if h := s.Health(); h.Err != nil || slices.Contains(h.Trouble, TroubleFull) {
		t.Errorf("%+v", h)
	}
}

// TestLogBytes: the queue has a limit of bytes.
func TestLogBytes(t *testing.T) {
	d := &disk{}
	s := open(t, Options{Path: filepath.Join(t.TempDir(), "x.db"), hooks: hooks{wrap: d.under}})
	addDevice(t, s, "m")
	d.set(0, errors.New("no disk"))
	for i := range 200 {
		e := turnOf("m", "c", i)
		e.Turn.Said = strings.Repeat("x", 100_000)
		s.Log.Put(e)
	}
	if st := s.Log.Stats(); st.WaitingBytes > maxWaitingBytes+200_000 || st.Dropped < 100 {
		t.Errorf("%+v", st)
	}
	s.Log.Learned("m", "history", strings.Repeat("x", maxWaitingBytes+1))
	if st := s.Log.Stats(); st.Rejected != 1 {
		t.Errorf("%+v", st)
	}
	d.set(0, nil)
	flush(t, s)
	if st := s.Log.Stats(); st.WaitingBytes != 0 || st.Written+st.Dropped != 200 {
		t.Errorf("%+v", st)
	}
}

// TestClockBack: turns of a clock that was set back are written, and lists hold them.
func TestClockBack(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		addDevice(t, s, "m")
		for i, minute := range []int{30, 31, 5, 6} {
			e := turnOf("m", "c", i)
			e.Turn.At = at(minute)
			s.Log.Put(e)
		}
		flush(t, s)
		turns, err := s.Turns.List(t.Context(), "m", Page{Limit: 3})
		if err != nil || len(turns) != 3 || turns[2].Seq != 3 {
			t.Errorf("%+v %v", turns, err)
		}
		last := turns[2]
		if turns, err = s.Turns.List(t.Context(), "m", Page{Before: Cursor{last.At, last.ID}}); err != nil || len(turns) != 1 || turns[0].Seq != 2 {
			t.Errorf("%+v %v", turns, err)
		}
		if turns, err = s.Turns.Of(t.Context(), "c", 0, 10); err != nil || len(turns) != 3 || turns[0].Seq != 1 {
			t.Errorf("%+v %v", turns, err)
		}
	})
}

func BenchmarkPut(b *testing.B) {
	s, err := Open(b.Context(), Options{Path: filepath.Join(b.TempDir(), "x.db")})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	d := Identity{ID: "m", Address: "m", State: DevicePaired}
	if err := s.Devices.Commit(b.Context(), DeviceChange{Save: []Identity{d}}); err != nil {
		b.Fatal(err)
	}
	made := make([]*Entry, b.N)
	for i := range made {
		made[i] = turnOf("m", "c", i)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for _, e := range made {
		s.Log.Put(e)
	}
	b.StopTimer()
}

// TestLogRest: what a turn still lacks is added on the goroutine that writes, once, and counts in the queue as it was said to.
func TestLogRest(t *testing.T) {
	d := &disk{}
	s := open(t, Options{Path: filepath.Join(t.TempDir(), "x.db"), hooks: hooks{wrap: d.under}})
	addDevice(t, s, "m")
	d.set(0, errors.New("no disk"))
	made := 0
	for i := range 300 {
		e := turnOf("m", "c", i)
		messages := e.Messages
		e.Messages, e.RestSize = nil, 1000
		e.Rest = func(e *Entry) { made++; e.Messages = messages }
		s.Log.Put(e)
	}
	if err := s.Log.Flush(t.Context()); err == nil {
		t.Error("there is a disk")
	}
	for deadline := time.Now().Add(5 * time.Second); s.Log.Stats().WaitingBytes < 300*2000 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond) // what is tried again at this moment is not counted in bytes
	}
	if st := s.Log.Stats(); st.Waiting != 300 || st.WaitingBytes < 300*2000 || st.WaitingBytes > 300*4000 {
		t.Errorf("%+v", st)
	}
	d.set(0, nil)
	flush(t, s)
	if st := s.Log.Stats(); st.Waiting != 0 || st.WaitingBytes != 0 || st.Written != 300 || made != 300 {
		t.Errorf("%+v, made %d times", st, made)
	}
	if n, err := count(t.Context(), s.db.read, "SELECT COUNT(*) FROM messages"); n != 300*len(turnOf("m", "c", 0).Messages) || err != nil {
		t.Error(n, err)
	}
}

// TestAgentOfTurn: a turn names whom it is of, and a conversation whom its last one is of, also one whose settings the store does not have.
func TestAgentOfTurn(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		addDevice(t, s, "m")
		want(t, s.Agents.Put(ctx, "pirate", "", AgentRevision{Rev: 1, Doc: "{}"}, 3), nil)
		agents, _, err := s.Agents.List(ctx)
		if err != nil || len(agents) != 1 {
			t.Fatal(agents, err)
		}
		put := func(talk string, seq int, slug string) (agentID string) {
			t.Helper()
			id := talk + string(rune('0'+seq))
			s.Log.Put(&Entry{
				Conversation: Conversation{ID: talk, DeviceID: "m", BeganAt: at(0)}, Agent: slug,
				Turn: Turn{ID: id, Seq: seq, At: at(seq), Kind: "user", Cause: "done", AgentRev: seq},
			})
			flush(t, s)
			turn, _, _, err := s.Turns.Get(ctx, id)
			if err != nil || turn.AgentRev != seq {
				t.Errorf("%+v %v", turn, err)
			}
			c, err := s.Conversations.Get(ctx, talk)
			if err != nil || turn.AgentID != c.AgentID && slug != "" || turn.AgentID != "" && slug == "" {
				t.Errorf("a turn of %q is %q's, in a talk of %q, %v", slug, turn.AgentID, c.AgentID, err)
			}
			return c.AgentID
		}
		pirate, file := put("a", 1, "pirate"), put("b", 1, "of the file")
		if pirate != agents[0].ID || file == "" || file == pirate {
			t.Errorf("%q %q, want %q and another", pirate, file, agents[0].ID)
		}
		for i, c := range []struct{ slug, want string }{{"of the file", file}, {"", file}, {"pirate", pirate}} {
			if got := put("a", i+2, c.slug); got != c.want {
				t.Errorf("turn %d, of %q: %s, want %s", i+2, c.slug, got, c.want)
			}
		}
		want(t, s.Agents.Put(ctx, "of the file", "", AgentRevision{Rev: 1, Doc: "{}"}, 3), nil) // it was never made here
	})
}

// TestHealthOfClock: a clock that was set back is told of while it lies behind what is kept, also by the next start, and the last talk of
// a device is then that of now. A write that never ends is told of too, and a file of a GiB.
func TestHealthOfClock(t *testing.T) {
	var off atomic.Int64
	d := &disk{}
	o := Options{Path: filepath.Join(t.TempDir(), "x.db"), Now: func() time.Time { return at(0).Add(time.Duration(off.Load())) }, hooks: hooks{wrap: d.under}}
	s, err := Open(t.Context(), o)
	want(t, err, nil)
	says := func(want ...Trouble) {
		t.Helper()
		if h := s.Health(); !slices.Equal(h.Trouble, want) {
			t.Errorf("%v, want %v", h.Trouble, want)
		}
	}
	addDevice(t, s, "m")
	put := func(talk string, when time.Duration) {
		off.Store(int64(when))
		e := turnOf("m", talk, 1)
		e.Turn.At = s.db.clock()
		s.Log.Put(e)
		flush(t, s)
	}
	put("of the future", 10*time.Hour)
	says()
	put("of now", time.Hour)
	says(TroubleClock)
	if last, err := s.Turns.Dialogue(t.Context(), "m", 9); err != nil || last.Conversation.ID != "of now" {
		t.Errorf("%+v %v", last, err)
	}
	want(t, s.Close(), nil)
	s = open(t, o)
	says(TroubleClock)
	off.Store(int64(10*time.Hour - clockBack))
	says()

	began := off.Load()
	d.set(200*time.Millisecond, nil)
	over := make(chan error)
	go func() { over <- s.Secrets.Put(t.Context(), Secret{Name: "a", Sealed: "x"}) }()
	until(t, func() bool { s.db.health.mu.Lock(); defer s.db.health.mu.Unlock(); return len(s.db.health.going) > 0 })
	off.Store(began + int64(time.Minute))
	if h := s.Health(); h.Slowest != time.Minute || !slices.Contains(h.Trouble, TroubleSlow) {
		t.Errorf("while it is written: %+v", h)
	}
	want(t, <-over, nil)
	off.Add(int64(troubleShown + time.Second))
	says()
	s.db.health.keeps(time.Time{}, largeFile)
	says(TroubleLarge)
}

// TestCallOver: the end of a call that outlasted its turn stands in its row, whether the turn is written by then or not,
// and one of a forgotten device changes nothing.
func TestCallOver(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		addDevice(t, s, "m")
		put := func(turn string) {
			s.Log.Put(&Entry{
				Conversation: Conversation{ID: "c", DeviceID: "m", BeganAt: at(0)}, Turn: Turn{ID: turn, Seq: 1, At: at(1), Kind: "user", Cause: "done"},
				Calls: []Call{{ID: turn + "-k", At: at(1), Caller: "model", Name: "lamp", Source: "device", Kind: "control", Arguments: "{}", ArgumentsDigest: "a", Result: "success"}},
			})
		}
		end := func(turn string) CallEnd {
			return CallEnd{ID: turn + "-k", DeviceID: "m", Name: "lamp.on", At: at(2), Took: 3 * time.Second, ResultDigest: "d", Fault: "error", Late: true}
		}
		put("before")
		flush(t, s)
		s.Log.CallOver(end("before"))
		put("with")
		s.Log.CallOver(end("with"))
		s.Log.CallOver(end("nothing"))
		flush(t, s)
		for _, turn := range []string{"before", "with"} {
			_, _, calls, err := s.Turns.Get(t.Context(), turn)
			want := Call{
				ID: turn + "-k", TurnID: turn, DeviceID: "m", At: at(2), Caller: "model", Name: "lamp.on", Source: "device", Kind: "control", Arguments: "{}", ArgumentsDigest: "a",
				Result: "success", ResultDigest: "d", Fault: "error", Late: true, Took: 3 * time.Second,
			}
			if err != nil || len(calls) != 1 || !reflect.DeepEqual(calls[0], want) {
				t.Errorf("%s: %+v, %v\nwant %+v", turn, calls, err, want)
			}
		}
		s.Log.CallOver(CallEnd{ID: "before-k", DeviceID: "m", Result: "other"})
		s.Log.forget("m")
		flush(t, s)
		if _, _, calls, err := s.Turns.Get(t.Context(), "before"); err != nil || calls[0].Result != "success" {
			t.Errorf("what waits of a forgotten device was written: %+v, %v", calls, err)
		}
	})
}
