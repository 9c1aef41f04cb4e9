package chain

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"xiaozhi/providers"
)

// event is what a member's stream gave: a delta, an error, or its end.
type event struct {
	member int
	delta  providers.Delta
	err    error
	end    bool
}

// race is one Generate of a chain. Its loop runs on the caller's goroutine and
// owns all fields; each member that is asked has one goroutine, its pump, that
// only sends events.
type race struct {
	llm    *LLM
	run    *run[providers.LLM]
	req    providers.LLMRequest
	yield  func(providers.Delta, error) bool
	winner int // -1 until somebody has answered

	events chan event // unbuffered: a pump is never ahead of the consumer
	pumps  sync.WaitGroup
	live   map[int]context.CancelFunc // members being asked
	late   *time.Timer                // when it fires, the next member is asked
}

// loop runs the race until its stream is over.
func (r *race) loop(ctx, raceCtx context.Context) {
	defer r.release()
	if !r.ask(raceCtx, false) {
		r.yield(providers.Delta{}, r.run.err())
		return
	}
	for {
		select {
		case <-ctx.Done():
			r.yield(providers.Delta{}, ctx.Err())
			return
		case <-r.late.C:
			r.ask(raceCtx, true)
		case e := <-r.events:
			if ctx.Err() != nil { // a member saw it first
				r.yield(providers.Delta{}, ctx.Err())
				return
			}
			if !r.handle(raceCtx, e) {
				return
			}
		}
	}
}

// ask asks the next member. Beside others only a model is asked; a last resort
// needs all others to have failed. It is false when there is nobody to ask.
func (r *race) ask(ctx context.Context, beside bool) bool {
	before := r.run.last
	i, ok := r.run.next(func(i int) bool { return r.llm.isModel(i) || len(r.live) == 0 })
	if !ok {
		return false
	}
	if before >= 0 {
		err := r.run.lastError()
		if beside {
			err = errSilent
		}
		r.llm.takeOver(ctx, before, i, err)
	}
	memberCtx, cancel := context.WithCancel(ctx)
	r.live[i] = cancel
	if patience := r.llm.patience(i); patience > 0 {
		r.late.Reset(patience)
	} else {
		r.late.Stop()
	}
	r.pumps.Go(func() { r.pump(memberCtx, i) })
	return true
}

// pump sends what a member yields until its stream or its context ends.
func (r *race) pump(ctx context.Context, i int) {
	send := func(e event) bool {
		e.member = i
		select {
		case r.events <- e:
			return true
		case <-ctx.Done():
			return false
		}
	}
	defer func() { // this goroutine is ours, so a member's panic would be everybody's end
		if broken := recover(); broken != nil {
			send(event{err: fmt.Errorf("it panicked: %v", broken)})
		}
	}()
	for delta, err := range r.llm.members[i].Generate(ctx, r.req) {
		if !send(event{delta: delta, err: err}) || err != nil {
			return
		}
	}
	send(event{end: true})
}

// handle takes one event. It is false when the race's stream is over.
func (r *race) handle(ctx context.Context, e event) bool {
	if _, ok := r.live[e.member]; !ok {
		return true // it has lost already
	}
	switch {
	case e.err != nil && e.member == r.winner:
		r.settle(e.member, e.err)
		r.yield(providers.Delta{}, e.err)
		return false
	case e.end && e.member == r.winner:
		r.settle(e.member, nil)
		return false
	case e.end:
		return r.failed(ctx, e.member, errEmpty)
	case e.err != nil:
		return r.failed(ctx, e.member, e.err)
	}
	if e.delta.Provider == "" {
		e.delta.Provider = r.llm.members[e.member].Name()
	}
	if r.winner < 0 {
		if e.delta.Thought != "" { // an empty delta, such as the role that opens a stream, shows nothing
			r.late.Stop()
		}
		if e.delta.Text != "" || len(e.delta.ToolCalls) > 0 {
			r.win(e.member)
		}
	}
	return r.yield(e.delta, nil)
}

// failed asks the next member in place of one that gave no answer.
func (r *race) failed(ctx context.Context, i int, err error) bool {
	r.live[i]()
	delete(r.live, i)
	r.run.fail(i, err)
	if r.ask(ctx, false) || len(r.live) > 0 {
		return true
	}
	r.yield(providers.Delta{}, r.run.err())
	return false
}

// win closes the requests of all others. To have been overtaken counts as a
// failure, else a member that hangs would cost every turn its patience; but only
// for those asked earlier.
func (r *race) win(winner int) {
	r.winner = winner
	r.late.Stop()
	for _, i := range slices.Sorted(maps.Keys(r.live)) {
		if i == winner {
			continue
		}
		if i < winner {
			r.settle(i, errLate)
			continue
		}
		r.live[i]()
		delete(r.live, i)
		r.llm.breakers[i].released()
	}
}

// settle reports a member's outcome and lets it go.
func (r *race) settle(i int, err error) {
	r.live[i]()
	delete(r.live, i)
	r.llm.report(i, err)
}

// release lets go whoever is left when the consumer leaves or the context ends.
func (r *race) release() {
	for i, cancel := range r.live {
		cancel()
		if i == r.winner {
			r.llm.breakers[i].succeeded() // it was answering
		} else {
			r.llm.breakers[i].released()
		}
	}
}
