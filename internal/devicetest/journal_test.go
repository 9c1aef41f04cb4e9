package devicetest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		now := time.Now()
		j.add(Event{At: now, Kind: KindState, State: "a"})
		j.violate(now, RuleJSON, "number %d", 7)
		if len(j.violations) != 1 || j.violations[0].String() != "json: number 7" || (&ViolationError{j.violations[0]}).Error() != "device protocol: json: number 7" {
			t.Errorf("violations %v", j.violations)
		}

		var seen []Kind
		done := make(chan struct{})
		go func() { // sees what was before it and what comes
			defer close(done)
			for e := range j.Watch(t.Context()) {
				seen = append(seen, e.Kind)
			}
		}()
		synctest.Wait()
		j.add(Event{Kind: KindClosed})
		j.end()
		<-done
		if len(seen) != 3 || seen[1] != KindViolation || seen[2] != KindClosed {
			t.Errorf("watched %v", seen)
		}
	})
}

// Each waiter has its own place; ctx and the end of the journal free it.
func TestJournalWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		is := func(state string) func(Event) bool { return func(e Event) bool { return e.State == state } }
		var one, two int
		for _, s := range []string{"a", "b", "a"} {
			j.add(Event{State: s})
		}
		for _, want := range []int{1, 3} {
			if _, err := j.wait(t.Context(), &one, is("a")); err != nil || one != want {
				t.Errorf("at %d, %v, want %d", one, err, want)
			}
		}
		if _, err := j.wait(t.Context(), &two, is("b")); err != nil || two != 2 {
			t.Errorf("at %d, %v", two, err)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := j.wait(short, &one, is("a")); !errors.Is(err, context.DeadlineExceeded) || one != 3 {
			t.Errorf("at %d, %v", one, err)
		}
		go j.end()
		if _, err := j.wait(t.Context(), &one, is("a")); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	})
}

func TestViolationString(t *testing.T) {
	if got := (Violation{Rule: RuleFlood}).String(); got != "flood" {
		t.Error(got)
	}
}

func TestEventEndsTools(t *testing.T) {
	for raw, want := range map[string]bool{
		`{"type":"mcp","payload":{"result":{"tools":[{"name":"a"}]}}}`:                  true,
		`{"type":"mcp","payload":{"result":{"tools":[{"name":"a"}],"nextCursor":"b"}}}`: false,
		`{"type":"mcp","payload":{"result":{}}}`:                                        false,
	} {
		if (Event{Kind: KindSent, Type: "mcp", Raw: []byte(raw)}).EndsTools() != want {
			t.Errorf("%s: not %v", raw, want)
		}
	}
}
