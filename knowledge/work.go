package knowledge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"xiaozhi/knowledge/reader"
)

const (
	restMost = 200 * time.Millisecond // after each document: so much of the time that it took, and no more
	restLess = 2 * time.Millisecond
	lostTime = time.Hour // after which the file of an upload does not come any more
)

// run reads what is to be read until the library ends.
func (l *Library) run() {
	l.load(l.kept.missing())
	close(l.loaded)
	for {
		began := time.Now()
		l.uploads()
		l.look()
		l.embed()
		// A folder on a slow disk is not looked at all the time.
		timer := time.NewTimer(max(l.o.Every, 10*time.Since(began)))
		select {
		case <-timer.C:
		case <-l.wake:
		case <-l.ctx.Done():
		}
		if timer.Stop(); l.ctx.Err() != nil {
			return
		}
	}
}

// load makes the indexes of documents that were read before.
func (l *Library) load(all []Document) {
	for _, d := range all {
		if l.ctx.Err() != nil {
			return
		}
		began := time.Now()
		if err := l.index(d); err != nil && l.ctx.Err() == nil {
			l.o.Log.Warn("a document cannot be found until the server starts anew", "document", d.Name, "agent", d.Agent, "err", err)
		}
		l.rest(began)
	}
}

// index makes the index of a document of what the store has of it.
func (l *Library) index(d Document) error {
	kept, err := l.o.Store.Pieces(l.ctx, d.ID)
	if err != nil {
		return err
	}
	pieces, vectors := make([]reader.Piece, len(kept)), make([][]byte, len(kept))
	for i, p := range kept {
		pieces[i], vectors[i] = p.Piece, p.Vector
	}
	x := newIndex(l.seed, &d, pieces)
	if e := l.o.Embedder(); e != nil && d.VectorOf == e.Model() {
		x = x.withVectors(vectors)
	}
	l.kept.set(d, x)
	return nil
}

// rest lets others work after something that has begun then.
func (l *Library) rest(began time.Time) {
	select {
	case <-time.After(min(max(time.Since(began)/2, restLess), restMost)):
	case <-l.ctx.Done():
	}
}

// follow takes in what other programs have changed in the store.
func (l *Library) follow() error {
	changes, err := l.o.Store.Changes(l.ctx)
	if err != nil || changes == l.changes {
		return err
	}
	l.changing.Lock()
	all, changes, err := l.o.Store.List(l.ctx)
	if err != nil {
		l.changing.Unlock()
		return err
	}
	l.changes = changes
	there, agents := map[string]bool{}, map[string]bool{}
	for _, d := range all {
		there[d.ID] = true
		switch old, ok := l.kept.document(d.Agent, d.ID); {
		case !ok || !old.ReadAt.Equal(d.ReadAt) || old.Pieces != d.Pieces || old.VectorOf != d.VectorOf:
			l.kept.set(d, nil)
			agents[d.Agent] = true
		case !same(old, d):
			l.kept.note(d)
			agents[d.Agent] = true
		}
	}
	for _, agent := range l.kept.agents() {
		for _, d := range l.Documents(agent) {
			if !there[d.ID] {
				l.kept.remove(agent, d.ID)
				agents[agent] = true
			}
		}
	}
	l.changing.Unlock()
	l.load(l.kept.missing())
	for agent := range agents {
		l.o.Changed(agent)
	}
	return nil
}

// uploads reads what was uploaded.
func (l *Library) uploads() {
	for _, d := range l.kept.waiting() {
		if l.ctx.Err() != nil {
			return
		}
		began := time.Now()
		l.readUpload(d)
		l.rest(began)
	}
}

// readUpload reads one upload.
func (l *Library) readUpload(d Document) {
	f, err := os.Open(filepath.Join(l.o.Incoming, d.ID))
	switch {
	case errors.Is(err, os.ErrNotExist) && time.Since(d.At) < lostTime: // another server that shares the store has it
		return
	case err != nil:
		err = &reader.FaultError{Fault: Lost, Err: err}
		l.keep(d, reader.Document{}, err)
		return
	}
	defer f.Close()
	read, err := l.o.Read(l.ctx, f, d.Name)
	if l.keep(d, read, err) {
		l.discard(d.ID)
	}
}

