package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"xiaozhi/agent/think"
	"xiaozhi/agent/turn"
	"xiaozhi/internal/text"
	"xiaozhi/internal/wire"
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
	ErrShutdown  = errors.New("server is stopping") // only of jobs
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
func (c *Conversation) Say(ctx context.Context, words string, now bool) (Said, error) {
	return c.speak(ctx, words, now, &request{said: make(chan Said, 1)})
}

// Ask says a text at the next pause and gives the user's next words, which are
// not answered by anybody else. within counts from the end of the question; 0
// means 30 s.
func (c *Conversation) Ask(ctx context.Context, words string, within time.Duration) (string, error) {
	r := &request{asks: true, said: make(chan Said, 1), answer: make(chan string, 1)}
	said, err := c.speak(ctx, words, false, r)
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
	c.withdraw(r)
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
		if c.state.Mic.Mode == wire.Manual {
			return ErrManual
		}
		c.step(turn.Invite{})
		return nil
	})
}

// Stop ends the reply, as the button of the device does, and reports whether
// there was one.
func (c *Conversation) Stop(ctx context.Context) (stopped bool, err error) {
	err = c.do(ctx, func() error { //nolint:contextcheck // its listener is the conversation's
		stopped = c.state.Busy() && !c.state.Speculates()
		c.step(turn.StopReply{})
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
func (c *Conversation) speak(ctx context.Context, words string, now bool, r *request) (Said, error) {
	words = strings.TrimSpace(words)
	if n := len([]rune(words)); n == 0 || n > maxSay {
		return Said{}, fmt.Errorf("a text of %d characters, want 1 to %d", n, maxSay)
	}
	err := c.do(ctx, func() error { //nolint:contextcheck // as in Listen
		n := notice{language: cmp.Or(string(text.Of(words)), c.language()), say: words, from: r}
		if !now {
			if !c.tell(n) {
				return ErrQueueFull
			}
			return nil
		}
		n.id = c.dev.nextNotice()
		c.urgent[n.id] = &n
		c.step(turn.Interrupt{Announcement: n.id, Lang: text.Lang(n.language)})
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

// do runs f on the conversation's goroutine, which it does not hold up. The
// error is f's, or why f was not run.
func (c *Conversation) do(ctx context.Context, f func() error) error {
	post := func(v any) {
		select {
		case c.events <- v:
		case <-ctx.Done():
		case <-c.over:
		}
	}
	_, err := ask(ctx, post, c.over, 0, func(c *Conversation) error {
		if c.state.Farewell != turn.Staying {
			return ErrOver
		}
		return f()
	})
	return err
}

// requestOver tells who waits for it what was heard.
func requestOver(r *reply, from *request) {
	from.said <- Said{Heard: think.Answer(r.out.messages), Whole: !r.out.cut && r.out.err == nil}
}

// expect has the user's next words go to whoever asks, and gives the number of
// that question.
func (c *Conversation) expect(r *request) uint64 {
	c.question.id++
	c.question.from = r
	return c.question.id
}

// answer gives the user's words to whoever has asked for them.
func (c *Conversation) answer(id uint64, words string) {
	if c.question.id == id && c.question.from != nil {
		c.question.from.answer <- words
		c.question.from = nil
	}
}

// withdraw says that r does not wait for an answer any more. It returns when no
// answer can come.
func (c *Conversation) withdraw(r *request) {
	r.off.Store(true)
	_, _ = ask(context.Background(), func(v any) {
		select {
		case c.events <- v:
		case <-c.over:
		}
	}, c.over, 0, func(c *Conversation) error {
		if c.question.from == r {
			c.question.from = nil
			c.step(turn.Withdraw{ID: c.question.id})
		}
		return nil
	})
}

// question is what somebody outside has asked the user.
type question struct {
	id   uint64
	from *request // nil: nobody waits
}
