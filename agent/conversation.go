package agent

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	core "xiaozhi/agent/turn"
	"xiaozhi/audio"
	"xiaozhi/audio/echo"
	"xiaozhi/internal/text"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp/router"
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
	keepAlive    = 60 * time.Second       // between the messages that keep a channel open for what is to come
)

// Conversation is what one device says and hears over one connection. Post may
// be called at any time; everything else happens on the goroutine of Run, which
// owns the state, the history and the turns.
type Conversation struct {
	o        *Options
	session  wire.Session
	out      wire.Outbox
	tools    *router.Router
	log      *slog.Logger
	in       *wire.Queue[wire.Event]
	loopback *echo.SelfEcho // nil: there is no echo, or words have to tell
	monitor  *echo.FarEnd   // nil: the device takes its own sound out of the microphone, or has none open
	pacer    *audio.Pacer   // of the last reply: what it has learned of the way to the device
	reports  chan any       // from ears and turns; size 64, senders wait until the conversation ends

	child func() (context.Context, context.CancelCauseFunc) // of Run's context; set before any child begins
	ended <-chan struct{}                                   // Run's context is over
	over  chan struct{}                                     // closed when Run has left its loop: nobody acts any more
	wg    sync.WaitGroup
	dev   *Device
	state State
	mode  wire.Mode
	open  bool // the device has opened its microphone

	ears      *ears
	earsStop  context.CancelCauseFunc
	stretch   uint64       // counts the stretches of listening; what ears report of an older one is void
	deafness  int          // failures of the ears in a row
	garbled   atomic.Int64 // frames that are not Opus; of the ears
	textDue   *time.Timer
	heard     []*utterance // said, and not yet answered irrevocably
	beside    []*utterance // said over a reply, and not understood yet
	slow      []*utterance // said some time ago; their text is slow, or waits for its turn
	trials    int          // turns begun on trial since the last answer
	discarded int          // so many of them were undone
	adopted   bool         // the turn that began on trial is the answer
	overlap   overlap      // what is said over the reply that is spoken
	hushDue   *time.Timer  // a paused reply goes on
	lastSaid  lastSaid     // of the reply before
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
	active    time.Time   // when the last thing happened
	voiced    atomic.Bool // somebody is speaking; turns look at it
	calm      *time.Timer // the next notice may be told
	alarm     *time.Timer // the next timer is due
	early     []settled   // true results that came before their call was in the history
	expect    *request    // who waits for the next words of the user; nil: nobody
	asked     *consent    // what the user was asked to allow
	shadow    *shadow     // nil: nobody compares
}

// turnEnded reports that a turn's goroutines have been joined.
type turnEnded struct{ t *turn }

// turnBegan reports that tts start was sent.
type turnBegan struct{ t *turn }

// settled is the true result of a call.
type settled struct{ callID, result string }

// New makes a conversation for one connection. tools must stay open until Run
// has returned.
func New(o Options, s wire.Session, out wire.Outbox, tools *router.Router) *Conversation {
	opts := o.withDefaults()
	c := &Conversation{
		o: &opts, session: s, out: out, tools: tools,
		log: opts.Log.With("device_id", s.DeviceID, "session_id", s.SessionID),
		in:  wire.NewQueue[wire.Event](), reports: make(chan any, 64), over: make(chan struct{}), mode: wire.Auto,
	}
	c.shadow = newShadow(c.o, s)
	if s.AEC && !opts.NoEchoGuard {
		c.monitor = &echo.FarEnd{}
	} else if !opts.NoEchoGuard {
		c.loopback = &echo.SelfEcho{}
	}
	return c
}

// Post hands over what the device did. It never waits. [wire.ErrOverrun] means
// that the device sends more than any device can mean: end the connection.
func (c *Conversation) Post(ev wire.Event) error { return c.in.Post(ev) }

// Hear hands over a copy of a microphone packet. It never waits.
func (c *Conversation) Hear(p wire.Packet) { c.in.Put(p) }

// Run holds the conversation until ctx ends, and returns after all it started
// has been joined. It is called once.
func (c *Conversation) Run(ctx context.Context) error {
	dev, err := c.o.Devices.lend(ctx, c.session.DeviceID)
	if err != nil {
		return fmt.Errorf("borrow the device's record: %w", err)
	}
	defer c.o.Devices.giveBack(dev)
	if c.o.Recall != nil {
		c.o.Recall(dev.memory())
	}
	ctx, cancel := context.WithCancelCause(ctx)
	c.child = func() (context.Context, context.CancelCauseFunc) { return context.WithCancelCause(ctx) }
	c.ended, c.dev = ctx.Done(), dev
	c.greet, c.idle = time.NewTimer(time.Hour), time.NewTimer(c.o.IdleClose)
	for _, timer := range []**time.Timer{&c.textDue, &c.calm, &c.alarm, &c.hushDue} {
		*timer = time.NewTimer(time.Hour)
	}
	for _, timer := range []*time.Timer{c.greet, c.textDue, c.calm, c.alarm, c.hushDue} {
		timer.Stop()
		defer timer.Stop()
	}
	defer c.idle.Stop()
	if c.shadow != nil {
		c.shadow.state.Learned = core.Learned{
			Lang: text.Lang(dev.language), Pause: core.LearnedPause{Need: dev.pause.need, Fast: dev.pause.fast}, Echoes: dev.echoes, Hinted: dev.hinted,
		}
		c.shadow.state.Active = time.Now()
		c.shadow.state.Due.Idle = time.Now().Add(c.o.IdleClose)
		if c.dev.expecting(time.Now()) {
			c.shadow.state.Due.Idle = time.Now().Add(min(c.o.IdleClose, keepAlive))
		}
		c.shadow.state, _ = c.shadow.rules.Next(c.shadow.state, c.shadowSeen(), core.Queued{})
	}
	c.touch()
	c.setAlarm()
	c.loop(ctx)
	close(c.over)
	c.step(sigHangUp)
	cause := context.Cause(ctx)
	if c.turn != nil && !c.turnDone {
		c.turn.floor.cut()
		c.turn.cancel(cause)
	}
	cancel(cause)
	c.wg.Wait()
	c.keep()
	c.dev.endSong() // music ends with the connection
	return cause
}

