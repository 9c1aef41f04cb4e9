// Package agent holds conversations: it hears an utterance, thinks with a
// language model and tools, and speaks the answer. It never sees a socket or a
// vendor: it is given events, and speaks through Outbox and the provider contracts.
package agent

import (
	"context"
	"fmt"
	"strings"
	"time"

	"xiaozhi/agent/feature"
	"xiaozhi/agent/speak"
	"xiaozhi/agent/think"
	"xiaozhi/agent/turn"
	"xiaozhi/audio"
	"xiaozhi/internal/timeline"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp/router"
)

// Conversation is the actor of one talk over one connection: it feeds
// [turn.Rules.Next] with what happens and performs the effects.
//
// # Concurrency
//
// Post, Hear, Do and Over may be called at any time. All else
// happens on the goroutine of Run, which owns state, history and announcements.
type Conversation struct {
	o      *Options
	think  think.Options
	speak  speak.Options
	env    feature.Env
	out    wire.Outbox
	in     *wire.Queue[wire.Event]
	events chan func() // run one after the other; size 64, senders wait until the conversation ends

	rules turn.Rules
	state turn.State

	whom   whom
	follow *follower
	mic    *microphone
	duplex *duplex
	reply  *reply       // that runs, or is being joined; nil: none
	pacer  *audio.Pacer // of the last reply: what it has learned of the way to the device
	dev    *Device
	void   timeline.Void // what was asked for answers that were given up

	features []feature.Instance // in the order of [Options].Features
	asked    asked
	life     life
}

// asked holds what the user was asked last.
type asked struct {
	call      think.Asked          // to be allowed
	turn      uint64               // that asked for it
	id        uint64               // of the announcement that answer belongs to
	answer    func(feature.Answer) // takes the user's next words; nil: nobody waits
	overtaken bool                 // something else was told after that announcement
}

// New makes a conversation for one connection. tools must stay open until Run
// has returned.
func New(o Options, s wire.Session, out wire.Outbox, tools *router.Router) *Conversation {
	if o.Latest != nil {
		if latest := o.Latest(); latest != nil {
			o = o.with(latest)
		}
	}
	o = o.withDefaults()
	c := &Conversation{
		o: &o, out: out,
		env: feature.Env{
			Session: s, Texts: o.Prompts, Tools: tools, Log: o.Log.With("device_id", s.DeviceID, "session_id", s.SessionID),
		},
		in: wire.NewQueue[wire.Event](), events: make(chan func(), 64), life: life{over: make(chan struct{})},
		state: turn.State{Mic: turn.Mic{Mode: wire.Auto, Deaf: true}},
	}
	c.follow = &follower{c}
	c.follow.heed()
	c.restrict(c.whom.now()) // others may call before Run knows the user's choice
	c.mic = newMicrophone(c)
	c.duplex = newDuplex(c)
	c.mic.o.Sounds = c.duplex
	return c
}

// Renew has the conversation look at its options, if nobody answers; else it does so before the next turn. It may be called
// at any time, and does not wait.
func (c *Conversation) Renew() {
	select {
	case c.events <- func() { c.recast() }:
	default: // it has enough to do, and looks before the next turn
	}
}

// Farewell says why a device may not talk.
type Farewell struct {
	Phrase string // one that is embedded as sound
	Words  string // said in its place, if there is a voice; "": the phrase is played, and no engine is asked
	Cause  error  // of the hang-up
}

// NewFarewell makes a conversation with a device that may not talk. As soon as it
// listens it is told why, then it is hung up on. No tool or record of the device is
// used.
func NewFarewell(o Options, s wire.Session, out wire.Outbox, f Farewell) *Conversation {
	o.VAD, o.ASR, o.LLM, o.Realtime, o.FastPath, o.Phrases, o.Features = nil, nil, nil, nil, nil, nil, nil
	o.Persona, o.Keeper, o.Latest, o.Limits = nil, nil, nil, nil
	if f.Words == "" {
		o.TTS = nil
	}
	c := New(o, s, out, nil)
	c.state = turn.TurnedAway(time.Now(), turn.Farewell{Phrase: f.Phrase, Words: f.Words, Cause: f.Cause})
	return c
}

// Post hands over what the device did. It never waits. [wire.ErrOverrun] means
// that the device sends more than any device can mean: end the connection.
func (c *Conversation) Post(ev wire.Event) error { return c.in.Post(ev) }

// Hear hands over a copy of a microphone packet. It never waits.
func (c *Conversation) Hear(p wire.Packet) { c.in.Put(p) }

// Run holds the conversation until ctx ends, and returns after all it started
// has been joined. It is called once.
//
// The stack of an idle device is halved by the next collection of garbage if these frames are small: what comes before and
// after the loop has functions of its own.
func (c *Conversation) Run(ctx context.Context) error {
	ctx, err := stay{c}.begin(ctx)
	defer c.life.end()
	if err != nil {
		return err
	}
	c.loop(ctx)
	return stay{c}.finish(context.Cause(ctx))
}

