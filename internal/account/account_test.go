package account

import (
	"errors"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"xiaozhi/store"
)

const good = "correct horse battery"

// rig is a service with an owner, over a store in a file and a clock that the test moves.
type rig struct {
	*Service
	t     *testing.T
	db    *store.Store
	clock time.Time
	from  Origin
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, clock: time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC), from: Origin{Remote: netip.MustParseAddr("192.168.1.7"), Browser: "b"}}
	now := func() time.Time { return r.clock }
	db, err := store.Open(t.Context(), place(t, now))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	r.db, r.Service = db, New(Options{Store: db, Now: now, Cost: testCost(), Seal: testSealer()})
	return r
}

func (r *rig) owner() *rig {
	r.t.Helper()
	r.must(r.Add(r.t.Context(), command(), NewUser{Name: "Ann", Role: Owner, Password: good}))
	return r
}

func command() Actor { return Actor{Name: "test", Via: ViaCommand} }

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) want(err, expected error) {
	r.t.Helper()
	if !errors.Is(err, expected) || (expected == nil) != (err == nil) {
		r.t.Errorf("error %v, want %v", err, expected)
	}
}

func (r *rig) login(name string) string {
	r.t.Helper()
	secret, err := r.Login(r.t.Context(), name, Proof{Password: good}, r.from)
	r.must(err)
	return secret
}

// TestSetup: the code makes one owner, once, and is of no use with one.
func TestSetup(t *testing.T) {
	r, ctx := newRig(t), t.Context()
	code := r.SetupCode(ctx)
	if len(code) != 10 || code == New(Options{Store: r.db}).SetupCode(ctx) {
		t.Errorf("code %q has not 40 new bits", code)
	}
	n := NewUser{Name: "Ann", Password: good}
	r.want(r.Setup(ctx, "0000000000", n, r.from), ErrBadLogin)
	r.want(r.Setup(ctx, "", n, r.from), ErrBadLogin)
	r.want(r.Setup(ctx, code, NewUser{Name: "Ann"}, r.from), ErrPasswordShort)
	if r.HasOwner(ctx) {
		t.Error("somebody became an owner")
	}
	r.clock = r.clock.Add(time.Hour)
	r.want(r.Setup(ctx, code, n, r.from), nil)
	r.clock = r.clock.Add(2 * time.Second)
	if !r.HasOwner(ctx) || r.SetupCode(ctx) != "" {
		t.Error("the setup code outlives the first owner")
	}
	r.want(r.Setup(ctx, code, NewUser{Name: "Bob", Password: good}, r.from), ErrBadLogin)
	r.must(func() error { _, err := r.Login(ctx, "ANN ", Proof{Password: good}, r.from); return err }())
}

// TestSessionEnds: logout, a new password, a new role, disabling and time end sessions at once.
func TestSessionEnds(t *testing.T) {
	for name, end := range map[string]func(r *rig, p Person) error{
		"logout":   func(r *rig, p Person) error { return r.Logout(r.t.Context(), p, r.from) },
		"password": func(r *rig, p Person) error { return r.SetPassword(r.t.Context(), command(), "bob", good+"!") },
		"role":     func(r *rig, p Person) error { return r.SetRole(r.t.Context(), command(), "bob", Viewer) },
		"disable":  func(r *rig, p Person) error { return r.Disable(r.t.Context(), command(), "bob", true) },
		"all":      func(r *rig, p Person) error { return r.EndSessions(r.t.Context(), command(), "bob") },
		"idle":     func(r *rig, p Person) error { r.clock = r.clock.Add(idleTime + time.Second); return nil },
		"old": func(r *rig, p Person) error {
			secret := r.login("bob")
			for range 5 {
				r.clock = r.clock.Add(idleTime - time.Second)
				_, err := r.Session(r.t.Context(), secret)
				if r.clock.Sub(p.Proved) < sessionTime && err != nil {
					return err
				}
			}
			if _, err := r.Session(r.t.Context(), secret); !errors.Is(err, ErrNoSession) {
				return errors.New("a session lasts longer than thirty days")
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, ctx := newRig(t).owner(), t.Context()
			r.must(r.Add(ctx, command(), NewUser{Name: "bob", Role: Member, Password: good}))
			secret, ann := r.login("bob"), r.login("ann")
			p, err := r.Session(ctx, secret)
			r.must(err)
			if p.Name != "bob" || p.Role != Member || strings.Contains(p.session, secret) {
				t.Errorf("%+v", p)
			}
			r.must(end(r, p))
			_, err = r.Session(ctx, secret)
			r.want(err, ErrNoSession)
			if name != "idle" && name != "old" {
				_, err = r.Session(ctx, ann)
				r.want(err, nil)
			}
		})
	}
}

