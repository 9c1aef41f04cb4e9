package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
)

// prompt is one thing to say to the server.
type prompt struct {
	text string // typed, if not empty
	wav  string // file to speak otherwise
}

// talkOptions are the flags of the subcommand.
type talkOptions struct {
	server     string
	prompts    []prompt // in the order of the command line
	mode       string
	save       string
	deviceID   string
	token      string
	protocol   int
	frame      int
	noMCP      bool
	lang       string
	timeout    time.Duration
	abortAfter time.Duration
	verbose    bool
}

// talkTolerance is forgiven in rules about time: networks and desktops are not a device's clock.
const talkTolerance = 50 * time.Millisecond

// talk is the subcommand. It returns 0 when every prompt got a reply, 1 when the
// connection, the protocol or a reply failed, and 2 when it was misused.
func talk(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	o, err := parseTalk(args, stdout)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintf(stderr, "xiaozhi talk: %v\n%s\n", err, message.Both("sim/help", "talk"))
		return 2
	}
	t := &talker{o: o, out: newTranscript(stdout, o.verbose), board: devicetest.NewBoard()}
	err = t.prepare()
	if err != nil {
		fmt.Fprintf(stderr, "xiaozhi talk: %v\n", err)
		return 2
	}
	if len(o.prompts) > 0 {
		err = t.all(ctx, o.prompts)
	} else {
		err = t.lines(ctx, stdin, isTerminal(stdin))
	}
	t.hangUp()
	t.summary()
	if saveErr := t.save(); err == nil {
		err = saveErr
	}
	if err != nil {
		fmt.Fprintf(stderr, "xiaozhi talk: %s\n", message.Both("talk/failed", err))
		return 1
	}
	return 0
}

// parseTalk reads and checks the command line. If that asks for help, it is written to help.
func parseTalk(args []string, help io.Writer) (talkOptions, error) {
	o := talkOptions{}
	flags := flag.NewFlagSet("talk", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // errors are returned, and printed once
	flags.Usage = func() {}
	flags.StringVar(&o.server, "server", "http://127.0.0.1:8000/xiaozhi/ota/", message.Both("talk/flag-server"))
	flags.Func("text", message.Both("talk/flag-text"), func(s string) error {
		if strings.TrimSpace(s) == "" {
			return errors.New("no words")
		}
		o.prompts = append(o.prompts, prompt{text: s})
		return nil
	})
	flags.Func("wav", message.Both("talk/flag-wav"), func(s string) error {
		o.prompts = append(o.prompts, prompt{wav: s})
		return nil
	})
	flags.StringVar(&o.mode, "mode", "auto", message.Both("talk/flag-mode"))
	flags.StringVar(&o.save, "save", "", message.Both("talk/flag-save"))
	flags.StringVar(&o.deviceID, "device-id", "", message.Both("talk/flag-device-id"))
	flags.StringVar(&o.token, "token", "", message.Both("talk/flag-token"))
	flags.IntVar(&o.protocol, "protocol", 0, message.Both("talk/flag-protocol"))
	flags.IntVar(&o.frame, "frame", 60, message.Both("talk/flag-frame"))
	flags.BoolVar(&o.noMCP, "no-mcp", false, message.Both("talk/flag-no-mcp"))
	flags.StringVar(&o.lang, "lang", "", message.Both("talk/flag-lang"))
	flags.DurationVar(&o.timeout, "timeout", 60*time.Second, message.Both("talk/flag-timeout"))
	flags.DurationVar(&o.abortAfter, "abort-after", 0, message.Both("talk/flag-abort-after"))
	flags.BoolVar(&o.verbose, "verbose", false, message.Both("talk/flag-verbose"))
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprintf(help, "usage: xiaozhi talk [flags]\n\n%s\n%s\n\n", message.In(text.English, "talk/usage"), message.In(text.Chinese, "talk/usage"))
			flags.SetOutput(help)
			flags.PrintDefaults()
		}
		return o, err
	}
	if flags.NArg() > 0 {
		return o, errors.New(message.Both("sim/unknown-argument", flags.Arg(0)))
	}
	return o, o.check()
}

func (o talkOptions) check() error {
	u, err := url.Parse(o.server)
	if err != nil {
		return fmt.Errorf("--server: %w", err)
	}
	if !slices.Contains([]string{"http", "https", "ws", "wss"}, u.Scheme) || u.Host == "" {
		return errors.New(message.Both("talk/server", o.server))
	}
	if !slices.Contains([]string{"auto", "manual", "realtime"}, o.mode) {
		return fmt.Errorf("--mode %q: must be auto, manual or realtime", o.mode)
	}
	if !slices.Contains([]int{0, 1, 2, 3}, o.protocol) {
		return fmt.Errorf("--protocol %d: must be 1, 2 or 3", o.protocol)
	}
	if !slices.Contains([]int{20, 40, 60}, o.frame) {
		return fmt.Errorf("--frame %d: must be 20, 40 or 60", o.frame)
	}
	if o.timeout <= 0 || o.abortAfter < 0 {
		return errors.New("--timeout must be more than 0, and --abort-after not less")
	}
	return nil
}
