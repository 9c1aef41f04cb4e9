package services

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"xiaozhi/internal/config"
	"xiaozhi/internal/settings"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/providers/service"
)

// Draft is a service as somebody has typed it.
type Draft struct {
	Name  string            // of its section
	Type  string            // of its kind
	New   bool              // there must be none of this name
	Base  int               // revision that it was typed over
	Typed map[string]string // by the key of a field; a secret that is "" stays as it is
	Clear []string          // keys of secrets that are taken away
	Join  []service.Role    // chains that it becomes the first of
	Try   []service.Role    // that a test tries; none: all that it can do
}

// Mistake says what is wrong with a field.
type Mistake struct {
	Field string // its key, or "name"; "": no single one
	ID    string // of a message; "": the loader of the settings has said it
	Args  []any

	english, chinese string
}

// In says in a language what is wrong.
func (m Mistake) In(lang text.Lang) string {
	if m.ID != "" {
		return message.In(lang, m.ID, m.Args...)
	}
	if lang.IsChinese() && m.chinese != "" {
		return m.chinese
	}
	return m.english
}

// MistakesError says that a draft cannot be.
type MistakesError struct{ All []Mistake }

// Error counts them.
func (e *MistakesError) Error() string { return fmt.Sprintf("%d mistakes", len(e.All)) }

// edits makes changes of the settings of what was typed, with the secrets in it.
func (s *Services) edits(d Draft) (all []settings.Edit, err error) {
	cfg := s.o.Settings.Current()
	p, section := cfg.Providers[d.Name]
	k, known := KindOf(d.Type)
	wrong := &MistakesError{}
	mistake := func(field, id string, args ...any) {
		wrong.All = append(wrong.All, Mistake{Field: field, ID: id, Args: args})
	}
	switch {
	case !known:
		mistake("", "services/no-kind", d.Type)
		return nil, wrong
	case d.New && !config.GoodSection(d.Name):
		mistake("name", "services/bad-name")
	case d.New && section:
		mistake("name", "services/name-taken", d.Name)
	}
	if !section {
		p = config.Provider{Type: d.Type}
		all = append(all, settings.Edit{Path: pathOf(d.Name, "type"), Value: d.Type})
	}
	again := section && addressOf(k, p) != addressOf(k, moved(p, d.Typed))
	for _, f := range fieldsOf(k, p) {
		typed, there := d.Typed[f.Key]
		path := pathOf(d.Name, f.Key)
		switch {
		case strings.HasPrefix(f.Key, "voice"): // all at once
		case f.Input == Secret && slices.Contains(d.Clear, f.Key):
			all = append(all, away(cfg, path, ""))
		case f.Input == Secret && typed == "":
			if again && secretIn(p, f.Key) != "" {
				mistake(f.Key, "services/key-again")
			}
		case f.Input == Secret:
			all = append(all, settings.Edit{Path: path, Value: typed})
		case !there || typed == shownValue(p, f.Key) && f.Key != "extra" || f.Key == "extra" && typed == "" && !slices.Contains(d.Clear, f.Key):
		default:
			value, id := parse(f, typed)
			if id != "" {
				mistake(f.Key, id)
				continue
			}
			if typed == "" {
				all = append(all, away(cfg, path, value))
				continue
			}
			all = append(all, settings.Edit{Path: path, Value: value})
		}
	}
	if e, changed := voiceEdit(cfg, d, p); changed {
		all = append(all, e)
	}
	for _, r := range d.Join {
		all = append(all, settings.Edit{Path: []string{string(r)}, Value: joined(chainOf(cfg, r), d.Name)})
	}
	if len(wrong.All) > 0 {
		return nil, wrong
	}
	return all, nil
}

// joined puts a name first in a chain.
func joined(names []string, name string) []string {
	if config.IsNone(names) {
		return []string{name}
	}
	return append([]string{name}, slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == name })...)
}

// away takes a value away: what people have set, or else it sets nothing in the place of what a file says.
func away(cfg *config.Config, path []string, nothing any) settings.Edit {
	if o := cfg.OriginOf(path); o.Layer == config.LayerConsole || o.Layer == config.LayerDefault {
		return settings.Edit{Path: path, Remove: true}
	}
	return settings.Edit{Path: path, Value: nothing}
}

