package identity

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/internal/lockout"
	"xiaozhi/internal/testall"
)

const (
	speaker = "24:6f:28:aa:10:02"
	clientA = "7d0f4e1c-5a0e-4a66-9a5e-0c2b8a6f1d33"
	clientB = "99999999-5a0e-4a66-9a5e-0c2b8a6f1d33"
)

// rig is a book with what it writes to and logs.
type rig struct {
	*Book
	t       *testing.T
	records *failing
	log     *bytes.Buffer
	gone    []string // expelled
}

// failing are records that fail when a test says so.
type failing struct {
	*Memory
	mu    sync.Mutex
	err   error
	never string // id of a record that is never taken
	takes time.Duration
}

func (f *failing) Commit(ctx context.Context, c Change) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return f.err
	}
	if slices.ContainsFunc(c.Save, func(r Record) bool { return r.ID == f.never }) {
		return errors.New("this one is never taken")
	}
	time.Sleep(f.takes)
	return f.Memory.Commit(ctx, c)
}

func newRig(t *testing.T, change func(*Options)) *rig {
	t.Helper()
	r := &rig{t: t, records: &failing{Memory: NewMemory()}, log: &bytes.Buffer{}}
	r.restart(change)
	return r
}

// restart replaces the book by one that knows what was written down.
func (r *rig) restart(change func(*Options)) {
	r.t.Helper()
	o := Options{
		Records: r.records, Mode: Open, Log: slog.New(slog.NewTextHandler(r.log, nil)),
		Expel: func(id string) { r.gone = append(r.gone, id) },
	}
	if change != nil {
		change(&o)
	}
	if r.Book != nil {
		r.written(r.t.Context())
	}
	b, err := New(r.t.Context(), o)
	if err != nil {
		r.t.Fatal(err)
	}
	r.Book = b
}

func ask(o *Options) { o.Mode = Ask }

// home is a visit from a private network.
func home(address, client string) Visit {
	return Visit{Address: address, ClientID: client, From: "192.168.1.40", Near: true}
}

func (v Visit) with(token string) Visit { v.Token = token; return v }

func (r *rig) ota(v Visit) Papers {
	r.t.Helper()
	return r.Provision(r.t.Context(), v, Description{Board: "bread", Firmware: "2.4.2", Keeps: true})
}

// A server at home: the first speaker just works, and is the only one of its name.
func TestOpenKnowsTheFirst(t *testing.T) {
	r := newRig(t, nil)
	first := r.ota(home("24-6F-28-AA-10-02", clientA))
	if first.ID != speaker || first.Token == "" || first.Away != nil || first.Unknown {
		t.Fatalf("first: %+v", first)
	}
	if g := r.Arrive(home(speaker, clientA).with(first.Token)); g.ID != speaker || !g.Proven || g.Unknown || g.Away != nil {
		t.Errorf("with its token: %+v", g)
	}
	for _, v := range []Visit{home("246F28AA1002", clientB), home(speaker, ""), home(speaker, clientB).with(first.Token)} {
		g := r.Arrive(v)
		if g.ID == speaker || !strings.HasPrefix(g.ID, speaker+"~") || !g.Unknown || g.Proven || g.Away != nil {
			t.Errorf("another client: %+v", g)
		}
		if p := r.ota(v); p.Token != "" || p.ID != g.ID {
			t.Errorf("another client is told %+v", p)
		}
	}
	if got := strings.Count(r.log.String(), "it is a stranger"); got != 2 {
		t.Errorf("%d lines about two strangers", got)
	}
	if g := r.Arrive(home(speaker, clientA)); g.ID != speaker || g.Proven || g.Unknown {
		t.Errorf("without its token, near and open: %+v", g)
	}
	for _, secret := range []string{clientA, clientB, first.Token} {
		if strings.Contains(r.log.String(), secret) {
			t.Errorf("the log holds %s", secret)
		}
	}
}

// TestImpersonation: who says the name of a known speaker, and what comes of it.
func TestImpersonation(t *testing.T) {
	type from struct {
		name         string
		near, secure bool
	}
	places := []from{{"http private", true, false}, {"http public", false, false}, {"https public", false, true}}
	for _, mode := range []Mode{Open, Ask, Closed} {
		for _, place := range places {
			for _, client := range []string{"same", "other", "none"} {
				for _, known := range []bool{true, false} {
					t.Run(fmt.Sprintf("%v, %s, %s client, known %v", mode, place.name, client, known), func(t *testing.T) {
						r := newRig(t, nil)
						token := r.ota(home(speaker, clientA)).Token
						r.Arrive(home(speaker, clientA).with(token))
						r.restart(func(o *Options) { o.Mode = mode })
						v := Visit{
							Address: "24-6F-28-AA-10-02", From: "203.0.113.9", Near: place.near, Secure: place.secure,
							ClientID: map[string]string{"same": clientA, "other": clientB}[client],
						}
						if !known {
							v.Address = "24:6f:28:aa:10:99"
						}
						own := known && client == "same"
						p, g := r.ota(v), r.Arrive(v)
						isKnown := g.ID == speaker && !g.Unknown && g.Away == nil
						if want := own && mode == Open && place.near; isKnown != want {
							t.Errorf("treated as the known speaker: %v (%+v)", isKnown, g)
						}
						if g.Proven {
							t.Error("it has proven nothing")
						}
						if known && p.Token != "" {
							t.Errorf("it is told a token: %+v", p)
						}
						if first := !known && mode == Open && place.near; (p.Token != "") != first {
							t.Errorf("a new speaker is told %+v", p)
						}
						talks := mode == Open && place.near
						if (g.Away == nil) != talks {
							t.Errorf("it may talk: %+v", g)
						}
						if code := g.Away != nil && g.Away.Code != ""; code != (!talks && mode != Closed) {
							t.Errorf("it is told a code: %+v", g.Away)
						}
						if g := r.Arrive(home(speaker, clientA).with(token)); g.ID != speaker || !g.Proven || g.Away != nil {
							t.Errorf("the speaker itself: %+v", g)
						}
					})
				}
			}
		}
	}
}

