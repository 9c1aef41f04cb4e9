package identity

import (
	"context"
	"crypto/rand"
	"time"
)

// PageBoard is the board of the pages of people.
const PageBoard = "browser"

// Pages lets pages of people into a book. Its methods may be called at the same time.
type Pages struct{ Book *Book }

// Admit returns a page, which a person who has logged in has opened, as a known device, and whether it is new. The id
// must be one that its server has made for that person. No Client-Id and no token lead to the device: only the server
// lets its page in. by is the person's name.
func (p Pages) Admit(ctx context.Context, id, by string) (g Guest, created bool, err error) {
	b := p.Book
	id = Canonical(id)
	b.mu.Lock()
	e, now := b.byID[id], time.Now()
	if e != nil && e.State != Newcomer {
		g = Guest{ID: e.ID, Name: e.Name, Proven: true, Regular: true, Page: true}
		if e.State != Browser {
			g.Away = &AwayError{Verdict: Denied}
		}
		if e.Seen = now; now.Sub(e.noted) >= seenEvery {
			b.touch(id)
		}
		b.mu.Unlock()
		return g, false, nil
	}
	b.mu.Unlock()
	err = b.act(ctx, commitTime, func() (string, error) {
		b.drop(id, ErrCodeExpired)
		b.keep(&entry{Record: Record{
			ID: id, Address: id, Client: hashOf(rand.Text()), State: Browser, By: by, Told: true, Board: PageBoard, First: now, Seen: now, Since: now,
		}})
		return id, nil
	})
	return Guest{ID: id, Proven: true, Regular: true, Page: true}, err == nil, err
}
