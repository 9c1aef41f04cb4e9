// Package chain makes one provider of several: the first is used, the next take
// over when it fails, and are asked beside it when it is late (1.5 s); the first
// answer wins and the requests of the others are closed. A member that fails
// three times in a row is left out for 30 s and then tried once.
//
// Members that hear and speak by themselves are asked one at a time, and are left out
// after one failure.
//
// A chain starts goroutines only inside Generate, Synthesize and Transcripts, and
// waits for them before the loop ends. The chains are safe for many connections at once; all of them share
// the members' breakers.
package chain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"xiaozhi/providers"
)

// The limits of a member (docs/behaviours.md 39).
const (
	hedgeAfter  = 1500 * time.Millisecond // of silence, unless [Options] says otherwise
	maxFailures = 3                       // in a row, until it is left out
	rest        = 30 * time.Second        // until it is tried again
)

// Options are the settings of a chain. The zero value works.
type Options struct {
	Log *slog.Logger // of take-overs; discarded if nil

	// HedgeAfter is the time for which a member may be silent before the next is asked
	// beside it, by its name; 1.5 s for those not named, for ever if negative. It ends with
	// the first text or thought of a model, the first sound of a voice, and the
	// final transcript of a recogniser, where it begins with the end of the sound. A member of
	// a [Duplex] has failed then; 5 s for those not named.
	HedgeAfter map[string]time.Duration
	// About says what members are, by their names, for who looks at their states.
	About map[string]string
	// LastResort names members that are no language models and so run only when
	// all others have failed. A member may also say so itself: LastResort() bool.
	LastResort []string
	// Breakers are those of members that are in other chains too, or were in another one before, by their names. The
	// others have their own.
	Breakers map[string]*Breaker
}

// Breaker remembers how a member answers, for all chains that it is in. The zero value has seen nothing. It must not be
// copied, and belongs to chains of one kind.
type Breaker struct{ breaker breaker }

// named is a member of any chain.
type named interface{ Name() string }

// list holds the members of a chain and decides which are asked, and when.
type list[P named] struct {
	members  []P
	breakers []*breaker
	opts     Options
	op       string // for errors and the log: "recognize", "think", "speak" or "converse"
}

