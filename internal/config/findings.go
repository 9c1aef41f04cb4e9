package config

import (
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

// findings holds what the layers have told of themselves: where each key stands, what
// could not be read, and all that is wrong, so that it is reported at once.
type findings struct {
	places   map[string]string   // path joined by keySeparator, to where it was set last
	holes    map[string]bool     // sections, by their joined path, that could not be read whole
	unset    map[string][]string // owners of secrets, by their joined path, to the variables that are not set
	problems []error
	warnings []Warning
}

// add collects a message of the catalogue. prefix stands before the English text.
func (fs *findings) add(place, prefix, id string, args ...any) {
	fs.addError(&Error{Place: place, English: prefix + message.In(text.English, id, args...), Chinese: message.In(text.Chinese, id, args...)})
}

func (fs *findings) addError(p *Error) {
	if !slices.ContainsFunc(fs.problems, func(e error) bool { return e.Error() == p.Error() }) {
		fs.problems = append(fs.problems, p)
	}
}

// unknownKey reports a key that does not exist, with the nearest that does.
func (fs *findings) unknownKey(place string, parents []string, key string, known []string) {
	full := keyName(append(slices.Clone(parents), key))
	if len(known) == 0 {
		fs.add(place, "", "config/unknown-key", full)
		return
	}
	near := keyName(append(slices.Clone(parents), prompts.Nearest(key, known)))
	fs.add(place, "", "config/unknown-key-near", full, near)
}

// wrongType reports a value of another kind than expected. want is the id of the
// expected kind.
func (fs *findings) wrongType(place string, path []string, want, found string) {
	in := func(lang text.Lang) string {
		kind := message.In(lang, want)
		if len(path) == 0 {
			return message.In(lang, "config/wrong-file", kind, found)
		}
		return message.In(lang, "config/wrong-type", keyName(path), kind, found)
	}
	fs.addError(&Error{Place: place, English: in(text.English), Chinese: in(text.Chinese)})
}

// hole notes that a section could not be read whole.
func (fs *findings) hole(section []string) { fs.holes[strings.Join(section, keySeparator)] = true }

// whole reports whether a section could be read whole. If not, checks that compare
// its keys are left out.
func (fs *findings) whole(section ...string) bool {
	return !fs.holes[strings.Join(section, keySeparator)]
}

// place returns the position where a key was set last, "" for a default.
func (fs *findings) place(path ...string) string {
	for n := len(path); n > 0; n-- {
		if p, ok := fs.places[strings.Join(path[:n], keySeparator)]; ok {
			return p
		}
	}
	return ""
}

// keyName writes a path as people do.
func keyName(path []string) string { return strings.Join(path, ".") }
