package speak

import (
	"errors"
	"runtime"
	"testing"
	"time"
)

// punctual returns a clock that a timer of the system wakes.
func punctual(t *testing.T) (c *Clock, closeTimer func()) {
	t.Helper()
	c = &Clock{}
	closeTimer, err := c.Punctual()
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("this system has no timers but Go's")
	}
	if err != nil {
		t.Fatal(err)
	}
	return c, closeTimer
}

// TestPunctualClock: jobs are done when they are due, in the order of their times, also when an earlier one is added later, and
// while another one takes its time. They are never early.
func TestPunctualClock(t *testing.T) {
	if runtime.GOMAXPROCS(0) < 2 {
		t.Skip("there is one processor for Go") // as nowhere in the program, which sets two (internal/garbage)
	}
	c, closeTimer := punctual(t)
	defer closeTimer()
	done := make(chan int, 4)
	begin := func(name int, in time.Duration, encode func()) {
		due := time.Now().Add(in)
		j := newJob(encode, func() {
			if early := time.Until(due); early > 0 {
				t.Errorf("job %d is %v early", name, early)
			}
			done <- name
		})
		go func() {
			if err := c.do(t.Context(), j, due); err != nil {
				t.Error(err)
			}
		}()
	}
	slow := make(chan struct{})
	begin(4, time.Millisecond, func() { <-slow })
	begin(3, 60*time.Millisecond, func() {})
	begin(1, 20*time.Millisecond, func() {})
	begin(2, 40*time.Millisecond, func() {})
	for want := 1; want <= 4; want++ {
		select {
		case got := <-done:
			if got != want {
				t.Errorf("job %d came, want %d", got, want)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("job %d did not come", want)
		}
		if want == 3 {
			close(slow)
		}
	}
}

// TestPunctualClockCloses: the timer closes while it is set, and its goroutine ends.
func TestPunctualClockCloses(t *testing.T) {
	c, closeTimer := punctual(t)
	c.mu.Lock()
	c.arm(time.Now().Add(time.Hour))
	c.mu.Unlock()
	closeTimer()
}
