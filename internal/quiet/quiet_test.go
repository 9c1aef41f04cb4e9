package quiet

import (
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/store"
)

func open(t *testing.T, table *store.Switches) *Mode {
	t.Helper()
	m, err := Open(t.Context(), table, slog.New(slog.DiscardHandler))
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
			all = append(all, m.On())
		})
		tellings := func() []bool {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(all)
		}
		if err := m.Begin(t.Context(), time.Now().Add(time.Hour), "ann"); err != nil {
			t.Fatal(err)
		}
		if told := tellings(); len(told) != 1 || !told[0] || m.State().By != "ann" {
			t.Errorf("%v %+v", told, m.State())
		}
		time.Sleep(time.Hour - time.Second)
		synctest.Wait()
		if told := tellings(); !m.On() || len(told) != 1 {
			t.Errorf("it has ended early: %v", told)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if told := tellings(); m.On() || len(told) != 2 || told[1] {
			t.Errorf("it goes on: %v", told)
		}
		stop()
		if err := m.Begin(t.Context(), time.Time{}, "ann"); err != nil || len(tellings()) != 2 {
			t.Error(tellings(), err)
		}
		time.Sleep(100 * time.Hour)
		if !m.On() {
			t.Error("without an end it has ended")
		}
		if err := m.End(t.Context()); err != nil || m.On() {
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
	if err := open(t, s.Switches).Begin(t.Context(), until, "ann"); err != nil {
		t.Fatal(err)
	}
	if got := open(t, s.Switches).State(); !got.On || got.Until.UnixMilli() != until.UnixMilli() || got.By != "ann" {
		t.Errorf("%+v", got)
	}
	if err := open(t, s.Switches).Begin(t.Context(), now.Add(-time.Second), "ann"); err != nil || open(t, s.Switches).On() {
		t.Error("it is on after its time", err)
	}
	if err := open(t, s.Switches).End(t.Context()); err != nil || open(t, s.Switches).State() != (State{}) {
		t.Error(err)
	}
}
