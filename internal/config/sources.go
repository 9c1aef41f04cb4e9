package config

import (
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/knadh/koanf/v2"
)

// Layers are the layers of the settings, each over those before it.
type Layers int

// The layers.
const (
	LayerDefault     Layers = iota
	LayerFile               // config.yaml, or what the command line names in its place
	LayerConsole            // what people have set while the server ran
	LayerOwnFile            // config.yaml of the data folder
	LayerEnvironment        // variables
	LayerFlag               // the command line
)

// String names a layer for programs.
func (l Layers) String() string {
	return []string{"default", "file", "console", "own_file", "environment", "flag"}[l]
}

// Origin says where a value was set.
type Origin struct {
	Layer Layers
	Place string // FILE:LINE, the name of a variable or a flag, console#REVISION; "" of a default
}

// Layer holds the settings that people made while the server ran: a part of the settings in the shape of config.yaml, as YAML or JSON.
type Layer struct {
	Revision int // 0: it is not kept yet
	Doc      []byte
}

// Place names the layer where the place of a key is told.
func (l Layer) Place() string {
	if l.Revision == 0 {
		return "console"
	}
	return "console#" + strconv.Itoa(l.Revision)
}

// file is a file of settings as it was read.
type file struct {
	name  string
	data  []byte
	there bool
	err   error
}

// Sources are the layers of the settings as they stood when they were read, so that they can be put together again with
// another layer of the console. What is written into a file afterwards counts at the next start. Its methods may be
// called at the same time.
type Sources struct {
	o     Options
	files [2]file // o.File, and that of the data folder
}

// Read reads the files. What is wrong with them [Sources.Load] tells.
func Read(o Options) *Sources {
	s := &Sources{o: o}
	s.files[0] = readLayer(o.File, "config.yaml", readFile)
	if o.DataDir != "" {
		s.files[1] = readLayer("", filepath.Join(o.DataDir, "config.yaml"), readOwn)
	}
	return s
}

// readLayer reads a file: asked, which must exist, or else usual.
func readLayer(asked, usual string, read func(string) ([]byte, error)) file {
	f := file{name: asked}
	if asked == "" {
		f.name = usual
	}
	f.data, f.err = read(f.name)
	f.there = f.err == nil
	if errors.Is(f.err, fs.ErrNotExist) && asked == "" {
		f.err = nil
	}
	return f
}

// Load puts the layers together, with that of the console; the zero value is none. The error joins everything that is
// wrong, each an [*Error].
func (s *Sources) Load(console Layer) (*Config, []Warning, error) { return s.load(console, nil) }

// Ground returns the settings by which what people have set can be found, all others being defaults. Those may need it: a
// file can name a service that is set in the console.
func (s *Sources) Ground() (*Config, error) {
	c, _, err := s.load(Layer{}, []string{"server", "auth", "store", "console", "log"})
	return c, err
}

// load is Load, of some keys only; nil: of all.
func (s *Sources) load(console Layer, only []string) (*Config, []Warning, error) {
	l := &loader{koanf.New(keySeparator), newFindings()}
	l.now = LayerFile
	l.file(s.files[0])
	l.now = LayerConsole
	l.console(console)
	l.now = LayerOwnFile
	l.file(s.files[1])
	l.now = LayerEnvironment
	l.environment(s.o.Env)
	if len(s.o.Listen) > 0 {
		l.now = LayerFlag
		l.places["server"+keySeparator+"listen"] = "--listen"
		l.layer(map[string]any{"server": map[string]any{"listen": s.o.Listen}})
	}
	return l.finish(s, only)
}

// Sources returns the files and variables that the settings were read from; nil: from nothing, and so they cannot be changed while the server runs.
func (c *Config) Sources() *Sources { return c.reading().sources }

// reading holds the parts that settings were made of.
type reading struct {
	sources *Sources
	origins map[string]Origin // of what was set, by the joined path of each leaf
	raw     map[string]any    // what was set, before variables and secrets were put into their places
}

// reading names the parts that the settings were made of; nothing, if they were made otherwise.
func (c *Config) reading() *reading {
	if c.around.read == nil {
		return &reading{}
	}
	return c.around.read
}

// console takes in what people have set while the server ran.
func (l *loader) console(layer Layer) {
	if len(layer.Doc) == 0 {
		return
	}
	name := layer.Place()
	root := parseYAML(name, layer.Doc, l.findings)
	if root == nil {
		return
	}
	withoutLines(root) // nobody sees them
	tree := l.read(name, root)
	if tree == nil {
		return
	}
	for path, value := range leavesOf(tree, nil) {
		switch text, ok := value.(string); {
		case !Changeable(path):
			l.addAt(path, name, keyName(path)+": ", "config/not-by-console")
		case ok && strings.Contains(text, "${"):
			l.addAt(path, name, keyName(path)+": ", "config/console-variable")
		}
	}
	l.layer(tree)
}

// take notes where the leaves of a tree come from, whose keys have their places already.
func (fs *findings) take(v any, path []string) {
	for full := range leavesOf(v, path) {
		key := strings.Join(full, keySeparator)
		for old := range fs.origins { // a list, or one text, in the place of a section
			if strings.HasPrefix(old, key+keySeparator) {
				delete(fs.origins, old)
			}
		}
		fs.origins[key] = Origin{fs.now, fs.place(full...)}
	}
}

// leavesOf yields what is set in a tree, by its path: all but sections.
func leavesOf(v any, path []string) func(yield func([]string, any) bool) {
	return func(yield func([]string, any) bool) {
		section, ok := v.(map[string]any)
		if !ok {
			yield(path, v)
			return
		}
		for _, name := range slices.Sorted(maps.Keys(section)) {
			for full, value := range leavesOf(section[name], append(slices.Clone(path), name)) {
				if !yield(full, value) {
					return
				}
			}
		}
	}
}

func newFindings() *findings {
	return &findings{places: map[string]string{}, origins: map[string]Origin{}, holes: map[string]bool{}, unset: map[string][]string{}}
}
