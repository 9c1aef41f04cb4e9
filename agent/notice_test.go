package agent

import (
	"strings"
	"testing"
	"time"

	"xiaozhi/agent/think"
)

func TestSpokenReason(t *testing.T) {
	for in, want := range map[string]string{
		"It broke.":                  "It broke",
		" 灯没有回应。 ":                   "灯没有回应",
		"first line\nstack of calls": "first line",
		strings.Repeat("长", 500):     strings.Repeat("长", maxReason),
	} {
		if got := spokenReason(in); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
}

func TestBudget(t *testing.T) {
	var b think.Budget
	day := time.Date(2026, 11, 21, 23, 59, 0, 0, time.UTC)
	for i, want := range []bool{true, true, false, false} {
		if got := b.Take(day, 2); got != want {
			t.Errorf("call %d: %v", i, got)
		}
	}
	if !b.Take(day.Add(time.Minute), 2) {
		t.Error("the next day has no budget")
	}
}

// TestNoticesAreBounded: what waits to be told has a limit, and nothing that
// was taken is lost.
func TestNoticesAreBounded(t *testing.T) {
	c := &Conversation{o: &Options{}, dev: &Device{mail: newInbox()}, log: debugLog(t.Output()), timer: time.NewTimer(time.Hour), mic: &microphone{}}
	defer c.timer.Stop()
	taken := 0
	for range 20 {
		if c.dev.news.tell(notice{language: "en", say: "One more."}) {
			taken++
		}
	}
	if taken != maxNotices || len(c.dev.news.waiting) != maxNotices {
		t.Errorf("%d taken, %d waiting", taken, len(c.dev.news.waiting))
	}
	for range 2 * maxNews {
		c.dev.news.tellNews(notice{language: "en", say: "An outcome."}, c.log)
	}
	if !c.dev.news.tell(notice{language: "en", song: &playing{}}) || len(c.dev.news.waiting) != maxNews+1 {
		t.Errorf("%d waiting, with outcomes and music", len(c.dev.news.waiting))
	}
	c.dev.news.tellNews(notice{language: "en", say: "One more too many."}, c.log)
	if last := c.dev.news.waiting[maxNews]; last.song == nil {
		t.Error("music is not the last")
	}
	c.dev.news.waiting = c.dev.news.waiting[:maxNotices]
	c.dev.news.waiting[2].language = "zh"
	c.dev.news.waiting[4].ring = true
	var sizes []int
	for len(c.dev.news.waiting) > 0 {
		sizes = append(sizes, strings.Count(c.dev.news.take().say, "more"))
	}
	if len(sizes) != 5 || sizes[0] != 2 || sizes[1] != 1 || sizes[2] != 1 || sizes[3] != 1 || sizes[4] != 3 {
		t.Errorf("told in pieces of %v", sizes)
	}
}

// TestUnheard: of notices that were told together, those are told again of which
// nothing was heard.
func TestUnheard(t *testing.T) {
	parts := []notice{{say: "One."}, {say: "Two."}, {say: "Three."}}
	for heard, want := range map[int]int{0: 3, 2: 2, 5: 2, 6: 1, 10: 1, 11: 0, 99: 0} {
		if got := unheard(parts, heard); len(got) != want {
			t.Errorf("%d characters heard: %d parts are told again, want %d", heard, len(got), want)
		}
	}
}

// TestAlarmsInOrder: a clock that is set moves reminders, and timers keep their length.
func TestAlarmsInOrder(t *testing.T) {
	now := time.Now()
	timer := alarm{due: now.Add(10 * time.Minute), length: 10 * time.Minute, text: "timer"}
	reminder := alarm{due: now.Add(5 * time.Minute).Round(0), reminder: true, text: "reminder"} // by the wall clock alone
	got := inOrder([]alarm{timer, reminder})
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
