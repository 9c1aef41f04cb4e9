package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"xiaozhi/internal/app"
	"xiaozhi/internal/config"
	"xiaozhi/internal/sealed"
	"xiaozhi/internal/text/message"
)

// secret is the subcommand that keeps keys of services sealed. It works on the store itself.
func secret(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("xiaozhi secret", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprintf(flags.Output(), "usage: xiaozhi secret [flags] [put NAME ADDRESS | forget NAME]\n\n%s\n\n", message.Both("sealed/usage"))
		flags.PrintDefaults()
	}
	file := flags.String("config", "", message.Both("command/flag-config"))
	data := flags.String("data", "data", message.Both("command/flag-data"))
	if err := flags.Parse(args); err != nil {
		return exit(err)
	}
	act, rest := flags.Arg(0), flags.Args()
	if wants, ok := map[string]int{"": 0, "put": 3, "forget": 2}[act]; !ok || len(rest) != wants {
		flags.Usage()
		return 2
	}
	err := withSecrets(ctx, *file, *data, func(v *sealed.Vault) error {
		switch act {
		case "put":
			value, err := readPassword("", stdin, stderr, false)
			if err != nil {
				return err
			}
			return v.Put(ctx, rest[1], rest[2], value, systemUser())
		case "forget":
			return v.Forget(ctx, rest[1], systemUser())
		}
		all, err := v.List(ctx)
		for _, s := range all {
			fmt.Fprintf(stdout, "%s  %s  …%s  %s\n", s.Name, s.Bound, plainText(s.Tail), s.At.Local().Format(time.DateTime))
		}
		return err
	})
	if err != nil {
		fmt.Fprintf(stderr, "xiaozhi secret: %v\n", err)
		return 1
	}
	return 0
}

// withSecrets runs f with the secrets of a data folder.
func withSecrets(ctx context.Context, file, data string, f func(*sealed.Vault) error) (err error) {
	cfg, _, err := config.Load(config.Options{File: file, DataDir: data, Env: os.Environ()})
	if err != nil {
		return err
	}
	v, closeAll, err := app.OpenSecrets(ctx, cfg, data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeAll()) }()
	return f(v)
}
