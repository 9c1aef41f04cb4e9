package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"xiaozhi/connection/identity"
	"xiaozhi/connection/pairing"
	"xiaozhi/internal/config"
	"xiaozhi/internal/text"
	"xiaozhi/internal/timeline"
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

// keptAttempt is an attempt as the record of a turn has it, its times in milliseconds.
type keptAttempt struct {
	Op       string           `json:"op"`
	Provider string           `json:"provider"`
	At       int64            `json:"at"` // from the first attempt of the turn
	First    int64            `json:"first,omitempty"`
	Took     int64            `json:"took"`
	Outcome  timeline.Outcome `json:"outcome"`
	Fault    string           `json:"fault,omitempty"`
	Void     bool             `json:"void,omitempty"` // of an answer that was begun too early
	Cost     float64          `json:"cost,omitempty"`
}

// The limits of what is kept of attempts.
const (
	maxFault = 160 // bytes
	maxSpans = 8 << 10
)

// spent puts the attempts of a turn into its record, with what they cost by the owner's prices.
func (k *keeper) spent(t *store.Turn, attempts []timeline.Attempt) {
	if len(attempts) == 0 {
		return
	}
	var rows []keptAttempt
	begun, money := attempts[0].Asked, 0.0
	for _, a := range attempts {
		price := k.prices[a.Provider]
		cost := price.Tokens(providers.Usage{Prompt: a.Tokens.Prompt, Cached: a.Cached, Completion: a.Tokens.Completion}) +
			price.Hearing(a.Sound) + price.Spoken(a.Characters)
		money += cost
		t.TokensIn += a.Tokens.Prompt
		t.TokensOut += a.Tokens.Completion
		t.TTSChars += a.Characters
		t.ASRSound = max(t.ASRSound, a.Sound)
		rows = append(rows, keptAttempt{
			Op: a.Op, Provider: a.Provider, At: a.Asked.Sub(begun).Milliseconds(), First: upMS(a.First), Took: upMS(a.Took),
			Outcome: a.Outcome, Fault: text.Cut(a.Fault, maxFault), Void: a.Void, Cost: cost,
		})
	}
	t.CostMicros = int(money*1e6 + 0.5)
	for len(rows) > 0 {
		doc, err := json.Marshal(map[string]any{"attempts": rows})
		if err == nil && len(doc) <= maxSpans {
			t.Spans = string(doc)
			return
		}
		rows = rows[:len(rows)-1]
	}
}

// upMS is a time in whole milliseconds, at least one if there is any.
func upMS(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return max(d.Milliseconds(), 1)
}
