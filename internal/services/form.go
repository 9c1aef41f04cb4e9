package services

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"xiaozhi/internal/config"
	"xiaozhi/providers/service"
	"xiaozhi/store"
)

// Form fills the form of a service.
type Form struct {
	Name   string
	Kind   Kind
	New    bool
	Base   int
	Fields []Field
	Place  string         // where the section stands, if that is a file
	Used   []service.Role // chains of all that it is in
	Chains []service.Role // chains that it could join: those of what it does that no file or variable sets
	Shut   []string       // files and variables that set the others
}

// Form returns that of a section, of a service that needs none, or of a new one of a type. Not there: ok is false.
func (s *Services) Form(ctx context.Context, name, kind string) (f Form, ok bool) {
	cfg := s.o.Settings.Current()
	p, section := cfg.Providers[name]
	if name == "" || !section {
		p = config.Provider{Type: kind}
	}
	if p.Type == "" {
		p.Type = name
	}
	k, known := KindOf(p.Type)
	if !known && !section {
		return f, false
	}
	f = Form{Name: name, Kind: k, New: !section, Base: s.Revision(), Fields: fieldsOf(k, p)}
	if section && inFile(cfg, name) {
		f.Place = p.Place
	}
	if f.New && f.Name == "" {
		f.Name = freeName(cfg, p.Type)
	}
	for _, c := range s.Chains() {
		if len(c.Agents) == 0 && slices.Contains(c.names(), name) {
			f.Used = append(f.Used, c.Role)
		}
	}
	for _, r := range k.Does {
		switch place := cfg.PinnedAt([]string{string(r)}).Place; {
		case place == "":
			f.Chains = append(f.Chains, r)
		case !slices.Contains(f.Shut, place):
			f.Shut = append(f.Shut, place)
		}
	}
	s.fill(ctx, cfg, &f, p)
	return f, true
}

// freeName is one that no section has.
func freeName(cfg *config.Config, kind string) string {
	name := kind
	for n := 2; ; n++ {
		if _, taken := cfg.Providers[name]; !taken {
			return name
		}
		name = kind + "-" + strconv.Itoa(n)
	}
}

// fill puts what is set into the fields.
func (s *Services) fill(ctx context.Context, cfg *config.Config, f *Form, p config.Provider) {
	var secrets []store.Secret
	if s.o.Vault != nil {
		secrets, _ = s.o.Vault.List(ctx) // without it only who typed them is not told
	}
	tree, _ := cfg.Tree(false)
	for i := range f.Fields {
		at := &f.Fields[i]
		path := pathOf(f.Name, at.Key)
		if at.Value = shownValue(p, at.Key); f.New {
			continue
		}
		at.Pinned = cfg.PinnedAt(path).Place
		if at.Input == Secret && at.Value == "" && secretIn(p, at.Key) != "" || at.Key == "extra" && len(p.Extra) > 0 {
			at.Kept = &Kept{Place: cfg.OriginOf(path).Place}
			ref, _ := leaf(tree, path).(string)
			if name, ok := strings.CutPrefix(ref, sealedPrefix); ok {
				at.Kept.Name, at.Kept.Place = name, ""
				if j := slices.IndexFunc(secrets, func(s store.Secret) bool { return s.Name == name }); j >= 0 {
					at.Kept.Tail, at.Kept.By, at.Kept.At, at.Kept.Bound = secrets[j].Tail, secrets[j].ByID, secrets[j].At, secrets[j].Bound
				}
			}
		}
	}
}

const sealedPrefix = "sealed:" // begins the reference of a secret that is sealed

// leaf returns the value at a path of a tree.
func leaf(tree map[string]any, path []string) any {
	var at any = tree
	for _, name := range path {
		section, ok := at.(map[string]any)
		if !ok {
			return nil
		}
		at = section[name]
	}
	return at
}

func pathOf(name, key string) []string {
	return append([]string{"providers", name}, strings.Split(key, ".")...)
}

func secretIn(p config.Provider, key string) string {
	if key == "api_secret" {
		return string(p.APISecret)
	}
	return string(p.APIKey)
}

// shownValue returns what a page may show of a value: addresses without the keys in them, and nothing that may hold some.
func shownValue(p config.Provider, key string) string {
	v := valueOf(p, key)
	switch key {
	case "extra":
		return ""
	case "voice.zh", "voice.en":
		if v == p.Voice[""] {
			return ""
		}
	case "base_url", "proxy":
		u, err := url.Parse(v)
		if err != nil {
			return ""
		}
		if u.User != nil || u.RawQuery != "" {
			u.User, u.RawQuery = nil, ""
			return u.String()
		}
	}
	return v
}
