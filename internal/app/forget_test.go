package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"xiaozhi/connection/pairing"
	"xiaozhi/internal/config"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp"
	"xiaozhi/mcp/router"
	"xiaozhi/store"
)

// storing is an App with a store that knows devices.
func storing(t *testing.T, change func(*config.Config), devices ...string) *App {
	t.Helper()
	a := without(t, t.TempDir(), change)
	t.Cleanup(a.Close)
	if err := a.openStore(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, id := range devices {
		d := store.Identity{ID: id, Address: id, State: store.DevicePaired, FirstAt: time.Now()}
		if err := a.stored.Devices.Commit(t.Context(), store.DeviceChange{Save: []store.Identity{d}}); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

// flushed writes what waits.
func flushed(t *testing.T, a *App) {
	t.Helper()
	if err := a.stored.Log.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestForgottenKeepsNothing: a connection whose device was forgotten keeps nothing any more, a new one does.
func TestForgottenKeepsNothing(t *testing.T) {
	a := storing(t, nil, "m", "n")
	old, other := a.keeper(wire.Session{DeviceID: "m"}), a.keeper(wire.Session{DeviceID: "n"})
	dropped := ""
	a.forgetting.also(atOnce(func(id string) { dropped += id }))
	if left, err := a.forget(t.Context(), "m"); err != nil || len(left) != 0 || dropped != "m" {
		t.Errorf("left %q, dropped %q, %v", left, dropped, err)
	}
	outside := router.Record{Tool: "lamp", Source: "device", By: mcp.ByOutside, Outcome: "error", Took: time.Second}
	old.Call(outside)
	other.Call(outside)
	a.keeper(wire.Session{DeviceID: "m"}).Call(outside)
	flushed(t, a)
	calls, err := a.stored.Turns.Calls(t.Context(), "", store.Page{})
	if err != nil || len(calls) != 2 {
		t.Fatalf("%+v %v", calls, err)
	}
	if c := calls[0]; c.Caller != "outside" || c.Name != "lamp" || c.Source != "device" || c.Fault == "" || c.TurnID != "" || c.At.IsZero() || c.Took != time.Second {
		t.Errorf("%+v", c)
	}
	if d, err := a.stored.Devices.Get(t.Context(), "n"); err != nil || d.HelloAt.IsZero() {
		t.Errorf("%+v %v", d, err)
	}
}

// TestForgetRenewsBackups: no backup holds what a forgotten device has said, and what is not ours to delete is named.
func TestForgetRenewsBackups(t *testing.T) {
	a := storing(t, func(c *config.Config) { c.Store.Backup = 2 }, "m")
	word := "geheimnis-4711"
	if err := a.stored.Reminders.Add(t.Context(), store.Reminder{ID: "r", DeviceID: "m", Kind: "timer", State: "armed", Text: word, DueAt: time.Now()}); err != nil {
		t.Fatal(err)
	}
	b := a.backups()
	schema := filepath.Join(b.Dir, "schema-1-20260101T000000Z.db")
	if _, err := b.Make(t.Context(), store.ByHand); err != nil {
		t.Fatal(err)
	}
	aside := filepath.Join(a.options.Data, "before-restore-20260101T000000Z")
	for _, name := range []string{schema, filepath.Join(aside, "xiaozhi.db")} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(word), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := b.Copies()
	time.Sleep(time.Second) // names of backups have seconds
	if _, err := a.stored.Forget(t.Context(), "m"); err != nil {
		t.Fatal(err)
	}
	left, err := a.forget(t.Context(), "m")
	if err != nil || len(left) != 1 || left[0] != aside {
		t.Errorf("left %q, %v", left, err)
	}
	now := b.Copies()
	if len(before) != 2 || len(now) != 1 || now[0] == before[1] {
		t.Errorf("backups: %q, then %q", before, now)
	}
	err = filepath.WalkDir(a.options.Data, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		if data, err := os.ReadFile(path); err != nil || bytes.Contains(data, []byte(word)) && filepath.Dir(path) != aside {
			t.Errorf("%s holds it: %v", path, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestTrim: what is older than the settings say is deleted, but for what is kept and for devices that keep more.
func TestTrim(t *testing.T) {
	a := storing(t, func(c *config.Config) { c.Store.KeepDays = 30 }, "m", "longer", "ever")
	now, trim := time.Now(), trimmer{a.stored, a.cfg.Store.KeepDays, a.log}
	for id, days := range map[string]int{"longer": 60, "ever": 0} {
		if err := keepingIn(a.stored).Set(t.Context(), id, pairing.Days{pairing.Text: &days, pairing.Sound: nil}); err != nil {
			t.Fatal(err)
		}
	}
	three := 3
	if err := keepingIn(a.stored).Set(t.Context(), "m", pairing.Days{pairing.Sound: &three}); err != nil {
		t.Fatal(err)
	}
	if d, err := a.stored.Devices.Get(t.Context(), "m"); err != nil || d.KeepText != nil || d.KeepSound == nil || *d.KeepSound != 3 {
		t.Errorf("%+v %v", d, err)
	}
	put := func(device string, days, n int) {
		for range n {
			at := now.AddDate(0, 0, -days)
			talk := store.Conversation{ID: store.NewID(), DeviceID: device, BeganAt: at}
			a.stored.Log.Put(&store.Entry{Conversation: talk, Turn: store.Turn{ID: store.NewID(), At: at, Kind: "user", Cause: "done"}})
		}
	}
	put("m", 31, 2*trimTalks+1)
	put("m", 29, 1)
	put("longer", 59, 1)
	put("longer", 61, 1)
	put("ever", 1000, 1)
	a.stored.Log.Call(store.Call{DeviceID: "m", At: now.AddDate(0, 0, -31), Caller: "outside", Name: "lamp"})
	flushed(t, a)
	if n, err := trim.trim(t.Context(), now); n != 2*trimTalks+2 || err != nil {
		t.Errorf("%d talks deleted: %v", n, err)
	}
	for device, want := range map[string]int{"m": 1, "longer": 1, "ever": 1} {
		if turns, err := a.stored.Turns.List(t.Context(), device, store.Page{}); err != nil || len(turns) != want {
			t.Errorf("%s: %d turns are left, %v", device, len(turns), err)
		}
	}
	if calls, err := a.stored.Turns.Calls(t.Context(), "m", store.Page{}); err != nil || len(calls) != 0 {
		t.Errorf("%+v %v", calls, err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	trim.run(ctx, func() int { return trim.days }) // ends
}

// TestAudit: what is done with devices and secrets is kept, without what must not be known.
func TestAudit(t *testing.T) {
	a := storing(t, nil, "m")
	audit := auditOf(a.accounts)
	audit(t.Context(), pairing.Deed{Who: "owner", Remote: "192.168.1.2:5", Act: "device.pair", Device: "m"})
	audit(t.Context(), pairing.Deed{Who: "owner", Act: "device.rename", Device: "m", Outcome: errors.New("no name")})
	v, err := OpenSecrets(t.Context(), a.cfg, a.options.Data)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_ = v.Put(t.Context(), "cloud", "api.example.com", "sk-planted-0123456789", "anna") // once more is no mistake
	}
	_ = v.Put(t.Context(), "sk-planted in the wrong place", "api.example.com", "x", "anna")
	_ = v.Delete(t.Context(), "cloud", "anna")
	_ = v.Delete(t.Context(), "cloud", "anna")
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	acts, err := a.stored.Audit.List(t.Context(), store.Page{})
	var got []string
	for _, act := range acts {
		got = append(got, fmt.Sprintf("%s %s %s %q %v", act.Who, act.Via, act.Act, act.Object, act.OK))
	}
	want := []string{
		`anna command secret.delete "cloud" false`, `anna command secret.delete "cloud" true`, `anna command secret.set "cloud" true`,
		`anna command secret.set "cloud" true`, `owner token device.rename "m" false`, `owner token device.pair "m" true`,
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%s %v", strings.Join(got, "\n"), err)
	}
}