// TestTokenLife: it is told until it was used, survives lost answers and a restart,
// and is never told again to firmware.
func TestTokenLife(t *testing.T) {
	r := newRig(t, nil)
	v := home(speaker, clientA)
	one := r.ota(v).Token
	if again := r.ota(v).Token; again != one || !strings.HasPrefix(one, tokenPrefix) || len(one) != len(tokenPrefix)+43 {
		t.Fatalf("%q and then %q", one, again)
	}
	r.restart(nil)
	two := r.ota(v).Token
	if two == "" || two == one {
		t.Fatalf("after a restart %q", two)
	}
	records, _, _ := r.records.Load(t.Context())
	if text := fmt.Sprint(records); strings.Contains(text, one) || strings.Contains(text, two) || strings.Contains(text, clientA) {
		t.Errorf("a secret is kept: %s", text)
	}
	if g := r.Arrive(v.with(one)); !g.Proven { // the second answer got lost
		t.Errorf("the first token: %+v", g)
	}
	if g := r.Arrive(v.with(two)); g.Proven {
		t.Error("a token is good that was not the one that was used")
	}
	if g := r.Arrive(v.with(one)); !g.Proven {
		t.Error("the used one is good no more")
	}
	for range 3 {
		if p := r.ota(v); p.Token != "" {
			t.Errorf("told again: %q", p.Token)
		}
		r.restart(nil)
	}
	if g := r.Arrive(v.with(one)); !g.Proven {
		t.Error("not after a restart")
	}
	// Near, in mode open, the same pair gets another one after it has come without.
	r.Arrive(v.with("of another server"))
	three := r.ota(v).Token
	if three == "" || !r.Arrive(v.with(three)).Proven || r.Arrive(v.with(one)).Proven {
		t.Errorf("after a failed connection: %q", three)
	}
	r.restart(ask)
	r.Arrive(v.with("wrong"))
	if p := r.ota(v); p.Token != "" {
		t.Error("a failed connection gives a token in mode ask")
	}
}

// TestTokenGuesses: who guesses the token of a known speaker is not listened to for a while; who has shown its own there before
// is, and so are all from elsewhere.
func TestTokenGuesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		visit := func(address string) Visit {
			v := home(address, clientA)
			return v.with(r.ota(v).Token)
		}
		one, two := visit(speaker), visit("24:6f:28:aa:10:03")
		two.From = "192.168.1.41"
		proven := func(v Visit, from string) bool {
			v.From = from
			return r.Arrive(v).Proven
		}
		if !proven(one, one.From) || !proven(two, two.From) {
			t.Fatal("their own tokens do not count")
		}
		for n := range lockout.MaxGuesses {
			if proven(one.with(fmt.Sprint("xzd_", n)), one.From) {
				t.Fatal("a guess counts")
			}
		}
		if proven(two, one.From) {
			t.Error("a token that might be guessed is listened to")
		}
		if !proven(one, one.From) || !proven(two, two.From) {
			t.Error("a speaker at its own place is not listened to")
		}
		time.Sleep(lockout.Window + time.Second)
		if !proven(two, one.From) {
			t.Error("not listened to a minute later")
		}
		for range 2 * lockout.MaxGuesses { // without any token: nothing is guessed
			r.Arrive(one.with(""))
		}
		if v := visit("24:6f:28:aa:10:04"); !proven(v, one.From) {
			t.Error("devices without a token lock others out")
		}
	})
}

// TestTokenOfAProgram: clients that keep nothing get theirs each time, near only; who
// was firmware once is firmware.
func TestTokenOfAProgram(t *testing.T) {
	r := newRig(t, nil)
	desktop := home("pc", clientA)
	plain := func(v Visit) Papers { return r.Provision(t.Context(), v, Description{Board: "py"}) }
	one := plain(desktop).Token
	r.Arrive(desktop.with(one))
	if p := plain(desktop); p.Token != one {
		t.Errorf("the second time %q", p.Token)
	}
	r.restart(nil)
	two := plain(desktop).Token
	if two == "" || !r.Arrive(desktop.with(one)).Proven || !r.Arrive(desktop.with(two)).Proven {
		t.Errorf("after a restart %q", two)
	}
	far := desktop
	far.Near, far.Secure = false, true
	if p := plain(far); p.Token != "" {
		t.Error("told far away")
	}
	v := home(speaker, clientB)
	r.Arrive(v.with(r.ota(v).Token))
	if p := plain(v); p.Token != "" {
		t.Error("who looks like a program gets the token of firmware")
	}
	page := home("page", "web_test_client")
	page.Page = true
	token := r.ota(page).Token
	r.Arrive(page.with(token))
	if p := r.ota(page); p.Token != token || r.List()[1].State != "browser" {
		t.Errorf("a page is told %q, %+v", p.Token, r.List())
	}
}

