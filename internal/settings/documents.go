package settings

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"xiaozhi/internal/account"
	"xiaozhi/internal/config"
	"xiaozhi/internal/text/message"
)

// Why a key of a document is left out.
var (
	ErrFileOnly = errors.New("it is set in files only")
	ErrNoKey    = errors.New("there is no such key")
	ErrVariable = errors.New("it names a variable, which counts in files only")
)

// Key is a setting with all that people may know of it.
type Key struct {
	config.Value

	Shape      config.Shape
	Changeable bool          // people can set it here, if it is not pinned
	Own        bool          // people have set it here
	Pinned     config.Origin // where it is set so that it counts before what is set here; the zero value: nowhere
}

// Keys lists all settings in force.
func (s *Settings) Keys() []Key {
	now := s.state()
	values := now.config.Values()
	all := make([]Key, 0, len(values))
	for _, v := range values {
		_, own := now.set.get(v.Path)
		all = append(all, Key{Value: v, Shape: config.ShapeOf(v.Path), Changeable: config.Changeable(v.Path), Own: own, Pinned: now.config.PinnedAt(v.Path)})
	}
	return all
}

// Document writes settings that were set, as config.yaml has them: plain with secrets and variables put in, else with
// references to them. left names the secrets that stand in files by themselves and are left out then.
func Document(c *config.Config, plain bool) (doc []byte, left []string, err error) {
	tree, left := c.Tree(plain)
	doc, err = yaml.Marshal(tree)
	return doc, left, err
}

// Import checks, builds and tests what a document of settings sets otherwise than it is. Keys that cannot be set here are
// left out, unless they are the same already; the plan says which.
func (s *Settings) Import(ctx context.Context, by account.Person, base int, doc []byte) (*Plan, error) {
	now := s.state()
	if now.config == nil {
		return nil, ErrNoStore
	}
	edits, left, err := editsOf(now.config, doc)
	if err != nil {
		return nil, err
	}
	if len(edits) == 0 && len(left) == 0 {
		return nil, ErrNoChange
	}
	if len(edits) == 0 {
		return nil, &LeftError{left}
	}
	return s.plan(ctx, by, base, edits, KindImport, left)
}

// LeftError says that nothing of a document can be set here.
type LeftError struct{ Left []Left }

// Error names the keys.
func (e *LeftError) Error() string {
	return message.Both("settings/left", strings.Join(e.keys(), ", "))
}

func (e *LeftError) keys() (all []string) {
	for _, l := range e.Left {
		all = append(all, keyName(l.Path))
	}
	return all
}

// editsOf lists what a document sets otherwise than it is, and what of that cannot be set by people.
func editsOf(now *config.Config, doc []byte) (edits []Edit, left []Left, err error) {
	var tree map[string]any
	if err := yaml.Unmarshal(doc, &tree); err != nil {
		return nil, nil, errors.Join(ErrNoDoc, err)
	}
	raw, _ := now.Tree(false)
	plain, _ := now.Tree(true) // what was typed before is the same, though it is sealed
	holds := map[string]any{}
	for _, v := range now.Values() {
		holds[strings.Join(v.Path, "\x00")] = v.Value
	}
	leaves(tree, nil, func(path []string, value any) {
		for _, tree := range []layer{raw, plain} {
			if was, ok := tree.get(path); ok && same(was, value) {
				return
			}
		}
		if is, ok := holds[strings.Join(path, "\x00")]; ok && equal(path, is, value) {
			return
		}
		pin := now.PinnedAt(path)
		text, _ := value.(string)
		switch {
		case config.ShapeOf(path) == "" && !config.Changeable(path):
			left = append(left, Left{path, ErrNoKey})
		case !config.Changeable(path):
			left = append(left, Left{path, ErrFileOnly})
		case pin.Layer > config.LayerConsole:
			left = append(left, Left{path, &PinnedError{path, pin}})
		case strings.Contains(text, "${"):
			left = append(left, Left{path, ErrVariable})
		default:
			edits = append(edits, Edit{Path: slices.Clone(path), Value: value})
		}
	})
	return edits, left, nil
}

// equal reports whether a setting holds what is written.
func equal(path []string, holds, written any) bool {
	if config.ShapeOf(path) == config.ShapeDuration {
		text, _ := written.(string)
		d, err := time.ParseDuration(text)
		return err == nil && d.String() == holds
	}
	return !config.IsSecret(path) && same(holds, written)
}
