package external

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// playVariable makes the test binary a program that a server is started as.
const playVariable = "EXTERNAL_TEST_PLAY"

func TestMain(m *testing.M) {
	if role := os.Getenv(playVariable); role != "" {
		play(role)
		return
	}
	os.Exit(m.Run())
}

// play is a tool server over standard input and output; the words of role say
// what is special about it.
func play(role string) {
	ctx := context.Background()
	switch {
	case strings.Contains(role, "crash"):
		fmt.Fprintln(os.Stderr, "cannot find the module")
		os.Exit(3)
	case strings.Contains(role, "host"): // it dies with a program that it has started
		p, err := launch(Config{Command: os.Args[0], Env: map[string]string{playVariable: "sleep"}}, os.Environ(), slog.New(slog.DiscardHandler), mask{}, nil)
		if err != nil {
			os.Exit(1)
		}
		fmt.Println(p.cmd.Process.Pid)
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case strings.Contains(role, "sleep"): // a child that outlives its parent
		time.Sleep(time.Hour)
		return
	}
	if strings.Contains(role, "stubborn") {
		signal.Ignore(syscall.SIGTERM)
	}
	if strings.Contains(role, "chatty") {
		fmt.Println("Starting the server …")
		for i := range 200 {
			fmt.Fprintf(os.Stderr, "line %d with %s %s\n", i, os.Getenv("SECRET"), strings.Repeat("x", 3000))
		}
	}
	s := sdk.NewServer(&sdk.Implementation{Name: "played", Version: "1"}, nil)
	addTool(s, "environment", func(context.Context, string) (*sdk.CallToolResult, error) {
		return words(strings.Join(os.Environ(), "\n")), nil
	})
	addTool(s, "folder", func(context.Context, string) (*sdk.CallToolResult, error) {
		dir, err := os.Getwd()
		return words(dir), err
	})
	addTool(s, "pid", func(context.Context, string) (*sdk.CallToolResult, error) {
		return words(strconv.Itoa(os.Getpid())), nil
	})
	addTool(s, "child", func(context.Context, string) (*sdk.CallToolResult, error) {
		child := exec.CommandContext(ctx, os.Args[0])
		child.Env = []string{playVariable + "=sleep"}
		child.Stdout, child.Stderr = os.Stdout, os.Stderr // it holds our pipes open
		if err := child.Start(); err != nil {
			return nil, err
		}
		return words(strconv.Itoa(child.Process.Pid)), nil
	})
	addTool(s, "slow", func(ctx context.Context, _ string) (*sdk.CallToolResult, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	_ = s.Run(ctx, &sdk.StdioTransport{})
	if strings.Contains(role, "stubborn") {
		time.Sleep(time.Hour)
	}
}
