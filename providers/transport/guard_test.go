package transport

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// readFunc is a reader.
type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

func TestGuardRunsOnlyWhileWeWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, g, cancel := NewGuard(t.Context())
		defer cancel()
		r := &GuardedReader{R: strings.NewReader("abc"), Guard: g, First: time.Second, Next: time.Second}
		for range 3 {
			if _, err := r.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour) // a consumer that is busy; the bubble's time
		}
		if ctx.Err() != nil {
			t.Errorf("ended by a slow consumer: %v", context.Cause(ctx))
		}
	})
}

func TestGuardEndsAStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, g, cancel := NewGuard(t.Context())
		defer cancel()
		n := 0
		stalled := readFunc(func([]byte) (int, error) {
			if n++; n == 1 {
				return 1, nil
			}
			<-ctx.Done()
			return 0, ctx.Err()
		})
		r := &GuardedReader{R: stalled, Guard: g, First: time.Hour, Next: time.Second}
		start := time.Now()
		if _, err := io.ReadAll(r); err == nil || !errors.Is(context.Cause(ctx), ErrStalled) {
			t.Errorf("got %v, cause %v", err, context.Cause(ctx))
		}
		if took := time.Since(start); took != time.Second {
			t.Errorf("ended after %v, want the limit of the next piece, 1 s", took)
		}
	})
}
