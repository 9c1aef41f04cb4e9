package app

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"xiaozhi/agent"
	"xiaozhi/connection/identity"
	"xiaozhi/internal/config"
	"xiaozhi/internal/wire"
	"xiaozhi/prompts"
	"xiaozhi/providers"
)

// openBook reads who is known.
func (a *App) openBook(ctx context.Context, records identity.Records) error {
	cfg := a.cfg
	mode, _ := identity.ParseMode(cfg.Auth.Pairing) // the config has checked both
	unknown, _ := identity.ParseUnknown(cfg.Devices.Unknown)
	if cfg.Auth.Enabled {
		a.log.Info("auth.token is one token for all devices: it shows that a device may talk, not which one it is")
	}
	var err error
	a.book, err = identity.New(ctx, identity.Options{
		Records: records, Mode: mode, Unknown: unknown, Shared: cfg.Auth.Enabled,
		HasOwner: a.hasOwner(ctx),
		Expel: func(id string) {
			a.devices.Expel(id)
			a.seen.devices.Sound.Drop(id) // it may be somebody else's now
		}, Log: a.log,
	})
	return err
}

// farewell says why a device may not talk: with its code, if it has one.
func farewell(cause error, texts *prompts.Set, language string) agent.Farewell {
	say := agent.Farewell{Phrase: prompts.Overload, Cause: cause}
	away, ok := errors.AsType[*identity.AwayError](cause)
	switch {
	case !ok, away.Verdict == identity.MustPair && away.Code == "" && !away.Taken:
	case away.Code != "":
		say.Phrase = prompts.PairNeeded
		say.Words = texts.Phrase(prompts.PairCode, language, "code", strings.Join(strings.Split(away.Code, ""), ", "))
	case away.Verdict == identity.NoPairing:
		say.Phrase = prompts.PairClosed
	default:
		say.Phrase = prompts.PairRefused
	}
	return say
}

// What all devices together may use of models and tools that are not known.
const (
	unknownRequests = 120 // of models in an hour
	unknownCalls    = 200 // of tools in a day, each
	unknownWords    = 60  // of codes said in an hour; then a sound says that there is one
)

// knownOnly are the tools that a device must be known for.
func knownOnly() []string {
	return []string{"set_timer", "set_reminder", "list_timers", "cancel_timer", "snooze_timer", "change_timer"}
}

// strangers limits the conversations with devices that are not known.
type strangers struct{ requests, words *rate.Limiter }

func newStrangers() strangers {
	return strangers{
		rate.NewLimiter(rate.Every(time.Hour/unknownRequests), unknownRequests),
		rate.NewLimiter(rate.Every(time.Hour/unknownWords), unknownWords),
	}
}

// farewell returns what is said to a device that may not talk. When too much was said
// already, it is a sound that costs nothing.
func (s strangers) farewell(f agent.Farewell) agent.Farewell {
	if f.Words != "" && !s.words.Allow() {
		f.Words = ""
	}
	return f
}

// limit returns the options of a conversation with a device that is not known.
func (s strangers) limit(o agent.Options) agent.Options {
	o.LLM, o.Realtime = s.spare(o.LLM), s.spareDuplex(o.Realtime)
	o.MaxDaily = min(o.MaxDaily, unknownCalls)
	return o
}

// spareOwn limits the engines that an agent has for itself.
func (s strangers) spareOwn(p *agent.Persona) {
	if p.LLM != nil {
		p.LLM = s.spare(p.LLM)
	}
	p.Realtime = s.spareDuplex(p.Realtime)
	p.Deny = withoutPapers(p.Deny) // which are those of the household
}

// spare returns a model that all of them together may ask only so often.
func (s strangers) spare(llm providers.LLM) providers.LLM { return sparingLLM{llm, s.requests} }

// sparingLLM is a model that may be asked only so often.
type sparingLLM struct {
	providers.LLM
	requests *rate.Limiter
}

