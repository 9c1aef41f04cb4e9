// Command xiaozhi-sim is a simulated speaker: it talks to a server, and it measures one with many speakers at once.
// "xiaozhi talk" and "xiaozhi bench" run it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	command := "help"
	if len(args) > 0 {
		command, args = args[0], args[1:]
	}
	switch command {
	case "talk":
		return talk(ctx, args, stdin, stdout, stderr)
	case "bench":
		return benchmark(ctx, args, stdout, stderr)
	case "help", "-h", "--help":
		fmt.Fprint(stdout, usage())
		return 0
	}
	fmt.Fprintf(stderr, "xiaozhi-sim: %s\n%s", message.Both("command/unknown", command), usage())
	return 2
}

// usage lists the commands.
func usage() string {
	return fmt.Sprintf("usage: xiaozhi-sim COMMAND [flags]\n\n  talk      %s\n  bench     %s\n\n%s\n",
		message.Both("command/talk"), message.Both("command/bench"), message.Both("command/help", "xiaozhi-sim"))
}

// parse reads the command line of a subcommand. If that asks for help, it is written to help.
func parse(flags *flag.FlagSet, args []string, help io.Writer, about string) error {
	flags.SetOutput(io.Discard) // errors are returned, and printed once
	flags.Usage = func() {}
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintf(help, "usage: xiaozhi %s [flags]\n\n%s\n%s\n\n",
			flags.Name(), message.In(text.English, about), message.In(text.Chinese, about))
		flags.SetOutput(help)
		flags.PrintDefaults()
	case err == nil && flags.NArg() > 0:
		return errors.New(message.Both("sim/unknown-argument", flags.Arg(0)))
	}
	return err
}

// misused says why a command line cannot be followed, and returns the exit code: 0 if it asked for help.
func misused(command string, err error, stderr io.Writer) int {
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	fmt.Fprintf(stderr, "xiaozhi %s: %v\n%s\n", command, err, message.Both("sim/help", command))
	return 2
}