// loop is the life of the conversation.
func (c *Conversation) loop(ctx context.Context) {
	var items []wire.Item[wire.Event]
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.in.Ready():
			var lost int
			if items, lost = c.in.Take(items); lost > 0 {
				c.log.Warn("audio frames dropped", "frames", lost)
			}
			for _, it := range items {
				c.shadowed(func() core.Event { return c.shadowDevice(it) }, func() { c.device(it) })
			}
		case r := <-c.reports:
			c.shadowed(func() core.Event { return c.shadowReported(r) }, func() { c.reported(r) })
		case <-c.greet.C:
			c.shadowTick(func(s *core.State) *time.Time { return &s.Due.Greeting }, c.greetNow)
		case <-c.textDue.C:
			c.shadowTick(func(s *core.State) *time.Time { return &s.Due.Text }, c.textSlow)
		case <-c.dev.mail.notify:
			for _, news := range c.dev.mail.take() {
				c.shadowed(func() core.Event { return nil }, func() { c.news(news) })
			}
		case <-c.hushDue.C:
			c.shadowTick(func(s *core.State) *time.Time { return &s.Reply.Until }, c.goOn)
		case <-c.calm.C:
			c.shadowTick(func(s *core.State) *time.Time { return &s.Due.Announce }, c.tellNext)
		case <-c.alarm.C:
			c.shadowed(func() core.Event { return nil }, c.ringAlarms)
		case <-c.idle.C:
			c.shadowTick(func(s *core.State) *time.Time { return &s.Due.Idle }, c.idleOver)
		}
	}
}

// keep saves what the turn that was joined last has left behind.
func (c *Conversation) keep() {
	if c.turn == nil || c.turnDone {
		return
	}
	c.turnDone = true
	if c.turn.order.trial && !c.adopted {
		return // nobody has finished saying what it answers
	}
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
func (c *Conversation) device(it wire.Item[wire.Event]) {
	switch {
	case c.hungUp:
		return
	case it.IsPacket:
		c.frame(it.Packet)
		return
	}
	switch ev := it.Event.(type) {
	case wire.ListenStart:
		c.listenStart(ev.Mode)
	case wire.ListenStop:
		c.listenStop()
	case wire.Detect:
		c.detect(ev.Text)
	case wire.Abort:
		c.abort(ev.Reason)
	}
}

// reported acts on what a child reports.
func (c *Conversation) reported(v any) {
	switch v := v.(type) {
	case heardVoice:
		c.voice(v.u)
	case heardBargeIn:
		c.bargeIn(v.u, v.own)
	case heardGuess:
		c.guessed(v)
	case heardPause:
		c.overlapPaused(v.u)
	case heardResume:
		c.resumed(v)
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
	case handlerCall:
		c.runHandler(v)
	}
}

// news is what came for the device from outside its conversation.
func (c *Conversation) news(v any) {
	switch v := v.(type) {
	case lateCall:
		c.late(v)
	case jobDone:
		c.jobOver(v)
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

// touch notes that something happens, which puts off the idle close and the
// next notice.
func (c *Conversation) touch() {
	c.active = time.Now()
	after := c.o.IdleClose
	if c.dev.expecting(c.active) {
		after = min(after, keepAlive)
	}
	c.idle.Reset(after)
	c.awaitCalm()
}

// idleOver hangs up a channel on which nothing happens (device-protocol 3.4),
// unless something is expected: then a message keeps it open.
func (c *Conversation) idleOver() {
	switch {
	case c.turn != nil && !c.turnDone:
		c.touch()
	case c.dev.expecting(time.Now()):
		c.out.Send(wire.Message{Kind: wire.MessageKeepAlive})
		c.did(core.Send{Kind: wire.MessageKeepAlive})
		c.awaitCalm()
		c.idle.Reset(min(c.o.IdleClose, keepAlive))
	case time.Since(c.active) < c.o.IdleClose: // what was expected has come to nothing
		c.idle.Reset(c.o.IdleClose - time.Since(c.active))
	default:
		c.hangUp(ErrIdle)
	}
}

// hangUp ends the conversation in good order.
func (c *Conversation) hangUp(cause error) {
	if c.hungUp {
		return
	}
	c.hungUp = true
	c.log.Info("hanging up", "cause", cause)
	defer c.did(core.HangUp{Cause: cause})
	c.greet.Stop()
	c.greeting = ""
	c.forget()
	c.forgetSlow()
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
