package settings

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"slices"
	"strings"
	"time"

	"xiaozhi/internal/account"
	"xiaozhi/internal/config"
	"xiaozhi/store"
)

// ownPrefix begins the names of secrets that were typed here. Those of others are left alone.
const ownPrefix = "console."

// typed is a secret that somebody typed, by its key.
type typed struct {
	path  []string
	name  string
	value string
}

// safe keeps secrets that people type.
type safe struct {
	vault Vault // nil: none can be kept
	log   *slog.Logger
	life  func(limit time.Duration) (context.Context, context.CancelFunc) // for what is done whether or not somebody waits for it
}

// seal returns edits with references in the place of secrets that were typed, which it seals for where they go.
func (s safe) seal(ctx context.Context, from maker, p *planned, now state, by account.Person, edits []Edit) ([]Edit, error) {
	var all []typed
	clean := make([]Edit, 0, len(edits))
	for _, e := range edits {
		if !e.Remove {
			e.Value = withReferences(cloned(e.Value), e.Path, &all)
		}
		clean = append(clean, e)
	}
	if len(all) == 0 {
		return clean, nil
	}
	for _, t := range all {
		if strings.Trim(t.value, "•●*. ") == "" {
			return nil, invalid(t.path, "settings/dots")
		}
	}
	if err := by.Proven(time.Now()); err != nil {
		return nil, err
	}
	if s.vault == nil {
		return nil, ErrNoStore
	}
	next, _, err := from.check(now.set.with(clean), now.revision+1) // only what is right otherwise says where a secret goes
	if err != nil {
		return nil, &InvalidError{problemsOf(err)}
	}
	for _, t := range all {
		use, err := s.destination(ctx, next.UseOf(t.path), all)
		if err == nil {
			p.names = append(p.names, t.name)
			err = s.vault.Seal(ctx, by, t.name, use, t.value)
		}
		if err != nil {
			return nil, &InvalidError{[]*config.Error{{Path: t.path, English: err.Error()}}}
		}
	}
	return clean, nil
}

// TypeSecrets reports whether secrets are typed into edits, which whoever has logged in shows their password again for.
func TypeSecrets(edits []Edit) bool {
	var all []typed
	for _, e := range edits {
		if !e.Remove {
			withReferences(cloned(e.Value), e.Path, &all)
		}
	}
	return len(all) > 0
}

// destination says where a secret goes whose address may be a secret too: one that was typed with it, or one that is kept.
func (s safe) destination(ctx context.Context, use config.SecretUse, all []typed) (config.SecretUse, error) {
	name, sealed := config.IsSealed(use.At)
	if !sealed {
		return use, nil
	}
	if i := slices.IndexFunc(all, func(t typed) bool { return t.name == name }); i >= 0 {
		use.At = all[i].value
		return use, nil
	}
	at, err := s.vault.Open(ctx)(name, config.SecretUse{Kind: config.SecretAddress})
	use.At = at
	return use, err
}

// withReferences puts references in the place of secrets in a value, and lists those.
func withReferences(v any, path []string, all *[]typed) any {
	switch v := v.(type) {
	case map[string]any:
		for name, item := range v {
			v[name] = withReferences(item, append(slices.Clone(path), name), all)
		}
	case string:
		_, sealed := config.IsSealed(v)
		if v != "" && !sealed && config.IsSecret(path) && !strings.Contains(v, "${") { // the loader says why variables are refused
			t := typed{path, secretName(path), v}
			*all = append(*all, t)
			return config.SealedAs(t.name)
		}
	}
	return v
}

// secretName makes the name of a secret that was never there, so that what an earlier revision refers to stays.
func secretName(path []string) string {
	const longest = 40
	plain := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, keyName(path[1:]))
	b := make([]byte, 5)
	_, _ = rand.Read(b) // never fails
	return ownPrefix + plain[:min(len(plain), longest)] + "-" + hex.EncodeToString(b)
}

// proxied refuses a change that shows secrets of a service to another proxy than before, unless they are typed again: what
// is sent without TLS, a proxy reads. What is taken back was so before.
func proxied(p *planned, now state) error {
	if p.kind == KindUndo {
		return nil
	}
	var problems []*config.Error
	leaves(map[string]any(p.next.set), nil, func(path []string, value any) {
		if _, sealed := config.IsSealed(value); !sealed || path[0] != "providers" || !config.IsSecret(path) {
			return
		}
		next, was := p.next.config.Providers[path[1]], now.config.Providers[path[1]]
		kept, _ := now.set.get(path)
		at := strings.ToLower(p.next.config.UseOf(path).At)
		if open := strings.HasPrefix(at, "http:") || strings.HasPrefix(at, "ws:"); open && same(kept, value) && next.Proxy != was.Proxy && next.Proxy != "" && next.Proxy != "none" {
			wrong := invalid(path, "config/secret-strays", keyName([]string{"providers", path[1], "proxy"}))
			problems = append(problems, wrong.Problems...)
		}
	})
	if len(problems) > 0 {
		return &InvalidError{problems}
	}
	return nil
}

// dropTime limits the time in which secrets are dropped.
const dropTime = 10 * time.Second

// drop drops secrets that nothing refers to, also when the request that left them is over.
func (s safe) drop(names []string) {
	if len(names) == 0 {
		return
	}
	ctx, cancel := s.life(dropTime)
	defer cancel()
	for _, name := range names {
		if err := s.vault.Drop(ctx, name); err != nil {
			s.log.Warn("a secret that nothing refers to is not dropped", "name", name, "err", err)
		}
	}
}

// sweep drops secrets that were typed for a change that never was.
func (s safe) sweep(ctx context.Context, records Records) {
	if s.vault == nil {
		return
	}
	names, err := s.vault.Names(ctx)
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, ownPrefix) })
	if err != nil || len(names) == 0 {
		return
	}
	for before := 0; ; {
		all, err := records.List(ctx, before, store.MaxPage)
		if err != nil {
			return
		}
		for _, r := range all {
			names = slices.DeleteFunc(names, func(name string) bool { return strings.Contains(r.Doc, `"`+config.SealedAs(name)+`"`) })
			before = r.ID
		}
		if len(all) < store.MaxPage {
			break
		}
	}
	s.drop(names)
}
