package agent

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"xiaozhi/mcp"
)

const (
	afterDetect  = time.Second            // a listen start so soon after a detect belongs to it
	greetAfter   = 300 * time.Millisecond // without a listen start after a wake word
	burstFrames  = 8                      // so many frames in burstWindow before a detect mark a wake word
	burstWindow  = time.Second
	lateFrames   = 500 * time.Millisecond // so long after listen stop frames of the utterance still come
	maxTyped     = 8000                   // characters of typed text; more is cut
	hintInterval = time.Minute            // between two spoken hints about recognition
	maxDeaf      = 3                      // failures of the ears in a row; then the conversation ends
)

// Conversation is what one device says and hears over one connection. Post may
// be called at any time; everything else happens on the goroutine of Run, which
// owns the state, the history and the turns.
type Conversation struct {
	o       *Options
	session Session
	out     Outbox
	tools   *mcp.Toolbox
	log     *slog.Logger
	in      *inbox
	reports chan any // from ears and turns; size 64, senders wait until the conversation ends

	child func() (context.Context, context.CancelCauseFunc) // of Run's context; set before any child begins
	ended <-chan struct{}                                   // Run's context is over
	wg    sync.WaitGroup
	dev   *Device
	state State
	mode  Mode
	open  bool // the device has opened its microphone

	ears      *ears
	earsStop  context.CancelCauseFunc
	stretch   uint64       // counts the stretches of listening; what ears report of an older one is void
	deafness  int          // failures of the ears in a row
	garbled   atomic.Int64 // frames that are not Opus; of the ears
	textDue   *time.Timer
	heard     []*utterance // said, and not yet answered irrevocably
	turn      *turn        // the one that runs, or is being joined
	live      bool         // turn has not been taken away
	turnDone  bool
	pending   *order // begins when turn has been joined
	turns     uint64
	empties   int       // empty transcripts in a row
	detected  time.Time // the last detect
	stopped   time.Time // the last listen stop
	burst     []time.Time
	greet     *time.Timer
	greeting  string // the wake word to greet, "" for none
	idle      *time.Timer
	hungUp    bool
	lateCalls []lateCall // true outcomes that came before their call was in the history
}

// turnEnded reports that a turn's goroutines have been joined.
type turnEnded struct{ t *turn }

// turnBegan reports that tts start was sent.
type turnBegan struct{ t *turn }

// lateCall is the true outcome of a control call whose success was assumed.
type lateCall struct {
	prepared mcp.Prepared
	response mcp.ActionResponse
}

// New makes a conversation for one connection. tools must stay open until Run
// has returned.
func New(o Options, s Session, out Outbox, tools *mcp.Toolbox) *Conversation {
	opts := o.withDefaults()
	return &Conversation{
		o: &opts, session: s, out: out, tools: tools,
		log: opts.Log.With("device_id", s.DeviceID, "session_id", s.SessionID),
		in:  newInbox(), reports: make(chan any, 64), mode: Auto,
	}
}

// Post hands over what the device did. It never waits. ErrOverrun means that
// the device sends more than any device can mean: end the connection.
func (c *Conversation) Post(ev Event) error { return c.in.post(ev) }

// Run holds the conversation until ctx ends, and returns after all it started
// has been joined. It is called once.
func (c *Conversation) Run(ctx context.Context) error {
	dev, err := c.o.Devices.lend(ctx, c.session.DeviceID)
	if err != nil {
		return fmt.Errorf("borrow the device's record: %w", err)
	}
	defer c.o.Devices.giveBack(dev)
	ctx, cancel := context.WithCancelCause(ctx)
	c.child = func() (context.Context, context.CancelCauseFunc) { return context.WithCancelCause(ctx) }
	c.ended, c.dev = ctx.Done(), dev
	c.greet, c.idle = time.NewTimer(time.Hour), time.NewTimer(c.o.IdleClose)
	c.textDue = time.NewTimer(time.Hour)
	c.greet.Stop()
	c.textDue.Stop()
	defer c.greet.Stop()
	defer c.textDue.Stop()
	defer c.idle.Stop()
	c.loop(ctx)
	c.step(sigHangUp)
	cause := context.Cause(ctx)
	if c.turn != nil && !c.turnDone {
		c.turn.floor.cut()
		c.turn.cancel(cause)
	}
	cancel(cause)
	c.wg.Wait()
	c.keep()
	return cause
}

