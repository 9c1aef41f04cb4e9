package catalog

import "testing"

// TestSlotsLimits checks that calls beyond the limits are refused, and that places
// are free again after release.
func TestSlotsLimits(t *testing.T) {
	var s slots
	var free []func()
	for range maxOwnCalls {
		release, ok := s.take(Caller{Token: &Token{Name: "a"}}, func() {})
		if !ok {
			t.Fatal("refused too early")
		}
		free = append(free, release)
	}
	if _, ok := s.take(Caller{Token: &Token{Name: "a"}}, func() {}); ok {
		t.Error("one more of the same token")
	}
	for range MaxCalls - maxOwnCalls {
		release, ok := s.take(Caller{Owner: true}, func() {})
		if !ok {
			t.Fatal("refused too early")
		}
		free = append(free, release)
	}
	if _, ok := s.take(Caller{Owner: true}, func() {}); ok {
		t.Error("one more of all")
	}
	for _, release := range free {
		release()
	}
	if len(s.calls) != 0 || len(s.owned) != 0 {
		t.Errorf("%d, %v are left", len(s.calls), s.owned)
	}
}
