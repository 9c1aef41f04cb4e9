package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"xiaozhi/connection/identity"
	"xiaozhi/connection/pairing"
	"xiaozhi/console/devices"
	"xiaozhi/console/talk"
	"xiaozhi/console/ui"
	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
	"xiaozhi/internal/config"
	"xiaozhi/internal/private"
	"xiaozhi/internal/text/message"
	"xiaozhi/mcp/gateway/catalog"
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
	db, err := openChecked(ctx, data, o)
	if err != nil {
		return nil, nil, err
	}
	return account.New(account.Options{Store: db, Log: log}), db.Close, nil
}

// handed returns what drops what the last owner of a device has had kept to hear it by, and shows open pages whose it is now.
func handed(a *App) func(id string) {
	return func(id string) {
		a.seen.devices.Sound.Drop(id)
		a.seen.fleet.Changed(id)
	}
}

// Give makes a device that of another person.
func (a bookOf) Give(ctx context.Context, by account.Person, id, name string) error {
	return a.accounts.Give(ctx, by.Actor(by.Remote), id, name)
}

// Heirs lists the people who can have a device: all who may log in.
func (a bookOf) Heirs(ctx context.Context) (all []devices.Heir, err error) {
	users, err := a.accounts.Users(ctx)
	for _, u := range users {
		if u.DisabledAt.IsZero() {
			all = append(all, devices.Heir{ID: u.ID, Name: u.Name, Shown: cmp.Or(u.Shown, u.Name)})
		}
	}
	return all, err
}

// hasOwner returns what reports whether somebody owns the server.
func (a *App) hasOwner(ctx context.Context) func() bool {
	if a.accounts == nil {
		return func() bool { return false } // without a store there are no accounts
	}
	ctx = context.WithoutCancel(ctx)
	return func() bool { return a.accounts.HasOwner(ctx) }
}

