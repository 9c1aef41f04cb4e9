package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"xiaozhi/audio"
	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/text/message"
)

const (
	heardLimit = 16                    // replies that may wait to be taken; more are only printed
	tolerance  = 50 * time.Millisecond // in rules about time: networks and desktops are not a device's clock

	// Nobody types within milliseconds of the connection, before the server has asked for the tools and taken them in.
	listingTime = time.Second // a server that asks for the tools at all has them by then
	takingIn    = 200 * time.Millisecond

	hangingUp = 100 * time.Millisecond // after the reply, of a server that turns the device away
)

// talker is one run of the subcommand: it says prompts over a connection that it
// opens anew when the server hung up, and keeps what it heard. It is for one goroutine.
type talker struct {
	talkOptions
	out  *transcript
	call *call // nil while there is no connection

	// What all connections have brought.
	replies    []*devicetest.Reply
	violations []devicetest.Violation
	stats      devicetest.Stats
}

// call is one connection with the goroutine that prints what happens on it.
type call struct {
	device *devicetest.Device
	watch  sync.WaitGroup
	heard  chan *devicetest.Reply // replies, each after all of it was printed; closed at the end
	typed  bool                   // something was typed
	ending string                 // why it ended; of print until heard is closed
}

// prepare reads the sound files, so that a wrong one is found before anything is sent.
func (t *talker) prepare() error {
	for i, p := range t.prompts {
		if p.wav == "" {
			continue
		}
		pcm, err := readSpeech(p.wav)
		if err != nil {
			return fmt.Errorf("--wav %s: %w", p.wav, err)
		}
		t.prompts[i].pcm = pcm
	}
	return nil
}

// all says the prompts one after the other. It goes on after one that got no reply, and returns the first failure.
func (t *talker) all(ctx context.Context, prompts []prompt) error {
	var first error
	for _, p := range prompts {
		err := t.turn(ctx, p)
		first = cmp.Or(first, err)
		if ctx.Err() != nil || (err != nil && t.call == nil) {
			break
		}
	}
	return first
}

// lines takes typed prompts until the input or ctx ends.
func (t *talker) lines(ctx context.Context, stdin io.Reader, terminal bool) error {
	if terminal {
		t.out.print("type", message.Both("talk/type"))
	}
	lines := make(chan string)
	// A read of a terminal cannot be called off, so this goroutine is not waited
	// for when ctx ends; the process ends then.
	go func() {
		defer close(lines)
		scan := bufio.NewScanner(stdin)
		for scan.Scan() {
			select {
			case lines <- scan.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	var first error
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				return first
			}
			if line = strings.TrimSpace(line); line == "" {
				continue
			}
			if err := t.turn(ctx, prompt{text: line}); err != nil && ctx.Err() == nil {
				t.out.print("failed", err.Error())
				first = cmp.Or(first, err)
			}
		case <-ctx.Done():
			return first
		}
	}
}

// turn says one prompt and waits for its reply. A server that hangs up after a reply may do so just when the next
// prompt is on its way: that one is said again over a new connection.
func (t *talker) turn(ctx context.Context, p prompt) error {
	ctx, cancel := context.WithTimeout(ctx, 2*(t.timeout+p.length()))
	defer cancel()
	used := t.call != nil
	err := t.attempt(ctx, p)
	if used && lost(err) {
		t.hangUp()
		err = t.attempt(ctx, p)
	}
	switch {
	case t.call != nil && lost(err):
		t.hangUp()
		return errors.New(message.Both("talk/ended"))
	case errors.Is(err, context.DeadlineExceeded):
		return errors.New(message.Both("talk/no-reply", t.timeout))
	}
	return err
}

