package alarm

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/agent/feature"
	"xiaozhi/agent/turn"
	"xiaozhi/internal/recur"
	"xiaozhi/internal/text"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp"
)

var whole = feature.Told{Heard: "all", Whole: true, Played: time.Second}

func in(d time.Duration, words string) mcp.TimerArgs {
	return mcp.TimerArgs{Action: mcp.TimerSet, Due: time.Now().Add(d), Text: words}
}

func at(d time.Duration, words string) mcp.TimerArgs {
	return mcp.TimerArgs{Action: mcp.TimerSet, Due: time.Now().Add(d), Text: words, Reminder: true}
}

// TestBookRings: what is due rings when it is, once, and is over when it was heard.
func TestBookRings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(t.Context(), Options{})
		defer b.Close()
		s := connect(t, b, "a")
		if said := s.mustOrder(t, in(time.Minute, "")); said != "OK, I will remind you in 1 minute." {
			t.Error(said)
		}
		s.mustOrder(t, at(2*time.Hour, "Tea"))
		if !s.in.Expects(time.Now()) {
			t.Error("the channel is not kept open")
		}
		time.Sleep(time.Minute - time.Millisecond)
		if n := len(s.words()); n > 0 {
			t.Errorf("%d ring too early", n)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if s.said("Time is up.") != 1 || !s.told[0].SoundTells {
			t.Errorf("told %q", s.words())
		}
		wantStates(t, b, Ringing, Armed)
		s.hear(whole)
		synctest.Wait()
		wantStates(t, b, Told, Armed)
		if s.in.Expects(time.Now()) {
			t.Error("the channel is kept open for what is far away")
		}
		time.Sleep(3 * time.Hour)
		if s.said("This is a reminder: Tea.") != 1 || len(s.told) != 2 {
			t.Errorf("told %q", s.words())
		}
		s.hear(whole)
		time.Sleep(48 * time.Hour)
		if len(s.told) != 2 {
			t.Errorf("told %q", s.words())
		}
		s.leave()
	})
}

// TestBookTellsLate: what was due without a connection is told at the next, with its time,
// and what recurs only as often as it is still of use.
func TestBookTellsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(t.Context(), Options{})
		defer b.Close()
		s := connect(t, b, "a")
		s.mustOrder(t, at(time.Hour, "Bread"))
		daily := at(2*time.Hour, "Pills")
		daily.Repeat = "FREQ=DAILY"
		s.mustOrder(t, daily)
		s.leave()
		time.Sleep(90 * time.Minute)
		wantStates(t, b, Missed, Armed)
		time.Sleep(3 * 24 * time.Hour) // 1:30 of the fourth day
		wantStates(t, b, Missed, Missed)
		s = connect(t, b, "a")
		synctest.Wait()
		if s.said("This is a reminder: Bread. It was due on January 1 at 1:00.") != 1 || s.said("This is a reminder: Pills. It was due yesterday at 2:00. It was missed 2 times before that.") != 1 || len(s.told) != 2 {
			t.Errorf("told %q", s.words())
		}
		s.leave() // nothing of it was heard
		synctest.Wait()
		wantStates(t, b, Missed, Missed)
		s = connect(t, b, "a")
		synctest.Wait()
		for i := range s.told {
			s.loop.Lock()
			s.told[i].Done(whole)
			s.loop.Unlock()
		}
		synctest.Wait()
		if n := len(s.told); n != 2 {
			t.Errorf("told %q", s.words())
		}
		wantStates(t, b, Told, Armed)
		time.Sleep(time.Hour)
		if s.said("This is a reminder: Pills.") != 2 || strings.Contains(s.words()[2], "due") {
			t.Errorf("told %q", s.words())
		}
		s.leave()
	})
}

