package access

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/internal/account"
)

// TestPace: ten acts at once, then one in three seconds, for each person and each thing.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPace()
		for range Burst {
			if err := p.Often("ann", "kitchen"); err != nil {
				t.Fatal(err)
			}
		}
		if often, ok := errors.AsType[*account.TooOftenError](p.Often("ann", "kitchen")); !ok || often.Wait != actEvery {
			t.Errorf("one more: %v", often)
		}
		if p.Often("bob", "kitchen") != nil || p.Often("ann", "study") != nil {
			t.Error("others wait too")
		}
		time.Sleep(actEvery)
		if p.Often("ann", "kitchen") != nil || p.Often("ann", "kitchen") == nil {
			t.Error("it is not one in three seconds")
		}
	})
}
