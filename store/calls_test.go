package store

import (
	"strings"
	"testing"
	"time"
)

// TestFindCalls: each filter finds what it names, a member's own calls only, and a list goes on where it ended.
func TestFindCalls(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		fourTalks(t, s)
		for i, c := range []Call{
			{ID: "x1", DeviceID: "a1", Name: "lamp.on", Source: "device", Fault: "error"},
			{ID: "x2", DeviceID: "b1", Name: "LAMP.off", Source: "external:home"},
			{ID: "x3", Name: "100%_done", Source: "external:house"},
		} {
			c.At, c.Caller = at(100).Add(time.Duration(i)*time.Second), "outside"
			s.Log.Call(c)
		}
		flush(t, s)
		find := func(f CallFilter, p Page) (ids []string, next Cursor) {
			t.Helper()
			l, err := s.Turns.FindCalls(ctx, f, p)
			if err != nil {
				t.Fatal(err)
			}
			for i := range l.Calls {
				if strings.HasPrefix(l.Calls[i].ID, "x") {
					ids = append(ids, l.Calls[i].ID)
				}
			}
			return ids, l.Next
		}
		for _, c := range []struct {
			f    CallFilter
			want string
		}{
			{CallFilter{}, "x3 x2 x1"},
			{CallFilter{Owner: "ann"}, "x1"},
			{CallFilter{Owner: "ann", Device: "b1"}, ""},
			{CallFilter{Device: "b1"}, "x2"},
			{CallFilter{Tool: "Lamp."}, "x2 x1"},
			{CallFilter{Tool: "lamp.", Owner: "ben"}, "x2"},
			{CallFilter{Tool: "0%_d"}, "x3"},
			{CallFilter{Tool: "0_d"}, ""},
			{CallFilter{Source: "external:"}, "x3 x2"},
			{CallFilter{Source: "external:home"}, "x2"},
			{CallFilter{Source: "device", Failed: true}, "x1"},
			{CallFilter{Tool: "lamp.off", Failed: true}, ""},
		} {
			got, next := find(c.f, Page{Limit: 50})
			if strings.Join(got, " ") != c.want || next != (Cursor{}) {
				t.Errorf("%+v: %q, want %q; %+v", c.f, got, c.want, next)
			}
		}
		first, next := find(CallFilter{}, Page{Limit: 2})
		if strings.Join(first, " ") != "x3 x2" {
			t.Errorf("the first part: %q", first)
		}
		if rest, _ := find(CallFilter{}, Page{Limit: 1, Before: next}); strings.Join(rest, " ") != "x1" {
			t.Errorf("the next part: %q", rest)
		}
		if n, err := s.Turns.TrimCalls(ctx, "", at(1000), 9); n != 1 || err != nil {
			t.Errorf("%d calls of no device trimmed: %v", n, err)
		}
	})
}