// TestBookHeard: what of a bell was heard decides whether it rings again.
func TestBookHeard(t *testing.T) {
	const bell = 500 * time.Millisecond
	for name, test := range map[string]struct {
		words string
		told  feature.Told
		again bool
		want  State
	}{
		"whole":                         {"Tea", whole, false, Told},
		"a part of the words":           {"Tea", feature.Told{Heard: "This is", Played: time.Second, Cause: turn.ErrBargeIn}, false, Told},
		"a part, and the device leaves": {"Tea", feature.Told{Heard: "This is", Played: time.Second, Cause: errGone}, true, Ringing},
		"the bell of a timer":           {"", feature.Told{Played: bell, Cause: turn.ErrBargeIn}, false, Told},
		"the bell of a reminder":        {"Tea", feature.Told{Played: bell, Cause: turn.ErrBargeIn}, true, Ringing},
		"the bell, ended by a button":   {"Tea", feature.Told{Played: bell, Cause: turn.ErrAborted}, false, Told},
		"nothing":                       {"", feature.Told{}, true, Ringing},
		"the bell, and the voice fails": {"Tea", feature.Told{Played: bell, Err: errDisk}, false, Missed},
		"nothing, for it fails":         {"Tea", feature.Told{Err: errDisk}, false, Missed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := New(t.Context(), Options{})
				defer b.Close()
				s := connect(t, b, "a")
				s.mustOrder(t, in(time.Minute, test.words))
				time.Sleep(time.Minute)
				synctest.Wait()
				s.hear(test.told)
				synctest.Wait()
				if again := len(s.told) == 2; again != test.again {
					t.Errorf("told %q", s.words())
				}
				wantStates(t, b, test.want)
			})
		})
	}
}

// TestBookLeavesInTheMiddle: what a device has not told to its end when it leaves is told when it comes back.
func TestBookLeavesInTheMiddle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(t.Context(), Options{})
		defer b.Close()
		s := connect(t, b, "a")
		s.mustOrder(t, in(time.Minute, "Tea"))
		time.Sleep(time.Minute)
		synctest.Wait()
		s.hear(feature.Told{Heard: "This is", Played: time.Second, Cause: errGone})
		s.leave()
		synctest.Wait()
		wantStates(t, b, Missed)
		s = connect(t, b, "a")
		synctest.Wait()
		if s.said("Tea") != 1 {
			t.Errorf("told %q", s.words())
		}
	})
}

// TestBookMute: what no voice could speak is told again while its device stays: after an hour, or when it recurs before.
func TestBookMute(t *testing.T) {
	for rule, again := range map[string]time.Duration{"FREQ=DAILY": tellAgain, "FREQ=MINUTELY;INTERVAL=20": 20 * time.Minute, "": tellAgain} {
		t.Run(rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := New(t.Context(), Options{})
				defer b.Close()
				s := connect(t, b, "a")
				due := time.Now().Add(time.Minute)
				s.mustOrder(t, mcp.TimerArgs{Action: mcp.TimerSet, Due: due, Repeat: rule, Text: "Pills", Reminder: true})
				time.Sleep(time.Minute)
				synctest.Wait()
				s.hear(feature.Told{Err: errDisk})
				synctest.Wait()
				if at := s.in.Deadline(); !at.Equal(due.Add(again)) {
					t.Fatalf("tried again at %v", at)
				}
				time.Sleep(again)
				s.Post(func() { s.in.Tick(time.Now()) })
				synctest.Wait()
				if s.said("Pills") != 2 || !s.in.Deadline().IsZero() {
					t.Errorf("told %q, again at %v", s.words(), s.in.Deadline())
				}
				s.hear(whole)
				synctest.Wait()
				s.leave()
			})
		})
	}
}

// TestBookQueue: what the conversation has no room for waits for a second.
func TestBookQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(t.Context(), Options{})
		defer b.Close()
		s := connect(t, b, "a")
		s.room = 2
		for range 5 {
			s.mustOrder(t, in(time.Minute, "Tea"))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(s.told) != 2 || !s.in.Deadline().Equal(time.Now().Add(retryAfter)) {
			t.Errorf("told %q, again at %v", s.words(), s.in.Deadline())
		}
		s.room = 4
		s.Post(func() { s.in.Tick(time.Now()) })
		if len(s.told) != 4 || s.in.Deadline().IsZero() {
			t.Errorf("told %q", s.words())
		}
		s.room = 9
		s.Post(func() { s.in.Tick(time.Now()) })
		if len(s.told) != 5 || !s.in.Deadline().IsZero() {
			t.Errorf("told %q, again at %v", s.words(), s.in.Deadline())
		}
		s.leave()
	})
}

