package settings

import (
	"context"

	"xiaozhi/internal/config"
)

// maker makes settings of files and of what people have set.
type maker struct {
	sources *config.Sources
	vault   Vault
}

// load makes settings, with their secrets in place. The error is the loader's.
func (m maker) load(ctx context.Context, set layer, revision int) (*config.Config, []config.Warning, error) {
	c, warnings, err := m.check(set, revision)
	if err == nil && m.vault != nil {
		err = c.Unseal(m.vault.Open(ctx))
	}
	return c, warnings, err
}

// check makes settings without the secrets that are sealed.
func (m maker) check(set layer, revision int) (*config.Config, []config.Warning, error) {
	if m.sources == nil {
		return nil, nil, ErrNoStore
	}
	l := config.Layer{Revision: revision}
	if len(set) > 0 {
		doc, err := set.write()
		if err != nil {
			return nil, nil, err
		}
		l.Doc = []byte(doc)
	}
	return m.sources.Load(l)
}

// Unbuilt is the machine of settings that no server uses now: they are checked, and count at its next start.
type Unbuilt struct{}

var (
	_ Machine = Unbuilt{}
	_ Stage   = Unbuilt{}
)

// Build implements [Machine].
func (u Unbuilt) Build(context.Context, *config.Config) (Stage, error) { return u, nil }

// Health implements [Machine].
func (Unbuilt) Health() Health { return Health{} }

// Tests implements [Stage].
func (Unbuilt) Tests(context.Context) []Test { return nil }

// Apply implements [Stage].
func (Unbuilt) Apply(context.Context) error { return nil }

// Drop implements [Stage].
func (Unbuilt) Drop() {}
