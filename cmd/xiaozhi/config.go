package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"xiaozhi/internal/account"
	"xiaozhi/internal/app"
	"xiaozhi/internal/config"
	"xiaozhi/internal/settings"
	"xiaozhi/internal/text/message"
)

// configCommand is one run of the subcommand.
type configCommand struct {
	file, data, server, secrets string
	origin, json, check         bool

	cfg    *config.Config // of the files
	client toolsClient
	out    io.Writer
}

// configMain is the subcommand that shows the settings and carries them to other servers. It asks the server that runs; without
// one it works on the data folder. It returns 0 when it was done, 1 when it was not, and 2 when it was misused.
func configMain(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	c := configCommand{out: stdout}
	flags := newFlags("config", "config show [--origin] [WORD] | export [--secrets refs|plain] | import FILE [--check]", "settings/usage", stderr)
	flags.StringVar(&c.file, "config", "", message.Both("command/flag-config"))
	flags.StringVar(&c.data, "data", "data", message.Both("command/flag-data"))
	flags.StringVar(&c.server, "server", "", message.Both("services/flag-server"))
	flags.StringVar(&c.secrets, "secrets", "refs", message.Both("settings/flag-secrets"))
	flags.BoolVar(&c.origin, "origin", false, message.Both("settings/flag-origin"))
	flags.BoolVar(&c.json, "json", false, message.Both("tool/flag-json"))
	flags.BoolVar(&c.check, "check", false, message.Both("settings/flag-check"))
	words, err := namesAndFlags(flags, args)
	if err != nil {
		return exit(err)
	}
	orders := map[string]int{"": 1, "show": 2, "export": 1, "import": 2}
	name := ""
	if len(words) > 0 {
		name = words[0]
	}
	if most, ok := orders[name]; !ok {
		fmt.Fprintln(stderr, "xiaozhi config:", wrongWord(name, orders))
		return 2
	} else if len(words) > most || name == "import" && len(words) < 2 || c.secrets != "refs" && c.secrets != "plain" {
		flags.Usage()
		return 2
	}
	if c.cfg, _, err = app.LoadSettings(ctx, config.Options{File: c.file, DataDir: c.data, Env: os.Environ()}); err == nil {
		c.client = servicesFlags{server: c.server, data: c.data, json: false}.client(flags, c.cfg, io.Discard)
		c.client.timeout = 2 * time.Minute
		err = c.do(ctx, name, words)
	}
	if err != nil {
		fmt.Fprintf(stderr, "xiaozhi config: %v\n", app.Explain(err))
		return 1
	}
	return 0
}

func (c configCommand) do(ctx context.Context, name string, words []string) error {
	switch name {
	case "export":
		return c.export(ctx)
	case "import":
		return c.imports(ctx, words[1])
	default:
		return c.show(ctx, strings.Join(words[min(1, len(words)):], ""))
	}
}

// ask asks the server that runs. away: none does, and none was named, so that the data folder is looked at.
func (c configCommand) ask(ctx context.Context, method, path string, body, answer any) (away bool, err error) {
	noToken := c.client.findToken()
	err = c.client.ask(ctx, method, settings.Path+path, body, answer)
	if errors.Is(err, syscall.ECONNREFUSED) && c.server == "" {
		return true, nil
	}
	if err != nil && noToken != nil {
		err = noToken
	}
	return false, err
}

// folder works on the settings of the data folder.
func (c configCommand) folder(ctx context.Context, change bool, do func(s *settings.Settings) error) (err error) {
	s, err := app.OpenSettings(ctx, c.cfg, c.data, change)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if h := s.Held(); h != nil {
		for _, p := range h.Problems {
			fmt.Fprintf(c.out, "# %s\n", message.Both("settings/held", h.Revision, p))
		}
	}
	return do(s.Settings)
}

