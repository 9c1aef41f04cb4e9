package speak

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/agent/turn"
)

// sendAt has the clock do one job at a time from now, and returns how late it was sent.
func sendAt(ctx context.Context, c *Clock, in time.Duration, encode func()) (late time.Duration, err error) {
	due := time.Now().Add(in)
	j := newJob(encode, func() { late = time.Since(due) })
	err = c.do(ctx, j, due)
	return late, err
}

// TestClockSendsWhenDue: jobs that come in any order are done when they are due, those of one instant together.
func TestClockSendsWhenDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Clock
		var wg sync.WaitGroup
		defer wg.Wait()
		for i := range 50 {
			wg.Go(func() {
				time.Sleep(time.Duration(i*7%50) * time.Millisecond / 10)
				if late, err := sendAt(t.Context(), &c, time.Duration(i*13%50/10)*time.Millisecond, func() {}); late != 0 || err != nil {
					t.Errorf("job %d: %v late, %v", i, late, err)
				}
			})
		}
	})
}

// TestSlowCodecHoldsUpNoOther: while libopus takes its time over the frame of one reply, those of others leave, but for the few
// that were due in the same instant.
func TestSlowCodecHoldsUpNoOther(t *testing.T) {
	if runtime.GOMAXPROCS(0) < 2 {
		t.Skip("there is one processor for Go") // as nowhere in the program, which sets two (internal/garbage)
	}
	synctest.Test(t, func(t *testing.T) {
		var c Clock
		var wg sync.WaitGroup
		wg.Go(func() { sendAt(t.Context(), &c, time.Millisecond, func() { time.Sleep(time.Second) }) })
		for i := range 20 {
			wg.Go(func() {
				in := 2*time.Millisecond + time.Duration(i)*5*time.Millisecond
				if late, err := sendAt(t.Context(), &c, in, func() {}); late > clockHelp || err != nil {
					t.Errorf("job %d: %v late, %v", i, late, err)
				}
			})
		}
		wg.Wait()
	})
}

// TestPanicIsOfOneReply: a panic while a frame is encoded is the error of its reply, and the others due then are sent.
func TestPanicIsOfOneReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Clock
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() {
			if _, err := sendAt(t.Context(), &c, time.Millisecond, func() { panic("broken") }); !errors.Is(err, turn.ErrFailed) {
				t.Errorf("%v", err)
			}
		})
		for range 6 {
			wg.Go(func() {
				if late, err := sendAt(t.Context(), &c, time.Millisecond, func() {}); late != 0 || err != nil {
					t.Errorf("%v late, %v", late, err)
				}
			})
		}
	})
}

// TestClockForgetsWhatIsCancelled: a job whose reply has ended is not called, neither now nor when it was due.
func TestClockForgetsWhatIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Clock
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("why")
		time.AfterFunc(time.Millisecond, func() { cancel(why) })
		if _, err := sendAt(ctx, &c, 2*time.Millisecond, func() { t.Error("called") }); err != why {
			t.Errorf("%v", err)
		}
		if _, err := sendAt(ctx, &c, 2*time.Millisecond, func() { t.Error("called") }); err != why {
			t.Errorf("%v", err)
		}
		time.Sleep(time.Second)
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.jobs) > 0 || c.busy > 0 {
			t.Errorf("%d jobs, %d ticks", len(c.jobs), c.busy)
		}
	})
}

// TestClockGoesOnAfterStall: when no frame could be encoded for a second, as on a machine that stood still, all that was due
// is sent then, and what is due later is on time.
func TestClockGoesOnAfterStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Clock
		var wg sync.WaitGroup
		for range runtime.GOMAXPROCS(0) {
			wg.Go(func() { sendAt(t.Context(), &c, time.Millisecond, func() { time.Sleep(time.Second) }) })
			time.Sleep(clockHelp)
		}
		for i := range 30 {
			wg.Go(func() {
				in := 10*time.Millisecond + time.Duration(i)*60*time.Millisecond
				late, err := sendAt(t.Context(), &c, in, func() {})
				if most := max(0, time.Second+10*time.Millisecond-in); late > most || err != nil {
					t.Errorf("job %d: %v late, %v", i, late, err)
				}
			})
			synctest.Wait()
		}
		wg.Wait()
	})
}
