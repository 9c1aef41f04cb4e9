package main

import (
	"flag"
	"fmt"
	"io"

	"xiaozhi/internal/text/message"
)

// newFlags makes the flags of a subcommand. Its usage is a line after the program's name, and what a message says it is for.
func newFlags(command, line, about string, stderr io.Writer) *flag.FlagSet {
	flags := flag.NewFlagSet("xiaozhi "+command, flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprintf(flags.Output(), "usage: xiaozhi %s\n\n%s\n\n", line, message.Both(about))
		flags.PrintDefaults()
	}
	return flags
}
