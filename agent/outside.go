package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
	core "xiaozhi/agent/turn"

	"xiaozhi/internal/wire"
	"xiaozhi/mcp"
	"xiaozhi/providers"
)

// This file is what somebody outside can have a device do: a script, a home
// automation, a tool of the outward server. All of it may be called at any time
// by anybody; it returns when it is done, or when ctx or the conversation ends.

// maxSay is how many characters somebody outside may have spoken at once.
const maxSay = 4000

// answerWithin is how long Ask waits for an answer if it is not told.
const answerWithin = 30 * time.Second

// Errors of what is asked from outside.
var (
	ErrQueueFull = errors.New("too much is waiting to be told on this device")
	ErrManual    = errors.New("the device listens only while its button is pressed")
	ErrNoAnswer  = errors.New("the user has not answered")
	ErrUnheard   = errors.New("the user has interrupted it before anything was heard")
)

// Said is what became of words that somebody outside had spoken.
type Said struct {
	Heard string // what the user has heard of them
	Whole bool   // that is all of it
}

// request is somebody outside who waits for what the user hears, or says.
type request struct {
	off    atomic.Bool // nobody waits any more
	asks   bool        // for an answer
	said   chan Said   // size 1
	answer chan string // size 1
}

// Say speaks a text at the next pause, or at once if now is set, which ends a
// reply that is going on. It returns when the text has been played or was cut.
func (c *Conversation) Say(ctx context.Context, text string, now bool) (Said, error) {
	return c.speak(ctx, text, now, &request{said: make(chan Said, 1)})
}

// Ask says a text at the next pause and gives the user's next words, which are
// not answered by anybody else. within counts from the end of the question; 0
// means 30 s.
func (c *Conversation) Ask(ctx context.Context, text string, within time.Duration) (string, error) {
	r := &request{asks: true, said: make(chan Said, 1), answer: make(chan string, 1)}
	said, err := c.speak(ctx, text, false, r)
	switch {
	case err != nil:
		return "", err
	case said.Heard == "":
		return "", ErrUnheard
	}
	set(&within, answerWithin)
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case words := <-r.answer:
		return words, nil
	case <-timer.C:
		err = ErrNoAnswer
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-c.over:
		err = ErrOver
	}
	r.off.Store(true)
	select {
	case words := <-r.answer: // it came at the last moment
		return words, nil
	default:
		return "", err
	}
}

// Listen opens the microphone of a device that waits, by an empty reply. While
// the device listens, speaks or thinks it does nothing.
func (c *Conversation) Listen(ctx context.Context) error {
	return c.do(ctx, func() error { //nolint:contextcheck // the turn is the conversation's, and outlives whoever asked
		switch {
		case c.mode == wire.Manual:
			return ErrManual
		case c.state != Idle || c.busy():
			return nil
		}
		c.shadowed(func() core.Event { return core.Invite{} }, func() {
			c.step(sigServer)
			c.begin(order{language: c.language(), timing: &timing{endOfSpeech: time.Now()}})
		})
		return nil
	})
}

// Stop ends the reply, as the button of the device does, and reports whether
// there was one.
func (c *Conversation) Stop(ctx context.Context) (stopped bool, err error) {
	err = c.do(ctx, func() error { //nolint:contextcheck // its ears are the conversation's
		if stopped = c.busy() && !c.onTrial(); !stopped {
			return nil
		}
		c.shadowed(func() core.Event { return core.StopReply{} }, func() {
			c.stopReply("outside")
			c.step(sigAbort)
			c.listenAgain()
		})
		return nil
	})
	return stopped, err
}

// Dialogue is what the user and the assistant have said to one another so far,
// without calls and their results.
func (c *Conversation) Dialogue(ctx context.Context) (out []providers.Message, err error) {
	err = c.do(ctx, func() error {
		for _, m := range c.dev.history.snapshot() {
			if m.Content != "" && (m.Role == providers.RoleUser || m.Role == providers.RoleAssistant) {
				out = append(out, providers.Message{Role: m.Role, Content: m.Content})
			}
		}
		return nil
	})
	return out, err
}

// speak has a text spoken for r.
func (c *Conversation) speak(ctx context.Context, text string, now bool, r *request) (Said, error) {
	text = strings.TrimSpace(text)
	if n := len([]rune(text)); n == 0 || n > maxSay {
		return Said{}, fmt.Errorf("a text of %d characters, want 1 to %d", n, maxSay)
	}
	err := c.do(ctx, func() error { //nolint:contextcheck // as in Listen
		n := notice{language: c.textLanguage(text), say: text, from: r}
		if !now {
			if !c.tell(n) {
				return ErrQueueFull
			}
			return nil
		}
		c.shadowed(func() core.Event { return core.Interrupt{Announcement: 1, Lang: langOf(n.language)} }, func() {
			c.forget()
			c.step(sigServer)
			c.begin(order{notice: &n, language: n.language, timing: &timing{endOfSpeech: time.Now()}})
		})
		return nil
	})
	if err != nil {
		return Said{}, err
	}
	select {
	case said := <-r.said:
		return said, nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-c.over:
		err = ErrOver
	}
	r.off.Store(true)
	return Said{}, err
}

// do runs f on the conversation's goroutine, which it does not hold up.
func (c *Conversation) do(ctx context.Context, f func() error) error {
	outside := &turn{log: c.log, outside: c.over}
	outside.report = func(v any) {
		select {
		case c.reports <- v:
		case <-ctx.Done():
		case <-c.over:
		}
	}
	_, _, err := outside.inConversation(mcp.WithInfo(ctx, mcp.Info{}), func(c *Conversation) (handled, error) {
		if c.hungUp {
			return handled{}, ErrOver
		}
		return handled{}, f()
	})
	return err
}

// requestOver tells who waits for it what was heard.
func (c *Conversation) requestOver(t *turn, r *request) {
	said := Said{Heard: answerText(t.out.messages), Whole: !t.out.cut && t.out.err == nil}
	if r.asks && said.Heard != "" && !r.off.Load() {
		c.expect = r
	}
	r.said <- said
}

// answers gives the user's words to somebody outside who has asked for them.
func (c *Conversation) answers(words string) bool {
	awaited := c.awaited()
	r := c.expect
	c.expect = nil
	if awaited {
		c.did(core.Answer{Words: words})
		r.answer <- words
	}
	return awaited
}

// awaited reports whether somebody outside waits for the user's next words.
func (c *Conversation) awaited() bool { return c.expect != nil && !c.expect.off.Load() }
