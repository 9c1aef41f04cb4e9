package chain

import (
	"context"
	"iter"
	"time"

	"xiaozhi/providers"
)

// answerWithin is how long a member that hears and speaks may give neither sound nor a
// call, unless [Options] says otherwise. These services answer in about a second.
const answerWithin = 5 * time.Second

// Duplex is a chain of members that hear and speak by themselves. Only one is asked at a
// time. One failure leaves a member out, not three: it costs the user the wait.
type Duplex struct{ list[providers.Duplex] }

// NewDuplex makes a chain. It has no members of its own: at least one is needed. A member
// that is silent for longer than its [Options.HedgeAfter], 5 s for those not named, has failed.
func NewDuplex(members []providers.Duplex, o Options) (*Duplex, error) {
	l, err := newList(members, o, "converse")
	if err != nil {
		return nil, err
	}
	for i := range l.breakers {
		l.breakers[i].opensAfter(1)
	}
	return &Duplex{l}, nil
}

// Capabilities returns what holds of the member that will be asked first.
func (d *Duplex) Capabilities() providers.Capabilities {
	for i, m := range d.members {
		if d.breakers[i].closed() {
			return providers.CapabilitiesOf(m)
		}
	}
	return providers.CapabilitiesOf(d.members[0])
}

// Rests reports whether all members are left out after failures: who has something else to
// answer with had better use that. Asked all the same, the last member is tried.
func (d *Duplex) Rests() bool {
	for i := range d.breakers {
		if !d.breakers[i].rests() {
			return false
		}
	}
	return true
}

// Open begins a talk. The first member that may be asked is opened when somebody speaks,
// for each utterance anew, and stays open while it is the same. The sound of an utterance
// is kept beside it and played to the next member should it fail before it gives sound or a
// call; a member is told what was said with the one before.
func (d *Duplex) Open(ctx context.Context, req providers.DuplexRequest) (providers.DuplexSession, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	inner, end := context.WithCancel(ctx)
	return &duplexSession{
		Duplex: d, req: req, log: newDialog(req.History), end: end,
		outer: func() context.Context { return ctx }, inner: func() context.Context { return inner },
	}, nil
}

// within returns how long a member may give neither sound nor a call; not positive: for ever.
func (d *Duplex) within(i int) time.Duration {
	if limit := d.opts.HedgeAfter[d.members[i].Name()]; limit != 0 {
		return limit
	}
	return answerWithin
}

// respond ranges over a member's answer with a limit for its first sound or call, after which
// it ends with [errSilent]. begun is to be called at that.
func (d *Duplex) respond(ctx context.Context, i int, s providers.DuplexSession, results []providers.ToolResult) (answer iter.Seq2[providers.DuplexDelta, error], begun func()) {
	ctx, giveUp := context.WithCancelCause(ctx)
	begun = func() {}
	if limit := d.within(i); limit > 0 {
		timer := time.AfterFunc(limit, func() { giveUp(errSilent) })
		begun = func() { timer.Stop() }
	}
	return func(yield func(providers.DuplexDelta, error) bool) {
		defer giveUp(nil)
		defer begun()
		for delta, err := range s.Respond(ctx, results) {
			if err != nil && context.Cause(ctx) == errSilent { //nolint:errorlint // it is ours
				err = errSilent
			}
			if !yield(delta, err) {
				return
			}
		}
	}, begun
}
