package memory

import (
	"context"
	"sync/atomic"

	"xiaozhi/internal/lru"
	"xiaozhi/providers"
)

// Vectors keeps the vectors of facts beside them. Its methods may be called at the same time.
type Vectors interface {
	// Vectors returns those that a model has made of the facts of an owner which hold, by the ids of the facts.
	Vectors(ctx context.Context, o Owner, model string) (map[string][]byte, error)
	// Unlike lists facts that hold and have no vector of a model, or one of another length in bytes (0: any will do): those of
	// all owners in the order of their ids, from the one after an id on.
	Unlike(ctx context.Context, model string, bytes int, after string, limit int) ([]Fact, error)
	// SetVectors keeps vectors that a model has made. A fact whose text is another one by now keeps none.
	SetVectors(ctx context.Context, model string, all []Vector) error
}

// Vector is that of a fact.
type Vector struct {
	Fact string // its id
	Text string // of which it was made
	Data []byte
}

const (
	keptQueries = 256
	keptVectors = 32 << 20 // bytes, of all owners together
)

// meaning finds facts by what they mean: by the vectors that a service makes of them, and of the words that are looked for. It
// belongs to a [Book], and its methods may be called at the same time.
type meaning struct {
	b       *Book
	by      func() providers.Embedder // nil, or one that returns nil: there is none
	store   Vectors
	wake    chan struct{} // size 1: there may be facts without a vector
	queries *lru.Cache[query, []float32]
	vectors *lru.Cache[ownedBy, map[string][]byte]
	used    usage
	drops   atomic.Int64           // of what is in vectors
	form    atomic.Pointer[formed] // of the newest vector; nil: none was made yet
}

// query identifies the vector of some words.
type query struct{ model, words string }

// ownedBy names vectors that are in memory.
type ownedBy struct {
	Owner
	model string
}

// formed says how long the vectors of a model are, in bytes as they are kept.
type formed struct {
	model string
	bytes int
}

// formOf returns how long the vectors of a model are; 0: it is not known yet.
func (m *meaning) formOf(model string) int {
	if f := m.form.Load(); f != nil && f.model == model {
		return f.bytes
	}
	return 0
}

func newMeaning(b *Book, by func() providers.Embedder, store Vectors) *meaning {
	return &meaning{
		b: b, by: by, store: store, wake: make(chan struct{}, 1),
		queries: lru.New[query, []float32](keptQueries, 0), vectors: lru.New[ownedBy, map[string][]byte](0, keptVectors), used: usage{of: map[Owner]int{}},
	}
}

// embedder returns the service that makes vectors now; nil: none does.
func (m *meaning) embedder() providers.Embedder {
	if m == nil || m.by == nil || m.store == nil {
		return nil
	}
	return m.by()
}

func (m *meaning) find(ctx context.Context, o Owner, words string) ([]near, error) {
	e := m.embedder()
	if e == nil {
		return nil, nil
	}
	model := e.Model()
	vectors, err := m.of(ctx, o, model)
	if err != nil || len(vectors) == 0 {
		return nil, err
	}
	v, ok := m.queries.Get(query{model, words})
	if size := m.formOf(model); !ok || size > 0 && size != scaleBytes+len(v) {
		made, err := e.Embed(ctx, providers.EmbedRequest{Texts: []string{words}, Query: true})
		if err != nil {
			return nil, err
		}
		m.used.add(o, made.Usage.Prompt)
		v = made.Vectors[0]
		m.queries.Put(query{model, words}, v, 1)
	}
	for _, data := range vectors {
		if size := scaleBytes + len(v); size != len(data) && size != m.formOf(model) { // another model has been put under its name
			m.form.Store(&formed{model, size})
			m.rouse()
		}
		break
	}
	return nearest(v, vectors), nil
}

// of returns the vectors of an owner's facts.
func (m *meaning) of(ctx context.Context, o Owner, model string) (map[string][]byte, error) {
	if all, ok := m.vectors.Get(ownedBy{o, model}); ok {
		return all, nil
	}
	before := m.drops.Load()
	all, err := m.store.Vectors(ctx, o, model)
	if err == nil && before == m.drops.Load() { // else it may be old already
		size := 0
		for id, data := range all {
			size += len(id) + len(data) + 64
		}
		m.vectors.Put(ownedBy{o, model}, all, size)
	}
	return all, err
}

// drop has the vectors of owners be read again.
func (m *meaning) drop(model string, owners []Owner) {
	for _, o := range owners {
		m.vectors.Remove(ownedBy{o, model})
	}
	m.drops.Add(1)
}

// changed says that an owner's facts are others; without an agent: those with all agents of the device.
func (m *meaning) changed(owners ...Owner) {
	e := m.embedder()
	if e == nil {
		return
	}
	m.drop(e.Model(), owners)
	m.rouse()
}

// rouse has vectors be made of what has none. It does not wait.
func (m *meaning) rouse() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}
