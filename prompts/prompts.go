// Package prompts holds the texts that the server brings along: the system
// prompt of the language model, the phrases the server says by itself (as text
// and, where speech synthesis may be what failed, as sound), and the table of
// emotions. Every text exists in Chinese ("zh") and English ("en"), phrases in further
// languages too, and the files of a folder may replace the embedded ones by name.
package prompts

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"xiaozhi/internal/text"
)

// Default is the name of the embedded system prompt.
const Default = "default"

//go:embed *.md *.yaml
var embedded embed.FS

// Set is a loaded set of prompts and phrases. It does not change after Load,
// so all its methods may be called at the same time.
type Set struct {
	prompts map[string]map[string]template // name, language
	phrases map[string]map[string]string   // language, id
	words   map[string]*Words              // language
}

// Data holds the values of the variables of a prompt.
type Data struct {
	AssistantName string
	DeviceName    string    // "" becomes a plain word for a speaker
	Language      string    // tag of the one in which to answer when in doubt; "" is the prompt's own
	Now           time.Time // in the zone of the user
}

// Load reads the embedded texts and lets the files of dir replace them: a Markdown
// file NAME.LANG replaces or adds a prompt, phrases.LANG.yaml replaces single phrases or adds a
// language; LANG is a tag of BCP 47. A dir that is "" or does not exist adds nothing. One
// joined error names all that is wrong, each with file and line.
func Load(dir string) (*Set, error) {
	s, err := embeddedSet()
	if err != nil {
		return nil, fmt.Errorf("embedded prompts: %w", err)
	}
	if dir == "" {
		return s, nil
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	s = s.clone()
	if err := s.add(os.DirFS(dir), dir, false); err != nil {
		return nil, err
	}
	return s, nil
}

// embeddedSet is the set of the embedded texts, which all others begin as.
var embeddedSet = sync.OnceValues(func() (*Set, error) {
	s := &Set{
		prompts: map[string]map[string]template{},
		phrases: map[string]map[string]string{},
		words:   map[string]*Words{},
	}
	return s, s.add(embedded, ".", true)
})

// clone returns a set that can be added to.
func (s *Set) clone() *Set {
	own := &Set{prompts: maps.Clone(s.prompts), phrases: maps.Clone(s.phrases), words: maps.Clone(s.words)}
	for name, versions := range own.prompts {
		own.prompts[name] = maps.Clone(versions)
	}
	for lang, phrases := range own.phrases {
		own.phrases[lang] = maps.Clone(phrases)
	}
	for lang, words := range own.words {
		copied := *words // its lists are replaced as a whole
		own.words[lang] = &copied
	}
	return own
}

// add takes in all files of one folder. base says that unknown phrases are the
// ones to know from now on.
func (s *Set) add(files fs.FS, dir string, base bool) error {
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		return fmt.Errorf("read prompts: %w", err)
	}
	var errs []error
	for _, e := range entries {
		ext := filepath.Ext(e.Name())
		if e.IsDir() || ext != ".md" && ext != ".yaml" && ext != ".yml" || strings.EqualFold(e.Name(), "README.md") {
			continue
		}
		path := filepath.Join(dir, e.Name())
		text, err := fs.ReadFile(files, e.Name())
		if err != nil {
			errs = append(errs, fmt.Errorf("read prompt: %w", err))
			continue
		}
		errs = append(errs, s.addFile(path, string(text), base))
	}
	return errors.Join(errs...)
}

func (s *Set) addFile(path, file string, base bool) error {
	name, lang, ext, ok := splitName(filepath.Base(path))
	switch {
	case !ok:
		return fmt.Errorf("%s: the name must be NAME.LANG.md or phrases.LANG.yaml, with a language such as zh, en or ja for LANG%s", path, meant(filepath.Base(path)))
	case ext == "yaml":
		return s.addPhrases(path, file, lang, base)
	}
	t, err := parseTemplate(path, file)
	if err != nil {
		return err
	}
	if s.prompts[name] == nil {
		s.prompts[name] = map[string]template{}
	}
	s.prompts[name][lang] = t
	return nil
}

