// Command xiaozhi is the server that xiaozhi-style speakers connect to.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // time zones on machines that have none

	"github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"

	"xiaozhi/internal/app"
	"xiaozhi/internal/text/message"
)

func main() {
	tiktoken.SetBpeLoader(loader.NewOfflineLoader()) // the library insists on a global
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run does one subcommand and returns the exit code: 0 well, 1 failed, 2 misused.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	command := "help"
	if len(args) > 0 {
		command, args = args[0], args[1:]
	}
	switch command {
	case "serve":
		app.Tune()
		return serve(ctx, args, stdout, stderr)
	case "talk", "bench":
		return simulate(command, args, stderr)
	case "tools":
		return tools(ctx, args, stdout, stderr)
	case "version", "--version":
		fmt.Fprintln(stdout, "xiaozhi", app.Version)
		return 0
	case "help", "-h", "--help":
		fmt.Fprint(stdout, usage())
		return 0
	}
	fmt.Fprintf(stderr, "xiaozhi: %s\n%s", message.Both("command/unknown", command), usage())
	return 2
}