// keep commits what was read of a document, or why it was not, and reports whether that is done: the document is as it was
// when it was read.
func (l *Library) keep(d Document, read reader.Document, err error) (done bool) {
	now := d
	now.Kind, now.Title, now.Pieces, now.Chars, now.Cut, now.VectorOf = read.Kind, read.Title, len(read.Pieces), read.Chars, read.Cut, ""
	now.State, now.Fault, now.Detail, now.Reader, now.ReadAt = Ready, "", "", reader.Version, stamp(time.Now())
	var x *index
	if err == nil {
		if x = newIndex(l.seed, &now, read.Pieces); l.kept.room() < x.size() {
			err = &reader.FaultError{Fault: Full}
		}
	}
	if err != nil {
		if _, ok := errors.AsType[*reader.FaultError](err); !ok {
			if l.ctx.Err() == nil {
				l.o.Log.Warn("a document cannot be read now", "document", d.Name, "agent", d.Agent, "err", err)
			}
			return false
		}
		l.o.Log.Info("a document was not read", "document", d.Name, "agent", d.Agent, "err", err)
		read.Pieces, x = nil, nil
		now.State, now.Pieces, now.Chars, now.Cut = Failed, 0, 0, false
		now.Fault, now.Detail = reader.FaultOf(err)
	}
	l.changing.Lock()
	defer l.changing.Unlock()
	if is, ok := l.kept.document(d.Agent, d.ID); d.Uploaded() && (!ok || is.Hash != d.Hash) { // deleted, or uploaded again meanwhile
		return false
	}
	if err := l.o.Store.Put(l.ctx, now, read.Pieces); err != nil {
		if l.ctx.Err() == nil && !errors.Is(err, ErrConflict) { // another server has read it
			l.o.Log.Warn("a document is not kept", "document", d.Name, "agent", d.Agent, "err", err)
		}
		return false
	}
	l.kept.set(now, x)
	l.o.Changed(d.Agent)
	return true
}

// embed makes the vectors of documents that have none of the model that is asked now. It ends with the first failure: the next
// look tries again.
func (l *Library) embed() {
	e := l.o.Embedder()
	if e == nil {
		return
	}
	for _, agent := range l.kept.agents() {
		for _, d := range l.Documents(agent) {
			if d.Pieces == 0 || d.VectorOf == e.Model() {
				continue
			}
			began := time.Now()
			if err := l.embedOne(l.ctx, e, d); err != nil {
				if l.ctx.Err() == nil {
					l.o.Log.Warn("the meaning of documents is not known yet", "document", d.Name, "agent", d.Agent, "err", err)
				}
				return
			}
			l.rest(began)
		}
	}
}

// embedOne makes the vectors of a document's pieces.
func (l *Library) embedOne(ctx context.Context, e Embedder, d Document) error {
	pieces, err := l.o.Store.Pieces(ctx, d.ID)
	if err != nil {
		return err
	}
	v := Vectors{Model: e.Model()}
	for part := range slices.Chunk(pieces, batch) {
		var texts []string
		for _, p := range part {
			texts = append(texts, cmp.Or(d.Title, d.Name)+"\n"+p.Heading+"\n"+p.Text)
		}
		made, err := e.Embed(ctx, texts, false)
		if err != nil {
			return err
		}
		if len(made) != len(texts) {
			return fmt.Errorf("%d vectors for %d texts", len(made), len(texts))
		}
		for _, one := range made {
			v.Of = append(v.Of, quantise(one))
		}
	}
	l.changing.Lock()
	defer l.changing.Unlock()
	now, ok := l.kept.document(d.Agent, d.ID)
	if !ok || !now.ReadAt.Equal(d.ReadAt) {
		return nil // it was changed meanwhile
	}
	if err := l.o.Store.SetVectors(ctx, d.ID, v); err != nil {
		return err
	}
	now.VectorOf = v.Model
	l.kept.setVectors(now, v.Of)
	return nil
}
