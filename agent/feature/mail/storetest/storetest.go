// Package storetest holds what every store of letters must do.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"xiaozhi/agent/feature/mail"
)

// Run tests a store. Each call of open gives an empty one, in which the devices kitchen and hall are known.
func Run(t *testing.T, open func(t *testing.T) mail.Store) {
	for name, test := range map[string]func(*testing.T, mail.Store){
		"keeps":    keeps,
		"orders":   orders,
		"lanes":    lanes,
		"bounds":   bounds,
		"dedupes":  dedupes,
		"lists":    lists,
		"changes":  changes,
		"races":    races,
		"due":      due,
		"expires":  expires,
		"prolongs": prolongs,
		"recovers": recovers,
		"purges":   purges,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

// wide are bounds that nothing here meets.
var wide = mail.Bounds{Device: 1000, All: 1000}

// from is the time of the tests, from which letters wait for an hour.
func from() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// letter is one that may be told, unless change says otherwise.
func letter(id, device string, change func(*mail.Letter)) mail.Letter {
	now := from().Add(-time.Minute)
	l := mail.Letter{ID: id, Batch: id, Device: device, Kind: mail.Say, Text: "Hello.", Source: "api", Fate: mail.Queued, Made: now, At: now, Ends: now.Add(time.Hour)}
	if change != nil {
		change(&l)
	}
	return l
}

func add(t *testing.T, s mail.Store, all ...mail.Letter) {
	t.Helper()
	failed, err := s.Add(t.Context(), all, wide)
	if err = errors.Join(append(failed, err)...); err != nil {
		t.Fatal(err)
	}
}

func ids(t *testing.T, all []mail.Letter, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, l := range all {
		out = append(out, l.ID)
	}
	return strings.Join(out, " ")
}

// same reports whether letters are the same, whatever the zones of their times.
func same(a, b mail.Letter) bool {
	for _, l := range []*mail.Letter{&a, &b} {
		for _, at := range []*time.Time{&l.Made, &l.At, &l.Ends, &l.NotBefore, &l.Told} {
			if !at.IsZero() {
				*at = at.UTC()
			}
		}
	}
	return a == b
}

// keeps: what was added is found with all that belongs to it.
func keeps(t *testing.T, s mail.Store) {
	now := from()
	want := mail.Letter{
		ID: "a", Batch: "b", Device: "kitchen", Kind: mail.Ask, Text: "Größe 'quoted' 🔔?", Prompt: "Ask.", Song: "s", Lang: "zh", Now: true, Source: "api", By: "ann",
		Key: "k", Priority: mail.Urgent, Fate: mail.Answered, Heard: 7, Answer: "yes", Tries: 2, Made: now, At: now.Add(time.Second), Ends: now.Add(time.Hour),
		NotBefore: now.Add(time.Minute), Told: now.Add(2 * time.Second),
	}
	add(t, s, want)
	if got, err := s.Get(t.Context(), "a"); err != nil || !same(got, want) {
		t.Errorf("got  %+v %v\nwant %+v", got, err, want)
	}
	if _, err := s.Get(t.Context(), "nothing"); !errors.Is(err, mail.ErrNoLetter) {
		t.Error(err)
	}
}

// told has all letters of a pick told, one after the other.
func told(t *testing.T, s mail.Store, p mail.Pick) (order string) {
	t.Helper()
	for {
		l, err := s.First(t.Context(), p)
		if errors.Is(err, mail.ErrNoLetter) {
			return strings.TrimSpace(order)
		}
		if err != nil {
			t.Fatal(err)
		}
		now := l
		now.Fate = mail.Heard
		if done, err := s.Change(t.Context(), l, now); err != nil || !done {
			t.Fatal(done, err)
		}
		order += l.ID + " "
	}
}

// orders: the urgent go first and the low last; of the same rank those go first whose time has come first.
func orders(t *testing.T, s mail.Store) {
	earlier := func(d time.Duration) func(*mail.Letter) {
		return func(l *mail.Letter) { l.At = l.At.Add(-d) }
	}
	add(
		t, s,
		letter("low", "kitchen", func(l *mail.Letter) { l.Priority = mail.Low; l.At = l.At.Add(-time.Minute) }),
		letter("second", "kitchen", nil), letter("first", "kitchen", earlier(time.Second)), letter("third", "kitchen", func(l *mail.Letter) { l.Made = l.Made.Add(time.Second) }),
		letter("later", "kitchen", func(l *mail.Letter) { l.At = from().Add(time.Hour) }),
		letter("again", "kitchen", func(l *mail.Letter) { l.NotBefore = from().Add(time.Hour) }),
		letter("held", "kitchen", func(l *mail.Letter) { l.Held = true }),
		letter("over", "kitchen", func(l *mail.Letter) { l.Ends = from().Add(-time.Second) }),
		letter("hall", "hall", nil),
	)
	if got := told(t, s, mail.Pick{Device: "kitchen"}); got != "first second third low" {
		t.Error(got)
	}
}

// lanes: what is pressing, what is loud and what is played are told apart.
func lanes(t *testing.T, s mail.Store) {
	now := from()
	add(
		t, s,
		letter("plain", "kitchen", nil), letter("urgent", "kitchen", func(l *mail.Letter) { l.Priority = mail.Urgent }),
		letter("now", "kitchen", func(l *mail.Letter) { l.Now, l.Made, l.At = true, now, now }),
		letter("stale", "kitchen", func(l *mail.Letter) { l.Now = true; l.At = l.At.Add(time.Second) }),
		letter("song", "kitchen", func(l *mail.Letter) { l.Kind, l.Now = mail.Play, true }),
		letter("alarm", "kitchen", func(l *mail.Letter) { l.Kind, l.Priority = mail.Play, mail.Urgent }),
	)
	for _, test := range []struct {
		pick mail.Pick
		want string
	}{
		{mail.Pick{Device: "kitchen", Pressing: true, Loud: true}, "urgent"},
		{mail.Pick{Device: "kitchen", Pressing: true}, "now"},
		{mail.Pick{Device: "kitchen", Loud: true}, ""},
		{mail.Pick{Device: "kitchen"}, "plain stale"},
		{mail.Pick{Device: "kitchen", Songs: true, Loud: true}, "alarm"},
		{mail.Pick{Device: "kitchen", Songs: true}, "song"},
	} {
		if got := told(t, s, test.pick); got != test.want {
			t.Errorf("%+v: %q, want %q", test.pick, got, test.want)
		}
	}
}

// bounds: of many who send at the same time, as many are kept as there is room for, and not one more.
func bounds(t *testing.T, s mail.Store) {
	most, rounds := mail.Bounds{Device: 5, All: 8}, 0
	send := func(device string) (kept int) {
		rounds++
		var wg sync.WaitGroup
		var mu sync.Mutex
		for i := range 20 {
			wg.Go(func() {
				failed, err := s.Add(t.Context(), []mail.Letter{letter(fmt.Sprint(rounds, device, i), device, nil)}, most)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err != nil:
					t.Error(err)
				case failed[0] == nil:
					kept++
				case !errors.Is(failed[0], mail.ErrFull):
					t.Error(failed[0])
				}
			})
		}
		wg.Wait()
		return kept
	}
	if kitchen, hall := send("kitchen"), send("hall"); kitchen != 5 || hall != 3 {
		t.Errorf("%d and %d are kept", kitchen, hall)
	}
	if got := told(t, s, mail.Pick{Device: "kitchen"}); len(strings.Fields(got)) != 5 {
		t.Error(got)
	}
	if kept := send("hall"); kept != 2 {
		t.Errorf("then %d", kept)
	}
}

// dedupes: a device gets one letter with a key, also when that is over.
func dedupes(t *testing.T, s mail.Store) {
	keyed := func(id, device string) mail.Letter {
		return letter(id, device, func(l *mail.Letter) { l.Key = "morning 1" })
	}
	failed, err := s.Add(t.Context(), []mail.Letter{keyed("a", "kitchen"), keyed("b", "hall"), letter("c", "kitchen", nil)}, wide)
	if err = errors.Join(append(failed, err)...); err != nil {
		t.Fatal(err)
	}
	told(t, s, mail.Pick{Device: "kitchen"})
	failed, err = s.Add(t.Context(), []mail.Letter{keyed("d", "kitchen"), letter("e", "kitchen", nil), letter("f", "nobody", nil)}, wide)
	if err != nil || !errors.Is(failed[0], mail.ErrTwice) || failed[1] != nil {
		t.Error(failed, err)
	}
	if _, is := s.(*mail.Memory); !is && !errors.Is(failed[2], mail.ErrNoDevice) {
		t.Error(failed)
	}
}

func lists(t *testing.T, s mail.Store) {
	at := from().Add(-time.Hour)
	made := func(id, device string, n int, fate mail.Fate) mail.Letter {
		return letter(id, device, func(l *mail.Letter) { l.Made, l.Fate, l.Batch = at.Add(time.Duration(n)*time.Second), fate, id[:1] })
	}
	add(
		t, s, made("a1", "kitchen", 1, mail.Queued), made("a2", "hall", 1, mail.Delivered), made("b1", "kitchen", 2, mail.Heard), made("c1", "kitchen", 3, mail.Refused),
		made("d1", "hall", 4, mail.Answered), letter("held", "kitchen", func(l *mail.Letter) { l.Held = true }),
	)
	for _, test := range []struct {
		filter mail.Filter
		want   string
	}{
		{mail.Filter{}, "d1 c1 b1 a2 a1"},
		{mail.Filter{Devices: []string{"kitchen"}}, "c1 b1 a1"},
		{mail.Filter{Devices: []string{"kitchen", "hall"}, Limit: 2}, "d1 c1"},
		{mail.Filter{Devices: []string{}}, ""},
		{mail.Filter{Batch: "a"}, "a2 a1"},
		{mail.Filter{Open: true}, "a2 a1"},
		{mail.Filter{Over: true}, "d1 c1 b1"},
		{mail.Filter{Before: mail.Cursor{At: at.Add(2 * time.Second), ID: "b1"}}, "a2 a1"},
	} {
		if test.filter.Limit == 0 {
			test.filter.Limit = 10
		}
		all, err := s.List(t.Context(), test.filter)
		if got := ids(t, all, err); got != test.want {
			t.Errorf("%+v: %q, want %q", test.filter, got, test.want)
		}
	}
}

// changes: a letter is changed only if it is as it was.
func changes(t *testing.T, s mail.Store) {
	was := letter("a", "kitchen", nil)
	add(t, s, was)
	try := func(want bool, was, now mail.Letter) {
		t.Helper()
		if done, err := s.Change(t.Context(), was, now); err != nil || done != want {
			t.Errorf("%s, begun %v, to %s: %v, %v", was.Fate, was.Begun, now.Fate, done, err)
		}
	}
	given := was
	given.Fate, given.Tries, given.Told = mail.Delivered, 1, from()
	begun := given
	begun.Begun = true
	heard := begun
	heard.Fate, heard.Begun, heard.Heard, heard.Text = mail.Heard, false, 3, "Other."
	try(false, given, begun)
	try(true, was, given)
	try(false, was, given)
	try(false, begun, heard)
	try(true, given, begun)
	try(false, given, given)
	try(true, begun, heard)
	try(false, letter("b", "kitchen", nil), heard)
	if got, err := s.Get(t.Context(), "a"); err != nil || !same(got, heard) {
		t.Errorf("got  %+v %v\nwant %+v", got, err, heard)
	}
}

// races: of many who take the same letter, one does.
func races(t *testing.T, s mail.Store) {
	was := letter("a", "kitchen", nil)
	add(t, s, was)
	var wg sync.WaitGroup
	won := make(chan bool, 16)
	for range 16 {
		wg.Go(func() {
			now := was
			now.Fate, now.Tries = mail.Delivered, 1
			switch done, err := s.Change(t.Context(), was, now); {
			case err != nil:
				t.Error(err)
			case done:
				won <- true
			}
		})
	}
	wg.Wait()
	if len(won) != 1 {
		t.Errorf("%d have taken it", len(won))
	}
}

func due(t *testing.T, s mail.Store) {
	if at, _, err := s.Due(t.Context(), "kitchen"); err != nil || !at.IsZero() {
		t.Error(at, err)
	}
	soon, later := from().Add(time.Minute), from().Add(2*time.Minute)
	add(
		t, s, letter("later", "kitchen", func(l *mail.Letter) { l.NotBefore = later }), letter("low", "kitchen", func(l *mail.Letter) { l.At, l.Priority = soon, mail.Low }),
		letter("held", "kitchen", func(l *mail.Letter) { l.Held = true }), letter("other", "hall", func(l *mail.Letter) { l.At = from().Add(time.Second) }),
		letter("now", "kitchen", nil),
	)
	if at, p, err := s.Due(t.Context(), "kitchen"); err != nil || !at.Equal(soon) || p != mail.Low {
		t.Error(at, p, err)
	}
	add(t, s, letter("normal", "kitchen", func(l *mail.Letter) { l.At = soon }))
	if at, p, err := s.Due(t.Context(), "kitchen"); err != nil || !at.Equal(soon) || p != mail.Normal {
		t.Error(at, p, err)
	}
}

// expires: what has waited too long is ended, told once, and nothing else is.
func expires(t *testing.T, s mail.Store) {
	past := func(l *mail.Letter) { l.Ends = from().Add(-time.Second) }
	add(
		t, s, letter("a", "kitchen", past), letter("b", "hall", past), letter("c", "hall", past), letter("stays", "kitchen", nil),
		letter("told", "kitchen", func(l *mail.Letter) { past(l); l.Fate = mail.Delivered }),
		letter("held", "kitchen", func(l *mail.Letter) { past(l); l.Held = true }),
	)
	if l, err := s.Get(t.Context(), "a"); err != nil || l.Fate != mail.Expired {
		t.Errorf("%+v %v", l, err)
	}
	var all []string
	for _, want := range []int{2, 1, 0} {
		ended, err := s.Expire(t.Context(), 2)
		if err != nil || len(ended) != want {
			t.Errorf("%+v %v, want %d", ended, err, want)
		}
		for _, l := range ended {
			if l.Fate != mail.Expired {
				t.Errorf("%+v", l)
			}
			all = append(all, l.ID)
		}
	}
	if slices.Sort(all); strings.Join(all, " ") != "a b c" {
		t.Error(all)
	}
	stays, err := s.Get(t.Context(), "stays")
	if end, nerr := s.NextEnd(t.Context()); err != nil || nerr != nil || !end.Equal(stays.Ends) {
		t.Error(end, err, nerr)
	}
	if got := told(t, s, mail.Pick{Device: "kitchen"}); got != "stays" {
		t.Error(got)
	}
	if end, err := s.NextEnd(t.Context()); err != nil || !end.IsZero() {
		t.Error(end, err)
	}
}

func prolongs(t *testing.T, s mail.Store) {
	add(
		t, s, letter("day", "kitchen", func(l *mail.Letter) { l.Ends = l.At.Add(24 * time.Hour) }), letter("hour", "kitchen", nil),
		letter("hall", "hall", func(l *mail.Letter) { l.Ends = l.At.Add(25 * time.Hour) }),
		letter("week", "kitchen", func(l *mail.Letter) { l.Ends = l.At.Add(7 * 24 * time.Hour) }),
	)
	ends := func(id string) time.Time {
		l, err := s.Get(t.Context(), id)
		if err != nil {
			t.Error(err)
		}
		return l.Ends
	}
	hour, hall, week, until := ends("hour"), ends("hall"), ends("week"), from().Add(50*time.Hour)
	if err := s.Prolong(t.Context(), "kitchen", 24*time.Hour, until); err != nil {
		t.Fatal(err)
	}
	if !ends("day").Equal(until) || !ends("hour").Equal(hour) || !ends("hall").Equal(hall) || !ends("week").Equal(week) {
		t.Error(ends("day"), ends("hour"), ends("hall"), ends("week"))
	}
	if err := s.Prolong(t.Context(), "", 24*time.Hour, until); err != nil || !ends("hall").Equal(until) {
		t.Error(ends("hall"), err)
	}
}

// recovers: after a crash each letter has one fate.
func recovers(t *testing.T, s mail.Store) {
	now := from()
	with := func(id string, change func(*mail.Letter)) mail.Letter {
		return letter(id, "kitchen", func(l *mail.Letter) { l.Tries, l.Told = 1, now; change(l) })
	}
	add(
		t, s, with("given", func(l *mail.Letter) { l.Fate, l.NotBefore = mail.Delivered, now.Add(time.Hour) }), with("begun", func(l *mail.Letter) { l.Fate, l.Begun = mail.Delivered, true }),
		with("asked", func(l *mail.Letter) { l.Fate, l.Begun, l.Kind, l.Heard = mail.Delivered, true, mail.Ask, 4 }), with("heard", func(l *mail.Letter) { l.Fate = mail.Heard }),
		letter("held", "kitchen", func(l *mail.Letter) { l.Held = true }), letter("waits", "kitchen", nil),
	)
	for _, want := range []int{1, 0} {
		if lost, err := s.Recover(context.WithoutCancel(t.Context())); lost != want || err != nil {
			t.Errorf("%d lost, %v", lost, err)
		}
	}
	for id, want := range map[string]string{"given": "queued 0", "begun": "refused lost 1", "asked": "heard 1", "heard": "heard 1", "held": "queued 0", "waits": "queued 0"} {
		l, err := s.Get(t.Context(), id)
		if got := strings.ReplaceAll(fmt.Sprint(l.Fate, " ", l.Why, " ", l.Tries), "  ", " "); err != nil || got != want || l.Held || l.Begun {
			t.Errorf("%s: %q %v, want %q", id, got, err, want)
		}
	}
	if got := told(t, s, mail.Pick{Device: "kitchen"}); len(strings.Fields(got)) != 3 {
		t.Error(got)
	}
}

func purges(t *testing.T, s mail.Store) {
	for _, fate := range []mail.Fate{mail.Queued, mail.Delivered, mail.Heard, mail.Answered, mail.Expired, mail.Refused} {
		for name, age := range map[string]time.Duration{"old ": 2 * time.Hour, "new ": 0} {
			add(t, s, letter(name+string(fate), "kitchen", func(l *mail.Letter) { l.Fate, l.Made = fate, l.Made.Add(-age) }))
		}
	}
	if err := s.Purge(t.Context(), from().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	all, err := s.List(t.Context(), mail.Filter{Limit: 20})
	if got := ids(t, all, err); len(all) != 8 || strings.Contains(got, "old heard") || !strings.Contains(got, "old queued") || !strings.Contains(got, "old delivered") {
		t.Error(got)
	}
}
