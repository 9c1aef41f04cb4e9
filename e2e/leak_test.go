package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/openaitest"
)

// TestGoroutinesDoNotPileUp compares a server that has seen many bad and good
// connections come and go with one that has seen none.
func TestGoroutinesDoNotPileUp(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	cloud := startCloud(t)
	cloud.Handle(openaitest.Chat, echo)
	fresh, used := start(t, setup{profiles: true, env: cloudEnv(cloud)}), start(t, setup{profiles: true, env: cloudEnv(cloud)})
	fresh.waitReady(ctx, t)
	used.waitReady(ctx, t)
	for i := range 120 {
		r := dialRaw(t, used, fmt.Sprintf("cycle-%d", i%40))
		if i%4 != 0 {
			r.hello(strings.Replace(hello242, `"features":{}`, `"features":{"mcp":true}`, 1)) // its tools are asked for, in vain
		}
		if i%4 > 1 {
			r.text(listenStart)
			r.binary(noise(50))
			r.text(typed("story"))
		}
		if i%4 > 2 {
			r.await(`"tts"`, `"start"`)
		}
		if i%10 == 5 {
			r.bytes(noise(200))
		}
		r.conn.Close()
	}
	used.healthy(ctx, t, "24:6f:28:bb:03:01")
	waitGone(ctx, t, used)
	cloud.Close()
	http.DefaultClient.CloseIdleConnections()
	base := len(fresh.goroutines(ctx, t))
	rest, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	left := used.atMost(rest, t, base+5)
	t.Logf("goroutines: %d in a fresh server, %d in a used one", base, len(left))
}

// waitGone waits until every device that connected has left.
func waitGone(ctx context.Context, t *testing.T, s *server) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		log := s.log.String()
		came, left := strings.Count(log, `msg="device connected"`), strings.Count(log, `msg="device left"`)
		if came > 0 && came == left {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%d devices came, %d left", came, left)
		}
	}
}
