// Command run is the server and the client that the official MCP conformance
// suite is run against; see scripts/conformance.sh.
//
//	run server        listens on a free port of this machine and prints its address
//	run client URL    does what the scenario named by the environment asks for
//	run everything NODE SCRIPT
//	                  tries our client on the reference server of others
package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	"xiaozhi/internal/conformance"
	"xiaozhi/mcp/gateway"
	"xiaozhi/mcp/gateway/offer"
	"xiaozhi/mcp/local"
	"xiaozhi/prompts"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	switch {
	case len(os.Args) == 2 && os.Args[1] == "server":
		err = serve(ctx)
	case len(os.Args) == 3 && os.Args[1] == "client":
		err = conformance.Client(ctx, os.Args[2], os.Getenv("MCP_CONFORMANCE_SCENARIO"))
	case len(os.Args) == 4 && os.Args[1] == "everything":
		err = conformance.Everything(ctx, os.Stdout, os.Args[2], os.Args[3])
	default:
		err = fmt.Errorf("usage: run server, run client URL, or run everything NODE SCRIPT")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve offers what the real server offers, and the fixtures, until ctx ends.
func serve(ctx context.Context) error {
	own := local.New(local.Options{})
	if err := own.Start(ctx); err != nil {
		return err
	}
	set, err := prompts.Load("")
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	g := gateway.New(gateway.Options{
		Version: "conformance", Log: log, Offer: offer.Options{Local: own, Prompts: set, Assistant: func() string { return "xiaozhi" }},
	})
	defer g.Close()
	token := rand.Text()
	g.SetOwner(token)
	g.Start(ctx)
	wait, err := conformance.Register(ctx, g)
	if err != nil {
		return err
	}
	defer wait()
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s/api/mcp/jsonrpc\n", l.Addr())
	s := &http.Server{Handler: conformance.Bearing(token, g), ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { s.Close() })()
	if err := s.Serve(l); ctx.Err() == nil {
		return err
	}
	return nil
}
