package pocketsphinx

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
)

// poolOf makes a pool whose decoders need no library.
func poolOf(size int) *pool {
	p := newPool(nil, model{}, size, slog.New(slog.DiscardHandler))
	for range size {
		p.loaded = append(p.loaded, &decoder{})
	}
	return p
}

func TestPoolSize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size, borrowers = 2, 9
		p := poolOf(size)
		var (
			mu          sync.Mutex
			lent, most  int
			places      = map[*decoder]bool{}
			served      []int
			work        sync.WaitGroup
			letGo       = make(chan struct{})
			borrowAsNth = func(n int) {
				s, err := p.acquire(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				lent++
				most, places[s], served = max(most, lent), true, append(served, n)
				mu.Unlock()
				<-letGo
				mu.Lock()
				lent--
				mu.Unlock()
				p.release(s)
			}
		)
		for n := range borrowers {
			work.Go(func() { borrowAsNth(n) })
			synctest.Wait() // they come one after the other
		}
		if lent != size {
			t.Fatalf("%d decoders lent to %d borrowers, want %d", lent, borrowers, size)
		}
		for range borrowers {
			letGo <- struct{}{}
			synctest.Wait()
		}
		work.Wait()
		if most != size || len(places) != size {
			t.Errorf("%d lent at once, %d in all; want %d", most, len(places), size)
		}
		for i, n := range served {
			if i != n {
				t.Fatalf("served in the order %v, want first come, first served", served)
			}
		}
		p.close()
	})
}

func TestBorrowCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := poolOf(1)
		s, err := p.acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := p.acquire(ctx)
			done <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("waiting ended with %v", err)
		}
		p.release(s)
		if _, err := p.acquire(t.Context()); err != nil {
			t.Errorf("the place was lost: %v", err)
		}
	})
}

// A pool that is retired frees what nobody has at once, and the rest when it is given back. It goes on lending.
func TestPoolRetires(t *testing.T) {
	p := poolOf(2)
	first, err := p.acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p.retire()
	p.release(first)
	if len(p.loaded) != 0 || len(p.free) != 2 {
		t.Errorf("%d of 2 decoders are kept, %d can be lent", len(p.loaded), len(p.free))
	}
}

// Loading takes half a second and the memory of a decoder: who speaks alone is lent what is loaded, and not what is not.
func TestPoolLendsWhatIsLoaded(t *testing.T) {
	p := newPool(nil, model{}, 3, slog.New(slog.DiscardHandler))
	only := &decoder{}
	p.loaded = append(p.loaded, only)
	for range 4 {
		d, err := p.acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if d != only {
			t.Fatal("another decoder was lent than the one that is loaded")
		}
		p.release(d)
	}
}

func TestSpare(t *testing.T) {
	s := &stock{room: 1}
	english := model{acoustic: "en", features: []string{"-cmn", "none"}}
	d := &decoder{model: english, dictation: &searcher{lib: &library{file: "a.so"}}}
	s.put(d)
	s.put(&decoder{}) // there is no room for it
	for what, got := range map[string]*decoder{
		"of another library": s.take(&library{file: "b.so"}, english),
		"of another model":   s.take(&library{file: "a.so"}, model{acoustic: "en"}),
	} {
		if got != nil {
			t.Errorf("%s: one was given", what)
		}
	}
	if s.take(&library{file: "a.so"}, english) != d {
		t.Error("what was kept is not given")
	}
	if s.take(&library{file: "a.so"}, english) != nil {
		t.Error("one is given twice")
	}
}
