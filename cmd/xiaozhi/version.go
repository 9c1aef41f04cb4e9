package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"

	"xiaozhi/audio"
	"xiaozhi/internal/config"
	"xiaozhi/internal/text/message"
	"xiaozhi/internal/version"
	"xiaozhi/store"
)

// versionMain is the subcommand that says which program this is: in a line, or with --json all that other programs need
// to know before they read its data.
func versionMain(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("xiaozhi version", flag.ContinueOnError)
	flags.SetOutput(stderr)
	asJSON := flags.Bool("json", false, message.Both("command/flag-version-json"))
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	case flags.NArg() > 0:
		fmt.Fprintf(stderr, "xiaozhi version: %s\n", message.Both("command/unexpected", flags.Arg(0)))
		return 2
	case !*asJSON:
		fmt.Fprintln(stdout, "xiaozhi", version.Number())
		return 0
	}
	text, err := json.MarshalIndent(version.Describe(
		version.Numbers{Data: store.Schema(), Wire: wire, Settings: config.Schema},
		map[string]string{"libopus": audio.OpusVersion(), "sqlite": store.SQLiteVersion()},
	), "", "  ")
	if err != nil {
		fmt.Fprintf(stderr, "xiaozhi version: %v\n", err)
		return 1
	}
	fmt.Fprintf(stdout, "%s\n", text)
	return 0
}

// wire is the number of the messages between nodes of a fleet, which this program does not have yet.
const wire = 0
