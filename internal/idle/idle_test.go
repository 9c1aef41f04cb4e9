package idle

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, p := WithTimeout(t.Context(), 10*time.Second)
		defer p.Close()
		time.Sleep(9 * time.Second)
		p.Pause()
		time.Sleep(time.Hour)
		synctest.Wait()
		if ctx.Err() != nil {
			t.Error("the time in which the provider waits for us counts")
		}
		p.Resume()
		time.Sleep(9 * time.Second)
		synctest.Wait()
		if ctx.Err() != nil {
			t.Error("the time before the last piece counts")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			t.Errorf("after 11 s of nothing: %v", context.Cause(ctx))
		}
	})
}
