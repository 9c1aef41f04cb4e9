package catalog

import (
	"context"
	"math"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp"
)

const (
	signOfLife   = 5 * time.Second        // between reports of a call whose tool says nothing of its progress
	progressRest = 200 * time.Millisecond // between two reports
)

// teller tells one client how far its call is: what the tool reports, and without that the seconds that have passed, so that
// the client does not take it for dead.
type teller struct {
	send func(mcp.Progress)

	mu    sync.Mutex
	next  *mcp.Progress // that is to be told
	last  float64
	fresh chan struct{} // 1
}

// telling returns a context whose tool reports to the client that wants it. stop ends that, and waits.
func telling(ctx context.Context, req *sdk.CallToolRequest) (told context.Context, stop func()) {
	if req == nil || req.Session == nil || req.Params == nil || req.Params.GetProgressToken() == nil {
		return ctx, func() {}
	}
	token := req.Params.GetProgressToken()
	t := &teller{last: math.Inf(-1), fresh: make(chan struct{}, 1), send: func(p mcp.Progress) {
		_ = req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: p.Done, Total: p.Total, Message: p.Message})
	}}
	life, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { t.run(life) })
	return mcp.WithProgress(ctx, t.report), func() {
		cancel()
		wg.Wait()
	}
}

// report takes what the tool reports. A report that goes back, or is no number, is none.
func (t *teller) report(p mcp.Progress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !(p.Done > t.last) || math.IsInf(p.Done, 0) || math.IsNaN(p.Total) || math.IsInf(p.Total, 0) {
		return
	}
	t.last, t.next = p.Done, &p
	select {
	case t.fresh <- struct{}{}:
	default:
	}
}

// tell sends the newest report, if it was not sent.
func (t *teller) tell() {
	t.mu.Lock()
	p := t.next
	t.next = nil
	t.mu.Unlock()
	if p != nil {
		t.send(*p)
	}
}

// run sends until ctx ends, and the last report then.
func (t *teller) run(ctx context.Context) {
	defer t.tell()
	began := time.Now()
	life := time.NewTicker(signOfLife)
	defer life.Stop()
	quiet := true // the tool reports nothing by itself
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.fresh:
			quiet = false
		case <-life.C:
			if quiet {
				t.send(mcp.Progress{Done: math.Round(time.Since(began).Seconds())})
			}
			continue
		}
		t.tell()
		select {
		case <-ctx.Done():
			return
		case <-time.After(progressRest):
		}
	}
}
