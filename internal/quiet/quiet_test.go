package quiet

import (
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/internal/hours"
	"xiaozhi/store"
)

func open(t *testing.T, table *store.Switches) *Mode {
	t.Helper()
	m, err := Open(t.Context(), Options{Table: table, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestEndsByItself: who follows is told at once when it begins, and when its time has come.
func TestEndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := open(t, nil)
		go m.Run(t.Context())
		var mu sync.Mutex
		var all []bool
		stop := m.Follow(func() {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, m.Device("d").On())
		})
		tellings := func() []bool {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(all)
		}
		if err := m.Begin(t.Context(), "", time.Now().Add(time.Hour), "ann"); err != nil {
			t.Fatal(err)
		}
		if told := tellings(); len(told) != 1 || !told[0] || m.State().By != "ann" {
			t.Errorf("%v %+v", told, m.State())
		}
		time.Sleep(time.Hour - time.Second)
		synctest.Wait()
		if told := tellings(); !m.Device("d").On() || len(told) != 1 {
			t.Errorf("it has ended early: %v", told)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if told := tellings(); m.Device("d").On() || len(told) != 2 || told[1] {
			t.Errorf("it goes on: %v", told)
		}
		stop()
		if err := m.Begin(t.Context(), "", time.Time{}, "ann"); err != nil || len(tellings()) != 2 {
			t.Error(tellings(), err)
		}
		time.Sleep(100 * time.Hour)
		if !m.Device("d").On() {
			t.Error("without an end it has ended")
		}
		if _, err := m.End(t.Context(), ""); err != nil || m.Device("d").On() {
			t.Error("it was switched off, and is on", err)
		}
	})
}

// TestOutlivesProgram: it is as it was left when the program starts again, and is over if its time has passed meanwhile.
func TestOutlivesProgram(t *testing.T) {
	now := time.Now()
	s, err := store.Open(t.Context(), store.Options{Path: filepath.Join(t.TempDir(), "x.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	until := now.Add(time.Hour)
	if err := open(t, s.Switches).Begin(t.Context(), "", until, "ann"); err != nil {
		t.Fatal(err)
	}
	if got := open(t, s.Switches).State(); !got.On || got.Until.UnixMilli() != until.UnixMilli() || got.By != "ann" {
		t.Errorf("%+v", got)
	}
	if err := open(t, s.Switches).Begin(t.Context(), "", now.Add(-time.Second), "ann"); err != nil || open(t, s.Switches).Device("d").On() {
		t.Error("it is on after its time", err)
	}
	if _, err := open(t, s.Switches).End(t.Context(), ""); err != nil || open(t, s.Switches).State() != (State{}) {
		t.Error(err)
	}
}

// set are quiet hours that a test sets.
type set map[string]Span

func (s set) Of(device string) Span { return s[device] }
func (s set) All() (all []Span) {
	for _, one := range s {
		all = append(all, one)
	}
	return all
}

// TestHours: quiet hours begin and end by the clocks of each device; who follows is told then. Somebody may end them for the night, or
// switch a device to quiet for longer.
func TestHours(t *testing.T) {
	night, err := hours.Parse("22:00-07:00")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) { // it begins at midnight, UTC
		all := set{"here": {night, time.UTC}, "east": {night, time.FixedZone("", 8*3600)}}
		m, err := Open(t.Context(), Options{Hours: all, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		go m.Run(t.Context())
		synctest.Wait()
		var mu sync.Mutex
		var told []string
		defer m.Follow(func() {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, time.Since(began).String())
		})()
		state := func(at time.Duration, device string, want bool, why string) {
			t.Helper()
			time.Sleep(time.Until(began.Add(at)))
			synctest.Wait()
			s := m.Of(device)
			if s.On != want || s.On && (why == "hours") != s.Hours || s.On && (why == "house") != s.House {
				t.Errorf("%s after %v: %+v", device, at, s)
			}
		}
		state(0, "here", true, "hours")
		state(0, "east", false, "")
		state(0, "other", false, "")
		if s, err := m.End(t.Context(), "here"); err != nil || s.On {
			t.Error(s, err)
		}
		state(7*time.Hour, "here", false, "")
		state(14*time.Hour, "east", true, "hours")
		if err := m.Begin(t.Context(), "here", began.Add(15*time.Hour), "ann"); err != nil {
			t.Error(err)
		}
		state(14*time.Hour+59*time.Minute, "here", true, "person")
		state(15*time.Hour, "here", false, "")
		state(22*time.Hour, "here", true, "hours")
		if err := m.Begin(t.Context(), "", time.Time{}, "ann"); err != nil {
			t.Error(err)
		}
		if s, err := m.End(t.Context(), "here"); err != nil || !s.House {
			t.Error(s, err)
		}
		state(23*time.Hour, "other", true, "house")
		if _, err := m.End(t.Context(), ""); err != nil {
			t.Error(err)
		}
		state(31*time.Hour, "here", false, "")
		mu.Lock()
		defer mu.Unlock()
		for _, want := range []string{"7h0m0s", "14h0m0s", "15h0m0s", "22h0m0s", "23h0m0s", "31h0m0s"} {
			if !slices.Contains(told, want) {
				t.Errorf("nobody was told at %s, but at %q", want, told)
			}
		}
	})
}

// TestForget: of a device nothing is left.
func TestForget(t *testing.T) {
	s, err := store.Open(t.Context(), store.Options{Path: filepath.Join(t.TempDir(), "x.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	m := open(t, s.Switches)
	for _, device := range []string{"a", "b"} {
		if err := m.Begin(t.Context(), device, time.Time{}, "ann"); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Forget(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if all := open(t, s.Switches).Switched(); len(all) != 1 || !all["b"].On {
		t.Errorf("%+v", all)
	}
}
