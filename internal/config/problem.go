package config

import (
	"errors"
	"slices"
	"strings"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/prompts"
)

// Error is one thing that is wrong in the settings, in both languages.
type Error struct {
	Place   string // FILE:LINE, or the name of an environment variable or flag
	English string
	Chinese string
}

// Error names the place, then what is wrong in English and in Chinese.
func (p *Error) Error() string {
	text := p.English + " / " + p.Chinese
	if p.Place == "" {
		return text
	}
	return p.Place + ": " + text
}

// problems collects all that is wrong, so that it is told at once.
type problems struct{ list []error }

// add collects a message of the catalogue. prefix stands before the English text.
func (ps *problems) add(place, prefix, id string, args ...any) {
	ps.addError(&Error{Place: place, English: prefix + message.In(text.English, id, args...), Chinese: message.In(text.Chinese, id, args...)})
}

func (ps *problems) addError(p *Error) {
	if !slices.ContainsFunc(ps.list, func(e error) bool { return e.Error() == p.Error() }) {
		ps.list = append(ps.list, p)
	}
}

// unknownKey reports a key that does not exist, with the nearest that does.
func (ps *problems) unknownKey(place string, parents []string, key string, known []string) {
	full := keyName(append(slices.Clone(parents), key))
	if len(known) == 0 {
		ps.add(place, "", "config/unknown-key", full)
		return
	}
	near := keyName(append(slices.Clone(parents), prompts.Nearest(key, known)))
	ps.add(place, "", "config/unknown-key-near", full, near)
}

// wrongType reports a value of another kind than expected. want is the id of the
// expected kind.
func (ps *problems) wrongType(place string, path []string, want, found string) {
	in := func(lang text.Lang) string {
		kind := message.In(lang, want)
		if len(path) == 0 {
			return message.In(lang, "config/wrong-file", kind, found)
		}
		return message.In(lang, "config/wrong-type", keyName(path), kind, found)
	}
	ps.addError(&Error{Place: place, English: in(text.English), Chinese: in(text.Chinese)})
}

func (ps *problems) err() error { return errors.Join(ps.list...) }

// keyName writes a path as people do.
func keyName(path []string) string { return strings.Join(path, ".") }
