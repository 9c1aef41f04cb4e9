package app

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/agent/feature/alarm"
	"xiaozhi/connection/identity"
	"xiaozhi/connection/identity/recordstest"
	"xiaozhi/internal/alarms"
	"xiaozhi/internal/config"
	"xiaozhi/internal/text/message"
	"xiaozhi/store"
)

// TestStoredRecords: both engines keep who is known as memory does.
func TestStoredRecords(t *testing.T) {
	onBoth(t, func(t *testing.T, place func(t *testing.T) store.Options) {
		o := place(t)
		var last *store.Store
		recordstest.Run(t, func(t *testing.T) identity.Records {
			if last != nil {
				last.Close()
			}
			var err error
			if last, err = store.Open(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			return storedRecords{last, nil, slog.New(slog.DiscardHandler)}
		})
		last.Close()
	})
}

// without is an App of a data folder without engines.
func without(t *testing.T, data string, change func(*config.Config)) *App {
	t.Helper()
	cfg := config.Default()
	if change != nil {
		change(cfg)
	}
	return newApp(cfg, Options{Data: data, Banner: io.Discard, Log: slog.New(slog.DiscardHandler)})
}

// TestReminderOutlivesProgram: what was promised is there after a restart, unless nothing is kept.
func TestReminderOutlivesProgram(t *testing.T) {
	for driver, want := range map[string]int{"auto": 1, "none": 0} {
		t.Run(driver, func(t *testing.T) {
			data := t.TempDir()
			run := func(f func(a *App, s alarm.Store)) {
				a := without(t, data, func(c *config.Config) { c.Store.Driver = driver })
				defer a.Close()
				if err := a.openStore(t.Context()); err != nil {
					t.Fatal(err)
				}
				var s alarm.Store = alarm.NewMemory()
				if a.stored != nil {
					s = alarms.New(a.stored.Reminders)
				}
				f(a, s)
			}
			run(func(a *App, s alarm.Store) {
				device := identity.Record{ID: "24:6f:28:aa:10:02", Address: "24:6f:28:aa:10:02", State: identity.Paired}
				if err := a.records().Commit(t.Context(), identity.Change{Save: []identity.Record{device}}); err != nil {
					t.Fatal(err)
				}
				r := alarm.Reminder{ID: "a", Device: device.ID, Kind: alarm.Timer, State: alarm.Armed, Due: time.Now().Add(time.Hour)}
				if err := s.Add(t.Context(), r); err != nil {
					t.Fatal(err)
				}
			})
			run(func(_ *App, s alarm.Store) {
				if all, err := s.Find(t.Context(), alarm.Query{}); err != nil || len(all) != want {
					t.Errorf("%v %v", all, err)
				}
			})
		})
	}
}

// TestStoreMistakes: each says in both languages what is wrong with which file.
func TestStoreMistakes(t *testing.T) {
	data := t.TempDir()
	path := filepath.Join(data, "xiaozhi.db")
	first := without(t, data, nil)
	if err := first.openStore(t.Context()); err != nil {
		t.Fatal(err)
	}
	says := func(want ...string) {
		t.Helper()
		a := without(t, data, nil)
		defer a.Close()
		err := a.openStore(t.Context())
		if err == nil {
			t.Fatal("it was opened")
		}
		for _, w := range append(want, path) {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%v: no %q", err, w)
			}
		}
	}
	says("is used by another server", "正被另一个服务器使用")
	check := without(t, data, nil)
	check.options.Check = true
	if err := check.openStore(t.Context()); err != nil || check.stored != nil {
		t.Errorf("a check opens the store of a running server: %v", err)
	}
	check.Close()
	first.Close()
	if err := os.WriteFile(path, []byte("a letter, and not a short one at that"), 0o600); err != nil {
		t.Fatal(err)
	}
	says("is damaged", "已损坏", "No backup was found")
	copied := filepath.Join(data, "backups", "schema-1-20251231T030000.000Z.db")
	if err := os.MkdirAll(filepath.Dir(copied), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(copied, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(copied, time.Time{}, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	says("put this copy in its place: " + copied)
	backup := filepath.Join(data, "backups", "xiaozhi-20260101T030000Z.tar.gz")
	if err := os.WriteFile(backup, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	says("xiaozhi restore --data " + data + " " + backup)
}

// TestBackupFiles: a backup has what people wrote, and no secrets.
func TestBackupFiles(t *testing.T) {
	data := t.TempDir()
	for _, name := range []string{"config.yaml", "prompts/a.en.md", "tools/x.yaml", "admin-token", "key", "cache/x", "music/a.mp3", "xiaozhi.db", "backups/old"} {
		path := filepath.Join(data, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files, err := backupFiles(data, ours(), "", refuse)
	var names []string
	for _, f := range files {
		names = append(names, f.Name)
	}
	if want := []string{"config.yaml", "prompts/a.en.md", "tools/x.yaml"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("%v %v", names, err)
	}
}

// TestTroubleIsSaid: of each thing that can be wrong with the store there are words.
func TestTroubleIsSaid(t *testing.T) {
	ids := troubleIDs()
	for _, trouble := range []store.Trouble{
		store.TroubleFull, store.TroubleBroken, store.TroubleSlow, store.TroubleFailing, store.TroubleNoWAL, store.TroubleDropped, store.TroubleClock, store.TroubleLarge,
	} {
		if said := message.Both(ids[trouble]); !strings.HasPrefix(said, "store: ") || !strings.Contains(said, " / 存储：") {
			t.Errorf("%s: %q", trouble, said)
		}
	}
	if len(ids) != 8 {
		t.Errorf("%d kinds", len(ids))
	}
}

// TestReadyz: what is wrong with the store is told where readiness is asked for.
func TestReadyz(t *testing.T) {
	data := t.TempDir()
	a := without(t, data, nil)
	defer a.Close()
	if err := a.openStore(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := readiness(a); got != "ready" {
		t.Errorf("%q", got)
	}
	for i := range 5000 {
		a.stored.Log.Put(&store.Entry{Conversation: store.Conversation{ID: "c", DeviceID: "m"}, Turn: store.Turn{ID: strings.Repeat("x", 3000) + string(rune(i))}})
	}
	if got := readiness(a); !strings.HasPrefix(got, "ready\nstore: too much waited") {
		t.Errorf("%q", got)
	}
}

// TestStoreTroubleIsLogged: what is wrong with the store is logged once in both languages, and once when it is over.
func TestStoreTroubleIsLogged(t *testing.T) {
	data := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var log lockedBuffer
		a := newApp(config.Default(), Options{Data: data, Banner: io.Discard, Log: slog.New(slog.NewTextHandler(&log, nil))})
		defer a.Close()
		if err := a.openStore(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i := range 5000 { // before anything of it can be written: no time passes
			a.stored.Log.Put(&store.Entry{Conversation: store.Conversation{ID: "c", DeviceID: "m"}, Turn: store.Turn{ID: strings.Repeat("x", 3000) + string(rune(i))}})
		}
		ctx, stop := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() { defer close(over); a.watchStore(ctx) }()
		time.Sleep(10 * time.Minute)
		stop()
		<-over
		for line, want := range map[string]int{"level=WARN msg=\"store: too much waited": 1, "level=INFO msg=\"over: store: too much waited": 1, "等待写盘": 3} {
			if got := strings.Count(log.String(), line); got != want {
				t.Errorf("%q is logged %d times", line, got)
			}
		}
	})
}
