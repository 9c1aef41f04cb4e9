package memory

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/internal/servicetest"
	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
)

// TestPack: a vector that is kept in 8 bits a number is as alike to others as before.
func TestPack(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	vector := func(n int) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(random.NormFloat64() / 32)
		}
		return v
	}
	for _, n := range []int{1, 3, 5, 256, 1024, 3072} {
		a, b := vector(n), vector(n)
		exact := float32(0)
		for i := range a {
			exact += a[i] * b[i]
		}
		if got := alike(a, pack(b)); max(got-exact, exact-got) > 0.01 || len(pack(b)) != n+scaleBytes {
			t.Errorf("%d numbers: %v, want %v", n, got, exact)
		}
		if alike(a, pack(vector(n+1))) != 0 {
			t.Error("vectors of different dimensions are compared")
		}
	}
	if got := alike([]float32{0, 0}, pack([]float32{0, 0})); got != 0 {
		t.Error(got)
	}
}

// facts are some of a household, many enough that not all of them are always given to a model.
func facts(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("Note %d of the household concerns drawer number %d in the cellar.", i, i))
	}
	return append(all, "The user's bicycle is a red Koga from Holland.", "The user's grandmother bakes plum cake on Sundays.")
}

// withVectors runs a test with a book whose facts have vectors, in fake time.
func withVectors(t *testing.T, e *providertest.Embedder, f func(r *rig)) {
	t.Helper()
	inTime(t, nil, func(r *rig) {
		for i, words := range facts(60) {
			r.shelf.facts[fmt.Sprint("f", i)] = Fact{ID: fmt.Sprint("f", i), Owner: kitchen, Text: words, At: time.Now().Add(-time.Duration(i) * time.Minute)}
		}
		r.embedder.Store(e)
		r.EmbedderChanged()
		synctest.Wait()
		time.Sleep(time.Minute)
		synctest.Wait()
		f(r)
	})
}

// asked is what a turn is told beside what it is always given, and how long it waited.
func (r *rig) asked(words string) (found string, took time.Duration) {
	r.Helper()
	p := r.Open(kitchen)
	defer p.Close()
	synctest.Wait() // it was read
	began := time.Now()
	ctx, cancel := context.WithTimeout(r.Context(), 30*time.Millisecond)
	defer cancel()
	return p.Notes(ctx, words, true).Found, time.Since(began)
}

// TestFoundByMeaning: a fact that shares no word with a question is found by its vector.
func TestFoundByMeaning(t *testing.T) {
	e := &providertest.Embedder{}
	withVectors(t, e, func(r *rig) {
		found, _ := r.asked("what about grandmotherly bakeries")
		if !strings.Contains(found, "plum cake") {
			t.Error(found)
		}
		p := r.Open(kitchen)
		defer p.Close()
		if got, err := p.Find(r.Context(), "bicyclists", 3); err != nil || len(got) == 0 || !strings.Contains(got[0].Text, "bicycle") {
			t.Errorf("%+v %v", got, err)
		}
		if got, _ := p.Named(r.Context(), "bicyclists", 3); len(got) != 0 {
			t.Errorf("by its words alone: %+v", got)
		}
		for _, q := range e.Asked() {
			if q.Query != (len(q.Texts) == 1) {
				t.Errorf("%d texts, query %v", len(q.Texts), q.Query)
			}
		}
		// Vectors are made once, in batches.
		if n := len(e.Asked()); n > 3 {
			t.Errorf("%d requests", n)
		}
	})
}

