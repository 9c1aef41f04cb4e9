package speak

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// crowdedClock is one that replies share, so many of which have begun, with frames that are late by so much.
func crowdedClock(replies int, late time.Duration) *Clock {
	c := new(Clock)
	for range replies {
		c.take(time.Now(), 60*time.Millisecond)
	}
	c.admission.note(late, time.Now())
	return c
}

// TestRepliesWaitWhileOthersAreLate: replies that have not begun wait until those that are heard are on time again, and begin
// one after the other, the oldest first.
func TestRepliesWaitWhileOthersAreLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := crowdedClock(20, 120*time.Millisecond)
		from := time.Now()
		var mu sync.Mutex
		var order []int
		var begun []time.Duration
		var wg sync.WaitGroup
		for i := range 5 {
			time.Sleep(time.Millisecond)
			wg.Go(func() {
				if err := c.admit(t.Context()); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				order, begun = append(order, i), append(begun, time.Since(from))
			})
		}
		wg.Wait()
		if !slices.IsSorted(order) {
			t.Errorf("order %v", order)
		}
		if begun[0] < 1500*time.Millisecond || begun[4] > 2*time.Second { // 120 ms fade to 40 in 1.58 s
			t.Errorf("begun %v", begun)
		}
		for i := range begun[1:] {
			if begun[i+1]-begun[i] < apart {
				t.Errorf("begun %v", begun)
			}
		}
		if err := c.admit(t.Context()); err != nil || time.Since(from) > 3*time.Second {
			t.Errorf("on time again: %v, %v", time.Since(from), err)
		}
	})
}

// TestWaitingToBeginEnds: whoever is cut does not wait any more, and nobody waits for ever on a machine that stays late.
func TestWaitingToBeginEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := crowdedClock(20, time.Hour)
		ctx, cancel := context.WithCancelCause(t.Context())
		cut := errors.New("cut")
		time.AfterFunc(time.Second, func() { cancel(cut) })
		from := time.Now()
		if err := c.admit(ctx); err != cut || time.Since(from) != time.Second {
			t.Errorf("%v, %v", err, time.Since(from))
		}
		if err := c.admit(t.Context()); err != nil || time.Since(from) != time.Second+longestWait {
			t.Errorf("%v, %v", err, time.Since(from))
		}
		if len(c.admission.waiting) > 0 {
			t.Error("still waiting")
		}
	})
}

// TestFewRepliesDoNotWait: beside other programs that keep the machine busy a few replies are late too, and begin all the same.
func TestFewRepliesDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := crowdedClock(fewReplies-1, time.Second)
		from := time.Now()
		if err := c.admit(t.Context()); err != nil || time.Since(from) != 0 {
			t.Errorf("%v, %v", err, time.Since(from))
		}
	})
}
