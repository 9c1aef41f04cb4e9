package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"xiaozhi/connection/identity"
	"xiaozhi/connection/pairing"
	"xiaozhi/console/devices"
	"xiaozhi/internal/config"
	"xiaozhi/internal/services"
	"xiaozhi/internal/timeline"
	"xiaozhi/mcp"
	"xiaozhi/mcp/router"
	"xiaozhi/providers"
	"xiaozhi/store"
)

// keeping keeps in the store for how many days what devices have said is kept.
type keeping struct{ store *store.Store }

// keepingIn keeps in a store for how many days what devices have said is kept; nil without one.
func keepingIn(s *store.Store) pairing.Keeping {
	if s == nil {
		return nil
	}
	return keeping{s}
}

// Set implements [pairing.Keeping].
func (k keeping) Set(ctx context.Context, id string, days pairing.Days) error {
	_, err := k.store.Devices.Edit(ctx, id, func(d *store.Device) error {
		if n, named := days[pairing.Text]; named {
			d.KeepText = n
		}
		if n, named := days[pairing.Sound]; named {
			d.KeepSound = n
		}
		return nil
	})
	switch {
	case errors.Is(err, store.ErrNotFound):
		return identity.ErrNoSuchDevice
	case err != nil:
		return fmt.Errorf("%w: %w", identity.ErrNotWritten, err)
	}
	return nil
}

// Kept returns for how many days what a device says is kept.
func (a bookOf) Kept(ctx context.Context, id string) (devices.Kept, error) {
	of := a.base()
	kept := devices.Kept{UsualText: of.Store.KeepDays, UsualSound: of.Recording.Days}
	d, err := a.stored.Devices.Get(ctx, id)
	if errors.Is(err, store.ErrNotFound) { // it is not written yet
		return kept, nil
	}
	kept.Text, kept.Sound = d.KeepText, d.KeepSound
	return kept, err
}

// Keep sets for how many days what a device says is kept; nil: as the settings say.
func (a bookOf) Keep(ctx context.Context, id string, text, sound *int) error {
	return pairing.Keep(ctx, pairing.Options{Book: a.book, Keeping: keepingIn(a.stored)}, id, pairing.Days{pairing.Text: text, pairing.Sound: sound})
}

// lastDay returns what counts the turns of a device by the hours of the last day, which begin as the clocks of the server's zone say.
func lastDay(a *App) func(ctx context.Context, id string) ([]devices.Hour, error) {
	return func(ctx context.Context, id string) ([]devices.Hour, error) {
		now := time.Now().In(a.forces.zone.Location())
		from := now.Add(-time.Duration(now.Minute())*time.Minute - time.Duration(now.Second())*time.Second - time.Duration(now.Nanosecond()) - 23*time.Hour)
		all := make([]devices.Hour, 24)
		for i := range all {
			all[i].At = from.Add(time.Duration(i) * time.Hour)
		}
		rows, err := a.stored.Turns.Hours(ctx, store.CostQuery{DeviceID: id, From: from, To: from.Add(24 * time.Hour)})
		for _, row := range rows {
			all[row.Hour].Turns, all[row.Hour].Failed = row.Turns, row.Failed
		}
		return all, err
	}
}

// All implements [pairing.Keeping].
func (k keeping) All(ctx context.Context) (map[string]pairing.Days, error) {
	all := map[string]pairing.Days{}
	return all, eachDevice(ctx, k.store, func(d *store.Device) {
		days := pairing.Days{}
		if d.KeepText != nil {
			days[pairing.Text] = d.KeepText
		}
		if d.KeepSound != nil {
			days[pairing.Sound] = d.KeepSound
		}
		if len(days) > 0 {
			all[d.ID] = days
		}
	})
}

// priceOf returns what a service of the settings costs. known is false where its owner has set no price, unless nobody has
// to pay for it: it has no key, and runs in the program, at home or for nothing.
func priceOf(cfg *config.Config, name string) (p config.Price, known bool) {
	section := cfg.Providers[name]
	if section.Price != (config.Price{}) {
		return section.Price, true
	}
	kind, _ := services.KindOf(cmp.Or(section.Type, name)) // of one that is not known: not free
	return p, kind.Free && section.APIKey == ""
}

// spent puts what a turn did when into its record, with what that cost by the owner's prices.
func (k *keeper) spent(t *store.Turn, f *timeline.Figures, calls map[string]router.Record) {
	spans, money := f.Spans(), 0.0
	whole := len(f.Attempts) > 0 || t.ASRName+t.LLMName+t.TTSName == "" // the cost is known
	for i, a := range f.Attempts {
		price, known := k.price(a.Provider)
		cost := price.Tokens(providers.Usage{Prompt: a.Tokens.Prompt, Cached: a.Cached, Completion: a.Tokens.Completion}) +
			price.Hearing(a.Sound) + price.Spoken(a.Characters)
		money += cost
		free := known && price == config.Price{}
		whole = whole && (free || cost > 0 || a.Outcome != timeline.Answered)
		spans.Attempts[i].Cost = cost
		t.TokensIn += a.Tokens.Prompt
		t.TokensOut += a.Tokens.Completion
		t.TTSChars += a.Characters
		t.ASRSound = max(t.ASRSound, a.Sound)
	}
	for i := range spans.Tools {
		c := &spans.Tools[i]
		if rec, ok := calls[c.ID]; ok {
			c.Ran(rec.Started, rec.Took, string(rec.Kind), rec.Outcome == mcp.ActionTypeError.String(), f.Marks.Zero)
		}
	}
	if micros := int(money*1e6 + 0.5); micros > 0 || whole {
		t.CostMicros = &micros
	}
	t.Spans = spans.String()
}
