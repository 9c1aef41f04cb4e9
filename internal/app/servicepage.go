package app

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"xiaozhi/console"
	servicepage "xiaozhi/console/services"
	"xiaozhi/console/setup"
	"xiaozhi/internal/account"
	"xiaozhi/internal/config"
	"xiaozhi/internal/engines"
	"xiaozhi/internal/services"
	"xiaozhi/internal/settings"
	"xiaozhi/internal/text"
	"xiaozhi/internal/timezone"
	"xiaozhi/providers"
	"xiaozhi/providers/service"
	"xiaozhi/store"
)

// servicesOf lists, tries and sets the services of the server.
func servicesOf(a *App) *services.Services {
	o := services.Options{
		Settings: unchanged{a.cfg},
		States:   func() engines.States { return statesOf(a) },
		Unseal: func(ctx context.Context, cfg *config.Config) error {
			return cfg.Unseal(a.opener(a.stored).each(ctx))
		},
		Voice: func() providers.TTS { return a.cast.main.Load().TTS },
		Ears:  func() providers.ASR { return a.cast.main.Load().ASR },
		Audit: func(ctx context.Context, by account.Person, act, object string, outcome error) {
			a.accounts.Did(ctx, by.Actor(by.Remote), act, object, outcome)
		},
		Log: a.log,
	}
	if a.settings != nil {
		o.Settings = a.settings
	}
	if a.stored != nil {
		o.Spans = func(ctx context.Context, turns int, each func(doc string)) error {
			now := time.Now()
			return a.stored.Turns.Spans(ctx, store.CostQuery{From: now.Add(-usageTime), To: now.Add(time.Minute)}, turns, each)
		}
		o.Vault = vault(a.stored, a.cfg, a.options.Data)
	}
	return services.New(o)
}

func statesOf(a *App) engines.States {
	return condition{a}.chains()
}

// usageTime is how far back requests are looked at.
const usageTime = 30 * 24 * time.Hour

// stateTime is how often it is looked whether a service rests, or works again.
const stateTime = time.Second

// watchServices tells pages of services that rest, or work again, until ctx ends: chains tell nobody.
func watchServices(ctx context.Context, a *App, pages *console.Console) {
	tick := time.NewTicker(stateTime)
	defer tick.Stop()
	last := ""
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		now := ""
		for _, c := range statesOf(a).Chains {
			for _, m := range c.Members {
				now += fmt.Sprintln(c.Role, m.Name, m.Condition, m.Failures, m.Given.Unix())
			}
		}
		if now != last {
			pages.Changed(servicepage.Topic, "")
		}
		last = now
	}
}

// unchanged are settings that nobody can change while the server runs.
type unchanged struct{ cfg *config.Config }

// Current are those of the start.
func (u unchanged) Current() *config.Config { return u.cfg }

// Revision is that of none.
func (u unchanged) Revision() int { return 0 }

// Plan refuses.
func (u unchanged) Plan(context.Context, account.Person, int, []settings.Edit) (*settings.Plan, error) {
	return nil, settings.ErrReadOnly
}

// Apply refuses.
func (u unchanged) Apply(context.Context, account.Person, string) (settings.Revision, error) {
	return settings.Revision{}, settings.ErrReadOnly
}

// Undo refuses.
func (u unchanged) Undo(context.Context, account.Person, int) (settings.Revision, error) {
	return settings.Revision{}, settings.ErrReadOnly
}

// Presets lists the services that a new server is often set up with.
func (a setupOf) Presets(ctx context.Context, lang text.Lang) (all []setup.Preset) {
	for _, p := range servicesOf(a.App).Presets(ctx, lang) {
		one := setup.Preset{Kind: p.Type, Title: p.Called(lang), Here: p.Here, Set: p.Set != ""}
		if p.Own {
			one.Title = ""
		}
		for _, r := range p.Does {
			if r != service.Embed { // a new server remembers nothing yet
				one.Roles = append(one.Roles, string(r))
			}
		}
		all = append(all, one)
	}
	return all
}

// Zone says by which time zone the server tells times.
func (a setupOf) Zone() setup.Zone {
	cfg := a.settings.Current()
	name := cfg.Server.Timezone
	return setup.Zone{
		Now: a.forces.zone.Location(), Name: name, Machine: timezone.Machine().String(), Names: timezone.Names(),
		Chosen: name != config.Default().Server.Timezone, Fixed: a.settings.Changeable() != nil || cfg.PinnedAt(zoneKey()).Place != "",
	}
}

// zoneKey is the path of the time zone in the settings.
func zoneKey() []string { return []string{"server", "timezone"} }

// ZoneWrong says why a name is that of no time zone; "": it is one.
func (a setupOf) ZoneWrong(lang text.Lang, name string) string { return config.ZoneWrong(lang, name) }

// SetZone has the server tell times by another time zone, as a change of the settings.
func (a setupOf) SetZone(r *http.Request, by account.Person, name string) error {
	by.Remote = a.web.from(r).String()
	plan, err := a.settings.Plan(r.Context(), by, a.settings.Revision(), []settings.Edit{{Path: zoneKey(), Value: name}})
	if err == nil {
		_, err = a.settings.Apply(r.Context(), by, plan.ID)
	}
	return err
}
