package app

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"xiaozhi/internal/config"
	"xiaozhi/internal/text/message"
	"xiaozhi/providers"
	"xiaozhi/providers/catalog"
	"xiaozhi/providers/chain"
	"xiaozhi/providers/service"
)

// duplexes makes the chain that hears and speaks by itself; nil: it has no members.
func (f *resolver) duplexes(ctx context.Context, names []string) (providers.Duplex, error) {
	all := f.expand(names, service.Realtime)
	duplex, _, err := once(f, chainKey("S2S", all), func() (providers.Duplex, error) {
		members := gather(ctx, f, "S2S", all, f.duplex)
		switch {
		case len(members) > 0:
			patience := f.patience(func(p config.Provider) time.Duration { return p.FirstSound })
			return chain.NewDuplex(members, chain.Options{Log: f.log, HedgeAfter: patience, About: f.about("S2S", all)})
		case len(names) > 0 && !config.IsNone(names):
			f.report.found("S2S", message.Both("app/no-realtime"))
		}
		return nil, nil
	})
	return duplex, err
}

func (f *resolver) duplex(_ context.Context, name string, p config.Provider) (providers.Duplex, string, error) {
	d, what, err := ofKind(f, service.Realtime, name, p, func(k service.Kind) func(service.Section) (providers.Duplex, error) { return k.Realtime })
	if err != nil {
		return nil, "", err
	}
	if providers.CapabilitiesOf(d).OwnTools {
		what += " (" + message.Both("app/no-tools") + ")"
	}
	k, _ := catalog.Find(f.kinds, p.Type)
	return ownVoices{d, k.Voices}, what, nil
}

// ownVoices is a member that hears and speaks by itself. It speaks with the voice of its section where that of an agent or
// a device is not known to be one of its own: that one is meant for the chain of voices.
type ownVoices struct {
	providers.Duplex
	known []service.Voice
}

// Capabilities are those of the member.
func (v ownVoices) Capabilities() providers.Capabilities { return providers.CapabilitiesOf(v.Duplex) }

// Open begins a talk.
func (v ownVoices) Open(ctx context.Context, req providers.DuplexRequest) (providers.DuplexSession, error) {
	if !slices.ContainsFunc(v.known, func(own service.Voice) bool { return own.Name == req.Voice }) {
		req.Voice = ""
	}
	return v.Duplex.Open(ctx, req)
}

// tellIdle reports sections that nothing uses because they hear and speak by themselves and no chain takes them.
func (f *resolver) tellIdle() {
	var idle []string
	for _, name := range slices.Sorted(maps.Keys(f.cfg.Providers)) {
		k, _ := catalog.Find(f.kinds, f.cfg.Providers[name].Type)
		if roles := k.Roles(); slices.Equal(roles, []service.Role{service.Realtime}) && !f.cfg.Names(name) && !f.cfg.TakesRealtime() {
			idle = append(idle, name)
		}
	}
	if len(idle) > 0 {
		f.report.found("S2S", message.Both("app/realtime-idle", strings.Join(idle, ", ")))
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
