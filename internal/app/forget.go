package app

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"xiaozhi/connection/pairing"
	voicespage "xiaozhi/console/voices"
	"xiaozhi/internal/account"
	"xiaozhi/store"
)

// forgetting owns what is done so that nothing of a device is left. Its methods may be called at the same time.
type forgetting struct {
	drops []func(ctx context.Context, id string) error // of what is kept beside the store; set before devices connect

	mu    sync.RWMutex
	times map[string]int // how often each was forgotten; it grows by a person's orders only
}

// since returns what runs a function unless the device has been forgotten since then. Whoever forgets the device waits
// until it has run.
func (f *forgetting) since(id string) (unlessForgotten func(keep func())) {
	f.mu.RLock()
	began := f.times[id]
	f.mu.RUnlock()
	return func(keep func()) {
		f.mu.RLock()
		defer f.mu.RUnlock()
		if f.times[id] == began {
			keep()
		}
	}
}

// begin has nothing kept any more of what goes on with a device now.
func (f *forgetting) begin(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.times[id]++
}

// also has something else done when a device is forgotten.
func (f *forgetting) also(drop func(ctx context.Context, id string) error) {
	f.drops = append(f.drops, drop)
}

// drop drops all that is kept of a device beside the store.
func (f *forgetting) drop(ctx context.Context, id string) (err error) {
	for _, drop := range f.drops {
		err = errors.Join(err, drop(ctx, id))
	}
	return err
}

// atOnce makes a drop of what nobody waits for.
func atOnce(drop func(id string)) func(context.Context, string) error {
	return func(_ context.Context, id string) error {
		drop(id)
		return nil
	}
}

// forget drops what is kept of a device beside what the book knew of it: in memory, in the store, in files and in
// backups. It returns files that are left and may hold what was said.
func (a *App) forget(ctx context.Context, id string) (left []string, err error) {
	ctx = context.WithoutCancel(ctx) // it is not done by halves
	a.forgetting.begin(id)
	if err = a.forgetting.drop(ctx, id); a.stored == nil {
		return nil, err
	}
	left = find(a.options.Data, "before-restore-*")
	if a.cfg.Log.Record != "" {
		left = append(left, a.cfg.Log.Record)
	}
	err = errors.Join(err, a.stored.Scrub(ctx, id))
	if b := a.backups(); err == nil && len(b.Copies()) > 0 {
		if err = b.Renew(ctx); err != nil {
			left = append(left, b.Copies()...)
		}
	} else if err != nil {
		left = append(left, a.options.Data)
	}
	return left, err
}

// voiceDesk returns what people do with the people who are known by their voices; nil without a database.
func voiceDesk(a *App) *voicespage.Desk {
	if a.outside.voices == nil {
		return nil
	}
	return voicespage.NewDesk(voicespage.Options{
		Book: a.outside.voices, Named: a.outside.Name, Log: a.log,
		Forget: func(ctx context.Context, id string, memories bool) (voicespage.Forgotten, error) {
			return forgetPerson(context.WithoutCancel(ctx), a, id, memories) // it is not done by halves
		},
	})
}

// forgetPerson deletes a person with their voices, and with memories what is remembered of them, also in backups.
func forgetPerson(ctx context.Context, a *App, id string, memories bool) (f voicespage.Forgotten, err error) {
	if f.Left, err = a.outside.voices.Delete(ctx, id, memories); err != nil {
		return f, err
	}
	if memories && a.outside.known != nil {
		for _, k := range a.book.List() {
			a.outside.known.Refresh(k.ID)
		}
	}
	f.Files = find(a.options.Data, "before-restore-*")
	if b := a.backups(); len(b.Copies()) > 0 {
		if err := b.Renew(ctx); err != nil {
			a.log.Error("backups may still hold the voice of a person who was deleted", "err", err)
			f.Files = append(f.Files, b.Copies()...)
		}
	}
	return f, nil
}

// auditOf returns what keeps in the audit what a person did with a device.
func auditOf(accounts *account.Service) func(context.Context, pairing.Deed) {
	if accounts == nil {
		return nil
	}
	return func(ctx context.Context, d pairing.Deed) {
		accounts.Did(ctx, account.Actor{Name: d.Who, Via: "token", Remote: addressOf(d.Remote)}, d.Act, d.Device, d.Outcome)
	}
}

// Retention: what is too old is looked for so often, and deleted in pieces, so that others can write between two.
const (
	trimEvery = 6 * time.Hour
	trimPause = 50 * time.Millisecond
	trimTalks = 50
	trimCalls = 500
)

// trimmer deletes talks, and calls from outside, that are older than the settings or their device say.
type trimmer struct {
	store *store.Store // nil: there is nothing
	days  int          // that they are kept; 0: for ever
	log   *slog.Logger
}

// run deletes what is too old until ctx ends. days says how long talks are kept.
func (t trimmer) run(ctx context.Context, days func() int) {
	if t.store == nil {
		return
	}
	tick := time.NewTicker(trimEvery)
	defer tick.Stop()
	for {
		t.days = days()
		if n, err := t.trim(ctx, time.Now()); err != nil && ctx.Err() == nil {
			t.log.Warn("old talks are not deleted", "err", err)
		} else if n > 0 {
			t.log.Info("old talks deleted", "talks", n)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// trim deletes once what is too old at a time, and returns how many talks that were.
func (t trimmer) trim(ctx context.Context, now time.Time) (talks int64, err error) {
	days, err := t.kept(ctx)
	if err != nil {
		return 0, err
	}
	if t.days > 0 { // those that no device made
		before := now.AddDate(0, 0, -t.days)
		if _, err := inPieces(ctx, trimCalls, func() (int64, error) { return t.store.Turns.TrimCalls(ctx, "", before, trimCalls) }); err != nil {
			return 0, err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(days)) {
		if days[id] == 0 {
			continue
		}
		before := now.AddDate(0, 0, -days[id])
		n, err := inPieces(ctx, trimTalks, func() (int64, error) { return t.store.Conversations.Trim(ctx, id, before, trimTalks) })
		if talks += n; err == nil {
			_, err = inPieces(ctx, trimCalls, func() (int64, error) { return t.store.Turns.TrimCalls(ctx, id, before, trimCalls) })
		}
		if err != nil {
			return talks, err
		}
	}
	return talks, nil
}

// kept returns for how many days what was said to each device is kept; 0: for ever.
func (t trimmer) kept(ctx context.Context) (map[string]int, error) {
	days := map[string]int{}
	return days, eachDevice(ctx, t.store, func(d *store.Device) {
		days[d.ID] = t.days
		if d.KeepText != nil {
			days[d.ID] = *d.KeepText
		}
	})
}

// eachDevice runs f for all devices of a store.
func eachDevice(ctx context.Context, s *store.Store, f func(*store.Device)) error {
	for page := (store.Page{Limit: 500}); ; {
		devices, err := s.Devices.List(ctx, page)
		if err != nil || len(devices) == 0 {
			return err
		}
		for i := range devices {
			f(&devices[i])
			page.Before = store.Cursor{At: devices[i].FirstAt, ID: devices[i].ID}
		}
	}
}

// inPieces runs a deletion until it deletes less than a piece, and returns how much it deleted.
func inPieces(ctx context.Context, piece int64, del func() (int64, error)) (all int64, err error) {
	for {
		n, err := del()
		if all += n; err != nil || n < piece {
			return all, err
		}
		select {
		case <-time.After(trimPause):
		case <-ctx.Done():
			return all, ctx.Err()
		}
	}
}
