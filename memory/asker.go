package memory

import (
	"context"
	"slices"
	"time"

	"xiaozhi/internal/text"
)

const (
	queryBytes = 1000 // of words that are looked for
	queryTime  = 5 * time.Second
	mostAsking = 8 // questions at the same time
	lateFor    = time.Minute
)

// near is a fact whose meaning is near to that of some words.
type near struct {
	id  string
	out float64 // how far its likeness is above that of all facts, in standard deviations
}

const (
	somehow = 0.5 // standard deviations above all others: it may have to do with the words
	surely  = 2.0 // it has
)

// question is one that is asked by its meaning. found is there when done is closed.
type question struct {
	asked time.Time
	done  chan struct{}
	found []near
}

// asker asks for what has to do with words by their meaning, which takes longer than a turn may wait. It belongs to a [Book], and its
// methods may be called at the same time.
type asker struct {
	b     *Book
	ready func() bool // somebody can be asked
	find  func(ctx context.Context, o Owner, words string) ([]near, error)
	slots chan struct{} // size mostAsking: questions under way
}

func newAsker(b *Book, ready func() bool, find func(ctx context.Context, o Owner, words string) ([]near, error)) *asker {
	return &asker{b, ready, find, make(chan struct{}, mostAsking)}
}

// ask begins to look for facts that have to do with words. nil: nobody can be asked, or too much is at the moment. Nobody needs to
// wait for the answer.
func (a *asker) ask(o Owner, words string) *question {
	if words = text.Cut(words, queryBytes); !a.ready() || !Names(words) {
		return nil
	}
	select {
	case a.slots <- struct{}{}:
	default:
		return nil
	}
	q := &question{asked: time.Now(), done: make(chan struct{})}
	a.b.wg.Go(func() {
		defer func() { <-a.slots }()
		defer close(q.done)
		ctx, cancel := context.WithTimeout(a.b.ctx, queryTime)
		defer cancel()
		found, err := a.find(ctx, o, words)
		if err != nil && a.b.ctx.Err() == nil {
			a.b.o.Log.Debug("what is remembered is found by its words alone", "device_id", o.Device, "err", err)
		}
		q.found = found
	})
	return q
}

// wait waits for the answer until ctx ends. false: it was not there in time.
func (q *question) wait(ctx context.Context) (found []near, answered bool) {
	if q == nil {
		return nil, true
	}
	select {
	case <-q.done:
		return q.found, true
	default:
	}
	select {
	case <-q.done:
		return q.found, true
	case <-ctx.Done():
		return nil, false
	}
}

// late returns the answer to a question that came too late for its turn, if it is there now and not old.
func (q *question) late() []near {
	if q == nil || time.Since(q.asked) > lateFor {
		return nil
	}
	select {
	case <-q.done:
		return slices.Clone(q.found)
	default:
		return nil
	}
}
