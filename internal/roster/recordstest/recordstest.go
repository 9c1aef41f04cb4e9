// Package recordstest holds the suite of tests that all [roster.Records] must pass.
package recordstest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"xiaozhi/internal/roster"
)

// Run tests records. open returns those of a place that knows the devices and is empty otherwise at the first call, and what is
// kept there at every later one, as after a start of the program. An account has the id owner, if there are accounts.
func Run(t *testing.T, devices [2]string, owner string, open func(t *testing.T) roster.Records) {
	t.Helper()
	ctx, at := t.Context(), time.Date(2026, 11, 22, 7, 0, 0, 0, time.UTC)
	holds(t, open(t), nil, nil)

	first := roster.Revision{Agent: "pirate", Rev: 1, Doc: `{"voice":"alto"}`, Note: "a first try", By: "anna", At: at, Owner: owner}
	second := roster.Revision{Agent: "pirate", Rev: 2, Doc: `{"voice":"bass"}`, By: "bob", At: at.Add(time.Minute)}
	nurse := roster.Revision{Agent: "wärter 1", Rev: 1, Doc: `{}`, By: "bob", At: at}
	is(t, open(t).Save(ctx, second), roster.ErrConflict)
	is(t, open(t).Save(ctx, first), nil)
	is(t, open(t).Save(ctx, first), roster.ErrConflict)
	is(t, open(t).Save(ctx, second), nil)
	is(t, open(t).Save(ctx, nurse), nil)
	second.Owner = owner
	holds(t, open(t), []roster.Revision{second, nurse}, nil)
	past(t, open(t), "pirate", second, first)
	past(t, open(t), "nobody")

	assign(t, open(t), devices[0], "pirate", 1)
	assign(t, open(t), devices[1], "set somewhere else", 1)
	given := map[string]roster.Given{devices[0]: {Agent: "pirate", Times: 1}, devices[1]: {Agent: "set somewhere else", Times: 1}}
	holds(t, open(t), []roster.Revision{second, nurse}, given)

	t.Run("of a change that fails nothing is kept", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		third := roster.Revision{Agent: "pirate", Rev: 3, Doc: `{}`, At: at}
		_, err := open(t).Assign(ctx, devices[0], "")
		for _, err := range []error{open(t).Save(ctx, third), open(t).Delete(ctx, "pirate"), err} {
			is(t, err, context.Canceled)
		}
		holds(t, open(t), []roster.Revision{second, nurse}, given)
	})

	is(t, open(t).Delete(ctx, "pirate"), nil)
	is(t, open(t).Delete(ctx, "pirate"), roster.ErrNone)
	is(t, open(t).Delete(ctx, "nobody"), roster.ErrNone)
	holds(t, open(t), []roster.Revision{nurse}, given)
	past(t, open(t), "pirate", second, first)
	third := roster.Revision{Agent: "pirate", Rev: 3, Doc: first.Doc, By: "anna", At: at.Add(time.Hour)}
	is(t, open(t).Save(ctx, third), nil)
	third.Owner = owner
	assign(t, open(t), devices[0], "", 2)
	given[devices[0]] = roster.Given{Times: 2}
	holds(t, open(t), []roster.Revision{third, nurse}, given)
	counts(t, open(t))

	for rev := 4; rev < roster.MaxRevisions+10; rev++ {
		is(t, open(t).Save(ctx, roster.Revision{Agent: "pirate", Rev: rev, Doc: fmt.Sprintf(`{"voice":"%d"}`, rev), At: at}), nil)
	}
	if all, err := open(t).Revisions(ctx, "pirate"); err != nil || len(all) != roster.MaxRevisions || all[len(all)-1].Rev != 10 {
		t.Errorf("%d revisions are left, %v", len(all), err)
	}
}

// counts tests that each change is counted, and is when it is read.
func counts(t *testing.T, r roster.Records) {
	t.Helper()
	kept, err := r.Load(t.Context())
	n, err2 := r.Changes(t.Context())
	if err != nil || err2 != nil || kept.Changes != 8 || n != 8 {
		t.Errorf("%d changes, and %d when they were read, %v %v", n, kept.Changes, err, err2)
	}
}

func assign(t *testing.T, r roster.Records, device, name string, want int) {
	t.Helper()
	if times, err := r.Assign(t.Context(), device, name); times != want || err != nil {
		t.Errorf("%s was given %q: %d times, %v", device, name, times, err)
	}
}

func is(t *testing.T, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func holds(t *testing.T, r roster.Records, agents []roster.Revision, devices map[string]roster.Given) {
	t.Helper()
	got, err := r.Load(t.Context())
	if err != nil || !slices.EqualFunc(got.Agents, agents, same) || !maps.Equal(got.Devices, devices) {
		t.Errorf("kept is %+v, %v\nwant %+v %v", got, err, agents, devices)
	}
}

func past(t *testing.T, r roster.Records, name string, want ...roster.Revision) {
	t.Helper()
	if got, err := r.Revisions(t.Context(), name); err != nil || !slices.EqualFunc(got, want, same) {
		t.Errorf("%s was %+v, %v\nwant %+v", name, got, err, want)
	}
}

// same compares what every revision tells: whose an agent is may be known of the newest one only.
func same(a, b roster.Revision) bool {
	if a.Owner != b.Owner && a.Owner != "" && b.Owner != "" || !a.At.Equal(b.At) {
		return false
	}
	a.Owner, b.Owner, a.At, b.At = "", "", time.Time{}, time.Time{}
	return a == b
}
