package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"

	"xiaozhi/internal/account"
	"xiaozhi/internal/config"
	"xiaozhi/internal/sealed"
	"xiaozhi/internal/text/message"
	"xiaozhi/providers"
	"xiaozhi/providers/openai"
	"xiaozhi/store"
)

// sealedPrefix begins an api_key that names a sealed secret.
const sealedPrefix = "sealed:"

func vault(s *store.Store, data string) *sealed.Vault {
	return &sealed.Vault{Keeper: s.Secrets, KeyFile: filepath.Join(data, keyFile)}
}

// OpenSecrets opens the sealed secrets for a command, beside a running server or without one. closeAll must be called
// at the end.
func OpenSecrets(ctx context.Context, cfg *config.Config, data string) (v *sealed.Vault, closeAll func() error, err error) {
	if cfg.Store.Driver == "none" {
		return nil, nil, errors.New(message.Both("sealed/no-store"))
	}
	if err := makeDataDir(data); err != nil {
		return nil, nil, err
	}
	o := storeOptions(cfg, data, slog.New(slog.DiscardHandler))
	o.Tool = true
	s, err := store.Open(ctx, o)
	if err != nil {
		return nil, nil, storeError(err)
	}
	v, accounts := vault(s, data), account.New(account.Options{Store: s})
	v.Audit = func(ctx context.Context, by, act, name string, outcome error) {
		accounts.Did(ctx, account.Actor{Name: by, Via: account.ViaCommand}, act, name, outcome)
	}
	return v, s.Close, nil
}

// unseal puts the secrets that providers name into their place. A check of the settings leaves them sealed.
func (a *App) unseal(ctx context.Context) error {
	for name, p := range a.cfg.Providers {
		secret, ok := strings.CutPrefix(string(p.APIKey), sealedPrefix)
		if !ok || a.options.Check {
			continue
		}
		where := "providers." + name + ".api_key"
		if a.stored == nil {
			return fmt.Errorf("%s: %s", where, message.Both("sealed/no-store"))
		}
		value, err := vault(a.stored, a.options.Data).Open(ctx, secret, cmp.Or(p.BaseURL, openai.DefaultBaseURL))
		if err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
		p.APIKey = providers.Secret(value)
		a.cfg.Providers[name] = p
	}
	return nil
}