// voiceEdit is that of the voices, which are one value: a name for all languages, or one for each.
func voiceEdit(cfg *config.Config, d Draft, p config.Provider) (e settings.Edit, changed bool) {
	byTag, all := map[string]any{}, p.Voice[""]
	if typed, there := d.Typed["voice"]; there {
		all, changed = typed, typed != p.Voice[""]
	}
	for _, tag := range tagsOf(p) {
		name := shownValue(p, "voice."+tag)
		if typed, there := d.Typed["voice."+tag]; there {
			changed = changed || typed != name
			name = typed
		}
		if name != "" {
			byTag[tag] = name
		}
	}
	e = settings.Edit{Path: pathOf(d.Name, "voice")}
	switch {
	case len(byTag) == 0 && all == "":
		e = away(cfg, e.Path, "")
	case len(byTag) == 0:
		e.Value = all
	default:
		for _, tag := range languages {
			if byTag[tag] == nil && all != "" {
				byTag[tag] = all
			}
		}
		e.Value = maps.Clone(byTag)
	}
	return e, changed
}

// parse makes a value of what was typed, or returns the id of what is wrong with it.
func parse(f Field, typed string) (value any, wrong string) {
	switch f.Input {
	case Number:
		v, err := strconv.ParseFloat(strings.ReplaceAll(typed, ",", "."), 64)
		if typed != "" && err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, "services/not-number"
		}
		return v, ""
	case Whole:
		v, err := strconv.Atoi(typed)
		if typed != "" && err != nil {
			return nil, "services/not-whole"
		}
		return v, ""
	case Switch:
		return typed == "true", ""
	case List:
		lines := []any{}
		for line := range strings.Lines(typed) {
			if line = strings.TrimSpace(line); line != "" {
				lines = append(lines, line)
			}
		}
		return lines, ""
	case Object:
		v := map[string]any{}
		if typed != "" && (json.Unmarshal([]byte(typed), &v) != nil || v == nil) {
			return nil, "services/not-object"
		}
		return v, ""
	case Time:
		if typed == "" {
			return "0s", ""
		}
		if _, err := time.ParseDuration(typed); err != nil {
			return nil, "services/not-time"
		}
	default: // a text
	}
	return typed, ""
}

// moved is a section with the address that was typed.
func moved(p config.Provider, typed map[string]string) config.Provider {
	if at, ok := typed["base_url"]; ok && at != shownValue(p, "base_url") {
		p.BaseURL = at
	}
	if region, ok := typed["region"]; ok {
		p.Region = region
	}
	if proxy := typed["proxy"]; proxy != "" && proxy != "none" && proxy != shownValue(p, "proxy") {
		p.Proxy = proxy
	}
	return p
}

// sectionOf is the section that a draft is of, as it is in force.
func (s *Services) sectionOf(d Draft) config.Provider {
	p, section := s.o.Settings.Current().Providers[d.Name]
	if !section {
		p = config.Provider{Type: d.Type}
	}
	return p
}

// addressOfDraft returns the host that a draft sends its keys to.
func (s *Services) addressOfDraft(d Draft) string {
	k, _ := KindOf(d.Type)
	return addressOf(k, moved(s.sectionOf(d), d.Typed))
}

// addressOf is the host that a section sends its keys to, with its scheme and the proxy that reads them if that is without
// TLS.
func addressOf(k Kind, p config.Provider) string {
	at := service.Section{BaseURL: p.BaseURL, Region: p.Region}.Address(k.Regions, k.Address)
	u, err := url.Parse(at)
	if err != nil {
		return at
	}
	open := u.Scheme == "http" || u.Scheme == "ws"
	if !open {
		p.Proxy = ""
	}
	return fmt.Sprint(strings.ToLower(u.Host), open, p.Proxy)
}

// mistakesOf says at the fields of a draft why settings cannot be; nil: that is not what the error says.
func mistakesOf(name string, err error) *MistakesError {
	var all []*config.Error
	if invalid, ok := errors.AsType[*settings.InvalidError](err); ok {
		all = invalid.Problems
	} else if joined, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // as the loader makes it
		for _, e := range joined.Unwrap() {
			if one, ok := errors.AsType[*config.Error](e); ok {
				all = append(all, one)
			}
		}
	} else if one, ok := errors.AsType[*config.Error](err); ok {
		all = []*config.Error{one}
	}
	if len(all) == 0 {
		return nil
	}
	wrong := &MistakesError{}
	for _, e := range all {
		m := Mistake{english: e.English, chinese: e.Chinese}
		if len(e.Path) > 2 && e.Path[0] == "providers" && e.Path[1] == name {
			m.Field = strings.Join(e.Path[2:], ".")
			m.english = strings.TrimPrefix(m.english, strings.Join(e.Path, ".")+": ")
		}
		wrong.All = append(wrong.All, m)
	}
	return wrong
}
