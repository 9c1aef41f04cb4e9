package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"xiaozhi/internal/app"
	"xiaozhi/internal/config"
	"xiaozhi/internal/text/message"
)

// login is "tools login": it logs in to an external MCP server by a link that somebody opens. It works on the store itself.
func login(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	flags := newFlags("tools login", "tools login [flags] SERVER", "login/usage", stderr)
	file := flags.String("config", "", message.Both("command/flag-config"))
	data := flags.String("data", "data", message.Both("command/flag-data"))
	if err := flags.Parse(args); err != nil {
		return exit(err)
	}
	if flags.NArg() != 1 {
		flags.Usage()
		return 2
	}
	tools, err := loginTo(ctx, *file, *data, flags.Arg(0), stdin, stdout)
	if err != nil {
		fmt.Fprintf(stderr, "xiaozhi tools login: %s\n", plainText(app.Explain(err).Error()))
		return 1
	}
	fmt.Fprintln(stdout, message.Both("login/done", flags.Arg(0), tools))
	return 0
}

// loginTo logs in and returns how many tools the server offers.
func loginTo(ctx context.Context, file, data, name string, stdin io.Reader, stdout io.Writer) (tools int, err error) {
	cfg, _, err := config.Load(config.Options{File: file, DataDir: data, Env: os.Environ()})
	if err != nil {
		return 0, err
	}
	back := &wayBack{answers: make(chan url.Values, 1)}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	server := &http.Server{Handler: back, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l)
	}()
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second) // the browser may still read the answer
		defer cancel()
		_ = server.Shutdown(end)
		_ = server.Close()
		<-done
	}()
	now, err := app.LoginServer(ctx, cfg, data, name, "http://"+l.Addr().String()+"/callback", func(ctx context.Context, link string) (url.Values, error) {
		fmt.Fprintf(stdout, "%s\n\n  %s\n\n%s\n", message.Both("login/open"), plainText(link), message.Both("login/paste"))
		u, err := url.Parse(link)
		if err != nil {
			return nil, err
		}
		back.expect(u.Query().Get("state"))
		go back.read(stdin) // ends with the process: nothing ends a read of a terminal
		select {
		case answer := <-back.answers:
			return answer, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	})
	return now.Tools, err
}

// wayBack takes the answer to a login: by the browser, or pasted. Its methods may be called at the same time.
type wayBack struct {
	answers chan url.Values // 1

	mu    sync.Mutex
	state string // of the login that goes on; "": none does
}

// expect says which login goes on.
func (b *wayBack) expect(state string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.state = state
}

// take takes an answer, once, if it is to the login.
func (b *wayBack) take(answer url.Values) (ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state == "" || answer.Get("state") != b.state {
		return false
	}
	b.state = ""
	b.answers <- answer
	return true
}

// ServeHTTP answers the browser that comes back.
func (b *wayBack) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if r.URL.Path != "/callback" || !b.take(r.URL.Query()) {
		http.Error(w, message.Both("login/stranger"), http.StatusBadRequest)
		return
	}
	fmt.Fprintln(w, message.Both("login/close"))
}

// read takes the address that somebody pastes.
func (b *wayBack) read(in io.Reader) {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		if u, err := url.Parse(strings.TrimSpace(lines.Text())); err == nil && b.take(u.Query()) {
			return
		}
	}
}
