package timeline

import (
	"testing"
	"time"
)

// TestVoidAttempts: what was asked for an answer that was begun too early is in the record of
// the turn that came in its place, marked, in the order of time, and in no other.
func TestVoidAttempts(t *testing.T) {
	begun := time.Now()
	early := New(Times{Attempts: []Attempt{{Op: "recognize", Asked: begun}}})
	early.Attempt(Attempt{Op: "think", Asked: begun.Add(2 * time.Second)})
	old := New(Times{})
	old.Attempt(Attempt{Op: "think", Asked: begun.Add(-2 * voidAge)})
	var v Void
	v.Add(old)
	v.Add(early)
	got := v.With([]Attempt{{Op: "recognize", Asked: begun.Add(time.Second)}, {Op: "think", Asked: begun.Add(3 * time.Second)}})
	if len(got) != 3 || got[0].Void || !got[1].Void || got[1].Op != "think" || got[2].Void {
		t.Errorf("%+v", got)
	}
	if again := v.With(got[:1]); len(again) != 1 {
		t.Errorf("they were kept twice: %+v", again)
	}
	for range maxAttempts {
		v.Add(early)
	}
	if got := v.With(got[:1]); len(got) != 1+maxVoid {
		t.Errorf("%d attempts", len(got))
	}
}
