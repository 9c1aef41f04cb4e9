package services

import (
	"context"
	"net"
	"net/url"
	"slices"
	"time"

	"xiaozhi/internal/config"
	"xiaozhi/internal/nearby"
	"xiaozhi/internal/settings"
)

// drafted is the settings with edits that are not kept, with their secrets.
func (s *Services) drafted(ctx context.Context, name string, edits []settings.Edit) (*config.Config, error) {
	now := s.o.Settings.Current()
	if now.Sources() == nil {
		return nil, settings.ErrReadOnly
	}
	doc, err := config.JSON(withEdits(ofConsole(now), edits))
	if err != nil {
		return nil, err
	}
	cfg, _, err := now.Sources().Load(config.Layer{Doc: doc})
	if err == nil && cfg.Sealed() {
		err = s.o.Unseal(ctx, cfg)
	}
	if wrong := mistakesOf(name, err); wrong != nil {
		return nil, wrong
	}
	return cfg, err
}

// ofConsole returns what people have set, in the shape of config.yaml.
func ofConsole(cfg *config.Config) map[string]any {
	tree, _ := cfg.Tree(false)
	return kept(cfg, tree, nil)
}

func kept(cfg *config.Config, tree map[string]any, path []string) map[string]any {
	out := map[string]any{}
	for name, v := range tree {
		at := append(slices.Clone(path), name)
		if section, ok := v.(map[string]any); ok {
			if below := kept(cfg, section, at); len(below) > 0 {
				out[name] = below
			}
		} else if cfg.OriginOf(at).Layer == config.LayerConsole {
			out[name] = v
		}
	}
	return out
}

// withEdits puts edits into a tree.
func withEdits(tree map[string]any, edits []settings.Edit) map[string]any {
	for _, e := range edits {
		at := tree
		for _, name := range e.Path[:len(e.Path)-1] {
			below, ok := at[name].(map[string]any)
			if !ok {
				below = map[string]any{}
				at[name] = below
			}
			at = below
		}
		last := e.Path[len(e.Path)-1]
		if at[last] = e.Value; e.Remove {
			delete(at, last)
		}
	}
	return tree
}

// near refuses an address where machines find their own settings, also behind a name.
func (s *Services) near(ctx context.Context, cfg *config.Config, name string) error {
	p := cfg.Providers[name]
	u, err := url.Parse(p.BaseURL)
	if err != nil || p.BaseURL == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", u.Hostname())
	if err != nil {
		return nil // the test says that there is no such host
	}
	for _, ip := range found {
		if nearby.IsDoor(ip) {
			return &MistakesError{[]Mistake{{Field: "base_url", ID: "services/link-local"}}}
		}
	}
	return nil
}