// attempt says one prompt over the connection that there is, or a new one.
func (t *talker) attempt(ctx context.Context, p prompt) error {
	ctx, cancel := context.WithTimeout(ctx, t.timeout+p.length())
	defer cancel()
	if err := t.connect(ctx); err != nil {
		return err
	}
	for len(t.call.heard) > 0 { // what came unasked: the next one answers this prompt
		<-t.call.heard
	}
	said, err := t.say(ctx, p)
	if err != nil {
		return err
	}
	reply, err := t.hear(ctx)
	if err != nil {
		return err
	}
	t.replies = append(t.replies, reply)
	t.out.latency(said, reply)
	if reply.Cut { // the words cut what a server says that turns the device away: it hangs up when that has been heard
		return t.call.turnedAway(ctx, time.Second)
	}
	return t.call.turnedAway(ctx, hangingUp)
}

// turnedAway returns why a server hangs up that does not serve this device: it says so first, which is no reply.
func (c *call) turnedAway(ctx context.Context, within time.Duration) error {
	limited, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	select {
	case <-c.device.Done():
	case <-limited.Done():
		return nil
	}
	c.watch.Wait()
	if !strings.Contains(c.ending, "turned away") {
		return nil
	}
	return errors.New(message.Both("talk/turned-away"))
}

func lost(err error) bool {
	return errors.Is(err, devicetest.ErrClosed) || errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)
}

func (p prompt) length() time.Duration { return audio.Recognition.Duration(len(p.pcm)) }

// connect makes sure of a connection: the first one, or one after the server hung up.
func (t *talker) connect(ctx context.Context) error {
	if t.call != nil {
		select {
		case <-t.call.device.Done():
			t.hangUp()
		default:
			return nil
		}
	}
	if err := t.provision(ctx); err != nil {
		return err
	}
	device, err := devicetest.Dial(ctx, t.device)
	if err != nil {
		return fmt.Errorf("%s: %w", message.Both("talk/not-connected"), err)
	}
	t.out.print("connected", message.Both("talk/connected", t.device.URL, device.SessionID()))
	c := &call{device: device, heard: make(chan *devicetest.Reply, heardLimit)}
	c.watch.Go(func() { c.print(context.WithoutCancel(ctx), t.out) }) // ends with the device
	t.call = c
	return nil
}

// print prints what happens on the connection until it ends.
func (c *call) print(ctx context.Context, out *transcript) {
	defer close(c.heard)
	for e := range c.device.Watch(ctx) {
		out.event(e)
		if e.Kind == devicetest.KindClosed {
			c.ending = e.Text
		}
		if e.Kind != devicetest.KindReply {
			continue
		}
		select {
		case c.heard <- e.Reply:
		default: // no prompt waits for it: the server speaks unasked
		}
	}
}

// provision completes the device, once, and finds the WebSocket's address as devices do at their boot.
func (t *talker) provision(ctx context.Context) error {
	d := &t.device
	if d.URL != "" {
		return nil
	}
	d.OpenListen, d.Limits.Tolerance = d.Mode != devicetest.Manual, tolerance
	if !d.NoMCP {
		d.Tools = devicetest.NewBoard().Tools()
	}
	if !strings.HasPrefix(t.server, "http") {
		d.URL = t.server
		return nil
	}
	p, err := t.boot(ctx)
	if err != nil {
		return err
	}
	t.violations = append(t.violations, p.Violations...)
	d.URL, d.Token, d.Protocol = p.URL, cmp.Or(d.Token, p.Token), cmp.Or(d.Protocol, p.Protocol)
	t.out.print("ota", p.URL)
	return nil
}

// boot asks the OTA address, waits until a person has accepted the device, and keeps its token.
func (t *talker) boot(ctx context.Context) (devicetest.Provisioned, error) {
	kept, err := t.flash.read()
	if err != nil {
		t.out.print("flash", err.Error())
	}
	key := t.server + " " + cmp.Or(t.device.DeviceID, "default")
	t.device.Flash = devicetest.NewFlash(kept[key])
	code := ""
	p, err := devicetest.Boot(ctx, t.server, t.device, func(shown string) {
		if shown != code {
			t.out.print("ota", message.Both("talk/unbound", shown))
		}
		code = shown
	})
	switch {
	case err != nil && code != "":
		return p, errors.New(message.Both("talk/not-accepted", t.timeout, code))
	case err != nil:
		return p, fmt.Errorf("%s: %w", message.Both("talk/no-address"), err)
	case p.Token == "":
		return p, nil
	}
	if err := t.flash.keep(key, p.Token); err != nil {
		t.out.print("flash", err.Error())
	}
	return p, nil
}

