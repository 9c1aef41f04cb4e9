package account

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"xiaozhi/store"
)

// TestAuditIsKeptForAYear: and no longer.
func TestAuditIsKeptForAYear(t *testing.T) {
	r, ctx := newRig(t).owner(), t.Context()
	count := func() int {
		all, err := r.db.Audit.List(ctx, store.Page{})
		r.must(err)
		return len(all)
	}
	r.clock = r.clock.Add(auditTime)
	r.login("ann")
	if n := count(); n != 2 {
		t.Errorf("%d acts after a year", n)
	}
	r.clock = r.clock.Add(trimEvery)
	r.login("ann")
	if n := count(); n != 2 {
		t.Errorf("%d acts a day later", n)
	}
}

// TestAuditIsBounded: neither who asks all day for what is not theirs, nor who guesses from everywhere, nor a long name fills
// the disk; one does not hide the other, and how much was left out is told.
func TestAuditIsBounded(t *testing.T) {
	r, ctx := newRig(t).owner(), t.Context()
	for i := range 5000 {
		r.Refused(ctx, command(), "GET /x")
		if i%10 == 0 {
			r.did(ctx, command(), "login", strings.Repeat("n", 60<<10), ErrBadLogin)
		}
		r.clock = r.clock.Add(10 * time.Millisecond)
	}
	r.did(ctx, command(), "login", "ann", nil)
	acts, err := r.db.Audit.List(ctx, store.Page{Limit: 500})
	r.must(err)
	kept, left, bytes := map[string]int{}, 0, 0
	for _, a := range acts {
		kept[a.Detail[:min(len(a.Detail), len("account/bad-login"))]]++
		bytes += len(a.Object)
		if _, n, ok := strings.Cut(a.Detail, "suppressed="); ok {
			n, err := strconv.Atoi(n)
			r.must(err)
			left += n
		}
	}
	if kept["account/forbidden"] > failBurst+10 || kept["account/bad-login"] < failBurst || kept["account/bad-login"] > failBurst+10 || len(acts)+left != 5502 || bytes > len(acts)*(maxObject+3) {
		t.Errorf("%v kept, %d left out, %d bytes", kept, left, bytes)
	}
}
