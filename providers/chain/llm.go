package chain

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"xiaozhi/internal/timeline"
	"xiaozhi/providers"
)

// LLM is a chain of language models, with members of last resort at its end.
type LLM struct{ list[providers.LLM] }

// NewLLM makes a chain. It has no members of its own: at least one is needed.
// Members of last resort are asked after all others, wherever they stand.
func NewLLM(members []providers.LLM, o Options) (*LLM, error) {
	isLast := func(m providers.LLM) bool {
		says, ok := m.(interface{ LastResort() bool })
		return ok && says.LastResort() || slices.Contains(o.LastResort, m.Name())
	}
	var models, last []providers.LLM
	o.LastResort = slices.Clone(o.LastResort)
	for _, m := range members {
		if isLast(m) {
			last, o.LastResort = append(last, m), append(o.LastResort, m.Name())
		} else {
			models = append(models, m)
		}
	}
	l, err := newList(append(models, last...), o, "think")
	if err != nil {
		return nil, err
	}
	return &LLM{l}, nil
}

// isModel reports whether a member is a language model and not a last resort.
func (l *LLM) isModel(i int) bool {
	return !slices.Contains(l.opts.LastResort, l.members[i].Name())
}

// mayAsk reports whether a member may be asked now, beside those that are live.
func (l *LLM) mayAsk(i int, live map[int]context.CancelFunc) bool {
	if len(live) == 0 {
		return true
	}
	alone := func(i int) bool { return !l.isModel(i) || providers.CapabilitiesOf(l.members[i]).NoHedge }
	for other := range live {
		if alone(other) {
			return false
		}
	}
	return !alone(i)
}

// Capabilities returns what holds of the member that will be asked first.
func (l *LLM) Capabilities() providers.Capabilities {
	for i, m := range l.members {
		if l.breakers[i].closed() {
			return providers.CapabilitiesOf(m)
		}
	}
	return providers.CapabilitiesOf(l.members[0])
}

// Acts names a member that does what cannot be undone when it is asked, since it has tools of its own or keeps the dialogue; ""
// if there is none.
func (l *LLM) Acts() string {
	for _, m := range l.members {
		if can := providers.CapabilitiesOf(m); can.OwnTools || can.NoTrials || can.Stateful {
			return m.Name()
		}
	}
	return ""
}

// ask asks a member, as it wants to be asked. One that takes no trials is asked
// when the request is none any more.
func (l *LLM) ask(ctx context.Context, i int, req providers.LLMRequest) iter.Seq2[providers.Delta, error] {
	can := providers.CapabilitiesOf(l.members[i])
	answer := l.members[i].Generate(ctx, can.Narrow(req))
	if !can.NoTrials {
		return answer
	}
	return func(yield func(providers.Delta, error) bool) {
		if err := req.AwaitCertain(ctx); err != nil {
			yield(providers.Delta{}, err)
			return
		}
		answer(yield)
	}
}

// Generate streams one step of the first member that answers. One that is late
// is not given up: the next model is asked beside it, the first text or tool
// call wins, and the requests of the others are closed. A thought shows that a
// member is at work, so it is not late; it does not win. A member that must not be
// asked beside others ([providers.Capabilities]) is asked only when those before
// it have failed, and nobody beside it.
//
// Thoughts of a member that loses may already have been yielded. After the
// first text or tool call an error is passed on.
func (l *LLM) Generate(ctx context.Context, req providers.LLMRequest) iter.Seq2[providers.Delta, error] {
	return func(yield func(providers.Delta, error) bool) {
		r := newRace(l.walk(), yield)
		r.ask = func(ctx context.Context, i int) iter.Seq2[providers.Delta, error] {
			return l.ask(ctx, i, req)
		}
		r.weigh = func(_ int, d providers.Delta) weight {
			switch { // an empty delta, such as the role that opens a stream, shows nothing
			case d.Text != "" || len(d.ToolCalls) > 0:
				return answer
			case d.Thought != "":
				return sign
			}
			return nothing
		}
		r.name = func(d *providers.Delta, who string) {
			d.Provider = cmp.Or(d.Provider, who)
			if r.winner < 0 && d.Text == "" && len(d.ToolCalls) == 0 {
				d.Echo = providers.Echo{} // it may be another's message in the end
			}
		}
		r.spent = func(d providers.Delta, a *timeline.Attempt) {
			a.Tokens.Prompt += d.Usage.Prompt
			a.Tokens.Completion += d.Usage.Completion
			a.Cached += d.Usage.Cached
		}
		r.may = func(i int) bool { return l.mayAsk(i, r.live) }
		if err := r.run(ctx, nil); err != nil {
			yield(providers.Delta{}, err)
		}
	}
}
