package engines

import (
	"context"
	"strings"

	"xiaozhi/internal/config"
	"xiaozhi/internal/text/message"
	"xiaozhi/providers"
	"xiaozhi/providers/chain"
	"xiaozhi/providers/service"
)

// embedderOf is the maker of what makes vectors.
func embedderOf(k service.Kind) func(service.Section) (providers.Embedder, error) { return k.Embed }

// embedder makes what makes vectors: the first that can be made does, for the vectors of two cannot be compared. nil: there is none.
func (f *batch) embedder(ctx context.Context, names []string) (providers.Embedder, error) {
	expanded := f.expand(names, service.Embed)
	all, of := gather(ctx, f, "VEC", expanded, everyone, func(_ context.Context, name string, p config.Provider) (providers.Embedder, string, error) {
		return ofKind(f, service.Embed, name, p, embedderOf)
	})
	if len(all) == 0 {
		if len(names) > 0 && !config.IsNone(names) {
			f.tellOnce("VEC", strings.Join(expanded, " "), message.Both("app/no-embedder"))
		}
		return nil, nil
	}
	made, _, err := once(f, of.key("VEC", nil), "", func(*made) (providers.Embedder, error) {
		return chain.NewEmbedder(all, of.options(f.log, nil))
	})
	return made, err
}
