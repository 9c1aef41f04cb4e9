// Package prompts holds the texts that the server brings along: the system
// prompt of the language model, the phrases the server says by itself (as text
// and, where speech synthesis may be what failed, as sound), and the table of
// emotions. Every text exists in Chinese ("zh") and English ("en"), and the
// files of a folder may replace the embedded ones by name.
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
	"time"
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
}

// Data holds the values of the variables of a prompt.
type Data struct {
	AssistantName string
	DeviceName    string    // "" becomes a plain word for a speaker
	Language      string    // "zh" or "en": in which to answer when in doubt; "" is the prompt's own
	Now           time.Time // in the zone of the user
}

// Load reads the embedded texts and lets the files of dir replace them: a Markdown
// file NAME.LANG replaces or adds a prompt, phrases.zh.yaml and phrases.en.yaml
// replace single phrases. A dir that is "" or does not exist adds nothing. One
// joined error names all that is wrong, each with file and line.
func Load(dir string) (*Set, error) {
	s := &Set{
		prompts: map[string]map[string]template{},
		phrases: map[string]map[string]string{"zh": {}, "en": {}},
	}
	if err := s.add(embedded, ".", true); err != nil {
		return nil, fmt.Errorf("embedded prompts: %w", err)
	}
	if dir == "" {
		return s, nil
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err := s.add(os.DirFS(dir), dir, false); err != nil {
		return nil, err
	}
	return s, nil
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

func (s *Set) addFile(path, text string, base bool) error {
	name, lang, ext, ok := splitName(filepath.Base(path))
	switch {
	case !ok:
		return fmt.Errorf("%s: the name must be NAME.zh.md, NAME.en.md, phrases.zh.yaml or phrases.en.yaml", path)
	case ext == "yaml":
		return s.addPhrases(path, text, lang, base)
	}
	t, err := parseTemplate(path, text)
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
	name, lang, ext = parts[0], parts[1], parts[2]
	ok = (lang == "zh" || lang == "en") && (ext == "md" || ext == "yaml" && name == "phrases")
	return name, lang, ext, ok
}

// Names lists the prompts there are, sorted.
func (s *Set) Names() []string { return slices.Sorted(maps.Keys(s.prompts)) }

// Has reports whether there is a prompt called name.
func (s *Set) Has(name string) bool { return s.prompts[name] != nil }

// Render fills in the prompt called name in the language lang ("zh" or "en").
// A prompt that exists in the other language only is used as it is. An unknown
// name is an error that lists the known ones.
func (s *Set) Render(name, lang string, d Data) (string, error) {
	versions, ok := s.prompts[name]
	if !ok {
		return "", fmt.Errorf("no prompt called %q (there are: %s)", name, strings.Join(s.Names(), ", "))
	}
	t, ok := versions[language(lang)]
	if !ok {
		for other, version := range versions {
			lang, t = other, version
		}
	}
	return t.render(s.values(language(lang), d)), nil
}

// maxVariable is how far the end of a variable is looked for in what a person has typed, in bytes.
const maxVariable = 64

// RenderText fills in a prompt that a person has typed, in place of one of a file. Braces that hold no variable stay as they
// were typed: nobody reads what a program says about them.
func (s *Set) RenderText(text, lang string, d Data) string {
	values := s.values(language(lang), d)
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, "{{")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		name, _, closed := strings.Cut(after[:min(len(after), maxVariable)], "}}")
		if value, known := values[strings.TrimSpace(name)]; known && closed {
			b.WriteString(value)
			text = after[len(name)+len("}}"):]
			continue
		}
		b.WriteString("{{")
		text = after
	}
}

// language returns lang if it is one of the two, else Chinese, the default.
func language(lang string) string {
	if lang == "en" {
		return "en"
	}
	return "zh"
}
