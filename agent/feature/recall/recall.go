// Package recall tells models what is remembered of the people at a device, and completes the tools by which they ask for it to be
// remembered, told or forgotten.
package recall

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"xiaozhi/agent/feature"
	"xiaozhi/agent/think"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/mcp"
	"xiaozhi/memory"
	"xiaozhi/prompts"
	"xiaozhi/providers"
)

// Feature joins conversations with what is remembered.
type Feature struct{ Engine memory.Engine }

// Name is the name of its state, which it does not have.
func (Feature) Name() string { return "recall" }

// Attach makes the instance of a conversation. One with a device that is not known, or in private, remembers nothing.
func (f Feature) Attach(h feature.Host, _ feature.State) feature.Instance {
	s := h.Env().Session
	return &recall{Host: h, engine: f.Engine, device: s.DeviceID, off: s.Unknown || s.Private, open: map[string]memory.Recollection{}}
}

const (
	wait     = 30 * time.Millisecond // that a turn waits for what is remembered
	search   = time.Second           // that somebody who asks what is remembered waits for a service that finds it
	mostTold = 5                     // facts that are told at once
)

type recall struct {
	feature.Host

	engine memory.Engine
	device string
	off    bool

	mu    sync.Mutex
	open  map[string]memory.Recollection // by agent
	last  *memory.Fact                   // that was remembered or told last in this conversation; nil: none was
	ended bool
}

var (
	_ feature.Noting   = (*recall)(nil)
	_ feature.Handling = (*recall)(nil)
	_ providers.Warmer = (*recall)(nil)
)

// Expects implements [feature.Instance].
func (*recall) Expects(time.Time) bool { return false }

// Detach implements [feature.Instance].
func (r *recall) Detach() feature.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	for _, p := range r.open {
		p.Close()
	}
	clear(r.open)
	r.engine.Left()
	return nil
}

// mode returns how much is remembered with an agent.
func (r *recall) mode(agent string) memory.Mode {
	if r.off {
		return memory.Nothing
	}
	return r.engine.Mode(memory.Owner{Device: r.device, Agent: agent})
}

// profile returns what is known with an agent; nil: the conversation is over.
func (r *recall) profile(agent string) memory.Recollection {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return nil
	}
	p := r.open[agent]
	if p == nil {
		p = r.engine.Open(memory.Owner{Device: r.device, Agent: agent})
		r.open[agent] = p
	}
	return p
}