// TestLastOwner: the last owner in use can be neither demoted nor disabled.
func TestLastOwner(t *testing.T) {
	r, ctx := newRig(t).owner(), t.Context()
	r.want(r.SetRole(ctx, command(), "ann", Member), ErrLastOwner)
	r.want(r.Disable(ctx, command(), "ann", true), ErrLastOwner)
	r.must(r.Add(ctx, command(), NewUser{Name: "bob", Role: Owner, Password: good}))
	r.must(r.Disable(ctx, command(), "bob", true))
	r.want(r.SetRole(ctx, command(), "ann", Member), ErrLastOwner)
	_, err := r.Login(ctx, "bob", Proof{Password: good}, r.from)
	r.want(err, ErrBadLogin)
	r.must(r.Disable(ctx, command(), "bob", false))
	r.must(r.SetRole(ctx, command(), "ann", Member))
	r.want(r.Add(ctx, command(), NewUser{Name: "BOB", Role: Viewer}), ErrNameTaken)
	r.want(r.SetRole(ctx, command(), "cid", Member), ErrNoUser)
	r.want(r.SetRole(ctx, command(), "bob", "boss"), ErrRoleUnknown)
}

// TestTokens: a token acts within its scopes until it is revoked, is over, or its user is disabled. It is kept as a hash.
func TestTokens(t *testing.T) {
	r, ctx := newRig(t).owner(), t.Context()
	make := func(ends time.Time) string {
		secret, err := r.NewToken(ctx, command(), "ann", NewToken{Label: "script", Scopes: []Scope{Read, Say}, Ends: ends})
		r.must(err)
		return secret
	}
	secret, short := make(time.Time{}), make(r.clock.Add(time.Hour))
	if !strings.HasPrefix(secret, "xz_") || len(secret) < 46 {
		t.Errorf("token %q", secret)
	}
	p, err := r.Token(ctx, secret)
	r.must(err)
	r.want(p.May(Need{Role: Viewer, Scope: Say}, "", r.clock), nil)
	r.want(p.May(Need{Role: Viewer, Scope: Tools}, "", r.clock), ErrForbidden)
	all, err := r.Tokens(ctx, "ann")
	r.must(err)
	for _, k := range all {
		if strings.Contains(k.Hash+k.Head+k.ID, secret) || strings.Contains(k.Hash, secret[3:]) {
			t.Error("the token itself is kept")
		}
	}
	r.clock = r.clock.Add(2 * time.Hour)
	_, err = r.Token(ctx, short)
	r.want(err, ErrNoToken)
	r.want(r.Revoke(ctx, command(), "ann", "xz_"), ErrNoToken)
	r.must(r.Revoke(ctx, command(), "ann", secret[:9]))
	_, err = r.Token(ctx, secret)
	r.want(err, ErrNoToken)
	r.must(r.Add(ctx, command(), NewUser{Name: "bob", Role: Member}))
	secret, err = r.NewToken(ctx, command(), "bob", NewToken{Label: "x", Scopes: []Scope{Admin}})
	r.must(err)
	r.must(r.Disable(ctx, command(), "bob", true))
	_, err = r.Token(ctx, secret)
	r.want(err, ErrNoToken)
	for _, bad := range []string{"", "xz_", secret[3:], "xz_" + secret, secret + "x"} {
		_, err = r.Token(ctx, bad)
		r.want(err, ErrNoToken)
	}
}

// TestInvites: an invitation makes one account, of its role; nothing that fails uses it up.
func TestInvites(t *testing.T) {
	r, ctx := newRig(t).owner(), t.Context()
	secret, err := r.Invite(ctx, command(), "", Member)
	r.must(err)
	r.want(r.Accept(ctx, secret, NewUser{Name: "ann", Password: good}, r.from), ErrNameTaken)
	r.want(r.Accept(ctx, secret, NewUser{Name: "bob", Password: "12345678"}, r.from), ErrPasswordKnown)
	r.want(r.Accept(ctx, secret+"x", NewUser{Name: "bob", Password: good}, r.from), ErrNoInvite)
	r.want(r.Accept(ctx, secret, NewUser{Name: "bob", Role: Owner, Password: good}, r.from), nil)
	r.want(r.Accept(ctx, secret, NewUser{Name: "cid", Password: good}, r.from), ErrNoInvite)
	bob, err := r.Session(ctx, r.login("bob"))
	r.must(err)
	if bob.Role != Member {
		t.Errorf("%+v", bob)
	}
	secret, err = r.Invite(ctx, command(), "", Viewer)
	r.must(err)
	r.clock = r.clock.Add(inviteTime + time.Second)
	r.want(r.Accept(ctx, secret, NewUser{Name: "cid", Password: good}, r.from), ErrNoInvite)
}

