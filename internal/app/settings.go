package app

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"

	"xiaozhi/internal/account"
	"xiaozhi/internal/config"
	"xiaozhi/internal/contact"
	"xiaozhi/internal/doctor"
	"xiaozhi/internal/sealed"
	"xiaozhi/internal/settings"
	"xiaozhi/internal/text/message"
	"xiaozhi/providers/openai"
	"xiaozhi/store"
)

// openSettings puts what people have set between the files and what counts before it, once. A nil store has nothing of it.
func openSettings(ctx context.Context, a *App, kept *store.Store) error {
	if a.settings != nil {
		return nil
	}
	from := a.opener(kept)
	o := settings.Options{Sources: a.cfg.Sources(), Vault: settingsVault{from, a.accounts}, Without: a.options.NoConsoleSettings, Look: a.options.Check, Log: a.log}
	if o.Sources == nil { // they were made otherwise
		a.settings = settings.Fixed(ctx, a.cfg)
		return a.unseal(ctx, from)
	}
	if kept != nil {
		o.Records = kept.Settings
	}
	if a.accounts != nil {
		o.Audit = func(ctx context.Context, by account.Person, act, object string, outcome error) {
			a.accounts.Did(ctx, by.Actor(by.Remote), act, object, outcome)
		}
	}
	_, told, _ := o.Sources.Load(config.Layer{}) // what was told already
	s, warnings, err := settings.Open(ctx, o)
	if err != nil {
		return err
	}
	for _, w := range warnings {
		if !slices.Contains(told, w) {
			a.log.Warn("config", "warning", w)
		}
	}
	a.settings, a.cfg = s, s.Current()
	a.life.atEnd(s.Close)
	return nil
}

// settingsVault keeps the secrets that people type into the settings.
type settingsVault struct {
	opener

	accounts *account.Service // nil: nobody keeps who did it
}

var _ settings.Vault = settingsVault{}

// Seal implements [settings.Vault].
func (v settingsVault) Seal(ctx context.Context, by account.Person, name string, use config.SecretUse, value string) error {
	if err := v.there(name); err != nil {
		return err
	}
	purpose := cmp.Or(use.At, openai.DefaultBaseURL)
	switch use.Kind {
	case config.SecretAddress:
		purpose = value
	case config.SecretShown:
		purpose = sealed.ThisServer
	case config.SecretGiven:
		purpose = sealed.Program + use.At
	case config.SecretSent:
	}
	err := v.vault.Put(ctx, name, purpose, value, by.Name)
	if v.accounts != nil {
		v.accounts.Did(ctx, by.Actor(by.Remote), "secret.set", name, err)
	}
	return err
}

// Open implements [settings.Vault].
func (v settingsVault) Open(ctx context.Context) func(name string, use config.SecretUse) (string, error) {
	return v.each(ctx)
}

// Names implements [settings.Vault].
func (v settingsVault) Names(ctx context.Context) (names []string, err error) {
	if v.vault == nil {
		return nil, nil
	}
	all, err := v.vault.List(ctx)
	for _, s := range all {
		names = append(names, s.Name)
	}
	return names, err
}

// Drop implements [settings.Vault].
func (v settingsVault) Drop(ctx context.Context, name string) error {
	return v.vault.Delete(ctx, name, "server")
}

// settingsFindings says for the doctor what people have set and what does not count.
func (a examiner) settingsFindings() (all []doctor.Finding) {
	if a.settings == nil {
		return nil
	}
	held := a.settings.Held()
	if held == nil {
		if w := a.settings.Watching(); w != nil && w.Stuck != "" {
			all = append(all, doctor.Finding{Area: doctor.Program, Level: doctor.Problem, What: contact.Line(w.Stuck), Do: contact.Say("settings/stuck-do")})
		}
		return all
	}
	if len(held.Problems) == 0 {
		return []doctor.Finding{{Area: doctor.Program, Level: doctor.Warning, What: contact.Say("settings/without", held.Revision), Do: contact.Say("settings/held-do")}}
	}
	for _, p := range held.Problems {
		all = append(all, doctor.Finding{Area: doctor.Program, Level: doctor.Problem, What: contact.Say("settings/held", held.Revision, contact.Line(p.Error())), Do: contact.Say("settings/held-do")})
	}
	return all
}

// FolderSettings are the settings of a data folder, for a command.
type FolderSettings struct {
	*settings.Settings

	Close func() error // ends the use of the store
}

// LoadSettings reads the files, and where they are right only with what people have set, both.
func LoadSettings(ctx context.Context, o config.Options) (*config.Config, []config.Warning, error) {
	from := config.Read(o)
	c, warnings, err := from.Load(config.Layer{})
	if err == nil {
		return c, warnings, nil
	}
	ground, failed := from.Ground()
	if failed != nil {
		return nil, warnings, err
	}
	both, failed := OpenSettings(ctx, ground, o.DataDir, false)
	if failed != nil {
		return nil, warnings, err
	}
	defer func() { _ = both.Close() }() // nothing was written
	if both.Revision() == 0 || both.Held() != nil {
		return nil, warnings, err
	}
	return both.Current(), warnings, nil
}

// unused returns an error if a server uses a data folder: it would not know of what is changed beside it, and change nothing more.
func unused(data string) error {
	unlock, err := store.Lock(filepath.Join(data, databaseFile))
	if e, locked := errors.AsType[*store.LockedError](err); locked {
		return errors.New(message.Both("settings/server-runs", data, e.PID))
	}
	if err == nil {
		unlock()
	}
	return nil // what else is wrong is said when the store is opened
}

// OpenSettings reads the files with what people have set, for a command, beside a running server or without one. To change
// them, which nothing builds or watches then, the store is made if it is not there. Close must be called at the end.
func OpenSettings(ctx context.Context, cfg *config.Config, data string, change bool) (f *FolderSettings, err error) {
	log := slog.New(slog.DiscardHandler)
	var kept *store.Store
	switch {
	case cfg.Store.Driver == "none":
	case change:
		o := storeOptions(cfg, data, log)
		o.Tool = true
		if err = makeDataDir(data); err == nil {
			if err = unused(data); err == nil {
				kept, err = openChecked(ctx, data, o)
			}
		}
	default:
		kept, err = look(ctx, cfg, data, log)
	}
	if err != nil {
		return nil, err
	}
	f = &FolderSettings{Close: func() error { return nil }}
	from := opener{none: cfg.Store.Driver == "none"}
	o := settings.Options{Sources: cfg.Sources(), Look: true, Log: log}
	if kept != nil {
		from.vault, o.Records, f.Close = vault(kept, cfg, data), kept.Settings, kept.Close
		accounts := account.New(account.Options{Store: kept})
		o.Audit = func(ctx context.Context, by account.Person, act, object string, outcome error) {
			accounts.Did(ctx, account.Actor{Name: by.Name, Via: account.ViaCommand}, act, object, outcome)
		}
	}
	o.Vault = settingsVault{opener: from}
	if f.Settings, _, err = settings.Open(ctx, o); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if change {
		f.Run(settings.Unbuilt{})
	}
	closeStore := f.Close
	f.Close = func() error {
		f.Settings.Close()
		return closeStore()
	}
	return f, nil
}