// TestSlowEmbedder: a turn waits 30 ms and is told what words find; the answer that came late helps the next turn.
func TestSlowEmbedder(t *testing.T) {
	e := &providertest.Embedder{Delay: 400 * time.Millisecond}
	withVectors(t, e, func(r *rig) {
		p := r.Open(kitchen)
		defer p.Close()
		found, took := r.asked("grandmotherly bakeries, drawer 50")
		if took != 30*time.Millisecond || strings.Contains(found, "plum cake") || !strings.Contains(found, "drawer number 50") {
			t.Errorf("after %v: %s", took, found)
		}
		if found, took = r.asked("grandmotherly bakeries"); took != 30*time.Millisecond || found != "" {
			t.Errorf("after %v: %s", took, found)
		}
		time.Sleep(time.Second)
		if found, took = r.asked("and on which day"); took > 30*time.Millisecond || !strings.Contains(found, "plum cake") {
			t.Errorf("after %v: %s", took, found)
		}
		time.Sleep(2 * time.Minute)
		if found, _ = r.asked("hello there, you"); strings.Contains(found, "plum cake") {
			t.Errorf("it is told much later: %s", found)
		}
		before := len(e.Asked())
		if found, took = r.asked("grandmotherly bakeries"); took > 0 || !strings.Contains(found, "plum cake") || len(e.Asked()) != before {
			t.Errorf("the same words, after %v and %d requests: %s", took, len(e.Asked())-before, found)
		}
	})
}

// TestEmbedderFails: words find facts while the service is down; vectors are made once it is there again.
func TestEmbedderFails(t *testing.T) {
	e := &providertest.Embedder{Err: errors.New("down")}
	withVectors(t, e, func(r *rig) {
		if found, took := r.asked("grandmotherly bakeries, drawer 50"); took > 0 || strings.Contains(found, "plum cake") || !strings.Contains(found, "drawer number 50") {
			t.Errorf("after %v: %s", took, found)
		}
		e.Fail(nil)
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		if found, _ := r.asked("grandmotherly bakeries"); !strings.Contains(found, "plum cake") {
			t.Error(found)
		}
	})
}

// TestAnotherEmbedder: another model, or one of other dimensions under the same name, makes all vectors anew; without one words are enough.
func TestAnotherEmbedder(t *testing.T) {
	first := &providertest.Embedder{}
	withVectors(t, first, func(r *rig) {
		for _, e := range []*providertest.Embedder{{Kind: "another"}, {Kind: "another", Dims: 128}} {
			r.embedder.Store(e)
			// What is not made anew yet is found by its words.
			if found, _ := r.asked("grandmotherly bakeries, drawer 50"); !strings.Contains(found, "drawer number 50") {
				t.Error(found)
			}
			if e.Dims == 0 { // nobody says that there are other dimensions: the first vector does
				r.EmbedderChanged()
			}
			synctest.Wait()
			texts := 0
			for _, q := range e.Asked() {
				if !q.Query {
					texts += len(q.Texts)
				}
			}
			if texts != 62 {
				t.Errorf("%s of %d dimensions: vectors of %d facts", e.Kind, e.Dims, texts)
			}
			if found, _ := r.asked("grandmotherly bakeries"); !strings.Contains(found, "plum cake") {
				t.Errorf("%s of %d dimensions: %s", e.Kind, e.Dims, found)
			}
		}
		r.embedder.Store(nil)
		r.EmbedderChanged()
		if found, took := r.asked("grandmotherly bakeries, drawer 50"); took > 0 || !strings.Contains(found, "drawer number 50") || strings.Contains(found, "plum cake") {
			t.Errorf("without one: %s", found)
		}
	})
}

// remembers keeps a fact.
func (r *rig) remembers(words string) {
	r.Helper()
	if _, _, err := r.Remember(r.Context(), Fact{Owner: kitchen, Text: words}); err != nil {
		r.Error(err)
	}
}

