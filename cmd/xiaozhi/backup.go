package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"xiaozhi/internal/app"
	"xiaozhi/internal/config"
	"xiaozhi/internal/text/message"
)

// fileArgs parses flags before and after the one file that a command may take.
func fileArgs(flags *flag.FlagSet, args []string, file *string) error {
	for len(args) > 0 {
		if err := flags.Parse(args); err != nil {
			return err
		}
		if args = flags.Args(); len(args) == 0 {
			break
		}
		if *file != "" {
			err := errors.New(message.Both("command/unexpected", args[0]))
			fmt.Fprintf(flags.Output(), "%s: %v\n", flags.Name(), err)
			return err
		}
		*file, args = args[0], args[1:]
	}
	return nil
}

// exit is the exit code of a command whose flags could not be parsed.
func exit(err error) int {
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	return 2
}

// backup is the subcommand that makes a backup, beside a running server or without one.
func backup(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var o app.BackupOptions
	flags := newFlags("backup", "backup [flags] [FILE]", "backup/usage", stderr)
	file := flags.String("config", "", message.Both("command/flag-config"))
	flags.StringVar(&o.Data, "data", "data", message.Both("command/flag-data"))
	flags.BoolVar(&o.Sound, "sound", false, message.Both("backup/flag-sound"))
	flags.BoolVar(&o.Key, "key", false, message.Both("backup/flag-key"))
	if err := fileArgs(flags, args, &o.File); err != nil {
		return exit(err)
	}
	cfg, _, err := config.Load(config.Options{File: *file, DataDir: o.Data, Env: os.Environ()})
	if err == nil {
		o.File, err = app.Backup(ctx, cfg, o)
	}
	if err != nil {
		fmt.Fprintf(stderr, "xiaozhi backup: %v\n", app.Explain(err))
		return 1
	}
	fmt.Fprintln(stdout, message.Both("backup/made", o.File))
	if strings.HasPrefix(string(cfg.Store.URL), "postgres") {
		fmt.Fprintln(stdout, message.Both("backup/postgres", `pg_dump --format=custom "$DATABASE_URL"`))
	}
	return 0
}

// restore is the subcommand that puts a backup into the place of what the data folder holds.
func restore(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var file string
	flags := newFlags("restore", "restore [flags] FILE", "backup/usage-restore", stderr)
	data := flags.String("data", "data", message.Both("command/flag-data"))
	if err := fileArgs(flags, args, &file); err != nil {
		return exit(err)
	}
	if file == "" {
		flags.Usage()
		return 2
	}
	aside, err := app.Restore(ctx, *data, file, time.Now())
	if err == nil {
		fmt.Fprintln(stdout, message.Both("backup/restored", file, *data))
	} else {
		fmt.Fprintf(stderr, "xiaozhi restore: %v\n", app.Explain(err))
	}
	if aside != "" {
		fmt.Fprintln(stdout, message.Both("backup/aside", aside))
	}
	if err != nil {
		return 1
	}
	return 0
}
