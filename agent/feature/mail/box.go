package mail

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"xiaozhi/agent/feature"
	"xiaozhi/internal/text"
)

// box has the letters of a device told that is there: one after the other in each lane.
type box struct {
	feature.Host

	office *Office
	device string
	lanes  [3]*lane

	at time.Time // when it looks again for letters; zero: somebody says so. On the conversation's goroutine

	next atomic.Int64 // when the next letter is due for which the channel is kept open, in Unix milliseconds; 0: none is

	mu   sync.Mutex
	gone bool // the conversation has ended
}

// The lanes of a box: what is pressing does not wait behind other letters, nor do these behind a song.
const (
	ordinary = iota
	pressing
	songs
)

func newBox(h feature.Host, f *Office, device string) *box {
	b := &box{Host: h, office: f, device: device}
	for i := range b.lanes {
		b.lanes[i] = &lane{box: b, pick: Pick{Device: device, Pressing: i == pressing, Songs: i == songs}}
	}
	return b
}

// question is a letter that was asked, and is not answered yet.
type question struct {
	was   Letter    // as it is kept
	id    uint64    // of its announcement
	until time.Time // when nobody waits for an answer any more
}

// Expects reports whether a letter is being told, or will be soon, for which the channel stays open.
func (b *box) Expects(now time.Time) bool {
	if next := b.next.Load(); next != 0 && !b.Quiet() && time.UnixMilli(next).Sub(now) <= b.office.o.KeepOpen() {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lanes[ordinary].busy() || b.lanes[pressing].busy()
}

// Deadline returns when it looks again for letters, or gives up to wait for an answer.
func (b *box) Deadline() time.Time {
	at := b.at
	for _, l := range b.lanes {
		if q := l.asked; q != nil && (at.IsZero() || q.until.Before(at)) {
			at = q.until
		}
	}
	return at
}

// Tick looks for letters.
func (b *box) Tick(now time.Time) {
	for _, l := range b.lanes {
		if q := l.asked; q != nil && !now.Before(q.until) {
			b.Withdraw(q.id)
			l.closeQuestion(Heard, "")
		}
	}
	if !b.at.IsZero() && !now.Before(b.at) {
		b.at = time.Time{}
		b.nudge()
	}
}

// Detach gives back what was not begun.
func (b *box) Detach() feature.State {
	b.mu.Lock()
	b.gone = true
	b.mu.Unlock()
	b.office.left(b)
	for _, l := range b.lanes {
		if l.asked != nil {
			l.closeQuestion(Heard, "")
		}
		l.restore()
	}
	return nil
}

// QuietChanged looks for letters when quiet mode ends.
func (b *box) QuietChanged(bool) { b.nudge() }

// nudge has it look for letters in all lanes. It may be called at any time.
func (b *box) nudge() {
	for _, l := range b.lanes {
		l.nudge()
	}
}

// look has it look for letters at a time at the latest.
func (b *box) look(at time.Time) {
	if b.at.IsZero() || at.Before(b.at) {
		b.at = at
	}
}

// plan notes when the next letter is due. It waits for the store.
func (b *box) plan(ctx context.Context) {
	at, priority, err := b.office.o.Store.Due(ctx, b.device)
	if err != nil {
		b.failed(err)
		return
	}
	b.next.Store(0)
	if at.IsZero() {
		return
	}
	if priority >= Normal {
		b.next.Store(at.UnixMilli())
	}
	b.Post(func() { b.look(at) })
}

// failed has it look again after a while: the store has failed.
func (b *box) failed(err error) {
	b.office.o.Log.Error("messages for a device cannot be read", "device_id", b.device, "err", err)
	b.Post(func() { b.look(time.Now().Add(again)) })
}

func (b *box) isGone() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.gone
}

// settle commits what has become of a letter.
func (b *box) settle(ctx context.Context, was, now Letter) {
	if _, err := b.office.change(ctx, was, now); err != nil {
		b.office.o.Log.Error("what became of a message is not kept", "device_id", b.device, "id", was.ID, "fate", now.Fate, "err", err)
	}
	if now.Fate == Queued && b.isGone() { // the device may be there again, and have looked before
		b.office.nudge(b.device)
	}
}

// announcement is a letter as the conversation tells it. begun is set when it does.
func (b *box) announcement(l Letter, begun *atomic.Bool) feature.Announcement {
	lang := text.Resolve(l.Text, l.Lang, b.Lang())
	a := feature.Announcement{
		Lang: lang, Text: l.Text, Instruction: l.Prompt, Asked: l.Priority >= Urgent, First: l.Priority >= Urgent,
		Now: l.Now && l.Tries == 1 && time.Since(l.Made) < FreshFor,
		Begin: func(ctx context.Context) error {
			err := b.begin(ctx, l)
			begun.Store(err == nil)
			return err
		},
	}
	if l.Kind == Ask {
		a.Answer = func(answer feature.Answer) { b.answered(l, answer) }
	}
	return a
}

// errTaken says that a letter is not told, as it is not as it was thought to be.
var errTaken = errors.New("the message was given up meanwhile")

// begin commits that a letter is being told.
func (b *box) begin(ctx context.Context, was Letter) error {
	now := was
	now.Begun = true
	changed, err := b.office.change(ctx, was, now)
	if err == nil && !changed {
		err = errTaken
	}
	return err
}

// answered takes what was said to a question.
func (b *box) answered(letter Letter, a feature.Answer) {
	for _, l := range b.lanes {
		if q := l.asked; q != nil && q.was.ID == letter.ID {
			l.closeQuestion(Answered, text.Cut(a.Words, maxAnswer))
		}
	}
}