// TestBookRestart: what rang when the program ended is told once more; a program that
// ends in that again tells no more.
func TestBookRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := NewMemory()
		start := func() (*Book, *speaker) {
			b := New(t.Context(), Options{Store: store})
			b.Start()
			synctest.Wait()
			s := connect(t, b, "a")
			synctest.Wait()
			return b, s
		}
		kill := func(b *Book) { // without a word to the store
			b.mu.Lock()
			b.there = map[string]*alarms{}
			b.mu.Unlock()
			b.Close()
		}
		b, s := start()
		s.mustOrder(t, in(time.Minute, "Tea"))
		s.mustOrder(t, in(3*time.Hour, "Bread"))
		time.Sleep(time.Minute)
		synctest.Wait()
		kill(b)
		if len(s.told) != 1 {
			t.Fatalf("told %q", s.words())
		}
		time.Sleep(10 * time.Minute)
		b, s = start()
		if s.said("This is a reminder: Tea. It was due at 0:01.") != 1 || len(s.told) != 1 {
			t.Errorf("after the first end: told %q", s.words())
		}
		kill(b)
		b, s = start()
		if len(s.told) != 0 {
			t.Errorf("after the second end: told %q", s.words())
		}
		time.Sleep(3 * time.Hour)
		if s.said("Bread") != 1 {
			t.Errorf("told %q", s.words())
		}
		b.Close()
	})
}

// TestBookClock: a clock that is set moves what is for a time of day, and not what is for
// a length of time.
func TestBookClock(t *testing.T) {
	for name, set := range map[string]time.Duration{"forward": 2 * time.Hour, "back": -2 * time.Hour, "not": 0, "drifts": 100 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, moved := time.Now(), time.Duration(0)
				// The wall clock of a test cannot be set: the other one is set the other way.
				up := func() time.Duration { return time.Since(began) - moved }
				b := New(t.Context(), Options{Up: up})
				defer b.Close()
				s := connect(t, b, "a")
				timer, alert := 30*time.Minute, time.Hour
				if set > 0 { // the reminder has come when the clock was set
					alert = 30 * time.Second
				}
				s.mustOrder(t, in(timer, "Tea"))
				s.mustOrder(t, at(alert, "Bread"))
				synctest.Wait()
				moved = set
				b.looks.now()
				synctest.Wait()
				all, err := b.o.Store.Find(t.Context(), Query{})
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range all {
					want := began.Add(alert)
					if r.Kind == Timer {
						want = began.Add(timer + set.Truncate(time.Second))
					}
					if d := r.Due.Sub(want); d.Abs() > time.Millisecond {
						t.Errorf("the %s is due %v off", r.Kind, d)
					}
				}
			})
		})
	}
}

// TestBookSleep: a machine that was suspended rings when it wakes, with the time that it was for.
func TestBookSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := NewMemory()
		b := New(t.Context(), Options{Store: store})
		defer b.Close()
		s := connect(t, b, "a")
		now := time.Now()
		for i, r := range []Reminder{
			{Kind: Timer, Due: now.Add(-2 * time.Hour), Length: time.Minute},
			{Kind: Alert, Due: now.Add(-5 * time.Hour), Rule: "FREQ=HOURLY", Wall: now.Add(-5 * time.Hour).Format(recur.Layout), Zone: "UTC", Text: "Drink"},
		} {
			r.ID, r.Device, r.State, r.Lang = fmt.Sprint(i), "a", Armed, text.English
			if err := store.Add(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		b.looks.now()
		synctest.Wait()
		if s.said("Time is up. It was due yesterday at 22:00.") != 1 || s.said("Drink") != 1 || len(s.told) != 2 {
			t.Errorf("told %q", s.words())
		}
	})
}