// splitName returns the parts of the name of a file, NAME.LANG.EXT.
func splitName(file string) (name, lang, ext string, ok bool) {
	parts := strings.Split(file, ".")
	if len(parts) != 3 || parts[0] == "" {
		return "", "", "", false
	}
	tag, err := text.ParseLang(parts[1])
	name, lang, ext = parts[0], string(tag), parts[2]
	ok = err == nil && (ext == "md" || ext == "yaml" && name == "phrases")
	return name, lang, ext, ok
}

// meant says which language the name of a file probably means, if that is what is wrong with it.
func meant(file string) string {
	parts := strings.Split(file, ".")
	if len(parts) != 3 || text.TagOf(parts[1]) != "" {
		return ""
	}
	return fmt.Sprintf("; %q is none (did you mean %s?)", parts[1], text.NearestLang(parts[1]))
}

// Names lists the prompts there are, sorted.
func (s *Set) Names() []string { return slices.Sorted(maps.Keys(s.prompts)) }

// Has reports whether there is a prompt called name.
func (s *Set) Has(name string) bool { return s.prompts[name] != nil }

// Source returns the prompt called name as it is written, with its variables, in the language of the tag lang, or in the
// nearest that it is there in; "": there is none.
func (s *Set) Source(name, lang string) string {
	versions, ok := s.prompts[name]
	if !ok {
		return ""
	}
	return versions[nearest(versions, lang)].source()
}

// nearest is the language of a prompt's versions that is the nearest to that of the tag lang.
func nearest(versions map[string]template, lang string) string {
	for _, l := range append(orChinese(lang).Fallbacks(), text.Chinese) {
		if _, ok := versions[string(l)]; ok {
			return string(l)
		}
	}
	return slices.Sorted(maps.Keys(versions))[0] // the only one, as a rule
}

// Render fills in the prompt called name in the language of the tag lang, or in the nearest that it is
// there in. An unknown name is an error that lists the known ones. Where the language to answer in is
// neither Chinese nor English, a line says its name.
func (s *Set) Render(name, lang string, d Data) (string, error) {
	versions, ok := s.prompts[name]
	if !ok {
		return "", fmt.Errorf("no prompt called %q (there are: %s)", name, strings.Join(s.Names(), ", "))
	}
	own := nearest(versions, lang)
	return versions[own].render(s.values(own, d)) + s.answerIn(own, d), nil
}

// answerIn returns the line that says in which language to answer, in that of the prompt: "" for
// Chinese and English, which prompts bring about by themselves.
func (s *Set) answerIn(lang string, d Data) string {
	in := text.Lang(d.Language)
	if in.IsOwn() {
		return ""
	}
	return "\n\n" + s.Phrase(answerIn, lang, "language", in.Name(text.Lang(lang)))
}

// CheckText names the first variable of a prompt that a person has typed which [Set.RenderText] does not know, with its line, and
// the one that was probably meant. "" if there is none. Braces that hold no name are no variable.
func CheckText(typed string) (name, meant string, line int) {
	line = 1
	for {
		before, after, found := strings.Cut(typed, "{{")
		line += strings.Count(before, "\n")
		if !found {
			return "", "", 0
		}
		inner, _, closed := strings.Cut(after[:min(len(after), maxVariable)], "}}")
		name = strings.TrimSpace(inner)
		if known := variables(); closed && isName(name) && !slices.Contains(known, name) {
			return name, Nearest(name, known), line
		}
		typed = after
	}
}

// isName reports whether a text could name a variable.
func isName(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	})
}

// maxVariable is how far the end of a variable is looked for in what a person has typed, in bytes.
const maxVariable = 64

// RenderText fills in a prompt that a person has typed, in place of one of a file. Braces that hold no variable stay as they
// were typed: nobody reads what a program says about them.
func (s *Set) RenderText(typed, lang string, d Data) string {
	lang = string(orChinese(lang))
	values := s.values(lang, d)
	var b strings.Builder
	for {
		before, after, found := strings.Cut(typed, "{{")
		b.WriteString(before)
		if !found {
			return b.String() + s.answerIn(lang, d)
		}
		name, _, closed := strings.Cut(after[:min(len(after), maxVariable)], "}}")
		if value, known := values[strings.TrimSpace(name)]; known && closed {
			b.WriteString(value)
			typed = after[len(name)+len("}}"):]
			continue
		}
		b.WriteString("{{")
		typed = after
	}
}