func (c *Conversation) loop(ctx context.Context) {
	var items []wire.Item[wire.Event]
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.in.Ready():
			items = takeIn(c, items)
		case f := <-c.events:
			if ctx.Err() != nil {
				return // a turn that has ended with the connection is cut, not stopped
			}
			f()
			c.setTimer()
		case <-c.life.timer.C:
			c.tick()
		}
		c.tellQueued()
	}
}

// takeIn acts on what the device has done. The memory of items is used again.
func takeIn(c *Conversation, items []wire.Item[wire.Event]) []wire.Item[wire.Event] {
	items, lost := c.in.Take(items)
	if lost > 0 {
		c.env.Log.Warn("audio frames dropped", "frames", lost)
	}
	for _, it := range items {
		c.device(it)
	}
	return items
}

// post has f run by the loop. It may be called by any goroutine but that of Run.
func (c *Conversation) post(f func()) {
	select {
	case c.events <- f:
	case <-c.life.ended:
	}
}

// report passes an event of a child to the loop.
func (c *Conversation) report(e turn.Event) { c.post(func() { c.step(e) }) }

func (c *Conversation) device(it wire.Item[wire.Event]) {
	switch {
	case c.state.Farewell.Step >= turn.Leaving:
		return
	case it.IsPacket && !c.state.Mic.Open: // it is thrown away, but counted
		c.mic.burst.frame(time.Now())
	case it.IsPacket && c.mic.listener != nil:
		c.mic.listener.Put(it.Packet)
	}
	switch ev := it.Event.(type) {
	case wire.ListenStart:
		c.mic.burst.reset()
		c.step(turn.ListenStart{Mode: ev.Mode})
	case wire.ListenStop:
		c.mic.burst.stopped = time.Now()
		c.step(turn.ListenStop{})
	case wire.Detect:
		c.step(c.detected(ev.Text))
	case wire.Abort:
		c.env.Log.Debug("abort", "reason", ev.Reason, "state", c.state.Phase())
		c.step(turn.Abort{Wake: strings.Contains(ev.Reason, "wake")})
	case wire.Drain:
		c.step(turn.Drain{Cause: ev.Cause})
	}
}

// step moves the state by an event, performs what follows, and sets the timer.
// It may be called by an effect's performer, after the effects before it.
func (c *Conversation) step(e turn.Event) {
	before := c.state.Phase()
	switch e.(type) {
	case turn.ListenStart:
		c.recast()
	case turn.SpeechStarted:
		c.recast()
		c.o.tell(Report{Stage: StageVoice})
	}
	state, effects := c.rules.Next(c.state, c.seen(), e)
	c.state = state
	c.dev.learned = state.Learned
	if after := state.Phase(); after != before {
		c.env.Log.Debug("state", "from", before, "to", after, "event", fmt.Sprintf("%T", e))
		if c.o.Phase != nil {
			c.o.Phase(after)
		}
	}
	for _, f := range effects {
		c.perform(f)
	}
	if err := c.mic.failed; err != nil {
		c.mic.failed = nil
		c.step(turn.ListenFailed{Err: err})
	}
	c.setTimer()
}

// seen reads what the rules may know beside state and event.
func (c *Conversation) seen() turn.Seen {
	now := time.Now()
	queue := c.dev.queue.view()
	seen := turn.Seen{Now: now, Expecting: queue.Len > 0, Queue: queue}
	for _, in := range c.features {
		seen.Expecting = seen.Expecting || in.Expects(now)
	}
	for l := range each[feature.Lasting](c.features) {
		seen.Song = seen.Song || l.Lasts()
	}
	if c.reply != nil {
		seen.Playing = c.reply.player.Playing(now)
		seen.Busy, seen.Quiet = c.reply.speaker.Quiet()
		seen.Stale = c.reply.version != c.dev.history.Version()
	}
	return seen
}

// tellQueued tells the rules when what waits to be announced has changed.
func (c *Conversation) tellQueued() {
	quiet{c}.heed()
	if c.dev.queue.changed {
		c.dev.queue.changed = false
		c.step(turn.Queued{})
	}
}

func (c *Conversation) setTimer() {
	due := c.state.Deadline()
	for t := range each[feature.Timed](c.features) {
		if at := t.Deadline(); !at.IsZero() && (due.IsZero() || at.Before(due)) {
			due = at
		}
	}
	if due.IsZero() {
		c.life.timer.Stop()
		return
	}
	c.life.timer.Reset(time.Until(due))
}

func (c *Conversation) tick() {
	now := time.Now()
	for t := range each[feature.Timed](c.features) {
		if at := t.Deadline(); !at.IsZero() && !at.After(now) {
			t.Tick(now)
		}
	}
	c.tellQueued()
	if at := c.state.Deadline(); !at.IsZero() && !at.After(now) {
		c.step(turn.Tick{})
		return
	}
	c.setTimer()
}