// TestClaim: a code makes a new device known, and takes no known one over; an owner can.
func TestClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, ask)
		code := r.ota(home(speaker, clientA)).Away.Code
		for given, want := range map[string]error{speaker: ErrNotACode, "": ErrNotACode, "12345": ErrNotACode} {
			if _, err := r.Claim(t.Context(), given, "mia"); !errors.Is(err, want) {
				t.Errorf("%q: %v", given, err)
			}
		}
		id, err := r.Claim(t.Context(), " "+code[:3]+"-"+code[3:], "mia")
		if err != nil || id != speaker {
			t.Fatalf("%q, %v", id, err)
		}
		thief := r.ota(home(speaker, clientB)).Away.Code // somebody says the name of the speaker
		if _, err := r.Claim(t.Context(), thief, "mallory"); !errors.Is(err, ErrTaken) {
			t.Errorf("a speaker is taken over: %v", err)
		}
		if p := r.ota(home(speaker, clientA)); p.Away != nil {
			t.Errorf("the speaker is not known any more: %+v", p)
		}
		if id, err := r.Accept(t.Context(), thief, "olga"); err != nil || id != speaker {
			t.Errorf("an owner accepts it again: %q %v", id, err)
		}
	})
}

// TestAskFlow: a code that stays, waits, and is used once.
func TestAskFlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, ask)
		v := home(speaker, clientA)
		p := r.ota(v)
		if p.Token != "" || p.Away == nil || !isCode(p.Away.Code) || p.Challenge == "" {
			t.Fatalf("%+v", p)
		}
		code := p.Away.Code
		for range 30 { // firmware asks again and again
			time.Sleep(9 * time.Minute)
			if !r.Activate(v) {
				t.Fatal("activated")
			}
			if again := r.ota(v); again.Away.Code != code || again.Challenge != p.Challenge {
				t.Fatalf("another code: %+v", again)
			}
		}
		if g := r.Arrive(v); g.Away == nil || g.Away.Code != code || !g.Unknown {
			t.Fatalf("it connects: %+v", g)
		}
		r.restart(ask)
		if again := r.ota(v); again.Away.Code != code {
			t.Error("another code after a restart")
		}
		id, err := r.Accept(t.Context(), code[:3]+" "+code[3:], "anna")
		if err != nil || id != speaker {
			t.Fatalf("%q, %v", id, err)
		}
		if r.Activate(v) {
			t.Error("it still waits")
		}
		r.restart(ask) // an accepted pair is not lost
		p = r.ota(v)
		if p.Away != nil || p.Token == "" || !r.Arrive(v.with(p.Token)).Proven {
			t.Errorf("once accepted: %+v", p)
		}
		if _, err := r.Accept(t.Context(), code, "anna"); !errors.Is(err, ErrNoSuchCode) && !errors.Is(err, ErrCodeUsed) {
			t.Errorf("a used code: %v", err)
		}
		if g := r.Arrive(v); g.Away == nil || !isCode(g.Away.Code) {
			t.Errorf("it comes without its token: %+v", g)
		} else if p := r.ota(v); p.Away != nil {
			t.Error("somebody who has failed keeps the speaker itself from starting")
		}
	})
}

func TestCodesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, ask)
		one := r.ota(home("a", clientA)).Away.Code
		time.Sleep(codeLife)
		two := r.ota(home("b", clientA)).Away.Code
		accept := func(code, by string, want error) {
			t.Helper()
			if _, err := r.Accept(t.Context(), code, by); !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", code, err, want)
			}
		}
		accept(one, "anna", ErrCodeExpired)
		if len(r.List()) != 1 {
			t.Errorf("who asks no more is remembered: %+v", r.List())
		}
		accept(two, "anna", nil)
		accept(two, "anna", ErrCodeUsed)
		accept("12345", "anna", ErrNotACode)
		accept("1234567", "anna", ErrNotACode)
		accept("", "anna", ErrNotACode)
		accept("kitchen", "anna", ErrNoSuchDevice)
		accept(wrong(r), "anna", ErrNoSuchCode)
	})
}

// wrong returns a code that no device has or had.
func wrong(r *rig) string {
	for n := 0; ; n++ {
		if code := fmt.Sprintf("%06d", n); r.desk.find(code) == nil && r.desk.endOf(code) == nil {
			return code
		}
	}
}

