package account

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// TestMay walks needs with all callers.
func TestMay(t *testing.T) {
	now := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	proved, stale := now.Add(-fresh), now.Add(-fresh-1)
	for _, c := range []struct {
		name   string
		person Person
		need   Need
		owner  string
		want   error
	}{
		{"owner, anything", Person{ID: "a", Role: Owner, Proved: stale}, Need{Role: Owner}, "", nil},
		{"member, of owners", Person{ID: "a", Role: Member}, Need{Role: Owner}, "a", ErrForbidden},
		{"viewer, of members", Person{ID: "a", Role: Viewer}, Need{Role: Member}, "a", ErrForbidden},
		{"viewer, of viewers", Person{ID: "a", Role: Viewer}, Need{Role: Viewer}, "", nil},
		{"unknown role", Person{ID: "a", Role: "boss"}, Need{Role: Viewer}, "", ErrForbidden},
		{"nobody", Person{}, Need{Role: Viewer}, "", ErrForbidden},
		{"no need is none", Person{ID: "a", Role: Owner}, Need{}, "", ErrForbidden},
		{"member, own", Person{ID: "a", Role: Member}, Need{Role: Member, Own: true}, "a", nil},
		{"member, other's", Person{ID: "a", Role: Member}, Need{Role: Member, Own: true}, "b", ErrForbidden},
		{"member, nobody's", Person{ID: "a", Role: Member}, Need{Role: Member, Own: true}, "", ErrForbidden},
		{"without id, nobody's", Person{Role: Member}, Need{Role: Member, Own: true}, "", ErrForbidden},
		{"owner, other's", Person{ID: "a", Role: Owner}, Need{Role: Member, Own: true}, "b", nil},
		{"fresh", Person{ID: "a", Role: Owner, Proved: proved}, Need{Role: Owner, Fresh: true}, "", nil},
		{"stale", Person{ID: "a", Role: Owner, Proved: stale}, Need{Role: Owner, Fresh: true}, "", ErrProveAgain},
		{"a clock a little ahead", Person{ID: "a", Role: Owner, Proved: now.Add(skew)}, Need{Role: Owner, Fresh: true}, "", nil},
		{"a clock set back", Person{ID: "a", Role: Owner, Proved: now.Add(skew + 1)}, Need{Role: Owner, Fresh: true}, "", ErrProveAgain},
		{"token, in scope", Person{ID: "a", Role: Owner, Scopes: []Scope{Read}}, Need{Role: Viewer, Scope: Read}, "", nil},
		{"token, out of scope", Person{ID: "a", Role: Owner, Scopes: []Scope{Read}}, Need{Role: Viewer, Scope: Say}, "", ErrForbidden},
		{"token, of all", Person{ID: "a", Role: Owner, Scopes: []Scope{Admin}}, Need{Role: Viewer, Scope: Say}, "", nil},
		{"token, more than its user", Person{ID: "a", Role: Viewer, Scopes: []Scope{Admin}}, Need{Role: Owner, Scope: Say}, "", ErrForbidden},
		{"token, what needs a password", Person{ID: "a", Role: Owner, Scopes: []Scope{Admin}}, Need{Role: Owner, Scope: Admin, Fresh: true}, "", ErrForbidden},
		{"token without scopes", Person{ID: "a", Role: Owner, Scopes: []Scope{}}, Need{Role: Viewer, Scope: Read}, "", ErrForbidden},
		{"token, no scope asked", Person{ID: "a", Role: Owner, Scopes: []Scope{Read}}, Need{Role: Viewer}, "", ErrForbidden},
	} {
		if err := c.person.May(c.need, c.owner, now); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

// TestPasswordRules: only the length and what is easily guessed count.
func TestPasswordRules(t *testing.T) {
	for password, want := range map[string]error{
		good: nil, "七个字的密码呢": ErrPasswordShort, "八个字的密码也行": nil, "short": ErrPasswordShort, "": ErrPasswordShort,
		strings.Repeat("xy", 128): nil, strings.Repeat("xy", 128) + "x": ErrPasswordLong, strings.Repeat("密", 300): ErrPasswordLong,
		"password": ErrPasswordKnown, "PASSWORD1": ErrPasswordKnown, "iloveyou": ErrPasswordKnown, "aaaaaaaaaaaa": ErrPasswordKnown, "23456789:": ErrPasswordKnown, "hgfedcba": ErrPasswordKnown,
		"annika1234": ErrPasswordKnown, "Annika!!2026": ErrPasswordKnown, "xiaozhi2026": ErrPasswordKnown, "20261122": ErrPasswordKnown, "小智小智小智12": ErrPasswordKnown,
		"annika likes tea": nil, "    spaces are fine    ": nil, "🐈🐈🐕🐕🐈🐈🐕🐕": nil,
	} {
		if err := CheckPassword("annika", password); !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("%q: %v, want %v", password, err, want)
		}
	}
}

// testCost makes hashes that cost tests nothing.
func testCost() Cost { return Cost{Memory: 64, Passes: 1, Lanes: 1} }

// TestHash: a hash has its parameters, takes the right password only, and is never the same twice.
func TestHash(t *testing.T) {
	one, two := strong().hash(good), strong().hash(good)
	if !strings.HasPrefix(one, "$argon2id$v=19$m=19456,t=2,p=1$") || one == two {
		t.Error(one, two)
	}
	weak := testCost().encode([]byte("0123456789abcdef"), good)
	for _, c := range []struct {
		phc, password string
		ok, old       bool
	}{
		{one, good, true, false}, {one, good + " ", false, false}, {one, "", false, false}, {weak, good, true, true}, {weak, "x", false, true},
		{"", "", false, false}, {"", good, false, false}, {"$argon2id$v=19$m=19456,t=2,p=1$$", good, false, false},
		{"$argon2id$v=19$m=4294967295,t=2,p=1$AAAA$AAAA", good, false, false}, {"$argon2id$v=19$m=19456,t=0,p=0$AAAA$AAAA", good, false, false},
	} {
		if ok, old := strong().matches(c.phc, c.password); ok != c.ok || old != c.old && ok {
			t.Errorf("%q %q: %v %v", c.phc, c.password, ok, old)
		}
	}
}

// FuzzHash: no hash makes the parser panic or take memory without limit.
func FuzzHash(f *testing.F) {
	f.Add("$argon2id$v=19$m=64,t=1,p=1$MDEyMzQ1Njc4OWFiY2RlZg$AAAA")
	f.Add("$argon2id$v=19$m=,t=,p=$$")
	f.Fuzz(func(t *testing.T, phc string) {
		if c, _, ok := parse(phc); ok && (c.Memory > maxMemory || c.Passes > maxPasses || c.Lanes == 0) {
			t.Errorf("%+v", c)
		}
	})
}

// TestNames: names are kept in small letters, and hold nothing that pages or logs could take for more than a name.
func TestNames(t *testing.T) {
	for name, want := range map[string]string{
		".": "", "..": "",
		"Ann": "ann", " bob ": "bob", "小明": "小明", "a.b-c_d": "a.b-c_d", "": "", "a b": "", "<b>": "", "a\x00": "", "a\u202eb": "", "/setup": "",
		strings.Repeat("x", 32): strings.Repeat("x", 32), strings.Repeat("x", 33): "",
	} {
		if got, err := CheckName(name); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q %v", name, got, err)
		}
	}
}

