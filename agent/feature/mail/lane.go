package mail

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"xiaozhi/agent/feature"
	"xiaozhi/agent/turn"
)

// laneState says what a lane does.
type laneState int

// The states of a lane.
const (
	laneIdle     laneState = iota // nothing waits
	laneFetching                  // a piece of work looks for the next letter
	laneTelling                   // a letter is with the conversation
)

// lane has letters of a box told, one after the other. box.mu guards what is below asked.
type lane struct {
	box   *box
	pick  Pick
	asked *question // that waits for an answer; nil: none. On the conversation's goroutine

	state laneState
	more  bool         // something has come while it was fetching or telling
	told  bool         // it was telling since it found nothing last
	open  *Letter      // of laneTelling; nil: none
	begun *atomic.Bool // whether open is being told; nil: none was
}

// busy reports whether a letter is on its way. box.mu is held.
func (l *lane) busy() bool { return l.state != laneIdle }

// nudge has it look for letters. It may be called at any time.
func (l *lane) nudge() {
	l.box.mu.Lock()
	defer l.box.mu.Unlock()
	switch {
	case l.box.gone:
	case l.state == laneIdle:
		l.state = laneFetching
		l.box.office.run(l.limit(), l.fetch)
	default:
		l.more = true
	}
}

// overtaken has the lane of ordinary letters look for those that were pressing, until they had waited too long behind another one.
func (l *lane) overtaken() {
	l.box.mu.Lock()
	told := l.told
	l.told = false
	l.box.mu.Unlock()
	if told && l.pick.Pressing {
		l.box.lanes[ordinary].nudge()
	}
}

// limit bounds a look for letters.
func (l *lane) limit() time.Duration {
	if l.pick.Songs {
		return songLimit
	}
	return storeLimit
}

// rest ends the look for letters. Not done: something has come meanwhile.
func (l *lane) rest() (done bool) {
	l.box.mu.Lock()
	defer l.box.mu.Unlock()
	if l.more && l.state == laneFetching {
		l.more = false
		return false
	}
	if l.state == laneFetching {
		l.state = laneIdle
	}
	return true
}

// fail ends the look for letters until it looks again after a while: the store has failed.
func (l *lane) fail(err error) {
	l.box.mu.Lock()
	l.state, l.more = laneIdle, false
	l.box.mu.Unlock()
	l.box.failed(err)
}

// fetch takes the next letter, which is delivered from then on, and gives it to the conversation.
func (l *lane) fetch(ctx context.Context) {
	b := l.box
	for {
		pick := l.pick
		pick.Loud = b.Quiet()
		was, err := b.office.o.Store.First(ctx, pick)
		if errors.Is(err, ErrNoLetter) {
			l.overtaken()
			b.plan(ctx)
			if l.rest() {
				return
			}
			continue
		}
		if err != nil {
			l.fail(err)
			return
		}
		if l.take(ctx, was) {
			return
		}
	}
}

// take has a letter delivered, and gives it to the conversation. Not done: the next is to be looked for.
func (l *lane) take(ctx context.Context, was Letter) (done bool) {
	b, song, now := l.box, "", was
	if was.Kind == Play {
		var title string
		var err error
		if song, title, err = b.office.prepare(ctx, was.Song); err != nil {
			return l.noSong(ctx, was, err)
		}
		now.Text = title
	}
	now.Fate, now.Told, now.Tries = Delivered, time.Now().Truncate(time.Millisecond), was.Tries+1
	now.Begun = was.Kind == Play // it is begun by the player
	taken, err := b.office.change(ctx, was, now)
	if err != nil {
		l.fail(err)
		return true
	}
	if taken {
		l.give(ctx, now, song)
	}
	return taken
}

// prepare finds or fetches a song.
func (f *Office) prepare(ctx context.Context, song string) (id, title string, err error) {
	if f.o.Songs == nil {
		return "", "", ErrNoSong
	}
	return f.o.Songs.Prepare(ctx, song)
}

// noSong refuses a letter that cannot be played, unless it may be played later. Not done: the next is to be looked for.
func (l *lane) noSong(ctx context.Context, was Letter, err error) (done bool) {
	b, now := l.box, was
	b.office.o.Log.Warn("a song cannot be played", "device_id", b.device, "id", was.ID, "err", err)
	now.Tries++
	if now.Fate, now.Why = Refused, NoSong; !errors.Is(err, ErrNoSong) && now.Tries < maxTries {
		now.Fate, now.Why, now.NotBefore = Queued, "", time.Now().Add(again)
	}
	b.settle(ctx, was, now)
	return false
}

// give hands a letter to the conversation, or puts it back if that has ended.
func (l *lane) give(ctx context.Context, now Letter, song string) {
	b := l.box
	b.mu.Lock()
	gone := b.gone
	if !gone {
		l.state, l.open, l.begun = laneTelling, &now, nil
	}
	b.mu.Unlock()
	if gone {
		b.settle(ctx, now, now.back())
		return
	}
	b.Post(func() {
		if now.Kind == Play {
			l.play(now, song)
		} else {
			l.tell(now)
		}
	})
}