// TestGuessing: five wrong codes of one person in an hour, twenty of all; then only
// the id counts.
func TestGuessing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, ask)
		v := home(speaker, clientA)
		code := r.ota(v).Away.Code
		try := func(code, by string) error { _, err := r.Accept(t.Context(), code, by); return err }
		for range maxWrong {
			if err := try(wrong(r), "eve"); !errors.Is(err, ErrNoSuchCode) {
				t.Fatal(err)
			}
		}
		if err := try(code, "eve"); !errors.Is(err, ErrGuesses) {
			t.Fatalf("the right one after five wrong ones: %v", err)
		}
		for n := range 15 {
			if err := try(wrong(r), fmt.Sprint("eve", n)); !errors.Is(err, ErrNoSuchCode) {
				t.Fatal(err)
			}
		}
		if err := try(code, "anna"); !errors.Is(err, ErrGuesses) {
			t.Fatalf("after twenty wrong ones: %v", err)
		}
		if r.List()[0].State != "new" {
			t.Error("it was accepted")
		}
		if err := try(speaker, "anna"); err != nil {
			t.Errorf("by its id: %v", err)
		}
		time.Sleep(guessWindow)
		other := r.ota(home("b", clientA)).Away.Code
		if err := try(other, "eve"); err != nil {
			t.Errorf("an hour later: %v", err)
		}
	})
}

func TestCodesAreFew(t *testing.T) {
	r := newRig(t, ask)
	seen := map[string]bool{}
	for n := range 100 {
		v := home(fmt.Sprint("sim-", n), clientA)
		v.From = fmt.Sprint("192.168.1.", n/9)
		p := r.ota(v)
		if n%9 == 8 || len(seen) == maxPairings {
			if p.Away.Code != "" {
				t.Fatalf("%d: a code too many", n)
			}
			continue
		}
		if p.Away.Code == "" || seen[p.Away.Code] {
			t.Fatalf("%d: code %q", n, p.Away.Code)
		}
		seen[p.Away.Code] = true
	}
	if len(seen) != maxPairings || len(r.List()) != maxPairings {
		t.Errorf("%d codes, %d records", len(seen), len(r.List()))
	}
}

// TestCodesOfOneNetwork: who has a network of IPv6 has as many addresses as wanted, and
// who has many networks is not at home. A speaker at home gets its code all the same.
func TestCodesOfOneNetwork(t *testing.T) {
	r := newRig(t, ask)
	codes := func(from func(n int) string) (got int) {
		for n := range 100 {
			v := home(fmt.Sprint(from(n), " ", n), clientA)
			if v.From, v.Near = from(n), false; r.ota(v).Away.Code != "" {
				got++
			}
		}
		return got
	}
	if got := codes(func(n int) string { return fmt.Sprint("2001:db8:1:2::", n) }); got != maxOfOne {
		t.Errorf("a network of IPv6 got %d codes, want %d", got, maxOfOne)
	}
	if got := codes(func(n int) string { return fmt.Sprint("203.0.113.", n) }); got != maxFar-maxOfOne {
		t.Errorf("the others from afar got %d codes, want %d", got, maxFar-maxOfOne)
	}
	if r.ota(home(speaker, clientA)).Away.Code == "" {
		t.Error("a speaker at home gets no code")
	}
}

// A device that is called like a code is not accepted in the place of another.
func TestCodeIsNoName(t *testing.T) {
	r := newRig(t, ask)
	code := r.ota(home(speaker, clientA)).Away.Code
	r.ota(home(code, clientB))
	if id, err := r.Accept(t.Context(), code, "anna"); err != nil || id != speaker {
		t.Errorf("%q, %v", id, err)
	}
}

// TestErasedSpeaker: its Client-Id is another one. The old pair stays until a person
// accepts the new one, which then is the speaker, with all that is kept of it.
func TestErasedSpeaker(t *testing.T) {
	r := newRig(t, nil)
	token := r.ota(home(speaker, clientA)).Token
	r.Arrive(home(speaker, clientA).with(token))
	if err := r.Rename(t.Context(), speaker, "Küche"); err != nil {
		t.Fatal(err)
	}
	stranger := r.Arrive(home(speaker, clientB)).ID
	if g := r.Arrive(home(speaker, clientA).with(token)); g.ID != speaker || !g.Proven {
		t.Errorf("the old pair: %+v", g)
	}
	r.gone = nil
	if id, err := r.Accept(t.Context(), strings.ToUpper(stranger), "anna"); err != nil || id != speaker {
		t.Fatalf("%q, %v", id, err)
	}
	if len(r.gone) != 2 || r.gone[0] != speaker || r.gone[1] != stranger {
		t.Errorf("expelled: %q", r.gone)
	}
	if g := r.Arrive(home(speaker, clientB)); g.ID != speaker || g.Unknown || g.Name != "Küche" {
		t.Errorf("the new pair: %+v", g)
	}
	if g := r.Arrive(home(speaker, clientA).with(token)); g.ID == speaker || g.Proven || !g.Unknown {
		t.Errorf("the old pair after that: %+v", g)
	}
}

func TestRefused(t *testing.T) {
	r := newRig(t, nil)
	r.ota(home(speaker, clientA))
	if err := r.Refuse(t.Context(), speaker, "anna"); err != nil || len(r.gone) != 1 {
		t.Fatal(err, r.gone)
	}
	r.restart(nil)
	g, p := r.Arrive(home(speaker, clientA)), r.ota(home(speaker, clientA))
	if g.Away == nil || g.Away.Verdict != Denied || p.Token != "" || p.Challenge != "" || r.Activate(home(speaker, clientA)) {
		t.Errorf("%+v, %+v", g, p)
	}
	if g := r.Arrive(home(speaker, clientB)); !g.Unknown {
		t.Errorf("another client of its name: %+v", g)
	}
	if _, err := r.Accept(t.Context(), speaker, "anna"); err != nil {
		t.Error(err)
	}
	if g := r.Arrive(home(speaker, clientA)); g.Away != nil {
		t.Errorf("accepted again: %+v", g)
	}
}