// TestBookManyDevices: ten thousand reminders ring, each once, with one timer; those of
// devices that are away are missed, and cost no goroutine.
func TestBookManyDevices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const devices, each = 200, 20
		b := New(t.Context(), Options{})
		defer b.Close()
		var all []*speaker
		for i := range devices {
			s := connect(t, b, fmt.Sprint(i))
			all = append(all, s)
			for j := range each {
				s.mustOrder(t, in(time.Hour+time.Duration(j%4)*time.Minute, "Tea"))
			}
		}
		synctest.Wait()
		for _, s := range all[devices/2:] {
			s.leave()
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		for i, s := range all {
			want := 0
			if i < devices/2 {
				want = each
			}
			if n := len(s.told); n != want {
				t.Fatalf("device %d was told %d", i, n)
			}
		}
		counts := map[State]int{}
		for _, s := range states(t, b) {
			counts[s]++
		}
		if counts[Ringing] != devices/2*each || counts[Missed] != devices/2*each {
			t.Errorf("states %v", counts)
		}
	})
}

// TestBookLimit: a device has so many, whose number is said.
func TestBookLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(t.Context(), Options{Most: 3})
		defer b.Close()
		s, other := connect(t, b, "a"), connect(t, b, "b")
		for range 3 {
			s.mustOrder(t, in(time.Minute, "Tea"))
		}
		if _, err := s.order(t, in(time.Minute, "Tea")); err == nil || !strings.Contains(err.Error(), "has 3 timers") {
			t.Errorf("the fourth: %v", err)
		}
		other.mustOrder(t, in(time.Minute, "Tea"))
		b.SetLimits(4, 0)
		s.mustOrder(t, in(time.Minute, "Tea"))
		b.SetLimits(2, 0)
		if _, err := s.order(t, in(time.Minute, "Tea")); err == nil || !strings.Contains(err.Error(), "has 4 timers") && !strings.Contains(err.Error(), "has 2 timers") {
			t.Errorf("after the limit was lowered: %v", err)
		}
		b.SetLimits(4, 0)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		s.hear(whole)
		synctest.Wait()
		s.mustOrder(t, in(time.Minute, "Tea"))
	})
}

// TestBookStranger: a device that is not known has no reminders, nor those of the one
// whose name it says.
func TestBookStranger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		known := true
		b := New(t.Context(), Options{Owner: func(s wire.Session) (string, bool) { return "key of " + s.DeviceID, known }})
		defer b.Close()
		s := connect(t, b, "a")
		s.mustOrder(t, in(time.Minute, "Tea"))
		s.leave()
		known = false
		stranger := connect(t, b, "a")
		for _, action := range []mcp.TimerAction{mcp.TimerSet, mcp.TimerList, mcp.TimerCancel, mcp.TimerSnooze, mcp.TimerChange} {
			if said, err := stranger.order(t, mcp.TimerArgs{Action: action, Due: time.Now().Add(time.Minute), All: true}); err == nil || said != "" || !strings.Contains(err.Error(), "not known") {
				t.Errorf("%s: %q, %v", action, said, err)
			}
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(stranger.told) != 0 {
			t.Errorf("told %q", stranger.words())
		}
		wantStates(t, b, Missed)
	})
}

// TestBookAsleep: whoever asks for something far away hears that the device cannot be
// woken, if it cannot.
func TestBookAsleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, wakes := range []bool{false, true} {
			b := New(t.Context(), Options{CanBeWoken: func(wire.Session) bool { return wakes }})
			s := connect(t, b, "a")
			daily := at(time.Minute, "Tea")
			daily.Repeat = "FREQ=DAILY"
			for i, args := range []mcp.TimerArgs{at(10*time.Hour, "Tea"), daily, in(time.Hour, "")} {
				if said := s.mustOrder(t, args); strings.Contains(said, "cannot wake") == wakes {
					t.Errorf("%d, can be woken %v: %q", i, wakes, said)
				}
			}
			if said := s.mustOrder(t, in(20*time.Minute, "")); strings.Contains(said, "cannot wake") {
				t.Errorf("a short timer, whose channel stays open: %q", said)
			}
			time.Sleep(20 * time.Minute)
			synctest.Wait()
			s.hear(whole)
			if said := s.mustOrder(t, mcp.TimerArgs{Action: mcp.TimerSnooze, Due: time.Now().Add(2 * time.Hour)}); strings.Contains(said, "cannot wake") == wakes {
				t.Errorf("put off for long, can be woken %v: %q", wakes, said)
			}
			s.leave()
			b.Close()
		}
	})
}

