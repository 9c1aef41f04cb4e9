package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/v2"
	"go.yaml.in/yaml/v3"

	"xiaozhi/internal/private"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/prompts"
)

// Options name the sources of the settings.
type Options struct {
	File    string   // in place of config.yaml, and then it must exist; "" is config.yaml, if there
	DataDir string   // its config.yaml comes after File; "" is none
	Env     []string // as os.Environ
	Listen  []string // from the command line; replaces all other listen addresses
}

// keySeparator separates the keys of a path inside koanf. Tool names and Device-Ids
// hold dots and colons, so neither will do.
const keySeparator = "\x1f"

const maxFile = 1 << 20

// loader merges the layers of the settings. koanf merges, reads the environment's
// names and decodes; our own reader stands between YAML and koanf for three things
// that koanf does not do: mistakes are told with file and line, all at once, and with
// the nearest key that exists.
type loader struct {
	k *koanf.Koanf
	*findings
}

// Warning is a line about settings that count for nothing, for the log at start.
type Warning string

// Load reads all layers but that of the console, later ones over earlier ones: defaults, the file, the data
// folder's file, the environment, the command line. Maps are merged and lists
// replaced. The error joins everything that is wrong, each an [*Error].
func Load(o Options) (*Config, []Warning, error) { return Read(o).Load(Layer{}) }

// layer merges a layer, whose keys have their places already.
func (l *loader) layer(tree map[string]any) {
	l.take(tree, nil)
	if err := l.k.Load(confmap.Provider(tree, ""), nil); err != nil {
		l.add("", "", "config/not-merged", err)
	}
}

// file takes a layer in that was read from a file.
func (l *loader) file(f file) {
	switch {
	case f.err != nil:
		l.add(f.name, "", "config/not-read", f.err)
		l.holes[""] = true
	case f.there:
		l.document(f.name, f.data)
	}
}

func readFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("%d bytes are too many (at most %d)", info.Size(), maxFile)
	}
	return os.ReadFile(name)
}

// readOwn is readFile for a file of the data folder or of a secret, which nobody else may change.
func readOwn(name string) ([]byte, error) {
	if err := private.Check(name); err != nil {
		return nil, err
	}
	return readFile(name)
}

// document reads a layer from YAML. Its right parts count even if others are wrong,
// so that all mistakes are told at once.
func (l *loader) document(name string, data []byte) {
	before := len(l.problems)
	root := parseYAML(name, data, l.findings)
	if root == nil {
		l.holes[""] = l.holes[""] || len(l.problems) > before
		return
	}
	if tree := l.read(name, root); tree != nil {
		l.layer(tree)
	}
}

// read reads the tree of a layer; nil: it is none.
func (l *loader) read(name string, root *yaml.Node) map[string]any {
	r := reader{name, l.findings}
	value, _ := r.read(root, configType(), nil)
	tree, section := value.(map[string]any)
	if !section {
		l.holes[""] = true
		return nil
	}
	return tree
}

func (l *loader) environment(environ []string) {
	provider := env.Provider(keySeparator, env.Opt{
		TransformFunc: l.transform,
		EnvironFunc:   func() []string { return environ },
	})
	if err := l.k.Load(provider, nil); err != nil {
		l.add("XIAOZHI_*", "", "config/environment-not-read", err)
	}
}

