package engines

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"xiaozhi/internal/config"
	"xiaozhi/internal/text/message"
	"xiaozhi/providers"
	"xiaozhi/providers/chain"
	"xiaozhi/providers/service"
)

// visionPatience is longer than that with words: pictures take longer, and only then is the next member asked too.
const visionPatience = 10 * time.Second

// vision makes the chain of these names that looks at pictures; nil: it has no members. No names: the
// members of llm that can see.
func (f *batch) vision(ctx context.Context, names []string) (providers.LLM, error) {
	tells := everyone
	if len(names) == 0 {
		tells = func(string) bool { return false }
		names = slices.DeleteFunc(slices.Clone(f.expand(f.cfg.LLM, service.LLM)), func(name string) bool { return !f.sees(name) })
	}
	all, of := gather(ctx, f, "VLM", names, tells, func(_ context.Context, name string, p config.Provider) (providers.LLM, string, error) {
		p.Vision = true
		return ofKind(f, service.LLM, name, p, func(k service.Kind) func(service.Section) (providers.LLM, error) { return k.LLM })
	})
	if len(all) == 0 {
		f.tellOnce("VLM", strings.Join(names, " "), message.Both("app/no-vision"))
		return nil, nil
	}
	patience := map[string]time.Duration{}
	for _, m := range of {
		patience[m.name] = cmp.Or(f.cfg.Providers[m.name].FirstToken, visionPatience)
	}
	llm, _, err := once(f, of.key("VLM", patience), "", func(*made) (providers.LLM, error) {
		return chain.NewLLM(all, of.options(f.log, patience))
	})
	return llm, err
}

// sees reports whether a language model is known to understand pictures: its
// section says so, or it is the one that a service brings along.
func (f *batch) sees(name string) bool {
	if p, ok := f.cfg.Providers[name]; ok {
		return p.Vision
	}
	return name == "openai" && os.Getenv("OPENAI_MODEL") == "" && os.Getenv("OPENAI_BASE_URL") == ""
}
