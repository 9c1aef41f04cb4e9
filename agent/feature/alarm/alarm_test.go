package alarm

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"xiaozhi/agent/feature"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/spoken"
	"xiaozhi/prompts"
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

// host takes as many announcements as it has room for.
type host struct {
	feature.Host
	texts *prompts.Set
	room  int
	told  []feature.Announcement
}

func (h *host) Env() feature.Env {
	return feature.Env{Texts: h.texts, Zone: time.UTC, Log: slog.New(slog.DiscardHandler)}
}

func (h *host) Announce(a feature.Announcement) (uint64, error) {
	if len(h.told) >= h.room {
		return 0, feature.ErrQueueFull
	}
	h.told = append(h.told, a)
	return uint64(len(h.told)), nil
}

// TestTick: what is due is told, what the queue refuses waits for a second, and what
// comes due without a conversation is told with its time.
func TestTick(t *testing.T) {
	set, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	h := &host{texts: set, room: 1}
	a, ok := Feature{}.Attach(h, list{
		{due: now.Add(-time.Hour), lang: text.English, text: "Tea", reminder: true},
		{due: now.Add(-time.Second), lang: text.English, length: time.Minute},
		{due: now.Add(20 * time.Minute), lang: text.English},
	}).(*alarms)
	if !ok {
		t.Fatal("another instance")
	}
	a.Tick(now)
	if len(h.told) != 1 || !strings.Contains(h.told[0].Text, "Tea") || !strings.Contains(h.told[0].Text, spoken.SayClock(now.Add(-time.Hour).UTC(), text.English)) || h.told[0].SoundTells {
		t.Errorf("told %+v", h.told)
	}
	if at := a.Deadline(); len(a.list) != 2 || !at.Equal(now.Add(retryAfter)) {
		t.Errorf("%d wait until %v", len(a.list), at.Sub(now))
	}
	h.room++
	a.Tick(now.Add(retryAfter))
	if len(h.told) != 2 || !h.told[1].SoundTells || len(a.list) != 1 || !a.Expects(now) {
		t.Errorf("told %+v, %d wait", h.told, len(a.list))
	}
	if l, ok := a.Detach().(list); !ok || len(l) != 1 {
		t.Errorf("%d are left to the record", len(l))
	}
}
