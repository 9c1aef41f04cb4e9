package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

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

func (ps *problems) add(place, english, chinese string) {
	p := &Error{Place: place, English: english, Chinese: chinese}
	if !slices.ContainsFunc(ps.list, func(e error) bool { return e.Error() == p.Error() }) {
		ps.list = append(ps.list, p)
	}
}

// unknownKey reports a key that does not exist, with the nearest that does.
func (ps *problems) unknownKey(place string, parents []string, key string, known []string) {
	full := keyName(append(slices.Clone(parents), key))
	if len(known) == 0 {
		ps.add(place, "unknown key "+full, "未知的键 "+full)
		return
	}
	near := keyName(append(slices.Clone(parents), prompts.Nearest(key, known)))
	ps.add(place, fmt.Sprintf("unknown key %s (did you mean %s?)", full, near), fmt.Sprintf("未知的键 %s（是 %s 吗？）", full, near))
}

// wrongType reports a value of another kind than expected.
func (ps *problems) wrongType(place string, path []string, want, wantChinese, found string) {
	if len(path) == 0 {
		ps.add(place, "the file must be "+want+", found "+found, "文件应为"+wantChinese)
		return
	}
	ps.add(place, fmt.Sprintf("%s must be %s, found %s", keyName(path), want, found),
		fmt.Sprintf("%s 应为%s，现在是 %s", keyName(path), wantChinese, found))
}

func (ps *problems) err() error { return errors.Join(ps.list...) }

// keyName writes a path as people do.
func keyName(path []string) string { return strings.Join(path, ".") }
