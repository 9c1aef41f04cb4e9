package app

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestTidy: memory is given back once after the last device has left, not while
// one is there, and not again and again while none comes.
func TestTidy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var devices, freed atomic.Int64
		go tidy(ctx, func() int { return int(devices.Load()) }, func() { freed.Add(1) })
		for i, step := range []struct {
			devices int64
			wait    time.Duration
			freed   int64
		}{
			{0, time.Minute, 0},
			{2, time.Minute, 0},
			{0, tidyAfter / 2, 0},
			{1, 2 * tidyAfter, 0},
			{0, 3 * tidyAfter, 1},
			{0, time.Hour, 1},
			{1, 2 * tidyAfter, 1},
			{0, 3 * tidyAfter, 2},
		} {
			devices.Store(step.devices)
			time.Sleep(step.wait)
			synctest.Wait()
			if n := freed.Load(); n != step.freed {
				t.Errorf("step %d: given back %d times, want %d", i, n, step.freed)
			}
		}
	})
}
