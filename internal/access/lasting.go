package access

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"xiaozhi/internal/account"
)

// Use says how long and how large the answers of a route are, and so how many there may be at once.
type Use int

// The uses.
const (
	Brief  Use = iota // an answer at once: any number
	Stream            // one that goes on as long as its person may have it: 20 of a person
	Export            // one that costs much: one of all people together
)

const (
	maxStreams = 20
	askAgain   = time.Second // whether a stream's person may still have it
)

// lasting counts the answers that go on. Its methods may be called at the same time.
type lasting struct {
	mu        sync.Mutex
	streams   map[string]int // that people have, by id
	exporting bool
}

// take counts an answer, and returns how its end is counted. More than there may be are an [account.TooOftenError].
func (l *lasting) take(use Use, p account.Person) (release func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case use == Brief:
		return func() {}, nil
	case use == Export && l.exporting, use == Stream && l.streams[p.ID] >= maxStreams:
		return nil, &account.TooOftenError{Wait: 5 * time.Second}
	case use == Export:
		l.exporting = true
	default:
		l.streams[p.ID]++
	}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if use == Export {
			l.exporting = false
			return
		}
		if l.streams[p.ID]--; l.streams[p.ID] == 0 {
			delete(l.streams, p.ID)
		}
	}, nil
}

// serve calls the handler of a route for a person who may. The context of a stream ends within a second of what may
// reports by then: that the session or the token has ended, or the right.
func (l *lasting) serve(w http.ResponseWriter, r *http.Request, route Route, p account.Person, may func(r *http.Request) error) error {
	release, err := l.take(route.Use, p)
	if err != nil {
		return err
	}
	defer release()
	ctx := context.WithValue(r.Context(), personKey{}, p)
	if route.Use == Stream {
		streaming, cancel := context.WithCancel(ctx)
		var watching sync.WaitGroup
		watching.Go(func() {
			defer cancel()
			watch(streaming, func() error { return may(r.WithContext(streaming)) })
		})
		defer watching.Wait()
		defer cancel()
		ctx = streaming
	}
	route.Handler.ServeHTTP(w, r.WithContext(ctx))
	return nil
}

// watch returns when ctx ends or somebody may have a stream no longer. A database that does not answer ends none.
func watch(ctx context.Context, may func() error) {
	tick := time.NewTicker(askAgain)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if _, definite := errors.AsType[account.ReasonError](may()); definite {
			return
		}
	}
}
