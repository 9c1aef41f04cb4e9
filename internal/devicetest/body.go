package devicetest

import (
	"context"
	"sync"
	"time"
)

// body is the present condition of the device, which its tasks share as those of the firmware do: its state, its
// microphone and its loudspeaker, and the check of the reply that they are in. mu guards all but traits and journal;
// what it holds has no lock of its own.
type body struct {
	traits  traits
	journal *Journal

	mu      sync.Mutex
	state   State
	mode    Mode
	mic     microphone
	speaker loudspeaker
	check   replyCheck
}

func newBody(o Options, j *Journal) *body {
	t := o.Profile.traits()
	return &body{
		traits: t, journal: j, state: Connecting, mode: o.Mode,
		speaker: loudspeaker{
			player: player{limit: t.queue, dropOldest: t.dropOldest},
			mute:   o.Sound.NoDecode, keeps: t.noFlush, overheard: o.Sound.Room != nil, memory: o.memory(),
		},
		check: replyCheck{limits: o.Limits, violate: j.violate},
	}
}

func (b *body) now() (State, Mode) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state, b.mode
}

// until waits for a condition over the guarded fields; each change of one makes an event.
func (b *body) until(ctx context.Context, holds func() bool) error {
	from := b.journal.len()
	for {
		b.mu.Lock()
		ok := holds()
		b.mu.Unlock()
		if ok {
			return nil
		}
		if _, err := b.journal.next(ctx, from); err != nil {
			return err
		}
		from++
	}
}

// enter moves the device to a state and does what entering it does. It reports
// false for a move to where it is and for one that the firmware refuses.
func (b *body) enter(now time.Time, next State) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state == next || (b.state == Connecting && next == Speaking) {
		return false
	}
	b.state = next
	if next == Idle {
		b.mic.open = false
	}
	if next == Speaking {
		b.mic.open = b.mic.open && b.mode == Realtime
		if !b.traits.noFlush {
			b.flush(now)
		}
	}
	b.journal.add(Event{At: now, Kind: KindState, State: string(next)})
	return true
}

// openMic opens the microphone, and throws away what is unplayed if flush is set.
func (b *body) openMic(now time.Time, flush bool) {
	b.mu.Lock()
	if flush {
		b.flush(now)
	}
	b.mic.open = true
	b.mu.Unlock()
	b.journal.add(Event{At: now, Kind: KindState, State: string(Listening), Text: "microphone on"})
}

// flush empties the playback queue. The caller holds mu.
func (b *body) flush(now time.Time) {
	flushed := b.speaker.flush(now, b.state == Speaking)
	b.mic.stamps.flush()
	b.journal.count(func(s *Stats) { s.Flushed += flushed })
}

// freezer stops all of a device whose tools freeze it: its receiver and its microphone, while a tool runs.
type freezer struct {
	on    bool
	body  *body
	awake chan struct{} // holds one token while nothing may be read
}

// pass waits while the device is frozen.
func (f *freezer) pass() {
	f.awake <- struct{}{} // at the latest when Close has ended the tool
	<-f.awake
}

// freeze stops the device until thaw is called.
func (f *freezer) freeze() (thaw func()) {
	if !f.on {
		return func() {}
	}
	f.awake <- struct{}{}
	began := time.Now()
	f.body.mu.Lock()
	f.body.mic.frozen = true
	f.body.mu.Unlock()
	return func() {
		f.body.mu.Lock()
		f.body.mic.frozen = false
		f.body.check.forgive(time.Since(began))
		f.body.mu.Unlock()
		<-f.awake
	}
}
