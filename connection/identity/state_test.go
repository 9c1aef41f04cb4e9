package identity

import (
	"fmt"
	"testing"
)

// TestNext is the table of all that can happen to a pair. A "*" stands for every value.
func TestNext(t *testing.T) {
	type row struct{ state, event, mode, near, claimed, page, proof, next, verdict string }
	rows := []row{
		// A person's word counts, whatever was before.
		{"*", "rejected", "*", "*", "*", "*", "*", "refused", "denied"},
		{"*", "accepted", "*", "*", "*", "no", "*", "paired", "welcome"},
		{"*", "accepted", "*", "*", "*", "yes", "*", "browser", "welcome"},
		{"refused", "*", "*", "*", "*", "*", "*", "refused", "denied"},

		// Who is known is told where to connect, and connects with its token.
		{"known", "asked", "*", "*", "*", "*", "*", "same", "welcome"},
		{"known", "arrived", "*", "*", "*", "*", "right", "same", "welcome"},
		{"known", "arrived", "open", "near", "*", "*", "*", "same", "welcome"},
		{"known", "arrived", "*", "near", "*", "*", "unneeded", "same", "welcome"},
		{"known", "arrived", "open", "far", "*", "*", "*", "same", "must pair"},
		{"known", "arrived", "ask", "*", "*", "*", "*", "same", "must pair"},
		{"known", "arrived", "closed", "*", "*", "*", "*", "same", "no pairing"},

		// Who is not known.
		{"unknown", "*", "closed", "*", "*", "*", "*", "same", "no pairing"},
		{"unknown", "*", "ask", "*", "*", "*", "*", "same", "must pair"},
		{"unknown", "*", "open", "far", "*", "*", "*", "same", "must pair"},
		{"unknown", "*", "open", "near", "yes", "*", "*", "stranger", "as stranger"},
		{"unknown", "*", "open", "near", "no", "no", "*", "paired", "welcome"},
		{"unknown", "*", "open", "near", "no", "yes", "*", "browser", "welcome"},
	}
	fits := func(want string, is ...string) bool {
		for _, s := range is {
			if want == "*" || want == s {
				return true
			}
		}
		return false
	}
	verdicts := []string{"welcome", "as stranger", "must pair", "no pairing", "denied"}
	yes := map[bool]string{true: "yes", false: "no"}
	used := map[int]bool{}
	for s := Newcomer; s <= Refused; s++ {
		group := map[State]string{Paired: "known", Browser: "known", Newcomer: "unknown", Stranger: "unknown", Refused: "refused"}[s]
		for e, event := range []string{"asked", "arrived", "accepted", "rejected"} {
			for i := range 3 * 3 * 8 {
				see := Sight{Mode: Open + Mode(i%3), Proof: Proof(i / 3 % 3), Near: i/9&1 == 1, Claimed: i/18&1 == 1, Page: i/36&1 == 1}
				at := fmt.Sprint(s, " ", event, " ", see)
				n := -1
				for j, r := range rows {
					proof := []string{"unneeded", "right", "missing"}[see.Proof]
					near := map[bool]string{true: "near", false: "far"}[see.Near]
					if fits(r.state, s.String(), group) && fits(r.event, event) && fits(r.mode, see.Mode.String()) && fits(r.near, near) &&
						fits(r.claimed, yes[see.Claimed]) && fits(r.page, yes[see.Page]) && fits(r.proof, proof) {
						n = j
						break
					}
				}
				if n < 0 {
					t.Errorf("%s: not in the table", at)
					continue
				}
				used[n] = true
				next, verdict := Next(s, Event(e), see)
				want := rows[n].next
				if want == "same" {
					want = s.String()
				}
				if next.String() != want || verdicts[verdict] != rows[n].verdict {
					t.Errorf("%s: %s, %s; row %d wants %s, %s", at, next, verdicts[verdict], n, want, rows[n].verdict)
				}
			}
		}
	}
	for i, r := range rows {
		if !used[i] {
			t.Errorf("row %d is never used: %v", i, r)
		}
	}
}

func TestNamesOfStates(t *testing.T) {
	for s := Newcomer; s <= Refused; s++ {
		if got, ok := ParseState(s.String()); !ok || got != s {
			t.Errorf("%v does not come back", s)
		}
	}
	for m := Auto; m <= Closed; m++ {
		if got, ok := ParseMode(m.String()); !ok || got != m {
			t.Errorf("%v does not come back", m)
		}
	}
	if _, ok := ParseState("known"); ok {
		t.Error("a state that there is not")
	}
	if _, ok := ParseMode(""); ok {
		t.Error("a mode that there is not")
	}
	if u, ok := ParseUnknown("all"); u != AllowAll || !ok {
		t.Error("all")
	}
	if _, ok := ParseUnknown("some"); ok {
		t.Error("a treatment that there is not")
	}
}

// TestHandout: a token goes out until it was used, and again only to who needs it.
func TestHandout(t *testing.T) {
	for _, tc := range []struct {
		what string
		h    handout
		due  bool
	}{
		{"first, near", handout{mode: Open, near: true, keeps: true}, true},
		{"first, far and secure", handout{mode: Ask, secure: true, keeps: true}, true},
		{"first, far, on plain http", handout{mode: Ask, keeps: true}, false},
		{"used", handout{mode: Open, near: true, used: true, keeps: true}, false},
		{"used, failed since, open", handout{mode: Open, near: true, used: true, keeps: true, failed: true}, true},
		{"used, failed since, ask", handout{mode: Ask, near: true, used: true, keeps: true, failed: true}, false},
		{"used, failed since, far", handout{mode: Open, secure: true, used: true, keeps: true, failed: true}, false},
		{"used, keeps nothing, near", handout{mode: Ask, near: true, used: true}, true},
		{"used, keeps nothing, far", handout{mode: Ask, secure: true, used: true}, false},
	} {
		if got := tc.h.due(); got != tc.due {
			t.Errorf("%s: %v", tc.what, got)
		}
	}
}
