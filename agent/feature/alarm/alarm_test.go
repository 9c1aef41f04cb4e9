package alarm

import (
	"testing"
	"time"
)

// TestInOrder: a clock that is set moves reminders, and timers keep their length.
func TestInOrder(t *testing.T) {
	now := time.Now()
	timer := alarm{due: now.Add(10 * time.Minute), length: 10 * time.Minute, text: "timer"}
	reminder := alarm{due: now.Add(5 * time.Minute).Round(0), reminder: true, text: "reminder"} // by the wall clock alone
	got := inOrder(list{timer, reminder})
	if got[0].text != "reminder" || got[1].text != "timer" {
		t.Errorf("in the order %v", got)
	}
}

func TestAlarmIsMeant(t *testing.T) {
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	tea := alarm{due: now.Add(10 * time.Minute), length: 10 * time.Minute, text: "Tea"}
	walk := alarm{due: now.Add(22 * time.Hour), reminder: true, text: "遛狗"} // tomorrow at seven
	for words, want := range map[string][2]bool{
		"tea": {true, false}, "the tea timer": {true, false}, "10 minutes": {true, false}, "the 10 minute timer": {true, false},
		"10分钟": {true, false}, "110 minutes": {}, "1 minute": {}, "9:10": {true, false}, "09:10": {true, false},
		"遛狗": {false, true}, "遛狗的提醒": {false, true}, "明天7点": {false, true}, "7点": {false, true}, "17点": {}, "晚上7点": {},
		"tomorrow at 7:00": {false, true}, "coffee": {},
	} {
		if got := [2]bool{tea.isMeant(words, now), walk.isMeant(words, now)}; got != want {
			t.Errorf("%q: %v, want %v", words, got, want)
		}
	}
}

// TestKeep: a reminder is kept for a day after it is due, however far ahead that is.
func TestKeep(t *testing.T) {
	now := time.Now()
	l := list{{due: now.Add(time.Hour)}, {due: now.Add(300 * 24 * time.Hour), text: "doctor", reminder: true}}
	if got, want := l.Keep(now), 301*24*time.Hour; got != want {
		t.Errorf("%v, want %v", got, want)
	}
	if got := l[:0].Keep(now); got != 0 {
		t.Errorf("nothing waits, and is kept for %v", got)
	}
}