func TestForgotten(t *testing.T) {
	r := newRig(t, nil)
	r.Arrive(home(speaker, clientA).with(r.ota(home(speaker, clientA)).Token))
	if err := r.Forget(t.Context(), speaker); err != nil {
		t.Fatal(err)
	}
	if records, _, _ := r.records.Load(t.Context()); len(records) != 0 || len(r.List()) != 0 {
		t.Errorf("still there: %v", records)
	}
	for _, err := range []error{r.Forget(t.Context(), speaker), r.Refuse(t.Context(), speaker, ""), r.Rename(t.Context(), speaker, "x")} {
		if !errors.Is(err, ErrNoSuchDevice) {
			t.Error(err)
		}
	}
	if g := r.Arrive(home(speaker, clientB)); g.ID != speaker || g.Unknown {
		t.Errorf("the next of its name: %+v", g)
	}
}

// A stranger is the speaker once the one whose name it says is forgotten.
func TestStrangerMovesUp(t *testing.T) {
	r := newRig(t, nil)
	r.Arrive(home(speaker, clientA))
	r.Arrive(home(speaker, clientB))
	if err := r.Forget(t.Context(), speaker); err != nil {
		t.Fatal(err)
	}
	if g := r.Arrive(home(speaker, clientB)); g.ID != speaker || g.Unknown {
		t.Errorf("%+v", g)
	}
	r.restart(nil)
	if list := r.List(); len(list) != 1 || list[0].ID != speaker || list[0].State != "paired" {
		t.Errorf("%+v", list)
	}
}

// TestNotWritten: what cannot be written down was not done.
func TestNotWritten(t *testing.T) {
	r := newRig(t, ask)
	code := r.ota(home(speaker, clientA)).Away.Code
	full := errors.New("disk is full")
	r.records.err = full
	before := fmt.Sprint(r.List())
	if _, err := r.Accept(t.Context(), code, "anna"); !errors.Is(err, ErrNotWritten) || !errors.Is(err, full) {
		t.Errorf("accept: %v", err)
	}
	for what, err := range map[string]error{
		"rename": r.Rename(t.Context(), speaker, "x"), "refuse": r.Refuse(t.Context(), speaker, "anna"), "forget": r.Forget(t.Context(), speaker),
	} {
		if !errors.Is(err, ErrNotWritten) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if after := fmt.Sprint(r.List()); after != before || len(r.gone) > 0 {
		t.Errorf("something has changed:\n%s\n%s\n%q", before, after, r.gone)
	}
	if !r.Activate(home(speaker, clientA)) {
		t.Error("it waits no more")
	}
	r.records.err = nil
	if _, err := r.Accept(t.Context(), code, "anna"); err != nil {
		t.Errorf("later: %v", err)
	}
}

// TestOneRecordIsRefused: a record that the store never takes keeps no other device from being paired and written down.
func TestOneRecordIsRefused(t *testing.T) {
	r := newRig(t, ask)
	const odd = "24:6f:28:00:00:0d"
	r.records.never = odd
	r.ota(home(odd, clientB))
	code := r.ota(home(speaker, clientA)).Away.Code
	if _, err := r.Accept(t.Context(), code, "anna"); err != nil {
		t.Errorf("accept: %v", err)
	}
	if err := r.Rename(t.Context(), odd, "Kitchen"); !errors.Is(err, ErrNotWritten) {
		t.Errorf("the odd one: %v", err)
	}
	records, _, err := r.records.Load(t.Context())
	if err != nil || len(records) != 1 || records[0].ID != speaker || records[0].By != "anna" {
		t.Errorf("%+v %v", records, err)
	}
	r.records.never = ""
	if err := errors.Join(r.Flush(t.Context()), r.Rename(t.Context(), odd, "Kitchen")); err != nil {
		t.Errorf("later: %v", err)
	}
}

// TestSlowDiskAndOneIsRefused: devices for which no time is left after one that is never taken are written later, and
// nobody is told that they are written.
func TestSlowDiskAndOneIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.records.never = "a"
		r.records.takes = 2 * commitTime
		for _, address := range []string{"a", "b", "c"} {
			r.Arrive(home(address, clientA))
		}
		if err := r.Flush(t.Context()); !errors.Is(err, errSlowDisk) && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with a slow disk: %v", err)
		}
		r.records.never, r.records.takes = "", 0
		if err := r.Flush(t.Context()); err != nil {
			t.Error(err)
		}
		if records, _, err := r.records.Load(t.Context()); err != nil || len(records) != 3 {
			t.Errorf("%d written: %v", len(records), err)
		}
	})
}

