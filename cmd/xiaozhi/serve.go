package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"

	"xiaozhi/internal/app"
	"xiaozhi/internal/config"
	"xiaozhi/internal/garbage"
	"xiaozhi/internal/homeassistant"
	"xiaozhi/internal/systemd"
	"xiaozhi/internal/text/message"
)

type serveFlags struct {
	config string
	data   string
	listen []string
	check  bool
	pprof  string // address of the profiles; empty: none
	bare   bool   // without what people have set in the console
	app    string // options of the app in Home Assistant; empty: none
}

func parseServe(args []string, stdout, stderr io.Writer) (serveFlags, error) {
	var f serveFlags
	set := flag.NewFlagSet("xiaozhi serve", flag.ContinueOnError)
	set.SetOutput(stderr)
	if len(args) == 1 && slices.Contains([]string{"-h", "-help", "--help"}, args[0]) {
		set.SetOutput(stdout) // what was asked for is no complaint
	}
	set.StringVar(&f.config, "config", "", message.Both("command/flag-config"))
	set.StringVar(&f.data, "data", "data", message.Both("command/flag-data"))
	set.Func("listen", message.Both("command/flag-listen"), func(s string) error {
		f.listen = append(f.listen, s)
		return nil
	})
	set.BoolVar(&f.check, "check", false, message.Both("command/flag-check"))
	set.StringVar(&f.pprof, "pprof", "", message.Both("command/flag-pprof"))
	set.BoolVar(&f.bare, "no-console-settings", false, message.Both("command/flag-no-console-settings"))
	set.StringVar(&f.app, "homeassistant", "", message.Both("command/flag-homeassistant"))
	if err := set.Parse(args); err != nil {
		return f, err
	}
	if set.NArg() > 0 {
		err := errors.New(message.Both("command/unexpected", set.Arg(0)))
		fmt.Fprintln(stderr, "xiaozhi serve:", err)
		return f, err
	}
	return f, nil
}

// serve runs the server until ctx ends.
func serve(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	f, err := parseServe(args, stdout, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	if err := serveWith(ctx, f, stdout, stderr); err != nil {
		fmt.Fprintf(stderr, "xiaozhi: %v\n", err)
		return 1
	}
	return 0
}

// isTerminal reports whether what is written is only seen by a person: no file, pipe or
// socket, which others may read later.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func serveWith(ctx context.Context, f serveFlags, stdout, stderr io.Writer) error {
	env := os.Environ()
	if f.app != "" {
		options, err := homeassistant.Environment(f.app)
		if err != nil {
			return err
		}
		env = append(env, options...) // the later counts
	}
	cfg, warnings, err := app.LoadSettings(ctx, config.Options{File: f.config, DataDir: f.data, Env: env, Listen: f.listen})
	if err != nil {
		return err
	}
	log := app.NewLogger(cfg.Log, stderr)
	for _, w := range warnings {
		log.Warn("config", "warning", w)
	}
	own, err := os.Executable()
	if err != nil {
		log.Warn("documents are read by the server itself", "err", err)
	}
	program, err := app.Build(ctx, cfg, app.Options{
		Data: f.data, Program: own, Profiles: f.pprof, Banner: stdout, Terminal: isTerminal(stdout), Log: log, Check: f.check, NoConsoleSettings: f.bare, Collector: garbage.Tune(), Manager: systemd.Started(log),
	})
	if err != nil {
		return err
	}
	defer program.Close()
	if f.check {
		program.Report(stdout)
		fmt.Fprintln(stdout, message.Both("command/checked"))
		return nil
	}
	return program.Run(ctx)
}
