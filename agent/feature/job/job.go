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

	maxResult = 3000 // bytes of a result that the model is told of a job
)

// errShutdown is why jobs end with the server.
var errShutdown = errors.New("server is stopping")

// Notice has the words by which a device is told of a call.
type Notice struct {
	Device      string
	Lang        text.Lang
	Text        string
	Instruction string // as [feature.Announcement] has it
	Asked       bool   // its user was told otherwise just now: it is told in quiet mode too
}

// Outbox has devices told what has become of calls, connected or not. Its methods may be called at any time, and wait for what keeps it.
type Outbox interface {
	// Tell keeps a notice until its device has heard it.
	Tell(n Notice) error
	// Promise keeps a notice that is told if the program ends before Keep has put another one in its place.
	Promise(n Notice) (id string, err error)
	Keep(id string, n Notice) error
}

// Feature keeps calls. Its jobs end when the device's record is closed.
type Feature struct {
	Outbox Outbox // nil, and for a device that is not known: notices are told while it is connected
}

// Name is the name of its state.
func (Feature) Name() string { return "job" }

// Attach takes in what has come since the last conversation.
func (f Feature) Attach(h feature.Host, state feature.State) feature.Instance {
	mail, ok := state.(*inbox)
	if !ok {
		mail = newInbox()
	}
	c := &calls{Host: h, mail: mail}
	out := f.Outbox
	if h.Env().Session.Unknown {
		out = nil
	}
	mail.attach(func() { h.Post(c.read) }, teller{out, h.Env().Session.DeviceID, h.Env().Texts})
	c.read()
	return c
}

type calls struct {
	feature.Host

	mail *inbox
}

func (c *calls) Expects(time.Time) bool { return c.mail.waiting() }

func (c *calls) Detach() feature.State {
	c.mail.detach()
	return c.mail
}

func (c *calls) Late(p router.Prepared, response mcp.ActionResponse) {
	if e := response.Outcome(p.Info.Language); e.Failed {
		c.Env().Log.Warn("control failed after its success was assumed",
			"tool", p.Offer.Tool.Name, "call_id", p.Call.ID, "result", text.Cut(e.Text, 256), "connection_lost", c.Ended())
		c.mail.put(outcome{prepared: p, response: response}, nil)
	}
}

func (c *calls) Begin(ctx context.Context, p router.Prepared, lang text.Lang) error {
	if refused := c.mail.start(ctx, p, c.Env().Tools.Detach); refused != "" {
		return errors.New(message.In(lang, refused))
	}
	return nil
}

// read corrects the history by what has come, and has told what is not in the outbox.
func (c *calls) read() {
	for _, o := range c.mail.take() {
		lang, id := o.prepared.Info.Language, o.prepared.Call.ID
		e := o.response.Outcome(lang)
		if o.job {
			c.Env().Log.Info("job is over", "tool", o.prepared.Offer.Tool.Name, "call_id", id, "failed", e.Failed)
		}
		c.SetResult(id, e.Text)
		if n := o.notice(c.Env().Texts); !o.told {
			_, _ = c.Announce(feature.Announcement{Lang: n.Lang, Text: n.Text, Instruction: n.Instruction, Asked: n.Asked, Owed: true}) // it logs what it refuses
		}
	}
}

// notice returns what is told of a call.
func (o outcome) notice(texts *prompts.Set) Notice {
	lang := o.prepared.Info.Language
	e, n := o.response.Outcome(lang), Notice{Lang: text.Lang(lang)}
	switch {
	case e.Failed && router.Broken(o.prepared, o.response):
		n.Text, n.Asked = texts.Phrase(prompts.LateUnknown, lang, "action", action(o.prepared)), !o.job
	case e.Failed:
		n.Text = texts.Phrase(prompts.LateFailure, lang, "action", action(o.prepared), "reason", think.ReasonWords(e.Reason))
		n.Asked = !o.job // whoever has asked for it was just told otherwise
	case e.Say != "":
		n.Text = e.Say
	default:
		n.Text = texts.Phrase(prompts.JobDone, lang, "action", action(o.prepared))
		if isPlain(e.Text) {
			n.Text = text.Join(n.Text, e.Text)
		}
		n.Instruction = texts.Phrase(prompts.JobNote, lang, "tool", o.prepared.Offer.LLMName, "result", text.Shorten(e.Text, maxResult))
	}
	return n
}