// TestVectorsOfWhom: facts of an owner who is remembered no longer go to no service, and what vectors cost is kept by owner.
func TestVectorsOfWhom(t *testing.T) {
	e := &providertest.Embedder{}
	withVectors(t, e, func(r *rig) {
		cost := 0
		for _, run := range r.shelf.runs {
			if run.Owner != kitchen || !run.Vectors || run.Provider != "fake-embedder" {
				t.Errorf("%+v", run)
			}
			cost += run.Prompt
		}
		want := 0
		for _, q := range e.Asked() {
			for _, words := range q.Texts {
				want += 1 + len(words)/4
			}
		}
		if cost != want {
			t.Errorf("%d tokens are kept of %d", cost, want)
		}
		r.mode = Summed
		before := len(e.Asked())
		r.shelf.facts["new"] = Fact{ID: "new", Owner: kitchen, Text: "The user is ill.", At: time.Now()}
		r.EmbedderChanged()
		synctest.Wait()
		if len(e.Asked()) != before {
			t.Errorf("%+v is sent", e.Asked()[before:])
		}
	})
}

// TestSmallMemoryAsksNobody: while all facts are given to the model anyway, no vector of what is said is asked for.
func TestSmallMemoryAsksNobody(t *testing.T) {
	e := &providertest.Embedder{}
	inTime(t, nil, func(r *rig) {
		r.embedder.Store(e)
		r.remembers("The user likes tea.")
		synctest.Wait()
		before := len(e.Asked())
		if n := r.notes(kitchen, "what do I drink"); !strings.Contains(n.Always, "tea") || len(e.Asked()) != before {
			t.Errorf("%+v, %d requests", n, len(e.Asked())-before)
		}
	})
}

// BenchmarkNotes is what a turn waits for with as many facts as an owner may have, and vectors of 1024 numbers.
func BenchmarkNotes(b *testing.B) {
	s := newShelf()
	for i := range MaxFacts {
		id := fmt.Sprint("f", i)
		words := fmt.Sprintf("The user's note %d about %s and drawer number %d in the cellar of house %d.", i, strings.Repeat(string(rune('a'+i%26)), 5), i*7, i%90)
		s.facts[id] = Fact{ID: id, Owner: kitchen, Text: words, At: time.Now().Add(-time.Duration(i) * time.Minute)}
		s.vectors[id] = Vector{id, words, pack(servicetest.Vector(words, 1024))}
		s.models[id] = "fake"
	}
	e := &providertest.Embedder{Dims: 1024}
	book := New(b.Context(), Options{Store: s, Vectors: s, Embedder: func() providers.Embedder { return e }, NewID: func() string { return "" }})
	defer book.Close()
	p := book.Open(kitchen)
	defer p.Close()
	if _, err := p.Known(b.Context()); err != nil {
		b.Fatal(err)
	}
	var worst time.Duration
	for i := 0; b.Loop(); i++ {
		began := time.Now()
		n := p.Notes(b.Context(), fmt.Sprintf("where is the note %d with the drawer number %d", i%MaxFacts, i%MaxFacts*7), true)
		if worst = max(worst, time.Since(began)); n.Found == "" {
			b.Fatal("nothing is found")
		}
	}
	b.ReportMetric(float64(worst.Microseconds())/1000, "ms-worst")
}

// The vectors of a shelf.

func (s *shelf) Vectors(_ context.Context, o Owner, model string) (map[string][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string][]byte{}
	for id, v := range s.vectors {
		if f := s.facts[id]; f.Owner == o && f.Ended.IsZero() && s.models[id] == model {
			all[id] = v.Data
		}
	}
	return all, nil
}

func (s *shelf) Unlike(_ context.Context, model string, bytes int, after string, limit int) (all []Fact, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, f := range s.facts {
		v, ok := s.vectors[id]
		if f.Ended.IsZero() && id > after && (!ok || s.models[id] != model || bytes > 0 && len(v.Data) != bytes) {
			all = append(all, f)
		}
	}
	slices.SortFunc(all, func(a, b Fact) int { return strings.Compare(a.ID, b.ID) })
	return all[:min(limit, len(all))], nil
}

func (s *shelf) SetVectors(_ context.Context, model string, all []Vector) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range all {
		if s.facts[v.Fact].Text == v.Text {
			s.vectors[v.Fact], s.models[v.Fact] = v, model
		}
	}
	return nil
}