// Capabilities are those of the model.
func (l sparingLLM) Capabilities() providers.Capabilities { return providers.CapabilitiesOf(l.LLM) }

var errSpent = errors.New("devices that are not known have used what they may of the model")

// Generate asks the model, or says that it may not.
func (l sparingLLM) Generate(ctx context.Context, req providers.LLMRequest) iter.Seq2[providers.Delta, error] {
	if l.requests.Allow() {
		return l.LLM.Generate(ctx, req)
	}
	return func(yield func(providers.Delta, error) bool) {
		yield(providers.Delta{}, &providers.Error{Provider: l.Name(), Op: "generate", Kind: providers.RateLimited, Err: errSpent})
	}
}

// spareDuplex returns one that devices which are not known may together ask only so often; nil for nil.
func (s strangers) spareDuplex(d providers.Duplex) providers.Duplex {
	if d == nil {
		return nil
	}
	return sparingDuplex{d, s.requests}
}

// sparingDuplex hears and speaks, but only so often. What is said beyond that is not sent.
type sparingDuplex struct {
	providers.Duplex
	requests *rate.Limiter
}

// Capabilities are those of what it limits.
func (d sparingDuplex) Capabilities() providers.Capabilities {
	return providers.CapabilitiesOf(d.Duplex)
}

// Rests reports whether it had better not be asked.
func (d sparingDuplex) Rests() bool {
	r, ok := d.Duplex.(interface{ Rests() bool })
	return ok && r.Rests()
}

// Open begins a talk.
func (d sparingDuplex) Open(ctx context.Context, req providers.DuplexRequest) (providers.DuplexSession, error) {
	s, err := d.Duplex.Open(ctx, req)
	if err != nil {
		return nil, err
	}
	return &sparingTalk{DuplexSession: s, requests: d.requests, name: d.Name()}, nil
}

// sparingTalk is a talk of which each utterance, and each result of tools, is counted.
type sparingTalk struct {
	providers.DuplexSession
	requests *rate.Limiter
	name     string

	mu    sync.Mutex
	spent spending // of the utterance that goes on
}

// spending says whether an utterance was counted.
type spending int

const (
	notCounted spending = iota
	counted
	refused
)

// Write hands over sound, unless this utterance is one too many.
func (t *sparingTalk) Write(pcm []int16) error {
	t.mu.Lock()
	if t.spent == notCounted && len(pcm) > 0 {
		if t.spent = counted; !t.requests.Allow() {
			t.spent = refused
		}
	}
	spent := t.spent
	t.mu.Unlock()
	if spent == refused {
		return nil
	}
	return t.DuplexSession.Write(pcm)
}

// Respond asks for the answer, or says that it may not.
func (t *sparingTalk) Respond(ctx context.Context, results []providers.ToolResult) iter.Seq2[providers.DuplexDelta, error] {
	return func(yield func(providers.DuplexDelta, error) bool) {
		t.mu.Lock()
		over := len(results) == 0 && t.spent == refused || len(results) > 0 && !t.requests.Allow()
		if len(results) == 0 {
			t.spent = notCounted
		}
		t.mu.Unlock()
		if over {
			yield(providers.DuplexDelta{}, &providers.Error{Provider: t.name, Op: "respond", Kind: providers.RateLimited, Err: errSpent})
			return
		}
		t.DuplexSession.Respond(ctx, results)(yield)
	}
}

// Discard gives up what was said.
func (t *sparingTalk) Discard() error {
	t.mu.Lock()
	t.spent = notCounted
	t.mu.Unlock()
	return t.DuplexSession.Discard()
}

// deviceSettings returns what is configured for a device.
func deviceSettings(cfg *config.Config, s wire.Session) config.DeviceTools {
	own := cfg.Devices.ByID[s.DeviceID].Tools
	if s.Unknown {
		own.Deny = slices.Concat(own.Deny, knownOnly())
	}
	return own
}
