package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	osuser "os/user"
	"slices"
	"strconv"
	"strings"
	"time"

	"xiaozhi/connection/identity"
	"xiaozhi/internal/account"
	"xiaozhi/internal/app"
	"xiaozhi/internal/config"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
)

const userUsage = `usage: xiaozhi user [flags]
       xiaozhi user [flags] add NAME [ROLE] | passwd NAME | role NAME ROLE | disable NAME | enable NAME
       xiaozhi user [flags] delete NAME | invites [new ROLE | withdraw ID]
       xiaozhi user [flags] sessions NAME [end] | devices NAME [give ID | take ID]
       xiaozhi user [flags] totp off NAME
       xiaozhi user [flags] token NAME [new LABEL SCOPES [DAYS] | revoke TOKEN]

%s
%s

`

// people does what is asked for with accounts.
type people struct {
	accounts *account.Service
	by       account.Actor
	password string // that was asked for
	out      io.Writer
}

// userCommand is something that can be asked for, with the words that it takes.
type userCommand struct {
	wants       string
	least, most int
	do          func(p people, ctx context.Context, args []string) error
	named       int // which of the words is the name of an account
	role        int // which of the words is a role, if it is there; 0 is none
	password    bool
}

func userCommands() map[string]userCommand {
	return map[string]userCommand{
		"":         {do: people.list},
		"add":      {wants: "NAME [ROLE]", least: 1, most: 2, do: people.add, role: 1, password: true},
		"passwd":   {wants: "NAME", least: 1, most: 1, do: people.passwd, password: true},
		"role":     {wants: "NAME ROLE", least: 2, most: 2, do: people.role, role: 1},
		"disable":  {wants: "NAME", least: 1, most: 1, do: people.disable},
		"enable":   {wants: "NAME", least: 1, most: 1, do: people.enable},
		"delete":   {wants: "NAME", least: 1, most: 1, do: people.delete},
		"invites":  {wants: invitesWants, most: 2, do: people.invites},
		"sessions": {wants: "NAME [end]", least: 1, most: 2, do: people.sessions},
		"totp":     {wants: "off NAME", least: 2, most: 2, do: people.totp, named: 1},
		"devices":  {wants: devicesWants, least: 1, most: 3, do: people.devices},
		"token":    {wants: tokenWants, least: 1, most: 5, do: people.token},
	}
}

const devicesWants = "NAME [give ID | take ID]"

const invitesWants = "[new ROLE | withdraw ID]"

const tokenWants = "NAME [new LABEL SCOPES [DAYS] | revoke TOKEN]"

// user is the subcommand. It works on the store itself, so that it helps who has lost their password or cannot start
// the server. It returns 0 when it was done, 1 when it failed, and 2 when it was misused.
func user(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("user", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprintf(flags.Output(), userUsage, message.In(text.English, "people/usage"), message.In(text.Chinese, "people/usage"))
		flags.PrintDefaults()
	}
	file := flags.String("config", "", message.Both("command/flag-config"))
	data := flags.String("data", "data", message.Both("command/flag-data"))
	from := flags.String("password-file", "", message.Both("people/flag-password"))
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	name, rest := flags.Arg(0), flags.Args()
	rest = rest[min(1, len(rest)):]
	command, ok := userCommands()[name]
	switch i := slices.IndexFunc(rest, func(arg string) bool { return strings.HasPrefix(arg, "--") }); {
	case !ok:
		fmt.Fprintln(stderr, "xiaozhi user:", wrongWord(name, userCommands()))
		return 2
	case i >= 0:
		fmt.Fprintln(stderr, "xiaozhi user:", message.Both("tool/order", rest[i]))
		return 2
	case len(rest) < command.least || len(rest) > command.most:
		fmt.Fprintln(stderr, "xiaozhi user:", message.Both("people/wants", name, command.wants))
		return 2
	}
	p := people{by: account.Actor{Name: systemUser(), Via: account.ViaCommand}, out: stdout}
	err := command.ask(&p, rest, func() (string, error) { return readPassword(*from, stdin, stderr) })
	if err == nil {
		err = withAccounts(ctx, *file, *data, func(s *account.Service) error {
			p.accounts = s
			return command.do(p, ctx, rest)
		})
	}
	switch {
	case errors.Is(err, account.ErrNoUser) && len(rest) > 0:
		fmt.Fprintf(stderr, "xiaozhi user: %s\n", message.Both("people/unknown", rest[command.named]))
	case err != nil:
		fmt.Fprintf(stderr, "xiaozhi user: %v\n", app.Explain(err))
	default:
		return 0
	}
	return 1
}