// loop is the life of the conversation.
func (c *Conversation) loop(ctx context.Context) {
	var events []Event
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.in.notify:
			var lost int
			if events, lost = c.in.take(events); lost > 0 {
				c.log.Warn("audio frames dropped", "frames", lost)
			}
			for _, ev := range events {
				c.device(ev)
			}
		case r := <-c.reports:
			c.reported(r)
		case <-c.greet.C:
			c.greetNow()
		case <-c.textDue.C:
			c.textLate()
		case <-c.idle.C:
			c.idleOver()
		}
	}
}

// keep saves what the turn that was joined last has left behind.
func (c *Conversation) keep() {
	if c.turn == nil || c.turnDone {
		return
	}
	c.turnDone = true
	c.remember(c.turn)
}

// report passes what children have to say to the loop.
func (c *Conversation) report(v any) {
	select {
	case c.reports <- v:
	case <-c.ended:
	}
}

// device acts on what the device did.
func (c *Conversation) device(ev Event) {
	if c.hungUp {
		return
	}
	switch ev := ev.(type) {
	case Frame:
		c.frame(ev)
	case ListenStart:
		c.listenStart(ev.Mode)
	case ListenStop:
		c.listenStop()
	case Detect:
		c.detect(ev.Text)
	case Abort:
		c.abort(ev.Reason)
	}
}

// reported acts on what a child reports.
func (c *Conversation) reported(v any) {
	switch v := v.(type) {
	case heardVoice:
		c.voice(v.u)
	case heardBargeIn:
		c.bargeIn(v.u)
	case heardEnd:
		c.utteranceOver(v.u)
	case heardText:
		c.text(v)
	case earsFailed:
		c.deaf(v)
	case turnBegan:
		c.speaking(v.t)
	case turnEnded:
		c.turnOver(v.t)
	case lateCall:
		c.late(v)
	}
}

// step moves the state.
func (c *Conversation) step(sig signal) {
	to, ok := next(c.state, sig, c.mode, c.open)
	if !ok {
		c.log.Debug("signal has no meaning here", "state", c.state, "signal", sig.String())
		return
	}
	if to != c.state {
		c.log.Debug("state", "from", c.state, "to", to, "signal", sig.String())
	}
	c.state = to
}

// touch puts off the idle close.
func (c *Conversation) touch() { c.idle.Reset(c.o.IdleClose) }

// idleOver hangs up a channel on which nothing happens (device-protocol 3.4).
func (c *Conversation) idleOver() {
	if c.turn != nil && !c.turnDone {
		c.touch()
		return
	}
	c.hangUp(ErrIdle)
}

// hangUp ends the conversation in good order.
func (c *Conversation) hangUp(cause error) {
	if c.hungUp {
		return
	}
	c.hungUp = true
	c.log.Info("hanging up", "cause", cause)
	c.greet.Stop()
	c.greeting = ""
	c.forget()
	c.closeEars(cause)
	c.out.HangUp(cause)
}

// language is what is spoken when no text says it (design.md section 10).
func (c *Conversation) language() string {
	if c.dev.language != "" {
		return c.dev.language
	}
	if c.session.Language != "" {
		return c.session.Language
	}
	return "zh"
}

// late records the true outcome of a control call: a failure replaces the
// result in the history.
func (c *Conversation) late(l lateCall) {
	e := dispatch(l.response, c.language())
	if !e.failed {
		return
	}
	c.log.Warn("control failed after its success was assumed",
		"tool", l.prepared.Offer.Tool.Name, "call_id", l.prepared.Call.ID, "result", clip(e.result, 256))
	if !c.dev.history.replaceResult(l.prepared.Call.ID, e.result) {
		c.lateCalls = append(c.lateCalls, l) // its turn is still going on
	}
}