// tell has a letter told.
func (l *lane) tell(now Letter) {
	b, begun := l.box, &atomic.Bool{}
	b.mu.Lock()
	l.begun = begun
	b.mu.Unlock()
	var id uint64
	a := b.announcement(now, begun)
	a.Done = func(told feature.Told) { l.done(now, told, begun.Load(), id) }
	id, err := b.Announce(a)
	if err != nil { // too much waits to be told, or quiet mode has begun
		l.done(now, feature.Told{Err: err}, false, 0)
	}
}

// play has a song played.
func (l *lane) play(now Letter, song string) {
	err := feature.ErrOver
	if player := l.box.Player(); player != nil {
		err = player.Play(song, now.Text, now.Priority >= Urgent, func(told feature.Told) { l.played(now, told) })
	}
	if err != nil {
		l.played(now, feature.Told{Err: err})
	}
}

// played notes what was heard of a song.
func (l *lane) played(was Letter, told feature.Told) {
	now := was
	now.Fate, now.Begun, now.Heard = Heard, false, int(told.Played.Seconds()+0.5)
	switch {
	case told.Played > 0:
	case told.Err != nil && !errors.Is(told.Err, feature.ErrQuiet):
		now.Fate, now.Why = Refused, NoSong
	case turn.ByUser(told.Cause):
		now.Fate, now.Why = Refused, Unheard
	default:
		now = was.back()
	}
	l.finish(was, now)
}

// done notes what was heard of a letter. What was begun to be heard is not told again. What the end of the channel, or quiet
// mode, has kept from being heard takes no try.
func (l *lane) done(was Letter, told feature.Told, begun bool, id uint64) {
	if !l.has(was) {
		return
	}
	was.Begun = begun
	now, heard := was, len([]rune(told.Heard))
	if was.Prompt == "" {
		heard = min(heard, was.Length())
	}
	if told.Whole && begun {
		heard = max(heard, was.Length())
	}
	now.Fate, now.Heard, now.Begun, now.NotBefore = Heard, heard, false, time.Time{}
	switch later := time.Now().Add(again); {
	case heard > 0:
	case errors.Is(told.Err, feature.ErrQuiet), begun && told.Err == nil && !turn.ByUser(told.Cause):
		now = was.back()
	case !begun: // there was no room for it
		now = was.back()
		now.NotBefore = later
		l.box.look(later)
	case was.Tries >= maxTries:
		now.Fate, now.Why = Refused, Unheard
	default:
		now.Fate, now.NotBefore = Queued, later
		l.box.look(later)
	}
	if was.Kind == Ask && now.Fate == Heard && !l.box.isGone() {
		l.awaitAnswer(was, heard, id)
		return
	}
	l.finish(was, now)
}

// awaitAnswer keeps that a question was heard, and waits for what is said to it.
func (l *lane) awaitAnswer(was Letter, heard int, id uint64) {
	b, now := l.box, was
	now.Heard = heard
	l.asked = &question{was: now, id: id, until: time.Now().Add(answerIn)}
	b.office.run(storeLimit, func(ctx context.Context) { b.settle(ctx, was, now) })
}

// closeQuestion ends the wait for an answer.
func (l *lane) closeQuestion(fate Fate, answer string) {
	q := l.asked
	l.asked = nil
	now := q.was
	now.Fate, now.Answer, now.Begun = fate, answer, false
	l.finish(q.was, now)
}

// finish commits what has become of the letter that is open, and looks for the next.
func (l *lane) finish(was, now Letter) {
	b := l.box
	b.mu.Lock()
	gone := b.gone
	if l.open, l.told = nil, true; !gone {
		l.state = laneFetching
	}
	b.mu.Unlock()
	b.office.run(l.limit(), func(ctx context.Context) {
		b.settle(ctx, was, now)
		if !gone {
			l.fetch(ctx)
		}
	})
}

// has reports whether a letter is with the conversation.
func (l *lane) has(was Letter) bool {
	l.box.mu.Lock()
	defer l.box.mu.Unlock()
	return l.state == laneTelling && l.open != nil && l.open.ID == was.ID
}

// restore puts a letter back that the conversation, which has ended, did not begin. The player says what was heard of a song.
func (l *lane) restore() {
	b := l.box
	b.mu.Lock()
	open, begun := l.open, l.begun != nil && l.begun.Load()
	telling := l.state == laneTelling && open != nil && !l.pick.Songs
	if telling {
		l.open = nil
	}
	b.mu.Unlock()
	if !telling {
		return
	}
	was := *open
	now := was.back()
	if was.Begun = begun; begun { // it ended in a way of which nobody was told
		now = was
		now.Fate, now.Why, now.Begun = Refused, Lost, false
	}
	b.office.run(storeLimit, func(ctx context.Context) { b.settle(ctx, was, now) })
}

// back is a letter that is put back: it was given to a conversation, which could not begin to tell it.
func (l Letter) back() Letter {
	l.Fate, l.Told, l.NotBefore, l.Begun, l.Heard = Queued, time.Time{}, time.Time{}, false, 0
	l.Tries--
	return l
}
