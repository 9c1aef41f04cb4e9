package settings

import (
	"context"
	"errors"
	"time"

	"xiaozhi/internal/account"
	"xiaozhi/internal/config"
	"xiaozhi/internal/text/message"
)

// Apply puts a plan in force for turns that begin from now on. If others have changed other keys since, it is built again
// beside theirs.
func (s *Settings) Apply(ctx context.Context, by account.Person, planID string) (r Revision, err error) {
	defer func() { s.o.Audit(ctx, by, "settings.apply", revisionName(r.N), err) }()
	m, err := s.builder()
	if err != nil {
		return Revision{}, err
	}
	done, err := s.alone(ctx)
	if err != nil {
		return Revision{}, err
	}
	defer done()
	p := s.waiting.take(by.Name, planID)
	if p == nil {
		return Revision{}, ErrNoPlan
	}
	if s.Held() == nil && len(difference(s.state().set, p.next.set)) == 0 {
		s.waiting.keep(p)
		return Revision{}, ErrNoChange
	}
	if now := s.state(); now.revision != p.Base {
		if _, err := s.rebased(ctx, p.Base, p.edits); err != nil {
			s.waiting.keep(p) // what was typed is shown beside what others did
			return Revision{}, err
		}
		fresh := &planned{Plan: p.Plan, kind: p.kind, names: p.names, gone: p.gone}
		p.stage.Drop()
		if err := s.make(ctx, fresh, m, now, by, p.edits); err != nil {
			fresh.drop()
			return Revision{}, err
		}
		p = fresh
	}
	return s.commit(ctx, m, p, by, "", nil)
}

// revisionName is a revision in the audit; "" of none.
func revisionName(n int) string {
	if n == 0 {
		return ""
	}
	return config.Layer{Revision: n}.Place()
}

// commit keeps a revision and puts it in force. Whoever calls it is alone. why says for what the one before is taken back;
// before is the watch under which that was, if it is.
func (s *Settings) commit(ctx context.Context, m Machine, p *planned, by account.Person, note string, undone *watch) (Revision, error) {
	was, why := s.state(), ""
	if undone != nil {
		why = note
	}
	changed := difference(was.set, p.next.set)
	r := Revision{At: time.Now(), By: byOrSelf(by), Note: note, Kind: p.kind, Changes: changesOf(was.set, changed)}
	id, err := s.past.save(ctx, was.revision, p.next.set, r, why)
	if err != nil {
		p.drop()
		return Revision{}, err
	}
	health := m.Health()
	applying, cancel := context.WithTimeout(context.WithoutCancel(ctx), applyTime)
	defer cancel()
	if err := p.stage.Apply(applying); err != nil {
		back, failed := s.past.save(applying, id, was.set, Revision{By: byOrSelf(account.Person{}), Kind: KindAutomatic, Note: err.Error()}, err.Error())
		if failed != nil {
			back = id
		}
		s.mu.Lock()
		s.now.revision = back
		s.mu.Unlock()
		s.tell()
		return Revision{}, &MachineError{errors.Join(err, failed)}
	}
	p.next.revision, r.N = id, id
	s.mu.Lock()
	if s.held != nil {
		was.set = s.held.set // the newest was not in force
	}
	s.now, s.held = p.next, nil
	s.observe(id, was, health, undone)
	s.mu.Unlock()
	s.o.Log.Info("settings have changed", "revision", id, "by", r.By, "kind", r.Kind, "keys", keysOf(p.Changes))
	s.tell()
	return r, nil
}

func keysOf(changes []config.Change) (all []string) {
	for _, c := range changes {
		all = append(all, c.Key())
	}
	return all
}

// Undo takes back what a revision changed, as a new one. The error is a [*StaleError] if the same keys were changed since.
func (s *Settings) Undo(ctx context.Context, by account.Person, n int) (r Revision, err error) {
	defer func() { s.o.Audit(ctx, by, "settings.undo", revisionName(n), err) }()
	m, err := s.builder()
	if err != nil {
		return Revision{}, err
	}
	done, err := s.alone(ctx)
	if err != nil {
		return Revision{}, err
	}
	defer done()
	edits, err := s.reverse(ctx, n)
	if err != nil {
		return Revision{}, err
	}
	p := &planned{Plan: Plan{By: by.Name}, kind: KindUndo, gone: s.safe.drop}
	if err := s.make(ctx, p, m, s.state(), by, edits); err != nil {
		p.drop()
		return Revision{}, err
	}
	return s.commit(ctx, m, p, by, message.Both("settings/undoes", n), nil)
}

// reverse lists the edits that take back what a revision changed.
func (s *Settings) reverse(ctx context.Context, n int) (edits []Edit, err error) {
	after, before, err := s.past.pair(ctx, n)
	if err != nil {
		return nil, err
	}
	now := s.state()
	if edits, err = difference(after, before), nil; len(edits) == 0 {
		return nil, ErrNoChange
	}
	left, stale := edits[:0:0], &StaleError{Now: now.revision}
	for _, e := range edits {
		is, set := now.set.get(e.Path)
		then, was := after.get(e.Path)
		back, had := before.get(e.Path)
		switch {
		case set == had && same(is, back): // somebody has done it already
		case set == was && same(is, then):
			left = append(left, e)
		default:
			stale.Mine = append(stale.Mine, changesOf(after, []Edit{e})...)
			stale.Others = append(stale.Others, changesOf(after, []Edit{{Path: e.Path, Value: is, Remove: !set}})...)
		}
	}
	if len(stale.Mine) > 0 {
		stale.By = s.past.author(ctx, n, stale.Others)
		return nil, stale
	}
	if len(left) == 0 {
		return nil, ErrNoChange
	}
	return left, nil
}
