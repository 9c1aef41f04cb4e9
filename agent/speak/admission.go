package speak

import (
	"context"
	"math"
	"slices"
	"time"
)

// Replies that wait to begin.
const (
	calmLate    = 40 * time.Millisecond // frames are so late at most, lately, while a reply may begin at once: the lead covers it
	lateForget  = time.Second           // in which half of a lateness is forgotten
	apart       = 50 * time.Millisecond // between two that begin after waiting
	longestWait = 5 * time.Second       // then one begins anyway: what it says is not lost
	mostWaiting = 256                   // the next begins at once
	fewReplies  = 8                     // are not held up: they do not make a machine late
)

// admission holds back replies that have not begun while those that are heard are late: the machine carries no more, and each
// that began would make all stutter. The one that has waited longest begins first. Its owner guards it.
type admission struct {
	late    time.Duration // of the frames of late, fading
	seen    time.Time     // when that was so much
	last    time.Time     // when one has begun after waiting
	waiting []chan struct{}
}

// note takes in how late a frame is.
func (a *admission) note(d time.Duration, now time.Time) {
	a.late, a.seen = max(d, a.lateness(now)), now
}

// lateness returns how late frames have left of late; a half of it is forgotten in each [lateForget].
func (a *admission) lateness(now time.Time) time.Duration {
	return time.Duration(float64(a.late) * math.Exp2(-now.Sub(a.seen).Seconds()/lateForget.Seconds()))
}

// next begins the reply that has waited longest, if one may, and returns when to look again; zero: nobody waits.
func (a *admission) next(now time.Time, active int) time.Time {
	if len(a.waiting) == 0 {
		return time.Time{}
	}
	if due := a.last.Add(apart); due.After(now) {
		return due
	}
	if active < fewReplies || a.lateness(now) <= calmLate {
		close(a.waiting[0])
		a.waiting = slices.Delete(a.waiting, 0, 1)
		a.last = now
	}
	return now.Add(apart)
}

// admit waits until a reply may begin, or ctx ends.
func (c *Clock) admit(ctx context.Context) error {
	now := time.Now()
	c.mu.Lock()
	a := &c.admission
	if len(a.waiting) >= mostWaiting || c.grid.taken() < fewReplies || len(a.waiting) == 0 && a.lateness(now) <= calmLate {
		c.mu.Unlock()
		return nil
	}
	begin := make(chan struct{})
	a.waiting = append(a.waiting, begin)
	if len(c.jobs) == 0 {
		c.arm(now.Add(apart))
	}
	c.mu.Unlock()
	timer := time.NewTimer(longestWait)
	defer timer.Stop()
	var err error
	select {
	case <-begin:
		return nil
	case <-timer.C:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	a.waiting = slices.DeleteFunc(a.waiting, func(other chan struct{}) bool { return other == begin })
	return err
}
