package engines

import (
	"context"
	"slices"

	"xiaozhi/internal/config"
	"xiaozhi/internal/text/message"
	"xiaozhi/providers"
	"xiaozhi/providers/chain"
	"xiaozhi/providers/service"
)

// voiceprints makes what tells people apart, the first that is there; nil: nobody is to be told apart, or nothing can do it.
func (f *batch) voiceprints(ctx context.Context) (providers.Voiceprint, error) {
	if !f.cfg.Identifies() {
		return nil, nil
	}
	tells := func(name string) bool { return slices.Contains(f.cfg.Speakers, name) }
	all, of := gather(ctx, f, "VPR", f.expand(f.cfg.Speakers, service.Voiceprint), tells, f.voiceprint)
	if len(all) == 0 {
		f.tellOnce("VPR", "", message.Both("app/no-voiceprint"))
		return nil, nil
	}
	v, _, err := once(f, of[:1].key("VPR", nil), "", func(*made) (providers.Voiceprint, error) {
		return chain.NewVoiceprint(all, of.options(f.log, nil))
	})
	return v, err
}

func (f *batch) voiceprint(_ context.Context, name string, p config.Provider) (providers.Voiceprint, string, error) {
	return ofKind(f, service.Voiceprint, name, p, func(k service.Kind) func(service.Section) (providers.Voiceprint, error) { return k.Voiceprint })
}

// speakersOf is the chain of those that tell people apart; nil: nobody is to be told apart.
func speakersOf(cfg *config.Config) []string {
	if !cfg.Identifies() {
		return nil
	}
	return cfg.Speakers
}

// chainsOfAll returns the chains of all, by role as the report calls it.
func chainsOfAll(cfg *config.Config) map[string][]string {
	all := chainsOf(mainOf(cfg))
	all["VEC"], all["VPR"] = cfg.Embed, speakersOf(cfg)
	return all
}
