package agent

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"testing"

	"xiaozhi/agent/feature"
	"xiaozhi/internal/text"
	"xiaozhi/providers"
)

// TestAnnouncementsBounded: what waits to be told has a limit, and nothing that was
// taken is lost.
func TestAnnouncementsBounded(t *testing.T) {
	var q announcements
	add := func(a feature.Announcement) bool {
		a.Lang = cmp.Or(a.Lang, text.English)
		_, ok := q.add(a)
		return ok
	}
	taken := 0
	for range 20 {
		if add(feature.Announcement{Text: "One more."}) {
			taken++
		}
	}
	if taken != maxWaiting || len(q.waiting) != maxWaiting {
		t.Errorf("%d taken, %d waiting", taken, len(q.waiting))
	}
	for range 2 * maxOwed {
		add(feature.Announcement{Text: "An outcome.", Owed: true})
	}
	if !add(feature.Announcement{Background: true}) || len(q.waiting) != maxOwed+1 {
		t.Errorf("%d waiting, with outcomes and music", len(q.waiting))
	}
	if add(feature.Announcement{Text: "One more too many.", Owed: true}) || !q.waiting[maxOwed].Background {
		t.Error("too many are taken, or music is not the last")
	}
	q.waiting = q.waiting[:maxWaiting]
	q.waiting[2].Lang = "zh"
	q.waiting[4].Sound = func() iter.Seq2[providers.Sound, error] { return nil }
	var sizes []int
	for len(q.waiting) > 0 {
		sizes = append(sizes, strings.Count(q.take(q.view().Head).Text, "more"))
	}
	if !slices.Equal(sizes, []int{2, 1, 1, 1, 3}) {
		t.Errorf("told in pieces of %v", sizes)
	}
}

// TestAnnouncementsUrgent: what is to be told at once waits beside the queue, and
// can be given up.
func TestAnnouncementsUrgent(t *testing.T) {
	var q announcements
	first, _ := q.add(feature.Announcement{Text: "Later."})
	second, _ := q.add(feature.Announcement{Text: "Now.", Now: true})
	third, _ := q.add(feature.Announcement{Text: "Now too.", Now: true})
	if v := q.view(); v.Len != 1 || v.Head != first {
		t.Errorf("%+v", v)
	}
	if n := q.take(second); n.id != second || n.Text != "Now." {
		t.Errorf("%+v", n)
	}
	if n, ok := q.drop(third); !ok || n.id != third {
		t.Errorf("%+v, %v", n, ok)
	}
	if n, ok := q.drop(first); ok {
		t.Errorf("it waits for its time, but %+v was dropped", n)
	}
}

// TestAnnouncementsForsaken: what somebody waits for who has gone is not told.
func TestAnnouncementsForsaken(t *testing.T) {
	var q announcements
	for _, a := range []feature.Announcement{{Text: "Tea."}, {Text: "Said.", Done: func(feature.Told) {}}, {Text: "At once.", Now: true}} {
		q.add(a)
	}
	q.forsake()
	if len(q.waiting) != 1 || q.waiting[0].Text != "Tea." || len(q.urgent) != 0 {
		t.Errorf("%+v, at once %+v", q.waiting, q.urgent)
	}
}

// TestUnheard: of announcements that were told together, those are told again of
// which nothing was heard.
func TestUnheard(t *testing.T) {
	var parts []announcement
	for _, words := range []string{"One.", "Two.", "Three."} {
		parts = append(parts, announcement{Announcement: feature.Announcement{Text: words}})
	}
	for heard, want := range map[int]int{0: 3, 2: 2, 5: 2, 6: 1, 10: 1, 11: 0, 99: 0} {
		if got := unheard(parts, heard); len(got) != want {
			t.Errorf("%d characters heard: %d parts are told again, want %d", heard, len(got), want)
		}
	}
}