// ask looks at the role and reads the password that the command needs, before it holds the data folder: a server may start
// meanwhile.
func (c userCommand) ask(p *people, args []string, password func() (string, error)) (err error) {
	if c.role > 0 && c.role < len(args) {
		if _, err := account.ParseRole(args[c.role]); err != nil {
			return err
		}
	}
	if c.password {
		p.password, err = password()
	}
	return err
}

// withAccounts runs f with the accounts of a data folder.
func withAccounts(ctx context.Context, file, data string, f func(*account.Service) error) (err error) {
	cfg, _, err := config.Load(config.Options{File: file, DataDir: data, Env: os.Environ()})
	if err != nil {
		return err
	}
	s, closeAll, err := app.OpenAccounts(ctx, cfg, data, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeAll()) }()
	return f(s)
}

// systemUser names who runs the program, for the audit.
func systemUser() string {
	u, err := osuser.Current()
	if err != nil {
		return "uid " + strconv.Itoa(os.Getuid())
	}
	return u.Username
}

func (p people) done(err error) error {
	if err == nil {
		fmt.Fprintln(p.out, message.Both("people/done"))
	}
	return err
}

func (p people) list(ctx context.Context, _ []string) error {
	all, err := p.accounts.Users(ctx)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		fmt.Fprintln(p.out, message.Both("people/none"))
	}
	for _, u := range all {
		line := []string{u.Name, string(u.Role), u.CreatedAt.Local().Format(time.DateTime)}
		if u.Password == "" {
			line = append(line, message.Both("people/no-password"))
		}
		if u.TOTP != "" {
			line = append(line, message.Both("people/second-factor"))
		}
		if !u.DisabledAt.IsZero() {
			line = append(line, message.Both("people/disabled"))
		}
		fmt.Fprintln(p.out, strings.Join(line, "  "))
	}
	return nil
}

// add makes an account: the first one owns the server, others are members if nothing is said.
func (p people) add(ctx context.Context, args []string) error {
	role := account.Member
	if len(args) > 1 {
		role = account.Role(args[1])
	} else if !p.accounts.HasOwner(ctx) {
		role = account.Owner
	}
	owned := p.accounts.HasOwner(ctx)
	if err := p.accounts.Add(ctx, p.by, account.NewUser{Name: args[0], Role: role, Password: p.password}); err != nil {
		return err
	}
	fmt.Fprintln(p.out, message.Both("people/added", args[0], role))
	if !owned && role == account.Owner {
		fmt.Fprintln(p.out, message.Both("people/owned"))
	} else if !owned {
		fmt.Fprintln(p.out, message.Both("people/not-owned"))
	}
	return nil
}

func (p people) passwd(ctx context.Context, args []string) error {
	return p.done(p.accounts.SetPassword(ctx, p.by, args[0], p.password))
}

func (p people) role(ctx context.Context, args []string) error {
	return p.done(p.accounts.SetRole(ctx, p.by, args[0], account.Role(args[1])))
}

func (p people) disable(ctx context.Context, args []string) error {
	return p.done(p.accounts.Disable(ctx, p.by, args[0], true))
}

func (p people) enable(ctx context.Context, args []string) error {
	return p.done(p.accounts.Disable(ctx, p.by, args[0], false))
}

func (p people) delete(ctx context.Context, args []string) error {
	return p.done(p.accounts.Delete(ctx, p.by, args[0]))
}

// invites lists invitations, makes one, which is shown once, or withdraws one.
func (p people) invites(ctx context.Context, args []string) error {
	switch {
	case len(args) == 2 && args[0] == "new":
		secret, err := p.accounts.Invite(ctx, p.by, "", account.Role(args[1]))
		if err == nil {
			fmt.Fprintf(p.out, "%s\n(%s)\n", secret, message.Both("people/invite"))
		}
		return err
	case len(args) == 2 && args[0] == "withdraw":
		return p.done(p.accounts.Withdraw(ctx, p.by, args[1]))
	case len(args) > 0:
		return errors.New(message.Both("people/wants", "invites", invitesWants))
	}
	all, err := p.accounts.Invitations(ctx)
	if len(all) == 0 && err == nil {
		fmt.Fprintln(p.out, message.Both("people/no-invites"))
	}
	for _, i := range all {
		fmt.Fprintf(p.out, "%s  %s  %s  %s\n", i.ID, i.Role, i.Ends.Local().Format(time.DateTime), i.By)
	}
	return err
}