// TestBookDisk: nothing is confirmed that is not stored; what is due rings on a disk that
// takes nothing, once; a slow disk holds up nobody but who waits for it.
func TestBookDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const stall = 5 * time.Second
		store := &broken{Store: NewMemory()}
		store.write.Store(true)
		b := New(t.Context(), Options{Store: store})
		defer b.Close()
		s := connect(t, b, "a")
		if said, err := s.order(t, in(time.Minute, "Tea")); err == nil || said != "" || !strings.Contains(err.Error(), "could not be stored") {
			t.Errorf("on a full disk: %q, %v", said, err)
		}
		synctest.Wait()
		store.write.Store(false)
		s.mustOrder(t, in(time.Minute, "Tea"))
		synctest.Wait()
		store.write.Store(true)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if len(s.told) != 1 {
			t.Errorf("told %q", s.words())
		}
		s.hear(whole)
		time.Sleep(time.Minute)
		synctest.Wait()
		wantStates(t, b, Armed)
		store.write.Store(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		wantStates(t, b, Told)
		if len(s.told) != 1 {
			t.Errorf("told %q", s.words())
		}

		store.stall.Store(int64(stall))
		began := time.Now()
		s.mustOrder(t, in(time.Minute, "Bread"))
		if d := time.Since(began); d != stall {
			t.Errorf("confirmed after %v", d)
		}
		time.Sleep(56 * time.Second) // it is being stored as ringing
		began = time.Now()
		s.in.Expects(time.Now())
		other := connect(t, b, "b")
		other.leave()
		if d := time.Since(began); d != 0 {
			t.Errorf("a conversation waits for the disk for %v", d)
		}
		time.Sleep(10 * time.Second)
		if s.said("Bread") != 1 {
			t.Errorf("told %q", s.words())
		}
	})
}

// TestBookDoubtfulCommit: what a store has committed although it said that it failed is over when it was heard.
func TestBookDoubtfulCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &broken{Store: NewMemory()}
		b := New(t.Context(), Options{Store: store})
		defer b.Close()
		s := connect(t, b, "a")
		s.mustOrder(t, in(time.Minute, "Tea"))
		store.lies.Store(true)
		time.Sleep(time.Minute)
		synctest.Wait()
		s.hear(whole)
		synctest.Wait()
		wantStates(t, b, Told)
		if len(s.told) != 1 {
			t.Errorf("told %q", s.words())
		}
	})
}

// TestBookLostLate: what nobody heard is told to the next connection, although the disk took it only after that began.
func TestBookLostLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &broken{Store: NewMemory()}
		b := New(t.Context(), Options{Store: store})
		defer b.Close()
		s := connect(t, b, "a")
		s.mustOrder(t, in(time.Minute, "Tea"))
		time.Sleep(time.Minute)
		synctest.Wait()
		store.write.Store(true)
		s.leave()
		s = connect(t, b, "a")
		synctest.Wait()
		store.write.Store(false)
		time.Sleep(2 * retryAfter)
		synctest.Wait()
		if s.said("Tea") != 1 {
			t.Errorf("told %q", s.words())
		}
	})
}

// TestBookOneDeviceWaits: a device whose reminder takes long to be stored holds up no other.
func TestBookOneDeviceWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &broken{Store: NewMemory(), slow: "a"}
		b := New(t.Context(), Options{Store: store})
		defer b.Close()
		slow, s := connect(t, b, "a"), connect(t, b, "b")
		s.mustOrder(t, in(time.Second, "Bread"))
		began := time.Now()
		go func() { _, _ = slow.orderIn(t.Context(), in(time.Minute, "Tea")) }()
		synctest.Wait()
		s.mustOrder(t, in(2*time.Second, "Milk"))
		if d := time.Since(began); d > 0 {
			t.Errorf("the other one waits for %v", d)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if s.said("Bread") != 1 || s.said("Milk") != 1 {
			t.Errorf("after %v: told %q", time.Since(began), s.words())
		}
		time.Sleep(time.Minute)
	})
}

