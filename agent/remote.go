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

// maxSay is how many characters somebody outside may have spoken at once.
const maxSay = 4000

// answerWithin is how long Ask waits for an answer if it is not told.
const answerWithin = 30 * time.Second

// Remote lets others have a device do something: a script, a home automation, a tool
// of the outward server. Its exported methods may be called at any time; they
// return when what they are about is done, or when ctx or the conversation ends.
// The rest belongs to the conversation's goroutine.
type Remote struct {
	c        *Conversation
	question question           // that the user was asked
	urgent   map[uint64]*notice // to be told at once, and not begun yet
}

// drop gives up what was to be told at once. Whoever waits for it hears that
// nothing of it was heard.
func (m *Remote) drop(id uint64) {
	if n, ok := m.urgent[id]; ok {
		delete(m.urgent, id)
		if n.from != nil {
			n.from.said <- Said{}
		}
	}
}

// Errors of what is asked from outside.
var (
	ErrQueueFull = errors.New("too much is waiting to be told on this device")
	ErrManual    = errors.New("the device listens only while its button is pressed")
	ErrNoAnswer  = errors.New("the user has not answered")
	ErrShutdown  = errors.New("server is stopping") // only of jobs
	ErrUnheard   = errors.New("the user has interrupted it before anything was heard")
)

// Said tells what became of words that somebody outside had spoken.
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
func (m *Remote) Say(ctx context.Context, words string, now bool) (Said, error) {
	return m.speak(ctx, words, now, &request{said: make(chan Said, 1)})
}

// Ask says a text at the next pause and gives the user's next words, which are
// not answered by anybody else. within counts from the end of the question; 0
// means 30 s.
func (m *Remote) Ask(ctx context.Context, words string, within time.Duration) (string, error) {
	r := &request{asks: true, said: make(chan Said, 1), answer: make(chan string, 1)}
	said, err := m.speak(ctx, words, false, r)
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
	case <-m.c.life.over:
		err = ErrOver
	}
	m.withdraw(ctx, r)
	select {
	case words := <-r.answer: // it came at the last moment
		return words, nil
	default:
		return "", err
	}
}

// Listen opens the microphone of a device that waits, by an empty reply. While
// the device listens, speaks or thinks it does nothing.
func (m *Remote) Listen(ctx context.Context) error {
	return m.do(ctx, func() error { //nolint:contextcheck // the turn is the conversation's, and outlives whoever asked
		if m.c.state.Mic.Mode == wire.Manual {
			return ErrManual
		}
		m.c.step(turn.Invite{})
		return nil
	})
}

// Stop ends the reply, as the button of the device does, and reports whether
// there was one.
func (m *Remote) Stop(ctx context.Context) (stopped bool, err error) {
	err = m.do(ctx, func() error { //nolint:contextcheck // its listener is the conversation's
		stopped = m.c.state.Busy() && !m.c.state.Speculates()
		m.c.step(turn.StopReply{})
		return nil
	})
	return stopped, err
}

// Dialogue returns what the user and the assistant have said to one another so far,
// without calls and their results.
func (m *Remote) Dialogue(ctx context.Context) (out []providers.Message, err error) {
	err = m.do(ctx, func() error {
		for _, m := range m.c.dev.history.Snapshot() {
			if m.Content != "" && (m.Role == providers.RoleUser || m.Role == providers.RoleAssistant) {
				out = append(out, providers.Message{Role: m.Role, Content: m.Content})
			}
		}
		return nil
	})
	return out, err
}

// speak has a text spoken for r.
func (m *Remote) speak(ctx context.Context, words string, now bool, r *request) (Said, error) {
	words = strings.TrimSpace(words)
	if n := len([]rune(words)); n == 0 || n > maxSay {
		return Said{}, fmt.Errorf("a text of %d characters, want 1 to %d", n, maxSay)
	}
	err := m.do(ctx, func() error { //nolint:contextcheck // as in Listen
		n := notice{language: cmp.Or(string(text.Of(words)), m.c.language()), say: words, from: r}
		if !now {
			if !m.c.dev.news.tell(n) {
				return ErrQueueFull
			}
			return nil
		}
		n.id = m.c.dev.news.number()
		m.urgent[n.id] = &n
		m.c.step(turn.Interrupt{Announcement: n.id, Lang: text.Lang(n.language)})
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
	case <-m.c.life.over:
		err = ErrOver
	}
	r.off.Store(true)
	return Said{}, err
}

// do runs f on the conversation's goroutine, which it does not hold up. The
// error is f's, or why f was not run.
func (m *Remote) do(ctx context.Context, f func() error) error {
	post := func(v any) {
		select {
		case m.c.events <- v:
		case <-ctx.Done():
		case <-m.c.life.over:
		}
	}
	_, err := ask(ctx, post, m.c.life.over, 0, func(*Conversation) error {
		if m.c.state.Farewell != turn.Staying {
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
func (m *Remote) expect(r *request) uint64 {
	m.question.id++
	m.question.from = r
	return m.question.id
}

// answer gives the user's words to whoever has asked for them.
func (m *Remote) answer(id uint64, words string) {
	if m.question.id == id && m.question.from != nil {
		m.question.from.answer <- words
		m.question.from = nil
	}
}

// withdraw says that r does not wait for an answer any more. It returns when no
// answer can come, also where ctx has ended.
func (m *Remote) withdraw(ctx context.Context, r *request) {
	r.off.Store(true)
	_, _ = ask(context.WithoutCancel(ctx), func(v any) {
		select {
		case m.c.events <- v:
		case <-m.c.life.over:
		}
	}, m.c.life.over, 0, func(*Conversation) error {
		if m.question.from == r {
			m.question.from = nil
			m.c.step(turn.Withdraw{ID: m.question.id})
		}
		return nil
	})
}

// question holds what somebody outside has asked the user.
type question struct {
	id   uint64
	from *request // nil: nobody waits
}