// TestLimits: per address, over all, and per name and network.
func TestLimits(t *testing.T) {
	now := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	ip := netip.MustParseAddr
	t.Run("address", func(t *testing.T) {
		g, let := newGuesses(nil), 0
		for range 100 {
			if g.may(now, strings.Repeat("n", let), ip("10.0.0.1")) == 0 {
				let++
			}
		}
		if let != perAddress || g.may(now, "x", ip("10.0.0.2")) != 0 || g.may(now.Add(time.Minute), "x", ip("10.0.0.1")) != 0 {
			t.Errorf("%d", let)
		}
	})
	t.Run("all", func(t *testing.T) {
		g, let := newGuesses(nil), 0
		for i := range 250 {
			if g.may(now, "n", netip.AddrFrom4([4]byte{10, 0, byte(i), 1})) == 0 {
				let++
			}
		}
		if let != inAll {
			t.Errorf("%d", let)
		}
	})
	t.Run("known address", func(t *testing.T) {
		g, home := newGuesses(nil), ip("192.168.1.7")
		g.was(now, "ann", home, true)
		for i := range 250 { // strangers in the same network, and from everywhere
			g.was(now, "ann", netip.AddrFrom4([4]byte{192, 168, 1, byte(i) | 8}), false)
			g.may(now, "ann", netip.AddrFrom4([4]byte{10, 0, byte(i), 1}))
		}
		if wait := g.may(now, "ann", home); wait != 0 {
			t.Errorf("who was right there waits %v", wait)
		}
		if g.may(now, "ann", ip("192.168.1.6")) == 0 || g.may(now, "bob", ip("192.168.1.6")) == 0 {
			t.Error("strangers do not wait")
		}
		for range freeGuesses {
			g.was(now, "ann", home, false)
		}
		if g.may(now, "ann", home) == 0 {
			t.Error("who guesses there does not wait")
		}
	})
	t.Run("name", func(t *testing.T) {
		g := newGuesses(nil)
		var waits []time.Duration
		at := now
		for range 13 {
			wait := g.may(at, "ann", ip("10.0.0.1"))
			waits = append(waits, wait)
			at = at.Add(wait)
			g.was(at, "ann", ip("10.0.0.1"), false)
		}
		want := []int{0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 60, 60}
		for i, w := range want {
			if waits[i] != time.Duration(w)*time.Second {
				t.Errorf("%v, want %v", waits, want)
				break
			}
		}
		if g.may(at, "ann", ip("10.0.0.99")) == 0 || g.may(at, "ann", ip("10.0.1.1")) != 0 || g.may(at, "bob", ip("10.0.0.1")) != 0 {
			t.Error("it waits by name and network")
		}
		g.was(at, "ann", ip("10.0.0.1"), true)
		if g.may(at, "ann", ip("10.0.0.1")) != 0 {
			t.Error("a right guess does not clear it")
		}
	})
	t.Run("IPv6", func(t *testing.T) {
		if network(ip("2001:db8::1"), 32) != network(ip("2001:db8::ffff"), 32) || network(ip("::ffff:10.0.0.1"), 32) != network(ip("10.0.0.1"), 32) {
			t.Error("addresses of one network count apart")
		}
	})
}
