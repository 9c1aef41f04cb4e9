package agent

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"

	"xiaozhi/agent/feature"
	"xiaozhi/agent/think"
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
	Text     string // the system prompt itself, in place of that; "": it has none of its own
	Language text.Lang
	Voice    string

	ASR providers.ASR // NoChinese is its own, then
	LLM providers.LLM
	TTS providers.TTS

	Realtime      providers.Duplex // answers utterances in the place of the three
	RealtimeVoice string           // in which it speaks; "": its own choice
	NoRealtime    bool             // nothing does, whatever the options say
	NoChinese     bool             // no recogniser of ASR knows Chinese
	WakeWords     []string         // nil: those of the options
	ExitWords     []string         // nil: those of the options
	Allow         []string         // patterns of tools, as [router.Rules] has them; empty: all
	Deny          []string
	Forgets       bool // what was said is not kept after the conversation
	Revision      int  // of its settings, for the keeper; 0: it has none
	Record        Record
	Given         Given // of the device's own one: by which order it has that
}

// Given tells the order by which a device has its own agent from others. A role that was chosen before another order was
// given ends with it.
type Given struct {
	Agent string `json:",omitempty"` // that the settings name
	Times int    `json:",omitempty"` // how often somebody gave the device one beside them
}

// role is the agent that the user has chosen.
type role struct {
	name  string // "": the device's own
	given Given  // that one's, when it was chosen
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
	switch {
	case p.NoRealtime:
		p.Realtime = nil
	case p.Realtime == nil:
		p.Realtime = o.Realtime
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
	o      atomic.Pointer[Options]
	chosen atomic.Pointer[role] // by the user; nil: the device's own
}

func (w *whom) choose(r role) { w.chosen.Store(&r) }

// over reports whether a role has ended because the device was given an agent since.
func (w *whom) over(r role) bool {
	own, _ := w.o.Load().persona("")
	return r.name != "" && r.given != own.Given
}

// now returns whom the device talks to, as the agents are at this moment. A role gives way to the device's own agent
// when it is not there any more, or when the device was given an agent since.
func (w *whom) now() Persona {
	o := w.o.Load()
	own, _ := o.persona("")
	if r := w.chosen.Load(); r != nil && r.name != "" && r.given == own.Given {
		if p, ok := o.persona(r.name); ok {
			return p
		}
	}
	return own
}

// of returns whom a person talks to, by their name, where the device would have them talk to p: what the user has chosen goes before.
func (w *whom) of(p Persona, person string) Persona {
	o := w.o.Load()
	if person == "" || o.AgentOf == nil {
		return p
	}
	own, _ := o.persona("")
	if r := w.chosen.Load(); r != nil && r.name != "" && r.given == own.Given {
		return p
	}
	if name := o.AgentOf(person); name != "" {
		if theirs, ok := o.persona(name); ok {
			return theirs
		}
	}
	return p
}

// ears is the recogniser of whom the device talks to when an utterance begins.
type ears struct{ *whom }

// Name is the name of that recogniser; "" if there is none.
func (e ears) Name() string {
	if asr := e.now().ASR; asr != nil {
		return asr.Name()
	}
	return ""
}

// Open opens a stream of that recogniser.
func (e ears) Open(ctx context.Context, req providers.ASRRequest) (providers.ASRStream, error) {
	asr := e.now().ASR
	if asr == nil {
		return nil, errNoRecogniser
	}
	return asr.Open(ctx, req)
}

// Streams reports whether it says by itself what it understands while the user speaks.
func (e ears) Streams() bool {
	streamer, ok := e.now().ASR.(providers.Streamer)
	return ok && streamer.Streams()
}

// warmth gets the engines of whom the device talks to ready.
type warmth struct{ *whom }

// Warm waits for all of them. The error names those that are not ready.
func (w warmth) Warm(ctx context.Context) error {
	p := w.now()
	engines := []any{p.ASR, p.LLM, p.TTS}
	if p.Realtime != nil && !rests(p.Realtime) {
		engines = []any{p.Realtime} // the others may never be asked
	}
	var errs []error
	for _, engine := range engines {
		if ready, ok := engine.(providers.Warmer); ok {
			errs = append(errs, ready.Warm(ctx))
		}
	}
	return errors.Join(errs...)
}

// Persona returns whom the device talks to. It may be called at any time.
func (c *Conversation) Persona() Persona { return c.whom.now() }

// recast has the rules heed whom the device talks to now. While nobody answers, other options count from now on.
func (c *Conversation) recast() Persona {
	if c.reply == nil {
		c.follow.renew()
	}
	if c.whom.over(c.dev.role) { // for good, also if the device is given the one of before
		c.dev.role = role{}
		c.whom.choose(c.dev.role)
	}
	p := c.whom.now()
	c.rules.Speculations = c.o.Drafts
	if providers.CapabilitiesOf(p.LLM).NoTrials {
		c.rules.Speculations = 0
	}
	c.rules.Reads = p.ASR != nil
	c.rules.NoChinese, c.rules.DeviceLang = p.NoChinese, cmp.Or(p.Language, text.Lang(c.env.Session.Language))
	return p
}

// cast returns whom a turn that begins is answered by, to its end, and the session as
// that one speaks in it. Nobody else's tools are offered from now on.
func (c *Conversation) cast(o *order) (Persona, wire.Session) {
	p, s := c.recast(), c.env.Session
	if !o.Sound { // who has heard it answers it
		p = c.whom.of(p, o.Speaker.Name)
	}
	s.Language, s.Voice = string(c.rules.DeviceLang), cmp.Or(p.Voice, s.Voice)
	c.restrict(p)
	return p, s
}

// restrict takes the tools away that an agent does not have.
func (c *Conversation) restrict(p Persona) {
	if c.env.Tools != nil {
		c.env.Tools.Restrict(router.Rules{Allow: p.Allow, Deny: p.Deny})
	}
}

// notesOf returns what gathers the notes of the features for an agent; nil: none has any.
func notesOf(c *Conversation, agent string, lang text.Lang) func(ctx context.Context, words string) think.Notes {
	var all []feature.Noting
	for in := range each[feature.Noting](c.features) {
		all = append(all, in)
	}
	if len(all) == 0 {
		return nil
	}
	return func(ctx context.Context, words string) (n think.Notes) {
		for _, in := range all {
			more := in.Notes(ctx, agent, words, lang)
			n.Always, n.Found = joinNotes(n.Always, more.Always), joinNotes(n.Found, more.Found)
		}
		return n
	}
}

func joinNotes(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n\n" + b
}

// SetRole takes another agent from the next turn on.
func (h host) SetRole(name string) (other bool, err error) {
	p, ok := h.o.persona(name)
	if !ok {
		return false, feature.ErrNoRole
	}
	own, _ := h.o.persona("")
	if p.Name == own.Name {
		name = ""
	}
	h.dev.role = role{name, own.Given}
	h.whom.choose(h.dev.role)
	h.recast()
	return name != "", nil
}
