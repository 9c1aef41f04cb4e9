package app

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"

	"xiaozhi/internal/account"
	"xiaozhi/internal/config"
	"xiaozhi/internal/sealed"
	"xiaozhi/internal/text/message"
	"xiaozhi/providers/openai"
	"xiaozhi/store"
)

// keyPath names the file of the key: as the settings say, or in the data folder.
func keyPath(cfg *config.Config, data string) string {
	return cmp.Or(cfg.Store.KeyFile, filepath.Join(data, keyFile))
}

func vault(s *store.Store, cfg *config.Config, data string) *sealed.Vault {
	return &sealed.Vault{Keeper: s.Secrets, KeyFile: keyPath(cfg, data)}
}

// Secrets are the sealed secrets, for a command.
type Secrets struct {
	*sealed.Vault

	Close func() error // ends the use of the store
}

// OpenSecrets opens the sealed secrets for a command, beside a running server or without one. Close must be called at
// the end.
func OpenSecrets(ctx context.Context, cfg *config.Config, data string) (*Secrets, error) {
	if cfg.Store.Driver == "none" {
		return nil, errors.New(message.Both("sealed/no-store"))
	}
	if err := makeDataDir(data); err != nil {
		return nil, err
	}
	o := storeOptions(cfg, data, slog.New(slog.DiscardHandler))
	o.Tool = true
	s, err := openChecked(ctx, data, o)
	if err != nil {
		return nil, err
	}
	v, accounts := vault(s, cfg, data), account.New(account.Options{Store: s})
	v.Audit = func(ctx context.Context, by, act, name string, outcome error) {
		accounts.Did(ctx, account.Actor{Name: by, Via: account.ViaCommand}, act, name, outcome)
	}
	return &Secrets{v, s.Close}, nil
}

// keeps is the store, nil without one. A check of the settings only looks at it, beside the server that may run.
func (a *App) keeps(ctx context.Context) (*store.Store, error) {
	if !a.options.Check {
		return a.stored, nil
	}
	kept, err := look(ctx, a.cfg, a.options.Data, a.log)
	if kept != nil {
		a.report.line("  DATA " + message.Both("app/store-sound"))
		a.life.atEnd(func() { _ = kept.Close() }) // nothing was written
	}
	return kept, err
}

// unseal puts the secrets that the settings name into their place; kept is nil if there are none.
func (a *App) unseal(ctx context.Context, kept *store.Store) error {
	return a.cfg.Unseal(func(name string, use config.SecretUse) (string, error) {
		switch {
		case a.cfg.Store.Driver == "none":
			return "", errors.New(message.Both("sealed/no-store"))
		case kept == nil:
			return "", errors.New(message.Both("sealed/unknown", name))
		}
		v := vault(kept, a.cfg, a.options.Data)
		switch use.Kind {
		case config.SecretAddress:
			return v.OpenAddress(ctx, name)
		case config.SecretShown:
			return v.Open(ctx, name, sealed.ThisServer)
		case config.SecretGiven:
			return v.Open(ctx, name, sealed.Program+use.At)
		default:
			return v.Open(ctx, name, cmp.Or(use.At, openai.DefaultBaseURL))
		}
	})
}

// look opens the store for reading, for a check; nil if there is none yet.
func look(ctx context.Context, cfg *config.Config, data string, log *slog.Logger) (*store.Store, error) {
	if cfg.Store.Driver == "none" {
		return nil, nil
	}
	o := storeOptions(cfg, data, log)
	o.Look = true
	s, err := store.Open(ctx, o)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, storeError(err)
	}
	return s, nil
}
