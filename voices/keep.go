package voices

import (
	"context"
	"fmt"
	"time"

	"xiaozhi/internal/text/message"
)

const (
	lookEvery  = 30 * time.Second // whether another server has changed anything
	firstAgain = time.Minute      // after a failed removal; then twice as long each time
	lastAgain  = 6 * time.Hour
	removeTime = 10 * time.Second // for a service to forget a print
	mostAtOnce = 64               // prints that are removed in a row
)

// wakeUp has the book look for what is to be forgotten. It does not wait.
func (b *Book) wakeUp() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// noticed reads what the store knows now of prints that are to be forgotten, and looks after them, whether or not anybody waits for it.
func (b *Book) noticed(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTime)
	defer cancel()
	err := b.reload(ctx)
	b.wakeUp()
	return err
}

// run has services forget what they are to forget, and notes what other servers have changed, until ctx ends.
func (b *Book) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.wake:
		case <-timer.C:
		}
		if b.o.Shared {
			b.follow(ctx)
		}
		b.clear(ctx)
		if next, ok := b.next(); ok {
			timer.Reset(next)
		} else {
			timer.Stop()
		}
	}
}

// follow reads what other servers have changed.
func (b *Book) follow(ctx context.Context) {
	n, err := b.o.Store.Changes(ctx)
	if err == nil && n != b.now.Load().Changes {
		err = b.reload(ctx)
	}
	if err != nil && ctx.Err() == nil {
		b.o.Log.Warn("people cannot be read again", "err", err)
	}
}

// next returns when there is something to do; false: when it is woken.
func (b *Book) next() (in time.Duration, ok bool) {
	if b.o.Shared {
		in, ok = lookEvery, true
	}
	for _, r := range b.now.Load().Removals {
		if due := max(time.Until(r.Next), time.Second); !ok || due < in {
			in, ok = due, true
		}
	}
	return in, ok
}

// forget has services forget what they are to forget, waits for that as long as one print may take, and reports whether anything is left.
func (b *Book) forget(ctx context.Context) (left bool, err error) {
	if err := b.reload(ctx); err != nil {
		return true, err
	}
	within, cancel := context.WithTimeout(ctx, removeTime)
	b.clear(within)
	cancel()
	if err := b.reload(ctx); err != nil {
		return true, err
	}
	b.wakeUp() // for what is left
	for _, r := range b.now.Load().Removals {
		left = left || r.Tries > 0 || !r.Next.After(time.Now())
	}
	return left, nil
}

// clear asks services to forget what is due.
func (b *Book) clear(ctx context.Context) {
	n := 0
	for _, r := range b.now.Load().Removals {
		if r.Next.After(time.Now()) || ctx.Err() != nil || n == mostAtOnce {
			continue
		}
		n++
		if err := b.removeOne(ctx, r); err != nil && ctx.Err() == nil {
			again := min(lastAgain, firstAgain<<min(r.Tries, 10))
			b.o.Log.Warn("a voice is not forgotten yet by the service that keeps it", "provider", r.Service, "attempt", r.Tries+1, "again_in", again, "err", err)
			if err := b.o.Store.NotRemoved(ctx, r.ID, err.Error(), time.Now().Add(again)); err != nil {
				b.o.Log.Warn("people cannot be written", "err", err)
			}
		}
	}
	if n == 0 {
		return
	}
	if err := b.reload(ctx); err != nil && ctx.Err() == nil {
		b.o.Log.Warn("people cannot be read again", "err", err)
	}
}

// removeOne has a service forget a print.
func (b *Book) removeOne(ctx context.Context, r Removal) error {
	ctx, cancel := context.WithTimeout(ctx, removeTime)
	defer cancel()
	e := b.o.Engine()
	if e == nil || e.Name() != r.Service {
		made, free, err := b.o.Service(ctx, r.Service)
		if err != nil {
			return fmt.Errorf("%s: %w", message.Both("household/no-service", r.Service), err)
		}
		defer free()
		e = made
	}
	if err := e.Delete(ctx, r.ID); err != nil {
		return err
	}
	return b.o.Store.Removed(ctx, r.ID)
}
