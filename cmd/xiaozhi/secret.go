package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"xiaozhi/internal/app"
	"xiaozhi/internal/config"
	"xiaozhi/internal/sealed"
	"xiaozhi/internal/text/message"
)

// secret is the subcommand that keeps secrets sealed. It works on the store itself.
func secret(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	flags := newFlags("secret", "secret [flags] [set NAME ADDRESS | list | delete NAME]", "sealed/usage", stderr)
	file := flags.String("config", "", message.Both("command/flag-config"))
	data := flags.String("data", "data", message.Both("command/flag-data"))
	if err := flags.Parse(args); err != nil {
		return exit(err)
	}
	rest := flags.Args()
	orders := map[string]int{"": 0, "list": 1, "set": 3, "delete": 2}
	if wants, ok := orders[flags.Arg(0)]; !ok {
		fmt.Fprintln(stderr, "xiaozhi secret:", wrongWord(flags.Arg(0), orders))
		return 2
	} else if len(rest) != wants {
		flags.Usage()
		return 2
	}
	err := withSecrets(ctx, *file, *data, func(s *app.Secrets) error {
		switch flags.Arg(0) {
		case "set":
			return setSecret(ctx, s, rest[1], rest[2], stdin, stdout, stderr)
		case "delete":
			if err := s.Delete(ctx, rest[1], systemUser()); err != nil {
				return err
			}
			fmt.Fprintln(stdout, message.Both("sealed/gone", rest[1]))
			return nil
		default:
			return listSecrets(ctx, s, stdout)
		}
	})
	if err != nil {
		fmt.Fprintf(stderr, "xiaozhi secret: %v\n", app.Explain(err))
		return 1
	}
	return 0
}

// setSecret seals what it reads. A secret on the command line could be seen by others of the machine.
func setSecret(ctx context.Context, s *app.Secrets, name, purpose string, stdin io.Reader, stdout, stderr io.Writer) error {
	value, err := readSecret(stdin, stderr)
	if err != nil {
		return err
	}
	if err := s.Put(ctx, name, purpose, value, systemUser()); err != nil {
		return err
	}
	fmt.Fprintln(stdout, message.Both("sealed/kept", name, purpose))
	return nil
}

// readSecret reads a secret from a terminal, which does not show it, or all of a file or pipe but the end of its line.
func readSecret(stdin io.Reader, stderr io.Writer) (string, error) {
	if terminal, ok := stdin.(*os.File); ok && term.IsTerminal(int(terminal.Fd())) {
		return askHidden("sealed/prompt", terminal, stderr)
	}
	const limit = 64 << 10 // bytes: so much is refused
	all, err := io.ReadAll(io.LimitReader(stdin, limit))
	return strings.TrimRight(string(all), "\r\n"), err
}

func listSecrets(ctx context.Context, s *app.Secrets, stdout io.Writer) error {
	all, err := s.List(ctx)
	if err == nil && len(all) == 0 {
		fmt.Fprintln(stdout, message.Both("sealed/none"))
	}
	for _, s := range all {
		fmt.Fprintf(stdout, "%s  %s  …%s  %s\n", s.Name, plainText(sealed.Shown(s.Bound)), plainText(s.Tail), s.At.Local().Format(time.DateTime))
	}
	return err
}

// withSecrets runs f with the secrets of a data folder.
func withSecrets(ctx context.Context, file, data string, f func(*app.Secrets) error) (err error) {
	cfg, _, err := config.Load(config.Options{File: file, DataDir: data, Env: os.Environ()})
	if err != nil {
		return err
	}
	s, err := app.OpenSecrets(ctx, cfg, data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return f(s)
}
