package chain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"xiaozhi/internal/timeline"
)

// ErrLate is the fault of a member that was overtaken.
var ErrLate = errors.New("another answered while it was silent")

var (
	errSilent = errors.New("it has not answered in time")
	errEmpty  = errors.New("it ended without an answer")
)

// weight is the worth of a member's value in a race.
type weight int

const (
	nothing weight = iota // neither an answer nor a sign of one; it is handed on
	unasked               // as nothing, but it is not handed on
	sign                  // it is at work, and so not late
	doubt                 // an answer, the only one of its member, that counts if no other is better
	answer                // it wins
)

// doubtHold is the time, in hedge delays of its member, for which a doubtful answer
// waits for a better one of those that are being asked.
const doubtHold = 2

// event is a value of a member's stream, its error, or its end.
type event[V any] struct {
	member int
	value  V
	err    error
	end    bool
}

// race is one request to a chain. Its loop runs on the caller's goroutine and
// owns all fields; each member that is asked has one goroutine, its pump, that
// only sends events. The value that a pump sends is lent: the pump goes on only
// when the consumer is done with it, even if ctx ends meanwhile, so that a member
// may use its buffers again.
type race[P named, V any] struct {
	policy[V]
	ctx   context.Context //nolint:containedctx // of run, for the record of its attempts
	walk  *run[P]
	yield func(V, error) bool

	winner int                        // -1 until a member has answered
	asked  []int                      // members, in order
	live   map[int]context.CancelFunc // those being asked
	dead   []int                      // those that gave no answer
	hold   *event[V]                  // the doubtful answer
	record map[int]*timeline.Attempt  // of those being asked

	events chan event[V] // unbuffered: a pump is never ahead of the consumer
	taken  chan struct{} // lets the pump whose value was handled go on
	pumps  sync.WaitGroup
	late   *time.Timer // when it fires, the next member is asked
}

// policy holds the rules of a race that differ between recognisers, models and
// voices.
type policy[V any] struct {
	ask   func(ctx context.Context, member int) iter.Seq2[V, error]
	weigh func(member int, v V) weight
	name  func(v *V, provider string)    // sets the provider's name, where there is none yet
	last  func(v V) bool                 // whether the stream is complete with it, before it ends
	may   func(member int) bool          // whether it may be asked now
	empty error                          // of a member that ends without an answer; nil: that is an answer
	since func() time.Time               // when a result could be expected from; nil: from the asking
	ready <-chan struct{}                // closed when lateness begins to count; nil: with the asking
	spent func(v V, a *timeline.Attempt) // adds what a value says of its cost; nil: nothing
	close func(a *timeline.Attempt)      // adds what is known at the end of an attempt; nil: nothing
}

// newRace makes a race along the members of the walk. ask, weigh and name are to be set.
func newRace[P named, V any](walk *run[P], yield func(V, error) bool) *race[P, V] {
	return &race[P, V]{
		policy: policy[V]{last: func(V) bool { return false }, may: anyMember, empty: errEmpty},
		walk:   walk, yield: yield, winner: -1,
		live: map[int]context.CancelFunc{}, record: map[int]*timeline.Attempt{}, events: make(chan event[V]), taken: make(chan struct{}),
	}
}

// run runs the race until its stream is over. It returns the error that is still
// to be yielded, or nil. first is the function that closes a member that is open
// already; nil: no member is.
func (r *race[P, V]) run(ctx context.Context, first context.CancelFunc) error {
	raceCtx, cancel := context.WithCancel(ctx)
	r.ctx = ctx
	r.late = time.NewTimer(time.Hour)
	r.late.Stop()
	defer r.pumps.Wait()
	defer cancel()
	defer r.late.Stop()
	defer r.release()
	if first != nil {
		r.enter(raceCtx, r.walk.last, first)
	} else if !r.next(raceCtx, false) {
		return r.walk.err()
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.ready:
			r.ready = nil
			r.wait(r.walk.last, 1)
		case <-r.late.C:
			if !r.next(raceCtx, true) && r.hold != nil {
				r.yield(r.hold.value, nil)
				return nil
			}
		case e := <-r.events:
			if ctx.Err() != nil { // a member saw it first
				return ctx.Err()
			}
			if over, err := r.handle(raceCtx, e); over {
				return err
			}
		}
	}
}

// next asks the next member. It returns false if all were asked.
func (r *race[P, V]) next(ctx context.Context, beside bool) bool {
	before := r.walk.last
	i, ok := r.walk.next(r.may)
	if !ok {
		return false
	}
	if before >= 0 {
		err := r.walk.lastError()
		if beside {
			err = errSilent
		}
		r.walk.takeOver(ctx, before, i, err)
	}
	r.enter(ctx, i, func() {})
	return true
}

// enter starts a member's pump. free is called when the member is released.
func (r *race[P, V]) enter(ctx context.Context, i int, free func()) {
	memberCtx, cancel := context.WithCancel(ctx)
	gone := make(chan struct{})
	r.asked = append(r.asked, i)
	r.record[i] = &timeline.Attempt{Op: r.walk.op, Provider: r.walk.members[i].Name(), Asked: time.Now()}
	r.live[i] = func() { cancel(); free(); close(gone) }
	r.wait(i, 1)
	r.pumps.Go(func() { r.pump(memberCtx, i, gone) })
}

// wait lets the next member be asked when that many times its hedge delay have passed.
func (r *race[P, V]) wait(i, times int) {
	if delay := r.walk.hedgeAfter(i); delay > 0 && r.ready == nil && r.winner < 0 {
		r.late.Reset(time.Duration(times) * delay)
	} else {
		r.late.Stop()
	}
}

