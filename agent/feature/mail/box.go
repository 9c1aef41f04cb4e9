package mail

import (
	"context"
	"errors"
	"sync"
	"time"

	"xiaozhi/agent/feature"
	"xiaozhi/internal/text"
)

// boxState says what a box does.
type boxState int

// The states of a box.
const (
	boxIdle     boxState = iota // nothing waits
	boxFetching                 // a piece of work looks for the next letter
	boxTelling                  // a letter is given to the conversation
	boxGone                     // the conversation has ended
)

// box has the letters of a device told that is there, one after the other.
type box struct {
	feature.Host

	office *Office
	device string

	at time.Time // when it is looked again for letters; zero: somebody says so. On the conversation's goroutine

	mu    sync.Mutex
	state boxState
	more  bool   // something has come while it was fetching or telling
	open  Letter // of boxTelling
}

// Expects reports whether a letter is being told, for which the channel stays open.
func (b *box) Expects(time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state == boxFetching || b.state == boxTelling
}

// Deadline returns when it looks again for letters.
func (b *box) Deadline() time.Time { return b.at }

// Tick looks for letters.
func (b *box) Tick(time.Time) {
	b.at = time.Time{}
	b.nudge()
}

// Detach gives back what was not told.
func (b *box) Detach() feature.State {
	b.mu.Lock()
	telling, open := b.state == boxTelling, b.open
	b.state = boxGone
	b.mu.Unlock()
	b.office.left(b)
	if telling {
		b.office.run(func(ctx context.Context) { b.settle(ctx, open, open.back()) })
	}
	return nil
}

// QuietChanged looks for letters when quiet mode ends.
func (b *box) QuietChanged(on bool) {
	if !on {
		b.nudge()
	}
}

// nudge has it look for letters. It may be called at any time.
func (b *box) nudge() {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch b.state {
	case boxIdle:
		b.state = boxFetching
		b.office.run(b.fetch)
	case boxFetching, boxTelling:
		b.more = true
	case boxGone:
	}
}

// fetch takes the next letter, which is delivered from then on, and gives it to the conversation.
func (b *box) fetch(ctx context.Context) {
	for {
		if b.Quiet() {
			if b.rest() {
				return
			}
			continue
		}
		was, err := b.office.o.Store.First(ctx, b.device)
		if errors.Is(err, ErrNoLetter) {
			if b.rest() {
				return
			}
			continue
		}
		l, taken := was, false
		if err == nil {
			l.Fate, l.Told, l.Tries = Delivered, time.Now(), was.Tries+1
			taken, err = b.office.change(ctx, was, l)
		}
		if err != nil {
			b.office.o.Log.Error("messages for a device cannot be read", "device_id", b.device, "err", err)
			b.rest()
			b.Post(b.later)
			return
		}
		if taken {
			b.give(ctx, l)
			return
		}
	}
}

// rest ends the look for letters. Not done: something has come meanwhile.
func (b *box) rest() (done bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.more && b.state == boxFetching {
		b.more = false
		return false
	}
	if b.state == boxFetching {
		b.state = boxIdle
	}
	return true
}

// give hands a letter to the conversation, or puts it back if that has ended.
func (b *box) give(ctx context.Context, l Letter) {
	b.mu.Lock()
	gone := b.state == boxGone
	if !gone {
		b.state, b.open = boxTelling, l
	}
	b.mu.Unlock()
	if gone {
		b.settle(ctx, l, l.back())
		return
	}
	b.Post(func() { b.tell(l) })
}

// tell has a letter told.
func (b *box) tell(l Letter) {
	_, err := b.Announce(feature.Announcement{
		Lang: text.Resolve(l.Text, l.Lang, b.Lang()), Text: l.Text, Now: l.Now && l.Tries == 1,
		Done: func(told feature.Told) { b.done(l, told) },
	})
	if err != nil { // too much waits to be told, or quiet mode has begun
		b.done(l, feature.Told{Err: err})
	}
}

// done notes what was heard of a letter. What was begun to be heard is not told again.
func (b *box) done(l Letter, told feature.Told) {
	b.mu.Lock()
	ours := b.state == boxTelling && b.open.ID == l.ID
	if ours {
		b.state, b.open = boxFetching, Letter{}
	}
	b.mu.Unlock()
	if !ours {
		return
	}
	now := l
	now.NotBefore = time.Time{}
	now.Fate, now.Heard = Heard, min(len([]rune(told.Heard)), l.Length())
	switch {
	case told.Whole:
		now.Heard = l.Length()
	case now.Heard > 0:
	case errors.Is(told.Err, feature.ErrQuiet):
		now = l.back()
		now.Tries--
	case l.Tries >= maxTries:
		now.Fate = Refused
	default:
		now.Fate, now.NotBefore = Queued, time.Now().Add(again)
		b.later()
	}
	b.office.run(func(ctx context.Context) {
		b.settle(ctx, l, now)
		b.fetch(ctx)
	})
}

// later looks again for letters after a while. It runs on the conversation's goroutine.
func (b *box) later() { b.at = time.Now().Add(again) }

// back is a letter that is put back: it was given to a conversation, which could not begin to tell it.
func (l Letter) back() Letter {
	l.Fate, l.Told, l.NotBefore = Queued, time.Time{}, time.Time{}
	return l
}

// settle commits what has become of a letter.
func (b *box) settle(ctx context.Context, was, now Letter) {
	if _, err := b.office.change(ctx, was, now); err != nil {
		b.office.o.Log.Error("what became of a message is not kept", "device_id", b.device, "id", was.ID, "fate", now.Fate, "err", err)
	}
}
