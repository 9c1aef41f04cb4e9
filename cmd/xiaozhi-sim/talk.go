package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"xiaozhi/audio"
	"xiaozhi/audio/file"
	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/text/message"
)

type prompt struct {
	text string  // typed, if not empty
	wav  string  // file to speak otherwise
	pcm  []int16 // its sound at 16 kHz
}

type talkOptions struct {
	server     string
	flash      flash
	device     devicetest.Options
	prompts    []prompt // in the order of the command line
	save       string
	timeout    time.Duration
	abortAfter time.Duration
	verbose    bool
}

// talk is the subcommand. It returns 0 when every prompt got a reply, 1 when the
// connection, the protocol or a reply failed, and 2 when it was misused.
func talk(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	o, err := parseTalk(args, stdout)
	if err != nil {
		return misused("talk", err, stderr)
	}
	t := &talker{talkOptions: o, out: &transcript{w: stdout, verbose: o.verbose, start: time.Now()}}
	if err := t.prepare(); err != nil {
		fmt.Fprintf(stderr, "xiaozhi talk: %v\n", err)
		return 2
	}
	if len(o.prompts) > 0 {
		err = t.all(ctx, o.prompts)
	} else {
		err = t.lines(ctx, stdin, isTerminal(stdin))
	}
	t.hangUp()
	if len(t.replies)+len(t.violations) > 0 || err == nil {
		t.summary()
	}
	if saveErr := t.saveReplies(); err == nil {
		err = saveErr
	}
	if err != nil {
		fmt.Fprintf(stderr, "xiaozhi talk: %v\n", err)
		return 1
	}
	return 0
}

// parseTalk reads and checks the command line. If that asks for help, it is written to help.
func parseTalk(args []string, help io.Writer) (talkOptions, error) {
	o := talkOptions{}
	flags := flag.NewFlagSet("talk", flag.ContinueOnError)
	flags.StringVar(&o.server, "server", "http://127.0.0.1:8000/xiaozhi/ota/", message.Both("talk/flag-server"))
	flags.StringVar((*string)(&o.flash), "flash", defaultFlash(), message.Both("talk/flag-flash"))
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
	flags.StringVar((*string)(&o.device.Mode), "mode", "auto", message.Both("talk/flag-mode"))
	flags.StringVar(&o.save, "save", "", message.Both("talk/flag-save"))
	flags.StringVar(&o.device.DeviceID, "device-id", "", message.Both("talk/flag-device-id"))
	flags.StringVar(&o.device.Token, "token", "", message.Both("talk/flag-token"))
	flags.IntVar(&o.device.Protocol, "protocol", 0, message.Both("talk/flag-protocol"))
	flags.IntVar(&o.device.Sound.FrameMs, "frame", 60, message.Both("talk/flag-frame"))
	flags.BoolVar(&o.device.NoMCP, "no-mcp", false, message.Both("talk/flag-no-mcp"))
	flags.StringVar(&o.device.Language, "lang", "", message.Both("talk/flag-lang"))
	flags.DurationVar(&o.timeout, "timeout", 60*time.Second, message.Both("talk/flag-timeout"))
	flags.DurationVar(&o.abortAfter, "abort-after", 0, message.Both("talk/flag-abort-after"))
	flags.BoolVar(&o.verbose, "verbose", false, message.Both("talk/flag-verbose"))
	if err := parse(flags, args, help, "talk/usage"); err != nil {
		return o, err
	}
	o.server = completeURL(o.server)
	return o, o.check()
}

// completeURL adds to what a person typed what such addresses begin and end with: localhost:8000 and
// http://localhost:8000 mean the OTA address of that server, ws://localhost:8000 its socket.
func completeURL(server string) string {
	if !strings.Contains(server, "://") {
		server = "http://" + server
	}
	u, err := url.Parse(server)
	if err != nil || u.Path != "" && u.Path != "/" || u.RawQuery != "" {
		return server
	}
	switch u.Scheme {
	case "http", "https":
		u.Path = "/xiaozhi/ota/"
	case "ws", "wss":
		u.Path = "/xiaozhi/v1/"
	}
	return u.String()
}

func (o talkOptions) check() error {
	u, err := url.Parse(o.server)
	switch d := o.device; {
	case err != nil:
		return errors.New(message.Both("talk/server", o.server))
	case !slices.Contains([]string{"http", "https", "ws", "wss"}, u.Scheme) || u.Host == "":
		return errors.New(message.Both("talk/server", o.server))
	case !slices.Contains([]devicetest.Mode{devicetest.Auto, devicetest.Manual, devicetest.Realtime}, d.Mode):
		return fmt.Errorf("--mode %q: must be auto, manual or realtime", d.Mode)
	case !slices.Contains([]int{0, 1, 2, 3}, d.Protocol):
		return fmt.Errorf("--protocol %d: must be 1, 2 or 3", d.Protocol)
	case !slices.Contains([]int{20, 40, 60}, d.Sound.FrameMs):
		return fmt.Errorf("--frame %d: must be 20, 40 or 60", d.Sound.FrameMs)
	case o.timeout <= 0 || o.abortAfter < 0:
		return errors.New("--timeout must be more than 0, and --abort-after not less")
	}
	return nil
}

// readSpeech reads a WAV file as the microphone would hear it: 16 kHz, mono.
func readSpeech(name string) ([]int16, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	pcm, rate, err := file.ReadWAV(f)
	if err != nil {
		return nil, err
	}
	if len(pcm) == 0 {
		return nil, errors.New("no sound in it")
	}
	return resample(pcm, rate, audio.Recognition.Rate)
}

func resample(pcm []int16, from, to int) ([]int16, error) {
	r, err := audio.NewResampler(from, to)
	if err != nil {
		return nil, err
	}
	return r.Flush(r.Write(nil, pcm)), nil
}

// trailing returns the length of the silence at the end of a recording.
func trailing(pcm []int16) time.Duration {
	const window, loud = 320, 300 // 20 ms; mean size of a sample (of 32768)
	silent := 0
	for end := len(pcm); end > 0; end -= window {
		part := pcm[max(0, end-window):end]
		sum := 0
		for _, s := range part {
			sum += max(int(s), -int(s))
		}
		if sum > loud*len(part) {
			break
		}
		silent += len(part)
	}
	return audio.Recognition.Duration(silent)
}

// saveReplies writes what the device played, all replies in one file.
func (t *talker) saveReplies() error {
	if t.save == "" {
		return nil
	}
	if len(t.replies) == 0 {
		return errors.New("--save: there is no reply to save")
	}
	rate := t.replies[0].Rate
	var all []int16
	for _, r := range t.replies {
		pcm, err := resample(r.PCM, r.Rate, rate)
		if err != nil {
			return fmt.Errorf("--save: %w", err)
		}
		all = append(all, pcm...)
	}
	f, err := os.Create(t.save)
	if err != nil {
		return fmt.Errorf("--save: %w", err)
	}
	err = file.WriteWAV(f, all, rate)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("--save %s: %w", t.save, err)
	}
	t.out.print("saved", fmt.Sprintf("%s (%.1f s)", t.save, float64(len(all))/float64(rate)))
	return nil
}
