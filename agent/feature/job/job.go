// Package job keeps the calls that outlast their turn: controls whose success was
// assumed, and jobs, which go on beside the talk. Their outcomes enter the
// history, and are told at the next pause if there is something to tell.
package job

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"time"

	"xiaozhi/agent/feature"
	"xiaozhi/agent/think"
	"xiaozhi/agent/turn"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/mcp"
	"xiaozhi/mcp/router"
	"xiaozhi/prompts"
)

const (
	maxJobs  = 8   // of one device; more are refused
	maxPlain = 200 // characters of a result that are said as they are
)

// errShutdown is why jobs end with the server.
var errShutdown = errors.New("server is stopping")

// Feature keeps calls. Its jobs end when the device's record is closed.
type Feature struct{}

// Name is the name of its state.
func (Feature) Name() string { return "job" }

// Attach takes in what has come since the last conversation.
func (Feature) Attach(h feature.Host, state feature.State) feature.Instance {
	mail, ok := state.(*inbox)
	if !ok {
		mail = newInbox()
	}
	c := &calls{Host: h, mail: mail}
	mail.attach(func() { h.Post(c.read) })
	c.read()
	return c
}

type calls struct {
	feature.Host

	mail *inbox
}

func (c *calls) Expects(time.Time) bool { return c.mail.waiting() }

func (c *calls) Detach() feature.State {
	c.mail.attach(nil)
	return c.mail
}

func (c *calls) Late(p router.Prepared, response mcp.ActionResponse) {
	c.mail.put(outcome{prepared: p, response: response, gone: c.Ended()}, nil)
}

func (c *calls) Begin(ctx context.Context, p router.Prepared, lang text.Lang) error {
	if refused := c.mail.start(ctx, p, c.Env().Tools.Detach); refused != "" {
		return errors.New(message.In(lang, refused))
	}
	return nil
}

func (c *calls) read() {
	for _, o := range c.mail.take() {
		if o.job {
			c.jobOver(o)
		} else {
			c.late(o)
		}
	}
}

// late records the true outcome of a control call. A failure replaces the result in
// the history, and is told unless it may well have been done.
func (c *calls) late(o outcome) {
	e := o.response.Outcome(string(c.Lang()))
	if !e.Failed {
		return
	}
	tool, id := o.prepared.Offer.Tool, o.prepared.Call.ID
	c.Env().Log.Warn("control failed after its success was assumed",
		"tool", tool.Name, "call_id", id, "result", text.Cut(e.Text, 256), "connection_lost", o.gone)
	c.SetResult(id, e.Text)
	if !o.gone {
		c.tell(o, feature.Announcement{Text: c.failure(o, e), Asked: true}) // whoever has asked for it was just told otherwise
	}
}

func (c *calls) jobOver(o outcome) {
	lang, tool, id := o.prepared.Info.Language, o.prepared.Offer.Tool, o.prepared.Call.ID
	e, texts := o.response.Outcome(lang), c.Env().Texts
	c.Env().Log.Info("job is over", "tool", tool.Name, "call_id", id, "failed", e.Failed)
	c.SetResult(id, e.Text)
	switch {
	case e.Failed:
		c.tell(o, feature.Announcement{Text: c.failure(o, e)})
	case e.Say != "":
		c.tell(o, feature.Announcement{Text: e.Say})
	default:
		words := texts.Phrase(prompts.JobDone, lang, "action", action(o))
		if isPlain(e.Text) {
			words = text.Join(words, e.Text)
		}
		c.tell(o, feature.Announcement{Text: words, Instruction: texts.Phrase(prompts.JobNote, lang, "tool", o.prepared.Offer.LLMName, "result", e.Text)})
	}
}

// failure returns the words that tell of a call that has failed.
func (c *calls) failure(o outcome, e mcp.Outcome) string {
	return c.Env().Texts.Phrase(prompts.LateFailure, o.prepared.Info.Language, "action", action(o), "reason", think.ReasonWords(e.Reason))
}

func (c *calls) tell(o outcome, a feature.Announcement) {
	a.Lang, a.Owed = text.Lang(o.prepared.Info.Language), true
	_, _ = c.Announce(a) // it logs what it refuses
}

// action returns what a call does, as words.
func action(o outcome) string {
	tool := o.prepared.Offer.Tool
	return think.ActionWords(tool.Name, tool.Description, text.Lang(o.prepared.Info.Language))
}

func isPlain(result string) bool {
	return len([]rune(result)) <= maxPlain && !strings.ContainsAny(result, "{}[]<>\n") && string(text.Of(result)) != ""
}

// inbox keeps the outcomes of calls until a conversation takes them. It belongs to
// the device and owns the goroutines of its jobs. Its size is bounded by the calls
// that conversations can have on their way.
//
// # Concurrency
//
// All methods may be called at any time.
type inbox struct {
	wg sync.WaitGroup

	mu       sync.Mutex
	outcomes []outcome
	jobs     map[*router.Prepared]context.CancelCauseFunc
	wake     func() // tells the present conversation; nil: there is none
	closed   bool
}

// outcome holds the response to a call.
type outcome struct {
	prepared router.Prepared
	response mcp.ActionResponse
	job      bool // else it is a control whose success was assumed
	gone     bool // of a control: the conversation had ended, nobody knows whether it was done
}

func newInbox() *inbox { return &inbox{jobs: map[*router.Prepared]context.CancelCauseFunc{}} }

// attach has wake called when an outcome comes; nil: nobody takes any.
func (m *inbox) attach(wake func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wake = wake
}

// put leaves an outcome. ended is the job that it is of; nil: none.
func (m *inbox) put(o outcome, ended *router.Prepared) {
	m.mu.Lock()
	delete(m.jobs, ended) // in the same moment, so that waiting never says no in between
	m.outcomes = append(m.outcomes, o)
	wake := m.wake
	m.mu.Unlock()
	if wake != nil {
		wake()
	}
}

func (m *inbox) take() []outcome {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.outcomes
	m.outcomes = nil
	return all
}

// start runs a job. ctx gives it its values, not its end: a job ends by itself or
// with the inbox. refused is the message that says why it is not begun; "": it is.
func (m *inbox) start(ctx context.Context, p router.Prepared, run func(context.Context, router.Prepared) mcp.ActionResponse) (refused string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for running := range m.jobs { // also one that was begun on an earlier connection
		if running.Offer.Tool.Name == p.Offer.Tool.Name && reflect.DeepEqual(running.Arguments, p.Arguments) {
			return "agent/job-same"
		}
	}
	switch {
	case m.closed:
		return "agent/job-stopping"
	case len(m.jobs) >= maxJobs:
		return "agent/job-many"
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	m.jobs[&p] = cancel
	m.wg.Go(func() {
		defer cancel(turn.ErrDone)
		m.put(outcome{prepared: p, response: run(ctx, p), job: true}, &p)
	})
	return ""
}

func (m *inbox) waiting() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.jobs) > 0 || len(m.outcomes) > 0
}

func (m *inbox) Keep(time.Time) time.Duration {
	if m.waiting() {
		return feature.KeepWaiting
	}
	return 0
}

// Close cancels all jobs and waits for them.
func (m *inbox) Close() {
	m.mu.Lock()
	m.closed = true
	for _, cancel := range m.jobs {
		cancel(errShutdown)
	}
	m.mu.Unlock()
	m.wg.Wait()
}
