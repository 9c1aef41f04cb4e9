package chain

import "context"

// This file is how the members of a race end.

// failed asks the next member in place of one that gave no answer.
func (r *race[P, V]) failed(ctx context.Context, i int, err error) (over bool, _ error) {
	r.live[i]()
	delete(r.live, i)
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
			r.settle(i, errLate)
		case ok:
			free()
			delete(r.live, i)
			r.walk.breakers[i].released()
		}
	}
}

// settle tells the breaker of a member's outcome and releases the member.
func (r *race[P, V]) settle(i int, err error) {
	r.live[i]()
	delete(r.live, i)
	r.walk.report(i, err)
}

// release releases the members that are left when the consumer leaves or the context ends.
func (r *race[P, V]) release() {
	for i, cancel := range r.live {
		cancel()
		if i == r.winner {
			r.walk.breakers[i].succeeded() // it was answering
		} else {
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
