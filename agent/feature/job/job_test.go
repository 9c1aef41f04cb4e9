package job

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/mcp"
	"xiaozhi/mcp/router"
)

// TestInbox: so many jobs and no more, none twice at the same time, and the server's
// end cancels them all and waits.
func TestInbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mail := newInbox()
		prepared := func(n int) router.Prepared {
			return router.Prepared{Offer: router.Offer{Tool: mcp.Tool{Name: "dig"}}, Arguments: map[string]any{"n": n}}
		}
		running := 0
		var mu sync.Mutex
		run := func(ctx context.Context, _ router.Prepared) mcp.ActionResponse {
			mu.Lock()
			running++
			mu.Unlock()
			<-ctx.Done()
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			running--
			return mcp.ActionResponse{Action: mcp.ActionTypeError, Result: context.Cause(ctx).Error()}
		}
		begun, cancel := context.WithCancel(t.Context())
		for n := range maxJobs {
			if refused := mail.start(begun, prepared(n), run); refused != "" {
				t.Fatal(refused)
			}
			if refused := mail.start(begun, prepared(n), run); refused != "agent/job-same" {
				t.Errorf("the same job again: %q", refused)
			}
		}
		if refused := mail.start(begun, prepared(99), run); refused != "agent/job-many" {
			t.Errorf("one too many: %q", refused)
		}
		cancel() // the turn and the connection end, the jobs do not
		synctest.Wait()
		if running != maxJobs || mail.Keep(time.Now()) == 0 {
			t.Errorf("%d jobs run", running)
		}
		mail.Close()
		if running != 0 || len(mail.take()) != maxJobs {
			t.Errorf("%d jobs run after the end", running)
		}
		if refused := mail.start(t.Context(), prepared(1), run); refused != "agent/job-stopping" {
			t.Errorf("a job after the end: %q", refused)
		}
	})
}
