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
		fmt.Fprint(stdout, usage)
		return 0
	}
	fmt.Fprintf(stderr, "xiaozhi: unknown command %q / 没有这个命令\n%s", command, usage)
	return 2
}

const usage = `usage: xiaozhi COMMAND [flags]

  serve     run the server / 启动服务
  talk      talk to a server as a simulated speaker / 模拟一台设备与服务对话
  tools     list and call the tools of a connected device / 查看和调用设备的工具
  bench     measure a server, ours or another's / 测量服务器
  version   print the version / 显示版本

xiaozhi COMMAND --help lists the flags / 查看参数
`
