package agent

import (
	"context"
	"fmt"
	"sync"
	"time"

	"xiaozhi/agent/turn"
)

// life is the time of a conversation, for what it starts.
type life struct {
	child func() (context.Context, context.CancelCauseFunc) // a context below Run's; set before any child begins
	ended <-chan struct{}                                   // Run's context is over
	over  chan struct{}                                     // closed when Run has left its loop, however: nothing acts any more
	wg    sync.WaitGroup
	timer *time.Timer // the earliest of all limits

	cancel  context.CancelCauseFunc // ends Run's context
	left    bool                    // over is closed
	closers []func()                // what is undone when Run returns, the last first
}

// atEnd has f called when Run returns, before what was added earlier.
func (l *life) atEnd(f func()) { l.closers = append(l.closers, f) }

// end undoes all, the last first, also when something of it panics.
func (l *life) end() {
	if len(l.closers) == 0 {
		l.leave()
		return
	}
	last := len(l.closers) - 1
	undo := l.closers[last]
	l.closers = l.closers[:last]
	defer l.end()
	undo()
}

// leave says that the loop is over.
func (l *life) leave() {
	if !l.left {
		l.left = true
		close(l.over)
	}
}

// stay is what comes before and after the loop of a conversation: borrowing the record of the device, giving it back.
type stay struct{ c *Conversation }

// begin borrows the record of the device, and makes the features. Whatever it returns, the end of life undoes it.
func (s stay) begin(ctx context.Context) (context.Context, error) {
	c := s.c
	dev := newDevice(c.env.Session.DeviceID)
	if c.state.Farewell.Step == turn.Staying {
		var err error
		if dev, err = c.o.Devices.acquire(ctx, c.env.Session.DeviceID); err != nil {
			return nil, fmt.Errorf("borrow the device's record: %w", err)
		}
		c.life.atEnd(func() { c.o.Devices.release(dev) })
		dev.unknown = c.env.Session.Unknown
		c.o.Devices.load(ctx, dev, c.o.Keeper, c.env.Log)
		if c.o.Recall != nil {
			c.o.Recall(dev.memory())
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	c.life.child = func() (context.Context, context.CancelCauseFunc) { return context.WithCancelCause(ctx) }
	c.life.ended, c.life.cancel, c.dev = ctx.Done(), cancel, dev
	c.state.Learned = dev.learned
	c.whom.choose(dev.role)
	if persona, _ := c.cast(&order{}); persona.Forgets { // what was said to another
		dev.history.Clear()
		dev.endTalk()
	}
	c.state.Learned.Empty = 0
	c.life.timer = time.NewTimer(time.Hour)
	c.life.atEnd(func() { c.life.timer.Stop() })
	c.state.Active = time.Now()
	c.state.Due.Idle = c.state.Active.Add(c.o.IdleClose)
	// A panic takes this way too: what works with the device's record is joined before
	// another gets it, and what the features keep in it is not lost.
	c.life.atEnd(s.detach)
	c.life.atEnd(s.join)
	dev.queue.setQuiet(quiet{c}.on())
	for _, f := range c.o.Features {
		c.features = append(c.features, f.Attach(host{c}, dev.states[f.Name()]))
	}
	c.life.atEnd(quiet{c}.follow())
	dev.queue.changed = true
	c.tellQueued()
	return ctx, nil
}

// finish ends the turn that runs, and keeps what was said. It returns cause.
func (s stay) finish(cause error) error {
	c := s.c
	c.step(turn.Close{})
	if c.reply != nil {
		c.reply.player.Cut()
		c.reply.cancel(cause)
	}
	s.join()
	if r := c.reply; r != nil && (r.marks.adopted || !r.order.Speculative) { // else nobody has finished saying what it answers
		c.remember(r)
	}
	c.learn()
	if c.o.Keeper != nil && c.dev.talk.ID != "" {
		c.o.Keeper.Ended(c.dev.talk, time.Now(), cause)
	}
	return cause
}

// join waits for all that was started. It may be called again.
func (s stay) join() {
	c := s.c
	c.life.cancel(turn.ErrFailed) // after a panic; else it has a cause already
	c.life.leave()
	c.life.wg.Wait()
	c.duplex.close()
}

// detach puts what the features keep into the device's record.
func (s stay) detach() {
	c := s.c
	for i, in := range c.features {
		name := c.o.Features[i].Name()
		if state := in.Detach(); state != nil {
			c.dev.set(name, state)
		} else {
			delete(c.dev.states, name)
		}
	}
	if c.whom.now().Forgets {
		c.dev.history.Clear()
		c.dev.endTalk()
	}
	c.dev.queue.forsake()
}
