package catalog

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/mcp"
)

// TestTeller: a tool's reports go out as far as they go on, not all that come at once; a tool that says nothing is reported to be
// alive every five seconds.
func TestTeller(t *testing.T) {
	for name, c := range map[string]struct {
		tool func(report func(mcp.Progress))
		want string
	}{
		"silent": {func(func(mcp.Progress)) { time.Sleep(11 * time.Second) }, "5/0 10/0"},
		"quick":  {func(func(mcp.Progress)) {}, ""},
		"reports": {func(report func(mcp.Progress)) {
			for _, p := range []mcp.Progress{{Done: 1, Total: 4}, {Done: 1, Total: 4}, {Done: 0}, {Done: math.NaN()}, {Done: math.Inf(1)}, {Done: 2, Total: 4}} {
				report(p)
				time.Sleep(time.Second)
			}
			time.Sleep(10 * time.Second)
		}, "1/4 2/4"},
		"a flood": {func(report func(mcp.Progress)) {
			for i := range 1000 {
				report(mcp.Progress{Done: float64(i), Total: 1000})
			}
			time.Sleep(time.Second)
		}, "999/1000"},
		"the last": {func(report func(mcp.Progress)) { report(mcp.Progress{Done: 7, Total: 7}) }, "7/7"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var sent []string
				tell := &teller{last: math.Inf(-1), fresh: make(chan struct{}, 1), send: func(p mcp.Progress) { sent = append(sent, fmt.Sprintf("%v/%v", p.Done, p.Total)) }}
				ctx, cancel := context.WithCancel(t.Context())
				go tell.run(ctx)
				c.tool(tell.report)
				cancel()
				synctest.Wait()
				if got := strings.Join(sent, " "); !strings.HasSuffix(got, c.want) || len(sent) > 3 {
					t.Errorf("told %s, want %s", got, c.want)
				}
			})
		})
	}
}