// foundOwner makes the first owner, if the settings name one. The password is read only while nobody owns the server.
func foundOwner(ctx context.Context, s *account.Service, c config.Console) error {
	switch {
	case c.Owner == "":
		return nil
	case s == nil:
		return fmt.Errorf("console.owner: %s", message.Both("account/no-store"))
	case s.HasOwner(ctx):
		return nil
	}
	text, err := private.Read(c.PasswordFile)
	if err != nil {
		return fmt.Errorf("console.password_file: %w", err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	if err := s.Found(ctx, c.Owner, strings.TrimRight(line, "\r")); err != nil {
		return fmt.Errorf("console.owner %q: %w", c.Owner, err)
	}
	return nil
}

// ownerBanner says how somebody becomes the owner, while nobody is. at are the addresses of the server.
func (a *App) ownerBanner(ctx context.Context, w io.Writer, at []net.Listener) {
	if a.accounts == nil {
		return
	}
	code := a.accounts.SetupCode(ctx)
	switch {
	case code == "":
	case a.web.console == nil:
		fmt.Fprintf(w, "%s\n\n", message.Both("app/setup", code))
	default:
		fmt.Fprintln(w, message.Both("app/setup-page"))
		for _, host := range pageHosts(a.cfg, at) {
			fmt.Fprintf(w, "  http://%s%ssetup#%s\n", host, ui.Prefix, code)
		}
		fmt.Fprintln(w)
	}
}

// pageHosts lists the addresses of the pages. at are those of the server.
func pageHosts(cfg *config.Config, at []net.Listener) (all []string) {
	var addrs []net.Addr
	for _, l := range at {
		addrs = append(addrs, l.Addr())
	}
	if len(cfg.Console.Listen) > 0 {
		addrs = nil
		for _, address := range cfg.Console.Listen {
			if tcp, err := net.ResolveTCPAddr("tcp", address); err == nil {
				addrs = append(addrs, tcp)
			}
		}
	}
	for _, addr := range addrs {
		all = append(all, reachable(addr)...)
	}
	return all
}

// programs returns what finds the tokens of accounts for the gateway; nil: there are no accounts.
func programs(s *account.Service) func(ctx context.Context, shown string) (*catalog.Token, error) {
	if s == nil {
		return nil
	}
	return func(ctx context.Context, shown string) (*catalog.Token, error) {
		b, err := s.Bearer(ctx, shown)
		if errors.Is(err, account.ErrNoToken) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		t := tokenOf(b)
		t.Account.Holds = func(ctx context.Context) bool {
			now, err := s.Again(ctx, b)
			if err != nil {
				return !errors.Is(err, account.ErrNoToken) // a disk that fails ends nobody's work
			}
			return reflect.DeepEqual(now, b)
		}
		return t, nil
	}
}

// tokenOf returns what the gateway is to know of a token. A member's reaches their own devices; a viewer's none.
func tokenOf(b account.Bearer) *catalog.Token {
	has := func(s account.Scope) bool {
		return slices.Contains(b.Scopes, s) || slices.Contains(b.Scopes, account.Admin)
	}
	of := &catalog.Account{
		Person: b.ID, Whole: b.Role == account.Owner, Read: has(account.Read), Admin: has(account.Admin),
		Say: has(account.Say) && b.Role != account.Viewer, Tools: has(account.Tools) && b.Role != account.Viewer,
	}
	for _, id := range b.Devices {
		of.Devices = append(of.Devices, strings.ToLower(id))
	}
	return &catalog.Token{Name: b.Name + "/" + b.Head, Streams: b.Streams, Rate: b.Rate, Account: of}
}

// errNotDone says of a call that it was refused or has failed: why is in the log.
var errNotDone = errors.New("the call was not done")

// callsOf returns what keeps in the audit the calls that programs make for people.
func callsOf(s *account.Service) func(ctx context.Context, who catalog.Caller, tool string, done bool) {
	if s == nil {
		return nil
	}
	return func(ctx context.Context, who catalog.Caller, tool string, done bool) {
		var outcome error
		if !done {
			outcome = errNotDone
		}
		name, head, _ := strings.Cut(who.Name(), "/")
		s.Did(ctx, account.Actor{Name: name, Via: "token", Remote: who.Remote}, "tool.call", tool+" "+head, outcome)
	}
}

// callerName names who asks by a token, in the audit and where guesses count.
func callerName(r *http.Request) string {
	name, _, _ := strings.Cut(catalog.CallerFrom(r.Context()).Name(), "/")
	return cmp.Or(name, pairing.Owner)
}

// addressOf is the other end of a connection without its port, as the audit keeps it.
func addressOf(remote string) string {
	if host, _, err := net.SplitHostPort(remote); err == nil {
		return host
	}
	return remote
}

// ownDevices are the routes by which members make a new speaker theirs, by the code that it says, and give one that is
// theirs a name.
func ownDevices(a *App, owner func(ctx context.Context, id string) (string, error)) []access.Route {
	s := a.accounts
	if s == nil {
		return nil
	}
	who := func(r *http.Request) string { return access.PersonOf(r).Name }
	owned := func(r *http.Request, id string) error {
		p := access.PersonOf(r)
		return s.Give(r.Context(), p.Actor(addressOf(r.RemoteAddr)), id, p.Name)
	}
	o := pairing.Options{Book: a.book, Audit: auditOf(s), Who: who, Forget: a.forget, Log: a.log}
	owners := account.Need{Role: account.Owner, Scope: account.Admin}
	forgets := account.Need{Role: account.Owner, Scope: account.Admin, Fresh: true}
	claim := account.Need{Role: account.Member, Scope: account.Admin}
	own := account.Need{Role: account.Member, Scope: account.Admin, Own: true}
	whose := func(r *http.Request) (string, error) { return owner(r.Context(), identity.ParseID(r.PathValue("id"))) }
	return []access.Route{
		{Pattern: "POST /api/v1/devices", For: access.People, Need: claim, Handler: a.web.told(pairing.Claim(o, owned))},
		{Pattern: "PUT /api/v1/devices/{id}/name", For: access.People, Need: own, Owner: whose, Handler: a.web.told(pairing.Rename(o))},
		{Pattern: "POST /api/v1/devices/{id}/accept", For: access.People, Need: owners, Handler: a.web.told(pairing.Decide(o, "pair", owned))},
		{Pattern: "POST /api/v1/devices/{id}/refuse", For: access.People, Need: owners, Handler: a.web.told(pairing.Decide(o, "refuse", nil))},
		{Pattern: "DELETE /api/v1/devices/{id}", For: access.People, Need: forgets, Handler: a.web.told(pairing.Decide(o, "forget", nil))},
	}
}

// talkDesk makes what lets browsers talk. Where nobody can log in it lets nobody in.
func talkDesk(a *App, guard *access.Guard) *talk.Desk {
	return talk.NewDesk(talk.Options{
		Session: func(r *http.Request) (account.Person, error) { return access.Session(guard, r) },
		Page: func(r *http.Request, p account.Person, id string) (identity.Guest, error) {
			a.devices.SetLanguage(id, string(ui.Lang(r)))
			guest, created, err := identity.Pages{Book: a.book}.Admit(r.Context(), id, p.Name)
			if err != nil || !created {
				return guest, err
			}
			return guest, a.accounts.Give(r.Context(), p.Actor(addressOf(r.RemoteAddr)), id, p.Name)
		},
		Sessions: a.devices,
	})
}