// TestBookOrders: list, cancel and snooze.
func TestBookOrders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(t.Context(), Options{})
		defer b.Close()
		s := connect(t, b, "a")
		list := mcp.TimerArgs{Action: mcp.TimerList}
		if said := s.mustOrder(t, list); said != "there are no timers or reminders." {
			t.Error(said)
		}
		weekdays := at(7*time.Hour, "Get up")
		weekdays.Repeat = "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR"
		if said := s.mustOrder(t, weekdays); !strings.HasPrefix(said, "OK, I will remind you every weekday at 7:00, the next time on January 3 at 7:00. I cannot wake") {
			t.Error(said) // January 1, 2000 is a Saturday
		}
		s.mustOrder(t, in(5*time.Minute, ""))
		s.mustOrder(t, at(time.Hour, "Tea"))
		want := `[{"due":"at 0:05","left":"5 minutes","length":"5 minutes"},{"due":"at 1:00","left":"1 hour","text":"Tea"},` +
			`{"due":"on January 3 at 7:00","left":"2 days 7 hours","text":"Get up","repeats":"every weekday at 7:00"}]`
		if said := s.mustOrder(t, list); said != want {
			t.Errorf("got  %s\nwant %s", said, want)
		}
		if said := s.mustOrder(t, mcp.TimerArgs{Action: mcp.TimerCancel, Text: "coffee"}); !strings.HasPrefix(said, "nothing was cancelled") {
			t.Error(said)
		}
		s.mustOrder(t, mcp.TimerArgs{Action: mcp.TimerCancel, Kind: "timer", All: true})
		wantStates(t, b, Deleted, Armed, Armed)
		evening := at(19*time.Hour, "Dinner")
		s.mustOrder(t, evening)
		if said := s.mustOrder(t, mcp.TimerArgs{Action: mcp.TimerCancel, Text: "7 o'clock"}); !strings.HasPrefix(said, "nothing was cancelled") {
			t.Error(said) // in the morning or in the evening
		}
		s.mustOrder(t, mcp.TimerArgs{Action: mcp.TimerCancel, Text: "7 pm"})
		wantStates(t, b, Deleted, Armed, Deleted, Armed)
		s.mustOrder(t, mcp.TimerArgs{Action: mcp.TimerCancel, Text: "the tea"})
		wantStates(t, b, Deleted, Deleted, Deleted, Armed)
		time.Sleep(55 * time.Hour)
		synctest.Wait()
		if s.said("Get up") != 1 || len(s.told) != 1 {
			t.Fatalf("told %q", s.words())
		}
		s.hear(whole)
		synctest.Wait()
		if said := s.mustOrder(t, mcp.TimerArgs{Action: mcp.TimerSnooze, Due: time.Now().Add(10 * time.Minute)}); said != "OK, I will remind you in 10 minutes." {
			t.Error(said)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if s.said("Get up") != 2 || len(s.told) != 2 {
			t.Errorf("told %q", s.words())
		}
		s.hear(whole)
		time.Sleep(23*time.Hour + 50*time.Minute)
		synctest.Wait()
		if s.said("Get up") != 3 || len(s.told) != 3 {
			t.Errorf("the next day: told %q", s.words())
		}
		// It rings: to delete it withdraws what waits.
		s.mustOrder(t, mcp.TimerArgs{Action: mcp.TimerCancel})
		synctest.Wait()
		if len(s.gone) != 1 || s.in.Expects(time.Now()) {
			t.Errorf("withdrawn: %v", s.gone)
		}
		if said := s.mustOrder(t, mcp.TimerArgs{Action: mcp.TimerSnooze, Due: time.Now().Add(10 * time.Minute)}); said != "OK, I will remind you in 10 minutes." {
			t.Errorf("nothing to be put off: %q", said)
		}
		if said := s.mustOrder(t, list); !strings.Contains(said, `"length":"10 minutes"`) {
			t.Error(said)
		}
	})
}

// TestBookListsNothingTold: what was heard a moment ago is over for who asks, however slow
// the disk is.
func TestBookListsNothingTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &broken{Store: NewMemory()}
		b := New(t.Context(), Options{Store: store})
		defer b.Close()
		s := connect(t, b, "a")
		s.mustOrder(t, in(time.Minute, "Tea"))
		time.Sleep(time.Minute)
		synctest.Wait()
		store.stall.Store(int64(5 * time.Second))
		s.hear(whole)
		if said := s.mustOrder(t, mcp.TimerArgs{Action: mcp.TimerList}); said != "there are no timers or reminders." {
			t.Error(said)
		}
	})
}