// TestForgetHoldsNobodyUp: while a device is forgotten to which much was said, others are told where to connect, and
// what people do meanwhile waits, or is not done.
func TestForgetHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.ota(home(speaker, clientA))
		r.ota(home("b", clientA))
		r.records.takes = 20 * time.Second
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := r.Forget(t.Context(), speaker); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		r.records.takes = 0
		began := time.Now()
		if p := r.ota(home("c", clientA)); p.Token == "" || time.Since(began) > commitTime {
			t.Errorf("%+v after %v", p, time.Since(began))
		}
		gone, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.Rename(gone, "b", "Bath"); !errors.Is(err, ErrNotWritten) || r.Name("b") != "" {
			t.Errorf("%v, %q", err, r.Name("b"))
		}
		if err := r.Rename(t.Context(), "b", "Kitchen"); err != nil {
			t.Error(err)
		}
		wg.Wait()
		if records, _, err := r.records.Load(t.Context()); err != nil || len(records) != 2 {
			t.Errorf("%d written: %v", len(records), err)
		}
	})
}

// TestForgetTakesTime: a device to which much was said can be forgotten, which takes longer than anything else.
func TestForgetTakesTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.ota(home(speaker, clientA))
		r.records.takes = 20 * time.Second
		if err := r.Rename(t.Context(), speaker, "Kitchen"); !errors.Is(err, ErrNotWritten) {
			t.Errorf("a name: %v", err)
		}
		if err := r.Forget(t.Context(), speaker); err != nil {
			t.Error(err)
		}
	})
}

// A disk that does not write keeps nobody from talking, and what waits is written later.
func TestRunWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { r.Run(ctx) })
		r.records.err = errors.New("disk is full")
		if p := r.ota(home(speaker, clientA)); p.Token == "" {
			t.Error("no token")
		}
		if g := r.Arrive(home("b", clientA)); g.Unknown || g.Away != nil {
			t.Errorf("%+v", g)
		}
		synctest.Wait()
		if n := strings.Count(r.log.String(), "not written down"); n != 1 {
			t.Errorf("%d lines", n)
		}
		r.records.mu.Lock()
		r.records.err = nil
		r.records.mu.Unlock()
		time.Sleep(retryAfter)
		synctest.Wait()
		if records, _, _ := r.records.Load(ctx); len(records) != 2 {
			t.Errorf("%d written", len(records))
		}
		r.Arrive(home("c", clientA))
		cancel()
		wg.Wait()
		if records, _, _ := r.records.Load(t.Context()); len(records) != 3 {
			t.Errorf("%d written at the end", len(records))
		}
	})
}

// TestTooMany: strangers make room before known devices do, and those that a person
// has accepted never do.
func TestTooMany(t *testing.T) {
	r := newRig(t, nil)
	r.ota(home(speaker, clientA))
	if _, err := r.Accept(t.Context(), speaker, "anna"); err != nil {
		t.Fatal(err)
	}
	r.Arrive(home("second", clientA))
	for n := range maxRecords + 10 {
		r.Arrive(home(speaker, fmt.Sprint(n)))
	}
	if g := r.Arrive(home("second", clientB)); !g.Unknown {
		t.Error("strangers have driven a known device out")
	}
	for n := range 20 {
		r.Arrive(home(fmt.Sprint("sim", n), clientA))
	}
	if len(r.byID) > maxRecords {
		t.Errorf("%d records", len(r.byID))
	}
	if g := r.Arrive(home(speaker, clientB)); !g.Unknown {
		t.Error("one that was accepted is driven out")
	}
	if got := strings.Count(r.log.String(), "it is a stranger"); got > maxNotices {
		t.Errorf("%d lines in the log", got)
	}
}

// TestRegularsStay: made-up devices do not drive out one that is known for a day, with all that it was promised, nor one
// that was refused.
func TestRegularsStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(o *Options) { o.Shared = true })
		r.Arrive(home(speaker, clientA))
		r.Arrive(home("unwanted", clientA))
		if err := r.Refuse(t.Context(), "unwanted", "anna"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(newFor)
		r.Arrive(home(speaker, clientA))
		time.Sleep(time.Minute)
		for n := range maxRecords + 10 {
			r.Arrive(home(fmt.Sprint("made up ", n), clientA))
		}
		if r.byID[speaker] == nil || r.byID["unwanted"] == nil || len(r.byID) > maxRecords {
			t.Errorf("%v, %v, %d records", r.byID[speaker], r.byID["unwanted"], len(r.byID))
		}
	})
}

// TestLinesOfNewcomers: devices that become known by themselves may be made up: they do not fill the log.
func TestLinesOfNewcomers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		for n := range 200 {
			r.ota(home(fmt.Sprint("sim", n), clientA))
		}
		if got := strings.Count(r.log.String(), "device is known from now on"); got != 20 {
			t.Errorf("%d lines", got)
		}
		time.Sleep(time.Minute)
		r.ota(home("later", clientA))
		if !strings.Contains(r.log.String(), "suppressed=180") {
			t.Errorf("the log does not say how much it lacks")
		}
	})
}

