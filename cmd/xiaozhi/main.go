// Command xiaozhi is the server that xiaozhi-style speakers connect to.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	_ "time/tzdata" // time zones on machines that have none

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/knowledge/apart"
)

func main() {
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
		return serve(ctx, args, stdout, stderr)
	case "talk", "bench":
		return simulate(command, args, stderr)
	case "tools":
		return tools(ctx, args, os.Stdin, stdout, stderr)
	case "agents":
		return agents(ctx, args, stdout, stderr)
	case "devices":
		return devices(ctx, args, stdout, stderr)
	case "user":
		return user(ctx, args, os.Stdin, stdout, stderr)
	case "config":
		return configMain(ctx, args, stdout, stderr)
	case "secret":
		return secret(ctx, args, os.Stdin, stdout, stderr)
	case "backup":
		return backup(ctx, args, stdout, stderr)
	case "restore":
		return restore(ctx, args, stdout, stderr)
	case "services":
		return services(ctx, args, stdout, stderr)
	case "doctor":
		return doctorMain(ctx, args, stdout, stderr)
	case "models":
		return modelsMain(ctx, args, stdout, stderr)
	case apart.Command: // the server starts it for each document that it reads
		return apart.Main(ctx, args, os.Stdin, stdout)
	case "version", "--version":
		return versionMain(args, stdout, stderr)
	case "help", "-h", "--help":
		fmt.Fprint(stdout, usage())
		return 0
	}
	fmt.Fprintf(stderr, "xiaozhi: %s\n%s", message.Both("command/unknown", command), usage())
	return 2
}

func usage() string {
	var text strings.Builder
	text.WriteString("usage: xiaozhi COMMAND [flags]\n\n")
	for _, command := range [][2]string{
		{"serve", "command/serve"},
		{"talk", "command/talk"},
		{"tools", "command/tools"},
		{"agents", "command/agents"},
		{"devices", "command/devices"},
		{"user", "command/user"},
		{"config", "command/config"},
		{"secret", "command/secret"},
		{"services", "command/services"},
		{"models", "command/models"},
		{"doctor", "command/doctor"},
		{"backup", "command/backup"},
		{"restore", "command/restore"},
		{"bench", "command/bench"},
		{"version", "command/version"},
	} {
		fmt.Fprintf(&text, "  %-9s %s\n", command[0], message.Both(command[1]))
	}
	fmt.Fprintf(&text, "\n%s\n", message.Both("command/help", "xiaozhi"))
	return text.String()
}

const simulatorName = "xiaozhi-sim"

// simulate replaces this process by the simulator, so that arguments, output,
// signals and exit code are the simulator's own. It returns, with exit code 1,
// only if the simulator cannot be started.
func simulate(command string, args []string, stderr io.Writer) int {
	program, err := findSimulator()
	if err == nil {
		err = syscall.Exec(program, append([]string{program, command}, args...), os.Environ())
	}
	fmt.Fprintf(stderr, "xiaozhi %s: %v\n%s\n%s\n", command, err,
		message.In(text.English, "sim/where", simulatorName), message.In(text.Chinese, "sim/where", simulatorName))
	return 1
}

// findSimulator returns the path of the simulator: beside this program, else in PATH.
func findSimulator() (string, error) {
	if own, err := os.Executable(); err == nil {
		beside, err := exec.LookPath(filepath.Join(filepath.Dir(own), simulatorName))
		if err == nil {
			return beside, nil
		}
	}
	path, err := exec.LookPath(simulatorName)
	if errors.Is(err, exec.ErrNotFound) {
		err = errors.New(message.Both("sim/not-found", simulatorName))
	}
	return path, err
}
