package settings

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"xiaozhi/console/ui"
	"xiaozhi/internal/config"
	"xiaozhi/internal/settings"
)

// The names of fields begin with these; the key follows.
const (
	typedPrefix = "v-" // what is typed
	seenPrefix  = "s-" // what the page showed
	resetPrefix = "r-" // files and defaults are to count again
)

// written is a value as it stands in a field: lists a line each.
func written(shape config.Shape, v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case []any:
		if shape == config.ShapeList {
			lines := make([]string, 0, len(v))
			for _, item := range v {
				lines = append(lines, fmt.Sprint(item))
			}
			return strings.Join(lines, "\n")
		}
	case bool, int, int64, float64, json.Number:
		return fmt.Sprint(v)
	}
	var out bytes.Buffer
	in := json.NewEncoder(&out)
	in.SetEscapeHTML(false)
	if in.Encode(v) != nil {
		return fmt.Sprint(v)
	}
	return strings.TrimSpace(out.String())
}

// read returns what somebody typed, as JSON has it. What cannot be read stays a text: the check says what is wrong with it.
func read(shape config.Shape, typed string) any {
	switch shape {
	case config.ShapeSwitch:
		if on, err := strconv.ParseBool(typed); err == nil {
			return on
		}
	case config.ShapeWhole:
		if n, err := strconv.Atoi(typed); err == nil {
			return n
		}
	case config.ShapeNumber:
		if n, err := strconv.ParseFloat(typed, 64); err == nil {
			return n
		}
	case config.ShapeList:
		list := []any{}
		for line := range strings.Lines(typed) {
			if line = strings.TrimSpace(line); line != "" {
				list = append(list, line)
			}
		}
		return list
	case config.ShapeOther:
		var v any
		in := json.NewDecoder(strings.NewReader(typed))
		in.UseNumber()
		if in.Decode(&v) == nil {
			return v
		}
	case config.ShapeText, config.ShapeDuration, config.ShapeSize, config.ShapeSecret:
	}
	return typed
}

// plainText returns the content of a field, whatever the browser ends lines with.
func plainText(f *ui.Form, name string) string { return strings.ReplaceAll(f.Get(name), "\r\n", "\n") }

// filled fills a form with the keys of a group as they are.
func filled(f *ui.Form, keys []settings.Key) *ui.Form {
	for _, k := range keys {
		shown := written(k.Shape, k.Value.Value)
		if k.Secret {
			shown = ""
		}
		f.Set(typedPrefix+k.Key(), shown)
		f.Set(seenPrefix+k.Key(), shown)
	}
	return f
}

// edits lists what somebody has changed in a form.
func edits(f *ui.Form, keys []settings.Key) (all []settings.Edit) {
	for _, k := range keys {
		name := k.Key()
		if k.Own && f.Has(resetPrefix+name, "yes") {
			all = append(all, settings.Edit{Path: k.Path, Remove: true})
			continue
		}
		typed := plainText(f, typedPrefix+name)
		if len(f.All(typedPrefix+name)) == 0 || typed == plainText(f, seenPrefix+name) {
			continue // it is disabled, or nobody has touched it
		}
		all = append(all, settings.Edit{Path: k.Path, Value: read(k.Shape, typed)})
	}
	return all
}

// refused notes at the fields why a change was refused. false: the error is of something else.
func (p *Page) refused(r *http.Request, f *ui.Form, keys []settings.Key, err error) bool {
	lang := ui.Lang(r)
	if p.site.AsksAgain(r, f, err) {
		return true
	}
	at := func(key []string) string {
		for n := len(key); n > 0; n-- {
			for _, k := range keys {
				if slices.Equal(k.Path, key[:n]) {
					return typedPrefix + k.Key()
				}
			}
		}
		return ""
	}
	switch e := err.(type) { //nolint:errorlint // none of them is wrapped
	case *settings.InvalidError:
		for _, problem := range e.Problems {
			f.Wrong(at(problem.Path), settings.Problem(lang, problem))
		}
		return true
	case *settings.PinnedError:
		f.Wrong(at(e.Path), e.In(lang))
		return true
	}
	if words := settings.Explain(lang, err); words != "" {
		f.Wrong("", words)
		return true
	}
	return false
}