// action returns what a call does, as words.
func action(p router.Prepared) string {
	tool := p.Offer.Tool
	return think.ActionWords(tool.Name, tool.Description, text.Lang(p.Info.Language))
}

func isPlain(result string) bool {
	return len([]rune(result)) <= maxPlain && !strings.ContainsAny(result, "{}[]<>\n") && string(text.Of(result)) != ""
}

// teller has a device told of calls.
type teller struct {
	Outbox

	device string
	texts  *prompts.Set
}

// tell keeps the notice of a call, in the place of what was promised by an id, and reports whether it will be told.
func (t teller) tell(o outcome, promised string) bool {
	if t.Outbox == nil {
		return false
	}
	n := o.notice(t.texts)
	n.Device = t.device
	if promised != "" && t.Keep(promised, n) == nil {
		return true
	}
	return t.Tell(n) == nil
}

// promise keeps that a job is not over; "": it does not.
func (t teller) promise(p router.Prepared) (id string) {
	if t.Outbox == nil {
		return ""
	}
	lang := p.Info.Language
	id, err := t.Promise(Notice{Device: t.device, Lang: text.Lang(lang), Text: t.texts.Phrase(prompts.JobLost, lang, "action", action(p))})
	if err != nil {
		return "" // what becomes of it is told all the same, unless the program ends before
	}
	return id
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
	teller   teller
	closed   bool
}

// outcome holds the response to a call.
type outcome struct {
	prepared router.Prepared
	response mcp.ActionResponse
	job      bool // else it is a control whose success was assumed, and that has failed
	told     bool // the outbox has its notice
}

func newInbox() *inbox { return &inbox{jobs: map[*router.Prepared]context.CancelCauseFunc{}} }

// attach has wake called when an outcome comes.
func (m *inbox) attach(wake func(), t teller) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wake, m.teller = wake, t
}

// detach has nobody told of outcomes.
func (m *inbox) detach() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wake = nil
}

// put leaves an outcome, and has it told. ended is the job that it is of; nil: none. It waits for the outbox.
func (m *inbox) put(o outcome, ended *running) {
	m.mu.Lock()
	t := m.teller
	m.mu.Unlock()
	promised := ""
	if ended != nil {
		promised = ended.promised
	}
	o.told = t.tell(o, promised)
	m.mu.Lock()
	if ended != nil {
		delete(m.jobs, ended.call) // in the same moment, so that waiting never says no in between
	}
	m.outcomes = append(m.outcomes, o)
	wake := m.wake
	m.mu.Unlock()
	if wake != nil {
		wake()
	}
}

// running is a job that is not over.
type running struct {
	call     *router.Prepared
	promised string // what is told if the program ends before; "": nothing
}

func (m *inbox) take() []outcome {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.outcomes
	m.outcomes = nil
	return all
}

// start runs a job. ctx gives it its values, not its end: a job ends by itself or
// with the inbox. refused is the message that says why it is not begun; "": it is. It waits for the outbox.
func (m *inbox) start(ctx context.Context, p router.Prepared, run func(context.Context, router.Prepared) mcp.ActionResponse) (refused string) {
	job := &running{call: &p}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	if refused = m.enter(job, cancel); refused != "" {
		cancel(nil)
		return refused
	}
	m.mu.Lock()
	t := m.teller
	m.mu.Unlock()
	job.promised = t.promise(p)
	go func() {
		defer m.wg.Done()
		defer cancel(turn.ErrDone)
		m.put(outcome{prepared: p, response: run(ctx, p), job: true}, job)
	}()
	return ""
}

// enter gives a job its place, for which the inbox waits, or refuses it.
func (m *inbox) enter(job *running, cancel context.CancelCauseFunc) (refused string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for other := range m.jobs { // also one that was begun on an earlier connection
		if other.Offer.Tool.Name == job.call.Offer.Tool.Name && reflect.DeepEqual(other.Arguments, job.call.Arguments) {
			return "agent/job-same"
		}
	}
	switch {
	case m.closed:
		return "agent/job-stopping"
	case len(m.jobs) >= maxJobs:
		return "agent/job-many"
	}
	m.jobs[job.call] = cancel
	m.wg.Add(1)
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