// say types or speaks a prompt. It returns when the last of it was said.
func (t *talker) say(ctx context.Context, p prompt) (time.Time, error) {
	manual := t.device.Mode == devicetest.Manual
	if !manual {
		if err := t.call.device.WaitMic(ctx); err != nil {
			return time.Time{}, err
		}
	}
	if p.text != "" {
		t.awaitTools(ctx)
		return time.Now(), t.call.device.Detect(p.text)
	}
	if manual {
		if err := t.call.device.ListenStart(devicetest.Manual); err != nil {
			return time.Time{}, err
		}
	}
	t.out.print("you", fmt.Sprintf("speak %s (%s)", p.wav, p.length().Round(10*time.Millisecond)))
	if err := t.call.device.Say(ctx, p.pcm); err != nil {
		return time.Time{}, err
	}
	if manual {
		return time.Now(), t.call.device.ListenStop()
	}
	return time.Now().Add(-trailing(p.pcm)), nil
}

// awaitTools lets a server learn of the tools before the first words are typed.
func (t *talker) awaitTools(ctx context.Context) {
	if t.device.NoMCP || t.call.typed {
		return
	}
	t.call.typed = true
	limited, cancel := context.WithTimeout(ctx, listingTime)
	defer cancel()
	if _, err := t.call.device.Wait(limited, devicetest.Event.EndsTools); err != nil {
		return // they are not asked for, or all is over
	}
	select {
	case <-time.After(takingIn):
	case <-t.call.device.Done():
	case <-ctx.Done():
	}
}

// hear waits for the reply, with an open microphone in a quiet room where the mode has one.
func (t *talker) hear(ctx context.Context) (*devicetest.Reply, error) {
	room, leave := context.WithCancel(ctx)
	var work sync.WaitGroup
	defer work.Wait()
	defer leave()
	if t.device.Mode != devicetest.Manual {
		// Its errors are those of the connection and of ctx, which are met below too.
		work.Go(func() { _ = t.call.device.Silence(room, t.timeout) })
	}
	if t.abortAfter > 0 {
		work.Go(func() { t.abort(room) })
	}
	select {
	case r, open := <-t.call.heard:
		if !open {
			return nil, devicetest.ErrClosed
		}
		return r, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// abort presses the button in the middle of the next reply's sound.
func (t *talker) abort(ctx context.Context) {
	if t.call.device.WaitState(ctx, devicetest.Speaking) != nil {
		return
	}
	start := time.Now() // frames of replies before this one are in the log too
	_, err := t.call.device.Wait(ctx, func(e devicetest.Event) bool { return e.Kind == devicetest.KindFrame && e.At.After(start) })
	if err != nil {
		return
	}
	select {
	case <-time.After(t.abortAfter):
		if err := t.call.device.Abort(""); err != nil {
			t.out.print("abort", err.Error())
		}
	case <-ctx.Done():
	}
}

// hangUp ends the connection, if there is one, and keeps what it counted.
func (t *talker) hangUp() {
	if t.call == nil {
		return
	}
	t.call.device.Close()
	t.call.watch.Wait()
	t.violations = append(t.violations, t.call.device.Violations()...)
	s := t.call.device.Stats()
	t.stats.FramesIn += s.FramesIn
	t.stats.Dropped += s.Dropped
	t.stats.Underruns += s.Underruns
	t.stats.ToolCalls += s.ToolCalls
	t.call = nil
}

// isTerminal tells a keyboard from a pipe or a file.
func isTerminal(r io.Reader) bool {
	f, ok := r.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