// TestFullOfProven: when all records are of devices that have used their token, no
// newcomer drives one out. It may talk where everybody may, and gets no code elsewhere.
func TestFullOfProven(t *testing.T) {
	for _, mode := range []Mode{Open, Ask} {
		r := newRig(t, func(o *Options) { o.Mode = mode })
		for n := range maxRecords {
			id := fmt.Sprint("device", n)
			r.byID[id] = &entry{Record: Record{ID: id, Address: id, State: Paired, By: byNobody, Tokens: Tokens{Used: "x"}}}
		}
		for n := range testall.Pick(200, 20) {
			v := home(fmt.Sprint("new", n), clientA)
			p, g := r.ota(v), r.Arrive(v)
			if mode == Open && (p.Away != nil || g.Away != nil) {
				t.Errorf("%+v, %+v", p, g)
			}
			if mode == Ask && (p.Away == nil || p.Away.Code != "" || g.Away == nil || g.Away.Code != "") {
				t.Errorf("%+v, %+v", p, g)
			}
		}
		if len(r.byID) != maxRecords || r.byID["device0"] == nil || len(r.desk.byID) != 0 {
			t.Errorf("%d records, %d codes", len(r.byID), len(r.desk.byID))
		}
		if got := strings.Count(r.log.String(), "no more devices can be known"); got != 1 {
			t.Errorf("%d lines say so", got)
		}
		if got := strings.Count(r.log.String(), "device is known from now on"); got != 0 {
			t.Errorf("%d are said to be known", got)
		}
		if _, err := r.Accept(t.Context(), "device1", "anna"); err != nil {
			t.Error(err)
		}
	}
}

func TestAutoAsksWithAnOwner(t *testing.T) {
	owned := false
	r := newRig(t, func(o *Options) { o.Mode, o.HasOwner = Auto, func() bool { return owned } })
	if p := r.ota(home("a", clientA)); p.Away != nil {
		t.Errorf("without an owner: %+v", p)
	}
	owned = true
	if p := r.ota(home("b", clientA)); p.Away == nil {
		t.Errorf("with an owner: %+v", p)
	}
	if p := r.ota(home("a", clientA)); p.Away != nil {
		t.Errorf("who was known before: %+v", p)
	}
}

func TestOldFirmwareIsUpdated(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Shared = true })
	r.Arrive(home(speaker, ""))
	if g := r.Arrive(home(speaker, clientA)); g.ID != speaker || g.Unknown {
		t.Errorf("%+v", g)
	}
	if g := r.Arrive(home(speaker, "")); !g.Unknown {
		t.Errorf("who names no Client-Id any more: %+v", g)
	}
}

// TestOldFirmwareWaited: an update does not make two records of one pair, which no store takes, when the device was asked
// for a code before; who was refused stays refused.
func TestOldFirmwareWaited(t *testing.T) {
	r := newRig(t, nil)
	r.Arrive(home(speaker, ""))
	r.restart(ask)
	if r.ota(home(speaker, clientA)).Away.Code == "" {
		t.Fatal("no code")
	}
	refused := r.ota(home(speaker, clientB)).ID
	if err := r.Refuse(t.Context(), refused, "anna"); err != nil {
		t.Fatal(err)
	}
	r.restart(nil)
	if g := r.Arrive(home(speaker, clientB)); g.Away == nil || g.Away.Verdict != Denied {
		t.Errorf("who was refused: %+v", g)
	}
	if g := r.Arrive(home(speaker, clientA)); g.ID != speaker || g.Unknown {
		t.Errorf("%+v", g)
	}
	r.restart(nil)
	pairs := map[string]string{}
	for id, e := range r.byID {
		if other := pairs[e.Address+" "+e.Client]; other != "" {
			t.Errorf("%s and %s are one pair", id, other)
		}
		pairs[e.Address+" "+e.Client] = id
	}
}

// TestHashesAlike: of two strangers whose Client-Ids have hashes that begin alike, one keeps its record when the other's
// is gone. Two records of one pair are more than a store takes.
func TestHashesAlike(t *testing.T) {
	r := newRig(t, nil)
	r.ota(home(speaker, clientA))
	first, second := home(speaker, "client-42702"), home(speaker, "client-77027")
	gone, kept := r.ota(first).ID, r.ota(second).ID
	if !strings.HasPrefix(kept, gone) || kept == gone {
		t.Fatalf("%s and %s", gone, kept)
	}
	if err := r.Forget(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	if id := r.ota(second).ID; id != kept {
		t.Errorf("%s is %s now", kept, id)
	}
	if id := r.ota(first).ID; id != gone {
		t.Errorf("%s is %s now", gone, id)
	}
}

// With a token that all devices share none is made for each of them, and it counts
// like the home network.
func TestSharedToken(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Shared = true })
	v := Visit{Address: speaker, ClientID: clientA, From: "203.0.113.9", Shared: true}
	if g := r.Arrive(v); g.ID != speaker || g.Unknown || g.Away != nil || g.Proven {
		t.Errorf("%+v", g)
	}
	if p := r.ota(v); p.Token != "" || p.Away != nil {
		t.Errorf("%+v", p)
	}
	v.ClientID = clientB
	if g := r.Arrive(v); !g.Unknown {
		t.Errorf("%+v", g)
	}
}

