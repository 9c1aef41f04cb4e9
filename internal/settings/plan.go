package settings

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"xiaozhi/internal/account"
	"xiaozhi/internal/config"
)

// Bounds of plans.
const (
	planTime = 10 * time.Minute
	maxPlans = 20
	maxEdits = 500
)

// planned is a plan with what it was made of.
type planned struct {
	Plan

	kind  Kind
	edits []Edit // without secrets
	next  state
	stage Stage
	names []string // of secrets that were sealed for it
	ends  *time.Timer
	gone  func(names []string) // drops secrets
}

// drop throws away what was built, and the secrets that were typed for it.
func (p *planned) drop() {
	if p.ends != nil {
		p.ends.Stop()
	}
	if p.stage != nil {
		p.stage.Drop()
	}
	p.gone(p.names)
}

// Plan checks, builds and tests edits of a revision. The error is an [*InvalidError], a [*PinnedError], a [*StaleError], a
// [*MachineError], or why nothing can be changed at all.
func (s *Settings) Plan(ctx context.Context, by account.Person, base int, edits []Edit) (*Plan, error) {
	return s.plan(ctx, by, base, edits, KindEdit, nil)
}

func (s *Settings) plan(ctx context.Context, by account.Person, base int, edits []Edit, kind Kind, left []Left) (*Plan, error) {
	m, err := s.builder()
	if err != nil {
		return nil, err
	}
	now, err := s.rebased(ctx, base, edits)
	if err != nil {
		return nil, err
	}
	p := &planned{Plan: Plan{ID: newID(), By: by.Name, At: time.Now(), Left: left}, kind: kind, gone: s.safe.drop}
	if err := s.make(ctx, p, m, now, by, edits); err != nil {
		p.drop()
		return nil, err
	}
	return s.tested(ctx, p)
}

// tested tests a plan, and keeps it for those who look at it.
func (s *Settings) tested(ctx context.Context, p *planned) (*Plan, error) {
	testing, cancel := context.WithTimeout(ctx, testTime)
	defer cancel()
	p.Tests = p.stage.Tests(testing)
	if err := ctx.Err(); err != nil {
		p.drop()
		return nil, err
	}
	s.waiting.keep(p)
	shown := p.Plan
	return &shown, nil
}

// Again checks, builds and tests the edits of a plan once more, of what is in force now, whatever others have set.
func (s *Settings) Again(ctx context.Context, by account.Person, id string) (*Plan, error) {
	m, err := s.builder()
	if err != nil {
		return nil, err
	}
	old := s.waiting.take(by.Name, id)
	if old == nil {
		return nil, ErrNoPlan
	}
	p := &planned{Plan: Plan{ID: newID(), By: by.Name, At: time.Now(), Left: old.Left}, kind: old.kind, gone: old.gone}
	if err := s.make(ctx, p, m, s.state(), by, old.edits); err != nil {
		p.drop()
		s.waiting.keep(old)
		return nil, err
	}
	p.names, old.names = old.names, nil // the edits refer to them
	old.drop()
	return s.tested(ctx, p)
}

// make checks edits of what is in force, and builds the server that they ask for.
func (s *Settings) make(ctx context.Context, p *planned, m Machine, now state, by account.Person, edits []Edit) (err error) {
	if err := checkEdits(now.config, edits); err != nil {
		return err
	}
	if len(edits) == 0 && s.Held() == nil {
		return ErrNoChange
	}
	p.edits, err = s.safe.seal(ctx, s.from, p, now, by, edits)
	if err != nil {
		return err
	}
	p.Base = now.revision
	p.next = state{revision: now.revision + 1, set: now.set.with(p.edits)}
	p.next.config, p.Warnings, err = s.from.load(ctx, p.next.set, p.next.revision)
	if err != nil {
		return &InvalidError{problemsOf(err)}
	}
	if err := proxied(p, now); err != nil {
		return err
	}
	p.Changes = p.next.config.Compare(now.config)
	if p.stage, err = m.Build(ctx, p.next.config); err != nil {
		p.stage = nil
		return &MachineError{err}
	}
	return nil
}

// checkEdits says which edits cannot be made at all.
func checkEdits(now *config.Config, edits []Edit) error {
	if len(edits) > maxEdits {
		return invalid(nil, "settings/many", maxEdits)
	}
	for _, e := range edits {
		if len(e.Path) == 0 || slices.Contains(e.Path, "") {
			return invalid(e.Path, "settings/no-path")
		}
		if err := checkNames(now, e); err != nil {
			return err
		}
		if _, err := json.Marshal(e.Value); err != nil { // NaN and infinities, of which nothing can be kept
			return invalid(e.Path, "settings/no-number", keyName(e.Path))
		}
		if pin := now.PinnedAt(e.Path); !e.Remove && pin.Layer > config.LayerConsole {
			return &PinnedError{e.Path, pin}
		}
	}
	return nil
}

// checkNames refuses what an edit names as nothing may be named. What is there keeps its name.
func checkNames(now *config.Config, e Edit) error {
	if e.Remove {
		return nil
	}
	for _, place := range config.NamedByPeople() {
		for _, name := range namesBelow(e, place.At) {
			if !place.Good(name) && !exists(now, append(slices.Clone(place.At), name)) {
				return invalid(place.At, place.Bad) // without the name, which may be anything
			}
		}
	}
	return nil
}

// namesBelow lists what an edit names below a place.
func namesBelow(e Edit, at []string) []string {
	n := min(len(e.Path), len(at))
	if !slices.Equal(e.Path[:n], at[:n]) {
		return nil
	}
	if len(e.Path) > len(at) {
		return e.Path[n : n+1]
	}
	v := e.Value
	for _, name := range at[n:] {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	m, _ := v.(map[string]any)
	return slices.Sorted(maps.Keys(m))
}

// exists reports whether anything is set below a path.
func exists(now *config.Config, path []string) bool {
	return slices.ContainsFunc(now.Values(), func(v config.Value) bool { return len(v.Path) > len(path) && slices.Equal(v.Path[:len(path)], path) })
}

// rebased returns what is in force, if edits of a revision can be made of it: nobody has changed the same keys since.
func (s *Settings) rebased(ctx context.Context, base int, edits []Edit) (state, error) {
	now := s.state()
	if base == now.revision {
		return now, nil
	}
	if base > now.revision {
		return now, ErrNoneSuch
	}
	was, _, err := s.past.one(ctx, base)
	if err != nil {
		return now, err
	}
	stale := &StaleError{Now: now.revision}
	for _, other := range difference(was, now.set) {
		i := slices.IndexFunc(edits, func(e Edit) bool { return touches(e.Path, other.Path) && !agree(e, other) })
		if i < 0 {
			continue
		}
		stale.Others = append(stale.Others, changesOf(was, []Edit{other})...)
		mine := changesOf(was, edits[i:i+1])[0]
		if !slices.ContainsFunc(stale.Mine, func(c config.Change) bool { return c.Key() == mine.Key() }) {
			stale.Mine = append(stale.Mine, mine)
		}
	}
	if len(stale.Others) == 0 {
		return now, nil
	}
	stale.By = s.past.author(ctx, base, stale.Others)
	return now, stale
}

// agree reports whether two edits do the same.
func agree(a, b Edit) bool {
	return slices.Equal(a.Path, b.Path) && a.Remove == b.Remove && (a.Remove || same(a.Value, b.Value))
}

func newID() string {
	b := make([]byte, 12)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// keyName writes a path as people do.
func keyName(path []string) string { return strings.Join(path, ".") }
