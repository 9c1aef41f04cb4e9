package agent

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"

	"xiaozhi/agent/feature"
	"xiaozhi/internal/text"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp/router"
	"xiaozhi/providers"
)

// Persona is whom a device talks to: what people call an agent. What is not set is
// that of [Options] and of the session.
type Persona struct {
	Name     string // what people call it
	Prompt   string // name of its system prompt
	Language text.Lang
	Voice    string

	ASR providers.ASR // NoChinese is its own, then
	LLM providers.LLM
	TTS providers.TTS

	NoChinese bool     // no recogniser of ASR knows Chinese
	WakeWords []string // nil: those of the options
	ExitWords []string // nil: those of the options
	Allow     []string // patterns of tools, as [router.Rules] has them; empty: all
	Deny      []string
	Forgets   bool // what was said is not kept after the conversation
	Revision  int  // of its settings, for the keeper; 0: it has none
	Record    Record
}

// persona returns the agent of that name, or the device's own one of "", with all that
// it inherits. False: there is none of that name.
func (o *Options) persona(name string) (p Persona, ok bool) {
	if o.Persona != nil {
		p, ok = o.Persona(name)
	} else {
		p.Prompt, ok = name, name == "" || o.Prompts != nil && o.Prompts.Has(name)
	}
	p.Prompt = cmp.Or(p.Prompt, o.Prompt)
	p.Name = cmp.Or(p.Name, p.Prompt)
	if p.ASR == nil {
		p.ASR, p.NoChinese = o.ASR, o.NoChinese
	}
	if p.LLM == nil {
		p.LLM = o.LLM
	}
	if p.TTS == nil {
		p.TTS = o.TTS
	}
	if p.WakeWords == nil {
		p.WakeWords = o.WakeWords
	}
	if p.ExitWords == nil {
		p.ExitWords = o.ExitWords
	}
	return p, ok
}

// whom owns the choice of whom the device talks to. The conversation makes it; now may
// be called at any time.
type whom struct {
	o      *Options
	chosen atomic.Pointer[string] // by the user; nil and "": the device's own
}

func (w *whom) choose(name string) { w.chosen.Store(&name) }

// now returns whom the device talks to, as the agents are at this moment. One that is
// not there any more gives way to the device's own.
func (w *whom) now() Persona {
	if name := w.chosen.Load(); name != nil && *name != "" {
		if p, ok := w.o.persona(*name); ok {
			return p
		}
	}
	p, _ := w.o.persona("")
	return p
}

// ears is the recogniser of whom the device talks to when an utterance begins.
type ears struct{ *whom }

// Name is the name of that recogniser.
func (e ears) Name() string { return e.now().ASR.Name() }

// Open opens a stream of that recogniser.
func (e ears) Open(ctx context.Context, req providers.ASRRequest) (providers.ASRStream, error) {
	return e.now().ASR.Open(ctx, req)
}

// warmth gets the engines of whom the device talks to ready.
type warmth struct{ *whom }

// Warm waits for all of them. The error names those that are not ready.
func (w warmth) Warm(ctx context.Context) error {
	p := w.now()
	var errs []error
	for _, engine := range []any{p.ASR, p.LLM, p.TTS} {
		if ready, ok := engine.(providers.Warmer); ok {
			errs = append(errs, ready.Warm(ctx))
		}
	}
	return errors.Join(errs...)
}

// Persona returns whom the device talks to. It may be called at any time.
func (c *Conversation) Persona() Persona { return c.whom.now() }

// recast has the rules heed whom the device talks to now.
func (c *Conversation) recast() Persona {
	p := c.whom.now()
	c.rules.NoChinese, c.rules.DeviceLang = p.NoChinese, cmp.Or(p.Language, text.Lang(c.env.Session.Language))
	return p
}

// cast returns whom a turn that begins is answered by, to its end, and the session as
// that one speaks in it. Nobody else's tools are offered from now on.
func (c *Conversation) cast() (Persona, wire.Session) {
	p, s := c.recast(), c.env.Session
	s.Language, s.Voice = string(c.rules.DeviceLang), cmp.Or(p.Voice, s.Voice)
	if c.env.Tools != nil {
		c.env.Tools.Restrict(router.Rules{Allow: p.Allow, Deny: p.Deny})
	}
	return p, s
}

// SetRole takes another agent from the next turn on.
func (h host) SetRole(name string) (other bool, err error) {
	p, ok := h.o.persona(name)
	if !ok {
		return false, feature.ErrNoRole
	}
	if own, _ := h.o.persona(""); p.Name == own.Name {
		name = ""
	}
	h.dev.role = name
	h.whom.choose(name)
	h.recast()
	return name != "", nil
}
