package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"xiaozhi/connection/identity"
	"xiaozhi/internal/account"
	"xiaozhi/internal/config"
	"xiaozhi/internal/recording"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/store"
)

// openChecked opens the store of a data folder that nobody else may change: opening makes a database the owner's alone
// again, after which nobody would know that it was open.
func openChecked(ctx context.Context, data string, o store.Options) (*store.Store, error) {
	if err := checkDataDir(data); err != nil {
		return nil, err
	}
	s, err := store.Open(ctx, o)
	if err != nil {
		return nil, storeError(err)
	}
	return s, nil
}

// openStore opens what outlives the program, unless it is switched off, and puts in force what people have set.
func (a *App) openStore(ctx context.Context) error {
	if a.options.Check {
		return nil
	}
	if err := a.lockFolder(); err != nil {
		return err
	}
	if a.cfg.Store.Driver == "none" {
		return nil
	}
	s, err := openChecked(ctx, a.options.Data, storeOptions(a.cfg, a.options.Data, a.log))
	if err != nil {
		return err
	}
	a.stored, a.accounts = s, account.New(account.Options{Store: s, Cost: a.options.PasswordCost, Seal: vault(s, a.cfg, a.options.Data), Log: a.log, Handed: handed(a)})
	a.life.atEnd(func() {
		if err := s.Close(); err != nil {
			a.log.Error("store did not close", "err", err)
		}
	})
	if err := openSettings(ctx, a, s); err != nil {
		return err
	}
	a.recorders.open(ctx, a.cfg.Recording, a.options.Data, s, a.log)
	a.life.atEnd(a.recorders.turns.Close)
	a.forgetting.also(a.recorders.forget)
	s.Log.After(func(ctx context.Context) error {
		if a.book == nil { // nothing has connected yet
			return nil
		}
		return a.book.Flush(ctx)
	})
	return nil
}

// lockFolder keeps the data folder for this server alone where the store does not, having its database elsewhere or none.
// Where no file can be locked it does without, and the log says so.
func (a *App) lockFolder() error {
	if a.cfg.Store.Driver != "none" && a.cfg.Store.URL == "" {
		return nil
	}
	data := a.options.Data
	if err := os.MkdirAll(data, 0o700); err != nil {
		return fmt.Errorf("%s: %w", message.Both("app/data-folder"), err)
	}
	unlock, err := store.Lock(filepath.Join(data, databaseFile))
	if _, locked := errors.AsType[*store.LockedError](err); locked {
		return lockedError(data, err)
	}
	if err != nil {
		a.log.Warn("the data folder cannot be locked: see that no other server uses it", "folder", data, "err", err)
		return nil
	}
	a.life.atEnd(unlock)
	return nil
}

// lockedError says in both languages that a folder is used by another server, if err is that.
func lockedError(data string, err error) error {
	if e, ok := errors.AsType[*store.LockedError](err); ok {
		return errors.New(message.Both("app/store-locked", data, e.PID))
	}
	return err
}

// storeOptions say where what outlives the program is.
func storeOptions(cfg *config.Config, data string, log *slog.Logger) store.Options {
	return store.Options{URL: string(cfg.Store.URL), Path: filepath.Join(data, databaseFile), Backups: filepath.Join(data, backupsFolder), Log: log}
}

// storeError says in both languages why the store cannot be opened, and what to do.
func storeError(err error) error {
	if e, ok := errors.AsType[*store.BrokenError](err); ok {
		why := oneLine(e.Err)
		switch {
		case e.Backup == "":
			return errors.New(message.Both("app/store-broken", e.Path, why))
		case strings.HasSuffix(e.Backup, ".db"):
			return errors.New(message.Both("app/store-broken-copy", e.Path, why, e.Backup))
		}
		return errors.New(message.Both("app/store-broken-backup", e.Path, why, filepath.Dir(e.Path), e.Backup))
	}
	if e, ok := errors.AsType[*store.NewerError](err); ok {
		says := func(lang text.Lang) string {
			return message.In(lang, "app/store-newer", e.Path, e.Has, e.Knows, cmp.Or(e.Backup, message.In(lang, "app/store-no-backup")))
		}
		return errors.New(says(text.English) + " / " + says(text.Chinese))
	}
	if e, ok := errors.AsType[*store.LockedError](err); ok {
		return errors.New(message.Both("app/store-locked", e.Path, e.PID))
	}
	if e, ok := errors.AsType[*store.ForeignError](err); ok {
		return errors.New(message.Both("app/store-foreign", e.Path))
	}
	if e, ok := errors.AsType[*store.UnreachableError](err); ok {
		return errors.New(message.Both("app/store-unreachable", oneLine(e.Err)))
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok && (errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)) {
		return errors.New(message.Both("app/store-closed", e.Path, e.Err))
	}
	return Explain(err)
}

// Explain says in both languages what to do where a disk is full; other errors stay as they are.
func Explain(err error) error {
	if store.NoRoom(err) {
		return errors.New(message.Both("app/store-no-room", oneLine(err)))
	}
	return err
}

