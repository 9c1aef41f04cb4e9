package agent

import (
	"context"
	"sync/atomic"

	"xiaozhi/agent/feature"
	"xiaozhi/agent/turn"
)

// Do runs f on the conversation's goroutine, which f must not hold up. The error
// is f's, or why f was not run: ctx or the conversation has ended. It may be called at any time.
func (c *Conversation) Do(ctx context.Context, f func(feature.Host) error) error {
	post := func(v any) {
		select {
		case c.events <- v:
		case <-ctx.Done():
		case <-c.life.over:
		}
	}
	_, err := ask(ctx, post, c.life.over, 0, func() error {
		if c.state.Farewell.Step != turn.Staying {
			return feature.ErrOver
		}
		return f(host{c})
	})
	return err
}

// Over is closed when the conversation has ended.
func (c *Conversation) Over() <-chan struct{} { return c.life.over }

// call asks the conversation to run f, for a turn while it has the floor, or for
// somebody outside. Whoever sets taken first decides: either f runs and the
// caller waits for it, or the caller has given it up and it never runs.
type call struct {
	turn  uint64 // 0: somebody outside
	f     func() error
	taken *atomic.Bool
	done  chan error // size 1
}

// ask runs f on the conversation's goroutine and waits for it. It says whether f
// was run: not if the turn was taken away, or ctx or the conversation has ended
// before.
func ask(ctx context.Context, post func(any), over <-chan struct{}, id uint64, f func() error) (ran bool, err error) {
	c := call{turn: id, f: f, taken: new(atomic.Bool), done: make(chan error, 1)}
	post(c)
	select {
	case err := <-c.done:
		return true, err
	case <-ctx.Done():
		if c.taken.CompareAndSwap(false, true) {
			return false, context.Cause(ctx)
		}
	case <-over:
		if c.taken.CompareAndSwap(false, true) {
			return false, feature.ErrOver
		}
	}
	return true, <-c.done // it runs, and does not wait for anybody
}

// runCall runs a call of a turn that still has the floor, or of somebody outside,
// who needs none.
func (c *Conversation) runCall(k call) {
	if k.turn != 0 && !c.state.Runs(k.turn) || !k.taken.CompareAndSwap(false, true) {
		return
	}
	k.done <- protect(c.log, "handler", k.f)
	c.setTimer()
}