// finish turns the merged layers into a Config and checks it.
func (l *loader) finish(from *Sources, only []string) (*Config, []Warning, error) {
	o := from.o
	x := newExpander(o.Env, l.findings)
	raw := l.k.Raw()
	if only != nil {
		maps.DeleteFunc(raw, func(key string, _ any) bool { return !slices.Contains(only, key) })
	}
	tree, _ := x.expand(raw, nil).(map[string]any)
	merged := koanf.New(keySeparator)
	if err := merged.Load(confmap.Provider(tree, ""), nil); err != nil {
		return nil, l.warnings, fmt.Errorf("merge settings: %w", err)
	}
	c := Default()
	if err := merged.Unmarshal("", c); err != nil {
		return nil, l.warnings, fmt.Errorf("decode settings: %w", err)
	}
	l.secretFiles(c)
	t := knownTypes()
	for name, p := range c.Providers {
		p.MissingEnv, p.Place = l.missing("providers", name), l.place("providers", name)
		if _, known := t.roles[name]; p.Type == "" && known {
			p.Type = name
		}
		c.Providers[name] = p
	}
	for name, s := range c.Tools.External.MCPServers {
		s.MissingEnv = l.missing("tools", "external", "mcpServers", name)
		c.Tools.External.MCPServers[name] = s
	}
	c.around.sealed = l.sealedSecrets(c)
	c.around.read = &reading{from, l.origins, raw}
	l.strayed(c)
	if o.DataDir != defaultData {
		c.around.data = o.DataDir
	}
	c.around.cloudVoices = offersVoices(c, t, x.env)
	checker{l.findings, promptNames(o.DataDir), x.env, t}.check(c)
	if err := errors.Join(l.problems...); err != nil {
		return nil, l.warnings, err
	}
	return c, l.warnings, nil
}

// Error is one thing that is wrong in the settings, in both languages.
type Error struct {
	Place   string   // FILE:LINE, or the name of an environment variable or flag
	Path    []string // of the key; nil: it is about none, or about several
	English string   // or both languages
	Chinese string   // "": in English
}

// Error names the place, then what is wrong in English and in Chinese.
func (p *Error) Error() string {
	text := p.English
	if p.Chinese != "" {
		text += " / " + p.Chinese
	}
	if p.Place == "" {
		return text
	}
	return p.Place + ": " + text
}

// findings holds what the layers have told of themselves: where each key stands, what
// could not be read, and all that is wrong, so that it is reported at once.
type findings struct {
	places   map[string]string   // path joined by keySeparator, to where it was set last
	origins  map[string]Origin   // of what was set, by the joined path of each leaf
	now      Layers              // the layer that is read
	holes    map[string]bool     // sections, by their joined path, that could not be read whole
	unset    map[string][]string // secrets, by their joined path, to the variables that are not set
	problems []error
	warnings []Warning
}

// add collects a message of the catalogue. prefix stands before the English text.
func (fs *findings) add(place, prefix, id string, args ...any) {
	fs.addAt(nil, place, prefix, id, args...)
}

// addAt is add for what is wrong with the key at a path.
func (fs *findings) addAt(path []string, place, prefix, id string, args ...any) {
	fs.addError(&Error{Place: place, Path: slices.Clone(path), English: prefix + message.In(text.English, id, args...), Chinese: message.In(text.Chinese, id, args...)})
}

func (fs *findings) addError(p *Error) {
	if !slices.ContainsFunc(fs.problems, func(e error) bool { return e.Error() == p.Error() }) {
		fs.problems = append(fs.problems, p)
	}
}

// unknownKey reports a key that does not exist, with the nearest that does.
func (fs *findings) unknownKey(place string, parents []string, key string, known []string) {
	path := append(slices.Clone(parents), key)
	if len(known) == 0 {
		fs.addAt(path, place, "", "config/unknown-key", keyName(path))
		return
	}
	near := keyName(append(slices.Clone(parents), prompts.Nearest(key, known)))
	fs.addAt(path, place, "", "config/unknown-key-near", keyName(path), near)
}

// wrongType reports a value of another kind than expected. want is the id of the
// expected kind, found that of the kind that it is, or the value as it is.
func (fs *findings) wrongType(place string, path []string, want, found string) {
	in := func(lang text.Lang) string {
		kind, is := message.In(lang, want), message.In(lang, found)
		if len(path) == 0 {
			return message.In(lang, "config/wrong-file", kind, is)
		}
		return message.In(lang, "config/wrong-type", keyName(path), kind, is)
	}
	fs.addError(&Error{Place: place, Path: slices.Clone(path), English: in(text.English), Chinese: in(text.Chinese)})
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
