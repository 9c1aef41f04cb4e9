package alarm

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/internal/text"
	"xiaozhi/mcp"
)

// TestBookMove changes when timers and alarms are due: they ring then and not before, and are said as they are now. The bubble's
// clock begins at midnight.
func TestBookMove(t *testing.T) {
	for name, test := range map[string]struct {
		set   func() []mcp.TimerArgs // in the bubble
		order mcp.TimerArgs
		want  string        // what is said
		rings time.Duration // from the beginning; 0: nothing has changed
	}{
		"a timer by more":     {func() []mcp.TimerArgs { return []mcp.TimerArgs{in(5*time.Minute, "")} }, mcp.TimerArgs{By: 120}, "OK, I will remind you in 7 minutes.", 7 * time.Minute},
		"a timer by less":     {func() []mcp.TimerArgs { return []mcp.TimerArgs{in(5*time.Minute, "")} }, mcp.TimerArgs{By: -120}, "in 3 minutes.", 3 * time.Minute},
		"a timer to a length": {func() []mcp.TimerArgs { return []mcp.TimerArgs{in(5*time.Minute, "")} }, mcp.TimerArgs{To: "10 minutes"}, "in 10 minutes.", 10 * time.Minute},
		"one of two timers":   {func() []mcp.TimerArgs { return []mcp.TimerArgs{in(5*time.Minute, "Eggs"), in(time.Hour, "Bread")} }, mcp.TimerArgs{Text: "the eggs", By: 60}, "in 6 minutes.", 6 * time.Minute},
		"an alarm":            {func() []mcp.TimerArgs { return []mcp.TimerArgs{at(6*time.Hour, "")} }, mcp.TimerArgs{To: "七点", Kind: "alert"}, "at 7:00", 7 * time.Hour},
		"an alarm, by words":  {func() []mcp.TimerArgs { return []mcp.TimerArgs{at(6*time.Hour, ""), at(8*time.Hour, "")} }, mcp.TimerArgs{Text: "six", To: "half past six"}, "at 6:30", 6*time.Hour + 30*time.Minute},
		"an alarm's day":      {func() []mcp.TimerArgs { return []mcp.TimerArgs{at(6*time.Hour, "")} }, mcp.TimerArgs{To: "tomorrow"}, "tomorrow at 6:00", 30 * time.Hour},
		"an alarm by more":    {func() []mcp.TimerArgs { return []mcp.TimerArgs{at(6*time.Hour, "")} }, mcp.TimerArgs{By: 1200}, "at 6:20", 6*time.Hour + 20*time.Minute},
		"two alarms":          {func() []mcp.TimerArgs { return []mcp.TimerArgs{at(6*time.Hour, ""), at(8*time.Hour, "")} }, mcp.TimerArgs{To: "seven"}, `nothing was changed: say which one. [{"due":"at 6:00"`, 0},
		"none of that name":   {func() []mcp.TimerArgs { return []mcp.TimerArgs{at(6*time.Hour, "Pills")} }, mcp.TimerArgs{Text: "bread", To: "seven"}, "nothing was changed", 0},
		"none":                {func() []mcp.TimerArgs { return nil }, mcp.TimerArgs{To: "seven"}, "there are no timers or reminders.", 0},
		"into the past":       {func() []mcp.TimerArgs { return []mcp.TimerArgs{in(time.Minute, "")} }, mcp.TimerArgs{By: -120}, "that time is in the past", 0},
		"no time":             {func() []mcp.TimerArgs { return []mcp.TimerArgs{at(6*time.Hour, "")} }, mcp.TimerArgs{To: "soon"}, "the new time is not understood: soon", 0},
		"too far":             {func() []mcp.TimerArgs { return []mcp.TimerArgs{at(6*time.Hour, "")} }, mcp.TimerArgs{By: 1 << 62}, "not understood", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := New(t.Context(), Options{})
				defer b.Close()
				s := connect(t, b, "a")
				defer s.leave()
				begun, first := time.Now(), 100*time.Hour
				set := test.set()
				for _, args := range set {
					first = min(first, args.Due.Sub(begun))
					s.mustOrder(t, args)
				}
				test.order.Action = mcp.TimerChange
				said, err := s.order(t, test.order)
				if err != nil {
					said = err.Error()
				}
				if !strings.Contains(said, test.want) {
					t.Errorf("%q, want %q", said, test.want)
				}
				if len(set) == 0 {
					return
				}
				due := test.rings
				if due == 0 {
					due = first
				}
				time.Sleep(due - time.Millisecond)
				synctest.Wait()
				if n := len(s.words()); n > 0 {
					t.Errorf("%q rings too early", s.words())
				}
				time.Sleep(time.Millisecond)
				synctest.Wait()
				if len(s.words()) != 1 {
					t.Errorf("told %q after %s", s.words(), due)
				}
			})
		})
	}
}

// TestBookMoveRecurring: what recurs keeps its days, and gets other ones only where the words name them as such.
func TestBookMoveRecurring(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(t.Context(), Options{})
		defer b.Close()
		s := connect(t, b, "a")
		defer s.leave()
		weekdays := at(7*time.Hour, "Get up")
		weekdays.Repeat = "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR"
		s.mustOrder(t, weekdays)
		change := func(to string) string {
			said, err := s.order(t, mcp.TimerArgs{Action: mcp.TimerChange, To: to})
			if err != nil {
				return err.Error()
			}
			return said
		}
		if said := change("half past six"); !strings.Contains(said, "every weekday at 6:30") {
			t.Error(said)
		}
		if said := change("sunday"); said != "it recurs: say all of its new time, such as every friday at eight" {
			t.Error(said)
		}
		if said := change("every saturday at nine"); !strings.Contains(said, "every Saturday at 9:00") {
			t.Error(said)
		}
		all, err := b.o.Store.Find(t.Context(), Query{})
		if err != nil || len(all) != 1 || all[0].Rule != "FREQ=WEEKLY;BYDAY=SA" || all[0].Due.In(s.host.Env().Zone).Format("Mon 15:04") != "Sat 09:00" {
			t.Errorf("%+v, %v", all, err)
		}
		hourly := Reminder{Kind: Alert, Rule: "FREQ=HOURLY", Wall: "2000-01-01T00:00:00", Zone: "UTC", Due: time.Now().Add(time.Hour)}
		if _, err := hourly.movedTo(mcp.TimerArgs{To: "seven"}, time.Now(), time.UTC); refusedMove(err, "", text.Chinese).Error() != "这个提醒会反复，请完整地说新的时间，比如每周五八点" {
			t.Error(err)
		}
	})
}

// TestBookMoveRinging: what rings and is given another time is silent, and rings then.
func TestBookMoveRinging(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(t.Context(), Options{})
		defer b.Close()
		s := connect(t, b, "a")
		defer s.leave()
		s.mustOrder(t, in(time.Minute, "Tea"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(s.words()) != 1 {
			t.Fatalf("told %q", s.words())
		}
		if said := s.mustOrder(t, mcp.TimerArgs{Action: mcp.TimerChange, To: "5 minutes"}); said != "OK, I will remind you in 5 minutes." {
			t.Error(said)
		}
		synctest.Wait()
		wantStates(t, b, Armed)
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		wantStates(t, b, Ringing)
	})
}