// Notes implements [feature.Noting].
func (r *recall) Notes(ctx context.Context, agent, words string, lang text.Lang) (n think.Notes) {
	mode := r.mode(agent)
	if mode == memory.Nothing {
		return n
	}
	p := r.profile(agent)
	if p == nil {
		return n
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	known := p.Notes(ctx, words, mode == memory.Whole)
	if known.Always != "" {
		n.Always = prompts.MemoryAlways.In(lang, "notes", known.Always)
	}
	if known.Found != "" {
		n.Found = prompts.MemoryFound.In(lang, "notes", known.Found)
	}
	return n
}

// Warm implements [providers.Warmer].
func (r *recall) Warm(ctx context.Context) error {
	if r.off {
		return nil
	}
	return r.engine.Warm(ctx)
}

// Handler implements [feature.Handling].
func (r *recall) Handler(name string) feature.Handler {
	if name != mcp.HandlerMemory {
		return nil
	}
	return r.handle
}

// handle takes an order. What needs the store is left to the caller, who can wait: nothing is confirmed before it is committed.
func (r *recall) handle(from feature.Caller, args any) (think.Handled, error) {
	a, err := mcp.DecodeArgs[mcp.MemoryArgs](args)
	if err != nil {
		return think.Handled{}, err
	}
	agent := r.Agent()
	p := r.profile(agent)
	if p == nil || r.mode(agent) != memory.Whole {
		return r.say(from, prompts.MemoryOff), nil
	}
	switch {
	case a.Action == mcp.MemoryForgetAll:
		r.Forget(from.Turn)
	case a.Action == mcp.MemoryForget && a.Text == "" && r.lastOne() == nil: // what was said just now, which nobody has read yet
		r.Forget(from.Turn)
		return r.say(from, prompts.Forgotten), nil
	}
	return think.Handled{Finish: func(ctx context.Context) (think.Handled, error) {
		did, err := r.order(ctx, from, a, p, agent)
		if err != nil && ctx.Err() == nil {
			r.Env().Log.Error("the store of memories fails", "err", err)
			err = errors.New(message.In(from.Lang, "agent/memory-not-kept"))
		}
		return did, err
	}}, nil
}

// saidBy is the name of who has said something, if the voice itself has told it.
func saidBy(s mcp.Speaker) string {
	if !s.Told() {
		return ""
	}
	return s.Name
}

// order does what is asked for.
func (r *recall) order(ctx context.Context, from feature.Caller, a mcp.MemoryArgs, p memory.Recollection, agent string) (think.Handled, error) {
	owner := memory.Owner{Device: r.device, Agent: agent}
	switch a.Action {
	case mcp.MemoryRemember:
		f, known, err := r.engine.Remember(ctx, memory.Fact{Owner: owner, Person: saidBy(from.Speaker), Text: a.Text, Lang: from.Lang})
		switch {
		case errors.Is(err, memory.ErrEmpty):
			return think.Handled{Result: message.In(from.Lang, "agent/memory-empty"), Again: true}, nil
		case err != nil:
			return think.Handled{}, err
		case known:
			r.mention(&f)
			return r.say(from, prompts.RememberedAlready, "fact", f.Spoken()), nil
		}
		r.mention(&f)
		return r.say(from, prompts.Remembered, "fact", f.Spoken()), nil
	case mcp.MemoryRecall:
		return r.tell(ctx, from, a.Text, p)
	case mcp.MemoryForget:
		f, err := r.meant(ctx, a.Text, p)
		switch {
		case err != nil:
			return think.Handled{}, err
		case f == nil:
			return r.say(from, prompts.MemoryUnknown), nil
		}
		err = r.engine.Forget(ctx, owner, f.ID)
		if err != nil && !errors.Is(err, memory.ErrUnknown) && !errors.Is(err, memory.ErrLater) {
			return think.Handled{}, err
		}
		r.mention(nil)
		if errors.Is(err, memory.ErrLater) {
			return r.say(from, prompts.MemoryForgetsLater), nil
		}
		return r.say(from, prompts.MemoryForgot, "fact", f.Spoken()), nil
	case mcp.MemoryForgetAll:
		n, err := r.engine.ForgetAll(ctx, memory.Owner{Device: r.device})
		if errors.Is(err, memory.ErrLater) {
			return r.say(from, prompts.MemoryForgetsLater), nil
		}
		if err != nil {
			return think.Handled{}, err
		}
		return r.say(from, prompts.MemoryForgotAll, "count", strconv.Itoa(n)), nil
	}
	return think.Handled{}, errors.New("unknown order about memory")
}

// tell says what is remembered about something, or at all.
func (r *recall) tell(ctx context.Context, from feature.Caller, about string, p memory.Recollection) (think.Handled, error) {
	k, err := p.Known(ctx)
	if err != nil {
		return think.Handled{}, err
	}
	facts := k.Facts
	if memory.Names(about) { // models also ask about "the user"
		limited, cancel := context.WithTimeout(ctx, search)
		defer cancel()
		found, err := p.Find(limited, about, mostTold)
		if err != nil {
			return think.Handled{}, err
		}
		if len(found) == 0 && len(facts) > 0 {
			return r.say(from, prompts.MemoryUnknown), nil
		}
		facts = found
	}
	if len(facts) == 0 {
		return r.say(from, prompts.MemoryNone), nil
	}
	var told []string
	for _, f := range facts[:min(len(facts), mostTold)] {
		told = append(told, f.Spoken())
	}
	if len(told) == 1 {
		r.mention(&facts[0])
	}
	return r.say(from, prompts.MemoryList, "facts", strings.Join(told, from.Lang.Pick("；", "; "))), nil
}

// mention notes the fact that is spoken of: what “that” means. nil: none.
func (r *recall) mention(f *memory.Fact) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = f
}

func (r *recall) lastOne() *memory.Fact {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// meant finds the fact that words name; without any, the one that was spoken of last. nil: there is none.
func (r *recall) meant(ctx context.Context, words string, p memory.Recollection) (*memory.Fact, error) {
	if words == "" {
		return r.lastOne(), nil
	}
	found, err := p.Named(ctx, words, 1) // what only means something alike may be another thing: it would be gone
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// say says a phrase, which is also what the model is told.
func (r *recall) say(from feature.Caller, id string, args ...string) think.Handled {
	words := r.Env().Texts.Phrase(id, string(from.Lang), args...)
	return think.Handled{Say: words, Result: words}
}