// TestGuessing: of a thousand guesses few are looked at, a session that stands goes on, and each is in the audit
// without what was typed.
func TestGuessing(t *testing.T) {
	r, ctx := newRig(t).owner(), t.Context()
	secret := r.login("ann")
	looked := 0
	for range 1000 {
		_, err := r.Login(ctx, "ann", Proof{Password: "wrong password"}, r.from)
		if errors.Is(err, ErrBadLogin) {
			looked++
		} else if _, ok := errors.AsType[*TooOftenError](err); !ok {
			t.Fatal(err)
		}
		r.clock = r.clock.Add(60 * time.Millisecond)
	}
	if looked < 6 || looked > 11 { // five, and then after 1, 2, 4, 8, 16, 32 s of the minute
		t.Errorf("%d guesses in a minute were looked at", looked)
	}
	_, err := r.Session(ctx, secret)
	r.want(err, nil)
	if _, err := r.Login(ctx, "ann", Proof{Password: good}, r.from); err == nil {
		t.Error("the name does not wait")
	}
	_, err = r.Login(ctx, "ann", Proof{Password: good}, Origin{Remote: netip.MustParseAddr("10.0.0.1")})
	r.want(err, nil)
	acts, err := r.db.Audit.List(ctx, store.Page{Limit: 500})
	r.must(err)
	for _, a := range acts {
		if strings.Contains(a.Who+a.Object+a.Detail, "wrong") {
			t.Fatalf("what was typed is kept: %+v", a)
		}
	}
	kept := len(acts)
	for _, a := range acts {
		if _, n, ok := strings.Cut(a.Detail, "suppressed="); ok {
			left, err := strconv.Atoi(n)
			r.must(err)
			kept += left
		}
	}
	if len(acts) > 100 || kept < 1000 {
		t.Errorf("%d acts for %d", len(acts), kept)
	}
}

// TestOtherProcess: what another process changes in the store counts at the next request.
func TestOtherProcess(t *testing.T) {
	r, ctx := newRig(t), t.Context()
	if r.HasOwner(ctx) {
		t.Fatal("an owner of nothing")
	}
	other := New(Options{Store: r.db, Now: r.now, Cost: testCost()})
	r.must(other.Add(ctx, command(), NewUser{Name: "ann", Role: Owner, Password: good}))
	r.clock = r.clock.Add(ownerAge)
	if !r.HasOwner(ctx) {
		t.Error("the owner is not seen a second later")
	}
	secret := r.login("ann")
	r.must(other.EndSessions(ctx, command(), "ann"))
	_, err := r.Session(ctx, secret)
	r.want(err, ErrNoSession)
}

// TestBearers: a token of a member acts on the devices that are theirs at that moment; who has it is looked up again,
// and when it was used is written off the way of requests.
func TestBearers(t *testing.T) {
	r, ctx := newRig(t).owner(), t.Context()
	r.must(r.Add(ctx, command(), NewUser{Name: "bob", Role: Member}))
	device := store.Identity{ID: "aa:bb:cc:00:00:01", Address: "aa:bb:cc:00:00:01", Client: "c", State: store.DevicePaired}
	r.must(r.db.Devices.Commit(ctx, store.DeviceChange{Save: []store.Identity{device}}))
	r.want(r.Give(ctx, command(), "nobody's", "bob"), ErrNoDevice)
	r.want(r.Give(ctx, command(), device.ID, "cid"), ErrNoUser)
	for _, n := range []NewToken{
		{Label: "x", Scopes: []Scope{Read}, Rate: 31}, {Label: "x", Scopes: []Scope{Read}, Rate: -1}, {Label: "x", Scopes: []Scope{Read}, Ends: r.clock},
		{Label: "x", Scopes: []Scope{Read}, Streams: []string{"a b"}}, {Label: "x\n", Scopes: []Scope{Read}}, {Scopes: []Scope{Read}}, {Label: "x"},
	} {
		if _, err := r.NewToken(ctx, command(), "bob", n); err == nil {
			t.Errorf("%+v is taken", n)
		}
	}
	secret, err := r.NewToken(ctx, command(), "bob", NewToken{Label: "x", Scopes: []Scope{Say}, Streams: []string{"device-*"}, Rate: 3})
	r.must(err)
	was, err := r.Bearer(ctx, secret)
	r.must(err)
	if len(was.Devices) != 0 || was.Rate != 3 || was.Streams[0] != "device-*" || was.Name != "bob" || was.Head != secret[:9] {
		t.Errorf("%+v", was)
	}
	r.must(r.Give(ctx, command(), device.ID, "bob"))
	now, err := r.Again(ctx, was)
	if r.must(err); len(now.Devices) != 1 || now.Devices[0] != device.ID {
		t.Errorf("%+v", now)
	}
	r.want(r.Take(ctx, command(), device.ID, "ann"), ErrNoDevice)
	r.must(r.Take(ctx, command(), device.ID, "bob"))
	if now, err = r.Again(ctx, was); err != nil || len(now.Devices) != 0 {
		t.Errorf("%+v %v", now, err)
	}
	used := func() time.Time {
		all, err := r.Tokens(ctx, "bob")
		r.must(err)
		return all[0].UsedAt
	}
	if !used().IsZero() {
		t.Error("a request has waited for the disk")
	}
	r.writeUses(ctx)
	if !used().Equal(r.clock) {
		t.Errorf("used %v", used())
	}
	r.must(r.Revoke(ctx, command(), "bob", secret[:9]))
	_, err = r.Again(ctx, was)
	r.want(err, ErrNoToken)
}