// newList checks and prepares the members.
func newList[P named](members []P, o Options, op string) (list[P], error) {
	if len(members) == 0 {
		return list[P]{}, fmt.Errorf("chain to %s: it has no members", op)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	l := list[P]{members: slices.Clone(members), opts: o, op: op}
	for _, m := range members {
		if shared := o.Breakers[m.Name()]; shared != nil {
			l.breakers = append(l.breakers, &shared.breaker)
		} else {
			l.breakers = append(l.breakers, &breaker{})
		}
	}
	return l, nil
}

// Name returns the name of the first member.
func (l *list[P]) Name() string { return l.members[0].Name() }

// Warm lets the member that will be asked first get ready, if it knows how to
// (providers.Warmer). It tries no member that is left out after failures.
func (l *list[P]) Warm(ctx context.Context) error {
	for i, m := range l.members {
		if !l.breakers[i].closed() {
			continue
		}
		if w, ok := any(m).(providers.Warmer); ok {
			return w.Warm(ctx)
		}
		return nil
	}
	return nil
}

// report tells the breaker of member i how a request ended.
func (l *list[P]) report(i int, err error) {
	if err != nil && !isContext(err) && !providers.LacksLanguage(err) {
		l.breakers[i].faulty(err)
	}
	switch {
	case err == nil:
		l.breakers[i].succeeded()
	case isContext(err) || kindOf(err) == providers.BadRequest || providers.LacksLanguage(err):
		l.breakers[i].released() // says nothing about the member's health
	default:
		l.breakers[i].failed()
	}
}

// hedgeAfter returns the time after which the next member is asked beside member i,
// if i has given nothing.
func (l *list[P]) hedgeAfter(i int) time.Duration {
	if d := l.opts.HedgeAfter[l.members[i].Name()]; d != 0 {
		return d
	}
	return hedgeAfter
}

// takeOver logs that the next member stands in.
func (l *list[P]) takeOver(ctx context.Context, from, to int, err error) {
	level := slog.LevelWarn
	if providers.LacksLanguage(err) { // that is what the next one is there for
		level = slog.LevelDebug
	}
	l.opts.Log.LogAttrs(ctx, level, "provider takes over", slog.String("op", l.op),
		slog.String("provider", l.members[to].Name()), slog.String("from", l.members[from].Name()), slog.Any("err", err))
}

// run is one walk along the members of a chain. It is for one goroutine.
type run[P named] struct {
	*list[P]
	order []int // of the members still to be looked at
	tried int
	last  int     // the member tried last; -1 before the first
	errs  []error // of all that failed, in order
}

// walk begins at the first member.
func (l *list[P]) walk() *run[P] {
	r := &run[P]{list: l, last: -1}
	for i := range l.members {
		r.order = append(r.order, i)
	}
	return r
}

// next returns the next member whose breaker lets it be tried and for which want
// is true. When no member at all may be tried, the last one is tried anyway.
func (r *run[P]) next(want func(i int) bool) (int, bool) {
	for len(r.order) > 0 {
		i := r.order[0]
		if !want(i) {
			return 0, false
		}
		r.order = r.order[1:]
		if !r.breakers[i].allow() {
			r.errs = append(r.errs, fmt.Errorf("%s: left out after failures", r.members[i].Name()))
			if len(r.order) > 0 || r.tried > 0 {
				continue
			}
		}
		r.tried++
		r.last = i
		return i, true
	}
	return 0, false
}

// anyMember wants every member.
func anyMember(int) bool { return true }

// fail tells the breaker of a member's error and keeps it.
func (r *run[P]) fail(i int, err error) {
	r.report(i, err)
	r.note(i, err)
}

// note keeps an error for the one that names them all.
func (r *run[P]) note(i int, err error) {
	if _, ok := errors.AsType[*providers.Error](err); !ok {
		err = fmt.Errorf("%s: %w", r.members[i].Name(), err)
	}
	r.errs = append(r.errs, err)
}

// err joins the errors of all members, in their order, as one of the kind of the last.
func (r *run[P]) err() error {
	joined := errors.Join(r.errs...)
	return &providers.Error{Provider: r.Name(), Op: r.op, Kind: kindOf(r.errs[len(r.errs)-1]), Err: joined}
}

// lastError returns the newest error, nil if there is none.
func (r *run[P]) lastError() error {
	if len(r.errs) == 0 {
		return nil
	}
	return r.errs[len(r.errs)-1]
}

// kindOf returns the kind of a provider's error; any other error counts as unavailable.
func kindOf(err error) providers.Kind {
	if failed, ok := errors.AsType[*providers.Error](err); ok {
		return failed.Kind
	}
	return providers.Unavailable
}

// isContext reports whether err only tells that the caller has hung up. A provider that
// has run out of its own time, as for a host that is switched off, has failed.
func isContext(err error) bool {
	_, own := errors.AsType[*providers.Error](err)
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) && !own
}

// breaker remembers the failures of a member: closed (it is used), open (it is left
// out), half open (one call may try it).
type breaker struct {
	mu    sync.Mutex
	most  int       // failures in a row until it opens; 0 means maxFailures
	fails int       // in a row
	until time.Time // open until then, if fails has reached most
	tries bool      // a call tries an open member

	first          time.Duration // of the last result
	fault          error         // of the last request that failed
	given, faulted time.Time     // when those were
}

// allow reports whether the member may be called. After a true, one of succeeded,
// failed and released should follow.
func (b *breaker) allow() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fails < b.limit() {
		return true
	}
	now := time.Now()
	if now.Before(b.until) {
		return false
	}
	// One call tries it. Should that one never report, the next may after another rest.
	b.until, b.tries = now.Add(rest), true
	return true
}

// closed reports whether the member is used as usual. It changes nothing.
func (b *breaker) closed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.fails < b.limit()
}

// rests reports whether the member is left out at the moment. It changes nothing.
func (b *breaker) rests() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.fails >= b.limit() && time.Now().Before(b.until)
}

// opensAfter sets how many failures in a row open it.
func (b *breaker) opensAfter(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.most = n
}

func (b *breaker) limit() int { return cmp.Or(b.most, maxFailures) }

// succeeded closes the breaker.
func (b *breaker) succeeded() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fails, b.tries = 0, false
}

// failed counts, and opens the breaker at its limit.
func (b *breaker) failed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tries = false
	if b.fails++; b.fails >= b.limit() {
		b.until = time.Now().Add(rest)
	}
}

// released ends a call that told nothing. While one tries an open member, the next
// may try; a call from before it was open changes nothing.
func (b *breaker) released() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tries {
		b.until, b.tries = time.Now(), false
	}
}