func TestStrangersAsSet(t *testing.T) {
	for _, tc := range []struct {
		unknown       Unknown
		limited, away bool
	}{{LocalOnly, true, false}, {RefuseThem, true, true}, {AllowAll, false, false}} {
		r := newRig(t, func(o *Options) { o.Unknown = tc.unknown })
		r.Arrive(home(speaker, clientA))
		if g := r.Arrive(home(speaker, clientB)); g.ID == speaker || g.Unknown != tc.limited || (g.Away != nil) != tc.away {
			t.Errorf("%v: %+v", tc.unknown, g)
		}
	}
}

func TestNames(t *testing.T) {
	r := newRig(t, nil)
	r.Arrive(home(speaker, clientA))
	for name, want := range map[string]string{
		" 厨房  音箱 ": "厨房 音箱", "a\x1b[31m\nb": "a [31m b", "Ana\u202es": "Ana s",
	} {
		if err := r.Rename(t.Context(), speaker, name); err != nil || r.byID[speaker].Name != want {
			t.Errorf("%q: %q, %v", name, r.byID[speaker].Name, err)
		}
	}
	for _, name := range []string{"", " ", "\x00", "--", strings.Repeat("长", 22), "\xff"} {
		if err := r.Rename(t.Context(), speaker, name); !errors.Is(err, ErrNoName) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestCrowdAtOnce(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Expel = nil })
	ctx, cancel := context.WithCancel(t.Context())
	var writer, wg sync.WaitGroup
	writer.Go(func() { r.Run(ctx) })
	for n := range 8 {
		wg.Go(func() {
			for m := range 50 {
				v := home(fmt.Sprint("sim", m), fmt.Sprint("client", n%2))
				p := r.Provision(ctx, v, Description{Keeps: true})
				r.Arrive(v.with(p.Token))
				if m%10 == 0 {
					_, _ = r.Accept(ctx, p.ID, "anna")
					_ = r.Forget(ctx, p.ID)
				}
				r.List()
			}
		})
	}
	wg.Wait()
	cancel()
	writer.Wait()
	records, _, _ := r.records.Load(t.Context())
	if len(records) != len(r.byID) {
		t.Errorf("%d written of %d", len(records), len(r.byID))
	}
}

// TestRegulars: a device always finds room once a person has accepted it, or a day after
// it became known; who comes in its name or with a made-up one does not.
func TestRegulars(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		speaker, other := home("24:6f:28:aa:10:02", "own"), home("24:6f:28:aa:10:03", "own")
		r.ota(speaker)
		r.ota(other)
		if r.Arrive(speaker).Regular || r.Arrive(other).Regular {
			t.Error("regular at once")
		}
		if _, err := r.Accept(t.Context(), other.Address, "owner"); err != nil {
			t.Fatal(err)
		}
		if r.Book.Arrive(speaker).Regular || !r.Book.Arrive(other).Regular {
			t.Error("a person's word counts for nothing")
		}
		time.Sleep(24 * time.Hour)
		if !r.Book.Arrive(speaker).Regular {
			t.Error("not regular after a day")
		}
		if r.Book.Arrive(home(speaker.Address, "of another")).Regular || r.Book.Arrive(home("02:00:00:00:00:01", "x")).Regular {
			t.Error("strangers are regular")
		}
	})
}

// FuzzProof: no token and no code but the right one makes a device known.
func FuzzProof(f *testing.F) {
	for _, seed := range []string{"", "123456", " 123-456 ", speaker, "１２３４５６", "\xff\x00", strings.Repeat("0", 64), "24-6F-28-AA-10-02"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, said string) {
		r := newRig(t, ask)
		v := home(speaker, clientA)
		code := r.ota(v).Away.Code
		digits := strings.Map(func(c rune) rune {
			if '0' <= c && c <= '9' {
				return c
			}
			return -1
		}, said)
		if id, err := r.Claim(t.Context(), said, "mallory"); (err == nil) && digits != code {
			t.Fatalf("%q makes %s known, of which the code is %s", said, id, code)
		} else if err == nil {
			return // guessed
		}
		if _, err := r.Accept(t.Context(), code, "anna"); err != nil {
			t.Fatal(err)
		}
		token := r.ota(v).Token
		if g := r.Arrive(v.with(token)); !g.Proven { // from now on it is asked for
			t.Fatalf("%+v", g)
		}
		if g := r.Arrive(v.with(said)); said != token && (g.Proven || g.Away == nil) {
			t.Errorf("%q is taken for the token: %+v", said, g)
		}
		if g := r.Arrive(v.with(token)); !g.Proven || g.Away != nil {
			t.Errorf("after %q the token is none: %+v", said, g)
		}
		if strings.Contains(r.log.String(), token) {
			t.Error("the token is in the log")
		}
	})
}

// TestHastyDevice: a device that is gone before its answer is no fault of the disk. It is
// written down all the same.
func TestHastyDevice(t *testing.T) {
	r := newRig(t, nil)
	ctx, hangUp := context.WithCancel(t.Context())
	hangUp()
	r.records.err = ctx.Err()
	r.Provision(ctx, home(speaker, clientA), Description{Keeps: true})
	if strings.Contains(r.log.String(), "not written down") {
		t.Errorf("the log says: %s", r.log)
	}
	r.records.err = nil
	r.restart(nil)
	if len(r.List()) != 1 {
		t.Errorf("it is not known any more: %+v", r.List())
	}
}