func (p people) sessions(ctx context.Context, args []string) error {
	if len(args) == 2 {
		if args[1] != "end" {
			return errors.New(message.Both("command/unexpected", args[1]))
		}
		return p.done(p.accounts.EndSessions(ctx, p.by, args[0]))
	}
	all, err := p.accounts.Sessions(ctx, args[0])
	if err != nil {
		return err
	}
	if len(all) == 0 {
		fmt.Fprintln(p.out, message.Both("people/no-sessions"))
	}
	for _, s := range all {
		fmt.Fprintf(p.out, "%s  %s  %s\n", s.SeenAt.Local().Format(time.DateTime), s.Remote, plainText(s.Browser))
	}
	return nil
}

// totp takes a second factor away: its owner has lost the phone.
func (p people) totp(ctx context.Context, args []string) error {
	if args[0] != "off" {
		return errors.New(message.Both("command/unexpected", args[0]))
	}
	return p.done(p.accounts.Unfactor(ctx, p.by, args[1]))
}

func (p people) devices(ctx context.Context, args []string) error {
	if len(args) == 1 {
		all, err := p.accounts.Devices(ctx, args[0])
		if len(all) == 0 && err == nil {
			fmt.Fprintln(p.out, message.Both("people/no-devices"))
		}
		for _, id := range all {
			fmt.Fprintln(p.out, plainText(id))
		}
		return err
	}
	switch act := args[1]; {
	case len(args) == 3 && act == "give":
		return p.done(p.accounts.Give(ctx, p.by, identity.ParseID(args[2]), args[0]))
	case len(args) == 3 && act == "take":
		return p.done(p.accounts.Take(ctx, p.by, identity.ParseID(args[2]), args[0]))
	}
	return errors.New(message.Both("people/wants", "devices", devicesWants))
}

func (p people) token(ctx context.Context, args []string) error {
	name, args := args[0], args[1:]
	switch {
	case len(args) == 0:
		return p.tokens(ctx, name)
	case args[0] == "new" && len(args) >= 3:
		return p.newToken(ctx, name, args[1:])
	case args[0] == "revoke" && len(args) == 2:
		return p.done(p.accounts.Revoke(ctx, p.by, name, args[1]))
	}
	return errors.New(message.Both("people/wants", "token", tokenWants))
}

func (p people) tokens(ctx context.Context, name string) error {
	all, err := p.accounts.Tokens(ctx, name)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		fmt.Fprintln(p.out, message.Both("people/no-tokens"))
	}
	for _, t := range all {
		used := message.Both("people/never")
		if !t.UsedAt.IsZero() {
			used = t.UsedAt.Local().Format(time.DateTime)
		}
		switch {
		case !t.RevokedAt.IsZero():
			used = message.Both("people/ended")
		case !t.EndsAt.IsZero() && t.EndsAt.Before(time.Now()):
			used = message.Both("people/over", t.EndsAt.Local().Format(time.DateTime))
		case !t.EndsAt.IsZero():
			used += "  " + message.Both("people/until", t.EndsAt.Local().Format(time.DateTime))
		}
		fmt.Fprintf(p.out, "%s…  %s  %s  %s\n", t.Head, plainText(t.Name), t.Scopes, used)
	}
	return nil
}

// newToken makes a token from label, scopes and perhaps days, and shows it.
func (p people) newToken(ctx context.Context, name string, args []string) error {
	scopes, err := account.ParseScopes(args[1])
	if err != nil {
		return err
	}
	var ends time.Time
	if len(args) > 2 {
		days, err := strconv.Atoi(args[2])
		if err != nil || days < 1 || days > account.MaxTokenDays {
			return errors.New(message.Both("people/days"))
		}
		ends = time.Now().AddDate(0, 0, days)
	}
	secret, err := p.accounts.NewToken(ctx, p.by, name, account.NewToken{Label: args[0], Scopes: scopes, Ends: ends})
	if err != nil {
		return err
	}
	fmt.Fprintf(p.out, "%s\n(%s)\n", secret, message.Both("people/token"))
	return nil
}
