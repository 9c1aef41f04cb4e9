package conformance

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"xiaozhi/mcp"
	"xiaozhi/mcp/external"
)

const everythingTime = time.Minute

// loopback is loaded into the reference server before it starts: it listens on
// this machine only and tells the port that it got.
const loopback = `data:text/javascript,import net from "node:net";` +
	`const listen=net.Server.prototype.listen;` +
	`net.Server.prototype.listen=function(port,...rest){` +
	`this.once("listening",()=>console.log("port "+this.address().port));` +
	`return listen.call(this,port,"127.0.0.1",...rest)};`

// Everything connects our client of external servers to the reference
// server "everything" by each transport that it has: a program, SSE, streamable
// HTTP. node runs it, script is its main file. Each time the tools must be
// listed, called, and asked the way that the entry allows. It reports each
// transport to w; the error joins what failed.
func Everything(ctx context.Context, w io.Writer, node, script string) error {
	var errs []error
	for _, transport := range []string{"stdio", "sse", "streamableHttp"} {
		n, err := everything(ctx, node, script, transport)
		if err != nil {
			fmt.Fprintf(w, "FAIL  our client of server-everything by %s: %v\n", transport, err)
			errs = append(errs, fmt.Errorf("%s: %w", transport, err))
			continue
		}
		fmt.Fprintf(w, "ok    our client of server-everything by %s: %d tools\n", transport, n)
	}
	return errors.Join(errs...)
}

// everything tries one transport and returns how many tools there are.
func everything(ctx context.Context, node, script, transport string) (tools int, err error) {
	ctx, cancel := context.WithTimeout(ctx, everythingTime)
	defer cancel()
	entry := external.Entry{
		Command: node, Args: []external.Text{external.Text(script), "stdio"}, Elicitation: "defaults",
	}
	if transport != "stdio" {
		port, stop, err := reference(ctx, node, script, transport)
		if err != nil {
			return 0, err
		}
		defer stop()
		path := map[string]string{"sse": "/sse", "streamableHttp": "/mcp"}[transport]
		entry = external.Entry{Type: transport, URL: "http://127.0.0.1:" + port + path, Elicitation: "defaults"}
	}
	server, err := connect(ctx, entry)
	if err != nil {
		return 0, err
	}
	defer server.Stop()
	return len(server.GetAvailableTools()), tryTools(ctx, server)
}

// tryTools calls what the reference server is known to offer.
func tryTools(ctx context.Context, server mcp.Source) error {
	var errs []error
	for _, c := range []struct {
		tool      string
		arguments map[string]any
		want      string
	}{
		{"echo", map[string]any{"message": "你好"}, "你好"},
		{"get-sum", map[string]any{"a": 2, "b": 40}, "42"},
		{"get-tiny-image", nil, "image/png"},
		{"trigger-long-running-operation", map[string]any{"duration": 0.2, "steps": 2}, "completed"},
		{"trigger-elicitation-request", nil, "declined"}, // a name that must be told has no default
	} {
		got, err := server.CallTool(ctx, c.tool, c.arguments)
		if text := describe(got); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", c.tool, err))
		} else if !strings.Contains(text, c.want) {
			errs = append(errs, fmt.Errorf("%s: %.200q, want %q", c.tool, text, c.want))
		}
	}
	if _, err := server.CallTool(ctx, "no-such-tool", nil); !errors.Is(err, mcp.ErrNoTool) {
		errs = append(errs, errors.New("a tool that there is not could be called"))
	}
	return errors.Join(errs...)
}

func describe(result any) string {
	blocks, ok := result.([]any)
	if !ok {
		blocks = []any{result}
	}
	var out []string
	for _, b := range blocks {
		if image, ok := b.(mcp.Image); ok {
			b = image.MIMEType
		}
		out = append(out, fmt.Sprint(b))
	}
	return strings.Join(out, "\n")
}

// reference runs the reference server on a free port of this machine, without
// our environment, until stop.
func reference(ctx context.Context, node, script, transport string) (port string, stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, node, "--import", loopback, script, transport)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "PORT=0"}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 3 * time.Second
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		cancel()
		return "", nil, err
	}
	told, over := make(chan string, 1), make(chan struct{})
	var ended error // once over is closed
	go func() {
		defer close(over)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if port, ok := strings.CutPrefix(lines.Text(), "port "); ok && len(told) == 0 {
				told <- port
			}
		}
		ended = cmd.Wait()
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-over
	})
	select {
	case port := <-told:
		return port, stop, nil
	case <-over:
		cancel()
		return "", nil, fmt.Errorf("the reference server ended: %w", cmp.Or(ended, io.EOF))
	}
}
