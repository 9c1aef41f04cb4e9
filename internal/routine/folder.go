package routine

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"xiaozhi/internal/private"
	"xiaozhi/internal/text/message"
)

const (
	maxFiles = 64       // of the folder
	maxFile  = 64 << 10 // bytes of one
)

// Problem says what is wrong with a file.
type Problem struct {
	File string // its name
	What string // in English and Chinese
}

// folder reads files of routines (*.yaml) when they change. A file that cannot be used leaves in place what it held before. It is
// for one goroutine at a time.
type folder struct {
	dir      string
	variable func(name string) (value string, set bool)
	log      *slog.Logger
	kept     map[string]State // of the routines of files, by ID
	files    map[string]file
	problems []Problem
	told     map[string]string // the last problem of each file that the log has
}

// file is one with what it holds.
type file struct {
	stamp    string // another one when the file has changed
	routines map[string]Routine
	err      error
}

// slug is the form of a routine's name in a file.
var slug = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

// read reads what has changed, and reports whether something has.
func (f *folder) read() (changed bool) {
	if f.dir == "" {
		return false
	}
	entries, err := os.ReadDir(f.dir)
	if err != nil && !os.IsNotExist(err) {
		f.note(filepath.Base(f.dir), err.Error())
		return false
	}
	if f.files == nil {
		f.files, changed = map[string]file{}, true
	}
	there := map[string]bool{}
	for _, e := range entries {
		ext := filepath.Ext(e.Name())
		if e.IsDir() || ext != ".yaml" && ext != ".yml" || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if len(there) == maxFiles {
			f.note(filepath.Base(f.dir), message.Both("routine/files", maxFiles))
			break
		}
		there[e.Name()] = true
		changed = f.readOne(e.Name()) || changed
	}
	for name := range f.files {
		if !there[name] {
			delete(f.files, name)
			changed = true
		}
	}
	return changed
}

// readOne reads a file if it has changed.
func (f *folder) readOne(name string) (changed bool) {
	path := filepath.Join(f.dir, name)
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	stamp, was := fmt.Sprint(info.ModTime().UnixNano(), " ", info.Size()), f.files[name]
	if was.stamp == stamp {
		return false
	}
	now := file{stamp: stamp}
	if info.Size() > maxFile {
		now.err = errors.New(message.Both("routine/file-size", maxFile))
	} else {
		now.routines, now.err = f.load(path, name)
	}
	if now.err != nil {
		now.routines = was.routines
	}
	f.files[name] = now
	return true
}

// load reads the routines of a file.
func (f *folder) load(path, name string) (map[string]Routine, error) {
	data, err := private.Read(path)
	if err != nil {
		return nil, err
	}
	all, lines, err := decode(data)
	if err != nil {
		return nil, err
	}
	found, open := map[string]Routine{}, false
	for _, id := range sorted(all) {
		d := all[id]
		at := func(err error) error {
			if m, ok := errors.AsType[*Mistake](err); ok {
				err = errors.New(m.Both())
			}
			return fmt.Errorf("line %d, %s: %w", lines[id], id, err)
		}
		if !slug.MatchString(id) {
			return nil, at(errors.New(message.Both("routine/id")))
		}
		if err := d.check(); err != nil {
			return nil, at(err)
		}
		r := Routine{ID: id, Source: ByFile, File: name, Definition: d}
		r.Name = cmp.Or(r.Name, id)
		if d.On != nil && d.On.Hook {
			token, plain, err := f.token(*d.On)
			if err != nil {
				return nil, at(err)
			}
			open = open || plain
			on := *d.On
			on.Token, on.TokenFile = "", ""
			r.On, r.Hash = &on, hashOf(token)
		}
		found[id] = r
	}
	if open {
		err = private.CheckSecret(path)
	}
	return found, err
}

// goType is how the decoder names the place of a key that there is not.
var goType = regexp.MustCompile(` (in|into) (type )?[a-z]+\.[A-Z]\w*`)

// decode reads definitions by their names, with the lines at which they begin.
func decode(data []byte) (all map[string]Definition, lines map[string]int, err error) {
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	if err := d.Decode(&all); err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, errors.New(goType.ReplaceAllString(err.Error(), ""))
	}
	var root yaml.Node
	lines = map[string]int{}
	if err := yaml.Unmarshal(data, &root); err == nil && len(root.Content) == 1 {
		for i, node := range root.Content[0].Content {
			if i%2 == 0 {
				lines[node.Value] = node.Line
			}
		}
	}
	return all, lines, nil
}

// variable is a text that is one of the environment.
var variable = regexp.MustCompile(`^\$\{([A-Za-z_][A-Za-z0-9_]*)\}$`)

// token finds the token of a hook. plain: it stands in the file itself.
func (f *folder) token(on On) (token string, plain bool, err error) {
	token = on.Token
	switch name := variable.FindStringSubmatch(on.Token); {
	case on.TokenFile != "":
		data, err := private.ReadSecret(on.TokenFile)
		if err != nil {
			return "", false, err
		}
		token = strings.TrimSpace(string(data))
	case name != nil:
		set := false
		if f.variable != nil {
			token, set = f.variable(name[1])
		}
		if !set {
			return "", false, wrong("on.token", "routine/env", name[1])
		}
	default:
		plain = true
	}
	if len(token) < minToken {
		return "", false, wrong("on.token", "routine/token", minToken)
	}
	return token, plain, nil
}

// routines returns what all files hold, by ID, and makes the list of what is wrong with them anew. Of an ID that stands in two
// files the first counts.
func (f *folder) routines() map[string]Routine {
	all := map[string]Routine{}
	f.problems = nil
	for _, name := range sorted(f.files) {
		one := f.files[name]
		if one.err != nil {
			f.note(name, one.err.Error())
		} else {
			delete(f.told, name)
		}
		for _, id := range sorted(one.routines) {
			if other, taken := all[id]; taken {
				f.note(name, message.Both("routine/taken", id, other.File))
				continue
			}
			if len(all) == maxAll {
				f.note(name, message.Both("routine/many", maxAll))
				break
			}
			all[id] = one.routines[id]
		}
	}
	return all
}

// wrong notes that a routine of a file cannot be used.
func (f *folder) wrong(name, id string, err error) {
	if m, ok := errors.AsType[*Mistake](err); ok {
		f.note(name, id+": "+m.Both())
		return
	}
	f.note(name, id+": "+err.Error())
}

// note lists a problem, and has the log say it once.
func (f *folder) note(name, what string) {
	what = strings.Join(strings.Fields(what), " ")
	f.problems = append(f.problems, Problem{name, what})
	if f.told == nil {
		f.told = map[string]string{}
	}
	if f.told[name] != what {
		f.told[name] = what
		f.log.Warn("a file of routines is wrong", "file", filepath.Join(f.dir, name), "err", what)
	}
}

func sorted[V any](of map[string]V) []string { return slices.Sorted(maps.Keys(of)) }
