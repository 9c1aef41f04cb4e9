package garbage

import (
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

// TestGarbageWhileWatched: garbage is collected less often as long as any page is followed, and as before after the last.
func TestGarbageWhileWatched(t *testing.T) {
	before := debug.SetGCPercent(usualGarbage)
	defer debug.SetGCPercent(before)
	check := func(want uint64) {
		t.Helper()
		now := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		metrics.Read(now)
		if got := now[0].Value.Uint64(); got != want {
			t.Errorf("%d %%, want %d", got, want)
		}
	}
	c := &Collector{}
	first, second := c.Watch(), c.Watch()
	check(watchedGarbage)
	first()
	check(watchedGarbage)
	second()
	check(usualGarbage)
	(*Collector)(nil).Watch()()
	check(usualGarbage)
}
