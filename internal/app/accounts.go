package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"xiaozhi/internal/account"
	"xiaozhi/internal/config"
	"xiaozhi/internal/text/message"
	"xiaozhi/store"
)

// OpenAccounts opens the accounts for a command, beside a running server or without one. What it changes counts in the
// server at the next request. closeAll must be called at the end.
func OpenAccounts(ctx context.Context, cfg *config.Config, data string, log *slog.Logger) (s *account.Service, closeAll func() error, err error) {
	if cfg.Store.Driver == "none" {
		return nil, nil, errors.New(message.Both("account/no-store"))
	}
	if err := makeDataDir(data); err != nil {
		return nil, nil, err
	}
	o := storeOptions(cfg, data, log)
	o.Tool = true
	db, err := store.Open(ctx, o)
	if err != nil {
		return nil, nil, storeError(err)
	}
	return account.New(account.Options{Store: db, Log: log}), db.Close, nil
}

// hasOwner returns what reports whether somebody owns the server.
func (a *App) hasOwner(ctx context.Context) func() bool {
	if a.accounts == nil {
		return func() bool { return false } // without a store there are no accounts
	}
	ctx = context.WithoutCancel(ctx)
	return func() bool { return a.accounts.HasOwner(ctx) }
}

// ownerBanner says how somebody becomes the owner, while nobody is.
func (a *App) ownerBanner(ctx context.Context, w io.Writer) {
	if a.accounts == nil {
		return
	}
	if code := a.accounts.SetupCode(ctx); code != "" {
		fmt.Fprintf(w, "%s\n\n", message.Both("app/setup", code))
	}
}
