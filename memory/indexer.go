package memory

import (
	"context"
	"sync"
	"time"

	"xiaozhi/providers"
)

const (
	indexed     = 64 // facts of which vectors are made at once
	indexTime   = time.Minute
	indexRetry  = time.Minute
	indexLatest = 30 * time.Minute // between two attempts
)

// run makes vectors of facts that have none of the model which makes them now, in the background, until the book ends.
func (m *meaning) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	failed := 0
	for {
		select {
		case <-m.b.ctx.Done():
			return
		case <-m.wake:
		case <-timer.C:
		}
		err := m.index(m.b.ctx)
		m.settle(m.b.ctx)
		if err == nil {
			failed = 0
			continue
		}
		if m.b.ctx.Err() != nil {
			return
		}
		again := min(indexRetry<<min(failed, 8), indexLatest)
		failed++
		m.b.o.Log.Warn("what is remembered could not be made vectors of yet", "attempt", failed, "again_in", again, "err", err)
		timer.Reset(again)
	}
}

// index makes vectors of all facts that need one.
func (m *meaning) index(ctx context.Context) error {
	e := m.embedder()
	if e == nil {
		return nil
	}
	size, after := m.formOf(e.Model()), ""
	for {
		facts, err := m.store.Unlike(ctx, e.Model(), size, after, indexed)
		if err != nil || len(facts) == 0 {
			return err
		}
		after = facts[len(facts)-1].ID
		made, err := m.some(ctx, e, facts)
		if err != nil {
			return err
		}
		if made > 0 && made != size { // vectors of the same model and another length are old, too
			size, after = made, ""
			m.form.Store(&formed{e.Model(), made})
		}
	}
}

// some makes the vectors of some facts, and returns how long they are in bytes; 0: there was none to be made.
func (m *meaning) some(ctx context.Context, e providers.Embedder, facts []Fact) (size int, err error) {
	var texts []string
	var all []Vector
	var owners []Owner
	for _, f := range facts {
		if m.b.Mode(f.Owner) != Whole { // nothing of it goes anywhere
			continue
		}
		texts, all, owners = append(texts, f.line()+"\n"+f.Keys), append(all, Vector{Fact: f.ID, Text: f.Text}), append(owners, f.Owner)
	}
	if len(texts) == 0 {
		return 0, nil
	}
	limited, cancel := context.WithTimeout(ctx, indexTime)
	defer cancel()
	made, err := e.Embed(limited, providers.EmbedRequest{Texts: texts})
	if err != nil {
		return 0, err
	}
	for i, v := range made.Vectors {
		all[i].Data = pack(v)
		m.used.add(owners[i], made.Usage.Prompt/len(texts))
	}
	m.used.add(owners[0], made.Usage.Prompt%len(texts))
	if err := m.store.SetVectors(ctx, e.Model(), all); err != nil {
		return 0, err
	}
	m.drop(e.Model(), owners)
	return len(all[0].Data), nil
}

// usage counts the tokens of which vectors were made, by owner, until they are kept. Its methods may be called at the same time.
type usage struct {
	mu sync.Mutex
	of map[Owner]int
}

func (u *usage) add(o Owner, tokens int) {
	if tokens == 0 {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.of[o] += tokens
}

// empty takes all out.
func (u *usage) empty() map[Owner]int {
	u.mu.Lock()
	defer u.mu.Unlock()
	of := u.of
	u.of = map[Owner]int{}
	return of
}

// settle keeps what vectors have cost.
func (m *meaning) settle(ctx context.Context) {
	e := m.embedder()
	if e == nil {
		return
	}
	for o, tokens := range m.used.empty() {
		if err := m.b.o.Store.Spent(ctx, Run{Owner: o, At: time.Now(), Provider: e.Name(), Prompt: tokens, Vectors: true}); err != nil {
			m.b.o.Log.Warn("what vectors have cost is not kept", "device_id", o.Device, "err", err)
		}
	}
}
