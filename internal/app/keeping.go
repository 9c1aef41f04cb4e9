package app

import (
	"context"
	"errors"
	"fmt"

	"xiaozhi/connection/identity"
	"xiaozhi/connection/pairing"
	"xiaozhi/internal/config"
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

// prices returns what the services of the settings cost, by their names.
func prices(cfg *config.Config) map[string]config.Price {
	all := map[string]config.Price{}
	for name, p := range cfg.Providers {
		if p.Price != (config.Price{}) {
			all[name] = p.Price
		}
	}
	return all
}

// spent puts what a turn did when into its record, with what that cost by the owner's prices.
func (k *keeper) spent(t *store.Turn, f *timeline.Figures, calls map[string]router.Record) {
	spans, money, prices := f.Spans(), 0.0, k.prices()
	for i, a := range f.Attempts {
		price := prices[a.Provider]
		cost := price.Tokens(providers.Usage{Prompt: a.Tokens.Prompt, Cached: a.Cached, Completion: a.Tokens.Completion}) +
			price.Hearing(a.Sound) + price.Spoken(a.Characters)
		money += cost
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
	t.CostMicros = int(money*1e6 + 0.5)
	t.Spans = spans.String()
}
