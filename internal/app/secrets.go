package app

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"xiaozhi/internal/account"
	"xiaozhi/internal/config"
	"xiaozhi/internal/sealed"
	"xiaozhi/internal/text/message"
	"xiaozhi/internal/version"
	"xiaozhi/mcp/external"
	"xiaozhi/mcp/secret"
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
		a.report.Line("  DATA " + message.Both("app/store-sound"))
		a.life.atEnd(func() { _ = kept.Close() }) // nothing was written
	}
	return kept, err
}

// unseal puts the secrets that the settings name into their place.
func (a *App) unseal(ctx context.Context, from opener) error {
	return a.cfg.Unseal(from.each(ctx))
}

// each opens one secret after another, each for its use.
func (o opener) each(ctx context.Context) func(name string, use config.SecretUse) (string, error) {
	return func(name string, use config.SecretUse) (string, error) {
		switch use.Kind {
		case config.SecretAddress:
			return o.Address(ctx, name)
		case config.SecretShown:
			return o.open(ctx, name, sealed.ThisServer)
		case config.SecretGiven:
			return o.Given(ctx, name, use.At)
		default:
			return o.Sent(ctx, name, cmp.Or(use.At, openai.DefaultBaseURL))
		}
	}
}

// opener opens sealed secrets for the settings, and for the files of servers and tools. Its methods may be called at the
// same time.
type opener struct {
	vault *sealed.Vault // nil: there are none
	none  bool          // nothing is stored at all
}

func (a *App) opener(kept *store.Store) opener {
	o := opener{none: a.cfg.Store.Driver == "none"}
	if kept != nil {
		o.vault = vault(kept, a.cfg, a.options.Data)
	}
	return o
}

// sources returns where files of servers and tools may have their secrets.
func (o opener) sources() secret.Sources { return secret.Sources{Variable: os.LookupEnv, Sealed: o} }

func (o opener) there(name string) error {
	switch {
	case o.none:
		return errors.New(message.Both("sealed/no-store"))
	case o.vault == nil:
		return errors.New(message.Both("sealed/unknown", name))
	}
	return nil
}

func (o opener) open(ctx context.Context, name, purpose string) (string, error) {
	if err := o.there(name); err != nil {
		return "", err
	}
	return o.vault.Open(ctx, name, purpose)
}

// Sent opens a secret that is sent to the host of an address.
func (o opener) Sent(ctx context.Context, name, address string) (string, error) {
	return o.open(ctx, name, address)
}

// Given opens a secret that a program gets.
func (o opener) Given(ctx context.Context, name, program string) (string, error) {
	return o.open(ctx, name, sealed.Program+program)
}

// Address opens a secret that is an address itself.
func (o opener) Address(ctx context.Context, name string) (string, error) {
	if err := o.there(name); err != nil {
		return "", err
	}
	return o.vault.OpenAddress(ctx, name)
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

// loginTime limits a login by a command, the person in the browser included.
const loginTime = 10 * time.Minute

// LoginServer logs in to an external server of the settings or of mcp_servers.json, for a command, beside a running server
// or without one. browse shows somebody a link and returns the query with which their browser came back to redirect. What is
// granted is kept sealed; a running server takes it at its next try to connect.
func LoginServer(ctx context.Context, cfg *config.Config, data, name, redirect string, browse func(ctx context.Context, link string) (url.Values, error)) (now external.Status, err error) {
	s, err := OpenSecrets(ctx, cfg, data)
	if err != nil {
		return now, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	from := opener{vault: s.Vault}
	if cfg.Sealed() {
		if err := cfg.Unseal(from.each(ctx)); err != nil {
			return now, err
		}
	}
	c, err := serverConfig(ctx, cfg, filepath.Join(data, "mcp_servers.json"), name, from)
	if err != nil {
		return now, err
	}
	if !c.LogsIn() {
		return now, errors.New(message.Both("login/none", name))
	}
	ctx, cancel := context.WithTimeout(ctx, loginTime)
	defer cancel()
	quiet := &sealed.Vault{Keeper: s.Keeper, KeyFile: s.KeyFile} // what is granted is no secret that somebody has set
	now, _, err = external.Try(ctx, name, c, external.ServerOptions{Version: version.Number(), Grants: sealed.Grants{Vault: quiet}, Browse: browse, Redirect: redirect})
	return now, err
}

// serverConfig finds an external server by its name.
func serverConfig(ctx context.Context, cfg *config.Config, file, name string, from opener) (c external.Config, err error) {
	if s, is := cfg.Tools.External.MCPServers[name]; is {
		return s.Entry().Config()
	}
	all, problems, err := external.CheckFile(ctx, file, from.sources())
	if c, is := all[name]; is || err != nil || problems[name] != nil {
		return c, errors.Join(err, problems[name])
	}
	return c, errors.New(message.Both("login/unknown", name))
}
