package engines

import (
	"cmp"
	"context"
	"os"
	"time"

	"xiaozhi/internal/text/message"
	"xiaozhi/providers"
	"xiaozhi/providers/chain"
	"xiaozhi/providers/service"
)

// visionPatience is longer than that with words: pictures take longer, and only then is the next member asked too.
const visionPatience = 10 * time.Second

// Vision makes the chain of these names that looks at pictures. No names: the
// members of llm that can see.
func (f *Maker) Vision(ctx context.Context, names []string) (providers.LLM, error) {
	llm, _, err := once(f, chainKey("VLM", names), func() (providers.LLM, error) { return f.seers(ctx, names) })
	return llm, err
}

func (f *Maker) seers(ctx context.Context, names []string) (providers.LLM, error) {
	named := len(names) > 0
	if !named {
		names = f.expand(f.cfg.LLM, service.LLM)
	}
	var members []providers.LLM
	patience, about := map[string]time.Duration{}, map[string]string{}
	for _, name := range names {
		if !named && !f.sees(name) {
			continue
		}
		p, err := f.section(ctx, name)
		var member providers.LLM
		what := ""
		if err == nil {
			p.Vision = true
			member, what, err = ofKind(f, service.LLM, name, p, func(k service.Kind) func(service.Section) (providers.LLM, error) { return k.LLM })
		}
		switch {
		case err == nil:
			members, patience[name], about[name] = append(members, member), cmp.Or(p.FirstToken, visionPatience), what
			f.report.Found("VLM", name+": "+what)
		case named:
			f.report.leftOut(f.cfg, "VLM", name, err)
		}
	}
	if len(members) == 0 {
		f.report.Found("VLM", message.Both("app/no-vision"))
		return nil, nil
	}
	return chain.NewLLM(members, chain.Options{Log: f.log, HedgeAfter: patience, About: about})
}

// sees reports whether a language model is known to understand pictures: its
// section says so, or it is the one that a service brings along.
func (f *Maker) sees(name string) bool {
	if p, ok := f.cfg.Providers[name]; ok {
		return p.Vision
	}
	return name == "openai" && os.Getenv("OPENAI_MODEL") == "" && os.Getenv("OPENAI_BASE_URL") == ""
}
