package engines

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"xiaozhi/internal/config"
	"xiaozhi/internal/text/message"
	"xiaozhi/providers"
	"xiaozhi/providers/catalog"
	"xiaozhi/providers/chain"
	"xiaozhi/providers/service"
)

// duplexes makes the chain that hears and speaks by itself; nil: it has no members.
func (f *batch) duplexes(ctx context.Context, names []string) (providers.Duplex, error) {
	expanded := f.expand(names, service.Realtime)
	all, of := gather(ctx, f, "S2S", expanded, everyone, f.duplex)
	if len(all) == 0 {
		if len(names) > 0 && !config.IsNone(names) {
			f.tellOnce("S2S", strings.Join(expanded, " "), message.Both("app/no-realtime"))
		}
		return nil, nil
	}
	patience := f.patience(func(p config.Provider) time.Duration { return p.FirstSound })
	duplex, _, err := once(f, of.key("S2S", patience), "", func(*made) (providers.Duplex, error) {
		return chain.NewDuplex(all, of.options(f.log, patience))
	})
	return duplex, err
}

func (f *batch) duplex(_ context.Context, name string, p config.Provider) (providers.Duplex, string, error) {
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
func (f *batch) tellIdle() {
	var idle []string
	for _, name := range slices.Sorted(maps.Keys(f.cfg.Providers)) {
		k, _ := catalog.Find(f.kinds, f.cfg.Providers[name].Type)
		if roles := k.Roles(); slices.Equal(roles, []service.Role{service.Realtime}) && !f.cfg.Names(name) && !f.cfg.TakesRealtime() {
			idle = append(idle, name)
		}
	}
	if len(idle) > 0 {
		f.report.Found("S2S", message.Both("app/realtime-idle", strings.Join(idle, ", ")))
	}
}