// pump sends what a member yields until its stream or its context ends. gone is
// closed when the member is released.
func (r *race[P, V]) pump(ctx context.Context, i int, gone <-chan struct{}) {
	send := func(e event[V]) bool {
		e.member = i
		select {
		case r.events <- e:
			return true
		case <-ctx.Done():
			return false
		}
	}
	defer func() { // a member's panic on this goroutine would end the program
		if broken := recover(); broken != nil {
			send(event[V]{err: fmt.Errorf("it panicked: %v", broken)})
		}
	}()
	for value, err := range r.ask(ctx, i) {
		if !send(event[V]{value: value, err: err}) || err != nil {
			return
		}
		select {
		case <-r.taken:
		case <-gone:
			return
		}
	}
	send(event[V]{end: true})
}

// handle takes one event. It reports whether the race's stream is over, and with
// which error.
func (r *race[P, V]) handle(ctx context.Context, e event[V]) (over bool, err error) {
	if _, ok := r.live[e.member]; !ok {
		return false, nil // it has lost already
	}
	switch {
	case e.err != nil && e.member == r.winner:
		r.settle(e.member, e.err)
		r.dead = append(r.dead, e.member)
		return true, e.err
	case e.end && e.member == r.winner:
		r.settle(e.member, nil)
		return true, nil
	case e.end && r.empty == nil: // unless another that is being asked has an answer
		r.settle(e.member, nil)
		return len(r.live) == 0, nil
	case e.end:
		return r.failed(ctx, e.member, r.empty)
	case e.err != nil:
		return r.failed(ctx, e.member, e.err)
	}
	return r.value(e)
}

// value takes what a member has given and hands it on.
func (r *race[P, V]) value(e event[V]) (over bool, err error) {
	r.name(&e.value, r.walk.members[e.member].Name())
	w := answer
	if r.winner < 0 {
		w = r.weigh(e.member, e.value)
	}
	if a := r.record[e.member]; a != nil {
		if a.First == 0 {
			a.First = max(time.Since(a.Asked), 1)
		}
		if r.spent != nil {
			r.spent(e.value, a)
		}
	}
	switch {
	case w == doubt && len(r.live) > 1:
		r.settle(e.member, nil)
		r.hold = cmp.Or(r.hold, &e)
		r.wait(e.member, doubtHold)
		return false, nil
	case w == doubt || w == answer && r.winner < 0:
		r.gave(e.member)
		r.win(e.member)
	case w == sign:
		r.late.Stop()
	}
	if r.last(e.value) {
		r.settle(e.member, nil)
		r.yield(e.value, nil)
		return true, nil
	}
	if w != unasked && !r.yield(e.value, nil) {
		return true, nil
	}
	r.taken <- struct{}{} // its pump waits for this
	return false, nil
}

// gave remembers how long the member took for what the race was about.
func (r *race[P, V]) gave(i int) {
	a := r.record[i]
	if a == nil {
		return
	}
	since := a.Asked
	if r.since != nil {
		if begun := r.since(); begun.After(since) {
			since = begun
		}
	}
	r.walk.breakers[i].gave(time.Since(since))
}

// failed asks the next member in place of one that gave no answer.
func (r *race[P, V]) failed(ctx context.Context, i int, err error) (over bool, _ error) {
	r.live[i]()
	delete(r.live, i)
	r.ended(i, timeline.Failed, err)
	r.dead = append(r.dead, i)
	r.walk.fail(i, err)
	switch {
	case r.hold == nil && r.next(ctx, false), len(r.live) > 0:
		return false, nil
	case r.hold != nil:
		r.yield(r.hold.value, nil)
		return true, nil
	}
	return true, r.walk.err()
}

// win closes the requests of all others. To have been overtaken counts as a
// failure, else a member that hangs would cost every turn its delay; but only
// for those asked earlier.
func (r *race[P, V]) win(winner int) {
	r.winner = winner
	r.late.Stop()
	earlier := true
	for _, i := range r.asked {
		free, ok := r.live[i]
		switch {
		case i == winner:
			earlier = false
		case ok && earlier:
			r.settle(i, ErrLate)
		case ok:
			free()
			delete(r.live, i)
			r.ended(i, timeline.Lost, nil)
			r.walk.breakers[i].released()
		}
	}
}

// settle tells the breaker of a member's outcome and releases the member.
func (r *race[P, V]) settle(i int, err error) {
	r.live[i]()
	delete(r.live, i)
	switch {
	case err == nil:
		r.ended(i, timeline.Answered, nil)
	case errors.Is(err, ErrLate):
		r.ended(i, timeline.Lost, nil)
	default:
		r.ended(i, timeline.Failed, err)
	}
	r.walk.report(i, err)
}

// ended notes what came of asking a member.
func (r *race[P, V]) ended(i int, outcome timeline.Outcome, err error) {
	a := r.record[i]
	if a == nil {
		return
	}
	delete(r.record, i)
	if outcome == timeline.Failed && isContext(err) {
		outcome, err = timeline.Left, nil
	}
	a.Outcome, a.Took = outcome, time.Since(a.Asked)
	if err != nil {
		a.Fault = err.Error()
	}
	if r.close != nil {
		r.close(a)
	}
	timeline.NoteAttempt(r.ctx, *a)
}

// release releases the members that are left when the consumer leaves or the context ends.
func (r *race[P, V]) release() {
	for i, cancel := range r.live {
		cancel()
		if i == r.winner {
			r.ended(i, timeline.Answered, nil)
			r.walk.breakers[i].succeeded() // it was answering
		} else {
			r.ended(i, timeline.Left, nil)
			r.walk.breakers[i].released()
		}
	}
}

// leader returns the member asked first of those being asked; -1 if there is none.
func (r *race[P, V]) leader() int {
	for _, i := range r.asked {
		if _, ok := r.live[i]; ok {
			return i
		}
	}
	return -1
}