// show lists all settings in force, or those whose key has a word in it.
func (c configCommand) show(ctx context.Context, word string) error {
	var all settings.Shown
	away, err := c.ask(ctx, http.MethodGet, "", nil, &all)
	if away {
		err = c.folder(ctx, false, func(s *settings.Settings) error {
			all = settings.Describe(s)
			return nil
		})
	}
	if err != nil {
		return err
	}
	if c.json {
		return json.NewEncoder(c.out).Encode(all)
	}
	for _, v := range all.Values {
		if !strings.Contains(v.Key, word) {
			continue
		}
		line := v.Key + " = " + inLine(v.Value)
		if c.origin {
			place := v.Place
			if place == "" {
				place = v.From
			}
			line += "    # " + place
		}
		fmt.Fprintln(c.out, plainText(line))
	}
	return nil
}

// inLine writes a value as JSON, texts without quotes.
func inLine(v any) string {
	if text, ok := v.(string); ok {
		return text
	}
	doc, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(doc)
}

// export writes what was set as a file. No server gives secrets away, so those are read in the data folder.
func (c configCommand) export(ctx context.Context) error {
	var e settings.Exported
	away, err := true, error(nil)
	if plain := c.secrets == "plain"; !plain {
		away, err = c.ask(ctx, http.MethodGet, "/export", nil, &e)
	} else if c.server != "" {
		return errors.New(message.Both("settings/plain-here"))
	}
	if away {
		err = c.folder(ctx, false, func(s *settings.Settings) error {
			doc, left, err := settings.Document(s.Current(), c.secrets == "plain")
			e = settings.Exported{Document: string(doc), Left: left}
			return err
		})
	}
	if err != nil {
		return err
	}
	for _, key := range e.Left {
		fmt.Fprintf(c.out, "# %s\n", message.Both("settings/export-left", key))
	}
	fmt.Fprint(c.out, e.Document)
	return nil
}

// imports takes a document in, after it was checked; by a server that runs it is built and tested too, and watched.
func (c configCommand) imports(ctx context.Context, file string) error {
	doc, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var now settings.Shown
	away, err := c.ask(ctx, http.MethodGet, "", nil, &now)
	if err != nil {
		return err
	}
	if away {
		return c.folder(ctx, true, func(s *settings.Settings) error {
			by := account.Person{Name: systemUser(), Role: account.Owner, Proved: time.Now()}
			p, err := s.Import(ctx, by, s.Revision(), doc)
			if err != nil {
				return err
			}
			c.told(settings.DescribePlan(p))
			if c.check {
				return nil
			}
			done, err := s.Apply(ctx, by, p.ID)
			if err == nil {
				fmt.Fprintln(c.out, message.Both("settings/imported-folder", done.N))
			}
			return err
		})
	}
	var p settings.ShownPlan
	if _, err := c.ask(ctx, http.MethodPost, "/import", settings.ImportOrder{Base: now.Revision, Document: string(doc)}, &p); err != nil {
		return err
	}
	c.told(p)
	if c.check {
		return nil
	}
	var done settings.ShownRevision
	if _, err := c.ask(ctx, http.MethodPost, "/apply", settings.ApplyOrder{Plan: p.ID}, &done); err != nil {
		return err
	}
	fmt.Fprintln(c.out, message.Both("settings/imported", done.Revision))
	return nil
}

// told writes what a plan would change.
func (c configCommand) told(p settings.ShownPlan) {
	for _, change := range p.Changes {
		fmt.Fprintln(c.out, plainText(fmt.Sprintf("%s: %s -> %s", change.Key, inLine(change.Old), inLine(change.New))))
	}
	for _, left := range p.Left {
		fmt.Fprintln(c.out, plainText(fmt.Sprintf("%s: %s", left.Key, left.Why)))
	}
	for _, t := range p.Tests {
		state := message.Both("settings/test-well", time.Duration(t.TotalMS*float64(time.Millisecond)).Round(time.Millisecond))
		if !t.OK {
			state = t.Why
		}
		fmt.Fprintln(c.out, plainText(fmt.Sprintf("%s (%s): %s", t.Section, t.Role, state)))
	}
	for _, w := range p.Warnings {
		fmt.Fprintln(c.out, plainText(w))
	}
}