// oneLine writes an error that a database says in lines as one.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// storeTrouble says for people what is wrong with the store, a line each.
func (a *App) storeTrouble() (lines []string) {
	if a.stored == nil {
		return nil
	}
	ids := troubleIDs()
	for _, trouble := range a.stored.Health().Trouble {
		lines = append(lines, message.Both(ids[trouble]))
	}
	return append(lines, a.recorders.trouble()...)
}

// troubleIDs are the ids of what is said of each trouble.
func troubleIDs() map[store.Trouble]string {
	return map[store.Trouble]string{
		store.TroubleFull: "app/store-full", store.TroubleBroken: "app/store-damaged", store.TroubleSlow: "app/store-slow",
		store.TroubleFailing: "app/store-failing", store.TroubleNoWAL: "app/store-no-wal", store.TroubleDropped: "app/store-dropped",
		store.TroubleClock: "app/store-clock", store.TroubleLarge: "app/store-large",
	}
}

// watchEach is the time between two looks at how the store does.
const watchEach = 5 * time.Second

// watchStore logs in both languages what goes wrong with the store, once when it begins and once when it is over, until
// ctx ends.
func (a *App) watchStore(ctx context.Context) {
	if a.stored == nil {
		return
	}
	tick := time.NewTicker(watchEach)
	defer tick.Stop()
	for told := []string(nil); ; {
		now := a.storeTrouble()
		for _, line := range now {
			if !slices.Contains(told, line) {
				health := a.stored.Health()
				a.log.Warn(line, "err", health.Err, "waiting", health.Log.Waiting, "dropped", health.Log.Dropped, "slowest", health.Slowest)
			}
		}
		for _, line := range told {
			if !slices.Contains(now, line) {
				a.log.Info(message.Both("app/store-over", line))
			}
		}
		told = now
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// readiness says that devices can be served, and what is wrong with the store.
func readiness(a *App) string {
	return strings.Join(append([]string{"ready"}, a.storeTrouble()...), "\n")
}

// records keep who is known.
func (a *App) records() identity.Records {
	if a.stored == nil {
		return identity.NewMemory()
	}
	return storedRecords{a.stored, a.recorders.turns, a.log}
}

// storedRecords keeps who is known in the store.
type storedRecords struct {
	store *store.Store
	sound *recording.Recorder // nil: there is none
	log   *slog.Logger
}

func (s storedRecords) Load(ctx context.Context) (records []identity.Record, pairings []identity.Pairing, err error) {
	devices, waiting, err := s.store.Devices.Identities(ctx)
	for _, d := range devices {
		state, ok := identity.ParseState(string(d.State))
		if !ok {
			return nil, nil, fmt.Errorf("device %s has the unknown state %q", d.ID, d.State)
		}
		records = append(records, identity.Record{
			ID: d.ID, Address: d.Address, Client: d.Client, State: state, Name: d.Name, By: d.AcceptedBy, Tokens: identity.Tokens{Used: d.Token, Offered: d.Offered},
			Keeps: d.Keeps, Told: d.Told, Board: d.Board, Firmware: d.Firmware, First: d.FirstAt, Seen: d.SeenAt, Since: d.SinceAt,
		})
	}
	for _, p := range waiting {
		pairings = append(pairings, identity.Pairing{ID: p.DeviceID, Code: p.Code, Challenge: p.Challenge, Remote: p.Remote, Began: p.BeganAt, Ends: p.EndsAt})
	}
	return records, pairings, err
}

func (s storedRecords) Commit(ctx context.Context, c identity.Change) error {
	change := store.DeviceChange{Drop: c.Drop, Settled: c.Settled}
	for _, r := range c.Save {
		change.Save = append(change.Save, store.Identity{
			ID: r.ID, Address: r.Address, Client: r.Client, State: store.DeviceState(r.State.String()), Name: r.Name, AcceptedBy: r.By, Token: r.Tokens.Used, Offered: r.Tokens.Offered,
			Keeps: r.Keeps, Told: r.Told, Board: r.Board, Firmware: r.Firmware, FirstAt: r.First, SeenAt: r.Seen, SinceAt: r.Since,
		})
	}
	for _, p := range c.Open {
		change.Open = append(change.Open, store.Pairing{DeviceID: p.ID, Code: p.Code, Challenge: p.Challenge, Remote: p.Remote, BeganAt: p.Began, EndsAt: p.Ends})
	}
	if err := s.store.Devices.Commit(ctx, change); err != nil {
		return err
	}
	for _, id := range c.Drop {
		if slices.ContainsFunc(c.Save, func(r identity.Record) bool { return r.ID == id }) {
			continue
		}
		s.sound.Drop(id)
		if _, err := s.store.Forget(ctx, id); err != nil { // the rows are gone all the same
			s.log.Warn("words of a forgotten device may be left in the write-ahead log", "device_id", id, "err", err)
		}
	}
	return nil
}