// TestBookSnoozeRinging: what rings just now is put off, and comes again.
func TestBookSnoozeRinging(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(t.Context(), Options{})
		defer b.Close()
		s := connect(t, b, "a")
		s.mustOrder(t, in(time.Minute, "Tea"))
		time.Sleep(time.Minute)
		synctest.Wait()
		s.mustOrder(t, mcp.TimerArgs{Action: mcp.TimerSnooze, Due: time.Now().Add(5 * time.Minute)})
		s.hear(whole) // it was told just then
		synctest.Wait()
		wantStates(t, b, Snoozed)
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if s.said("Tea") != 2 {
			t.Errorf("told %q", s.words())
		}
	})
}

// TestBookBadRules: a rule that is not kept is refused with its reason.
func TestBookBadRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(t.Context(), Options{})
		defer b.Close()
		s := connect(t, b, "a")
		for rule, want := range map[string]string{
			"FREQ=MINUTELY": "every 5 minutes at most", "FREQ=SOMETIMES": "not understood", "FREQ=DAILY;UNTIL=19990101": "never come due",
		} {
			args := at(time.Hour, "Tea")
			args.Repeat = rule
			if _, err := s.order(t, args); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", rule, err)
			}
		}
		if _, err := s.order(t, at(-time.Hour, "Tea")); err == nil || !strings.Contains(err.Error(), "in the past") {
			t.Error(err)
		}
	})
}

// TestBookDaylightSaving: what recurs rings by the clocks of the zone that its device had when it was asked for, before and
// after they are changed, once a day, also in the hour that is skipped or comes twice, and after a restart in between.
func TestBookDaylightSaving(t *testing.T) {
	for name, c := range map[string]struct {
		month time.Month
		day   int
		wall  string
		zone  string
		want  string
	}{
		"spring":       {3, 25, "07:30", "Europe/Berlin", "25 07:30 +0100, 26 07:30 +0200, 27 07:30 +0200"},
		"autumn":       {10, 28, "07:30", "Europe/Berlin", "28 07:30 +0200, 29 07:30 +0100, 30 07:30 +0100"},
		"skipped":      {3, 25, "02:30", "Europe/Berlin", "25 02:30 +0100, 26 03:30 +0200, 27 02:30 +0200"},
		"twice":        {10, 28, "02:30", "Europe/Berlin", "28 02:30 +0200, 29 02:30 +0200, 30 02:30 +0100"},
		"another zone": {4, 1, "07:30", "America/New_York", "01 07:30 -0500, 02 07:30 -0400, 03 07:30 -0400"},
		"no change":    {3, 25, "07:30", "Asia/Shanghai", "25 07:30 +0800, 26 07:30 +0800, 27 07:30 +0800"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				zone, kept := zoneOf(t, c.zone), NewMemory()
				clock, err := time.Parse("15:04", c.wall)
				if err != nil {
					t.Fatal(err)
				}
				began := time.Date(2000, c.month, c.day, clock.Hour(), clock.Minute(), 0, 0, zone)
				time.Sleep(time.Until(began.Add(-time.Hour)))
				b := New(t.Context(), Options{Store: kept})
				s := connect(t, b, "a")
				s.zone = zone
				s.mustOrder(t, mcp.TimerArgs{Action: mcp.TimerSet, Due: began, Repeat: "FREQ=DAILY", Text: "Pills", Reminder: true})
				var rang []string
				for hour := range 60 {
					if hour == 20 { // before the clocks are changed
						s.leave()
						b.Close()
						b = New(t.Context(), Options{Store: kept})
						b.Start()
						synctest.Wait()
						s = connect(t, b, "a") // the server itself has another zone
					}
					for range 60 {
						time.Sleep(time.Minute)
						synctest.Wait()
						if len(s.words()) > 0 {
							rang = append(rang, time.Now().In(zone).Format("02 15:04 -0700"))
							s.hear(whole)
							s.told = nil
						}
					}
				}
				if got := strings.Join(rang, ", "); got != c.want {
					t.Errorf("it rings at %s, want %s", got, c.want)
				}
				s.leave()
				b.Close()
			})
		})
	}
}
