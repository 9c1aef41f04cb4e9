package store

import (
	"fmt"
	"testing"
	"time"
)

// TestInvitesEndWithTheirOwner: who is no owner any more, or is gone, has invited nobody.
func TestInvitesEndWithTheirOwner(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		addUser(t, s, "boss", Owner)
		addUser(t, s, "anna", Owner)
		edit := func(f func(*User)) func() error {
			return func() error {
				_, err := s.Users.Edit(ctx, "anna", func(u *User) error { f(u); return nil })
				return err
			}
		}
		for _, c := range []struct {
			name string
			do   func() error
			left int
		}{
			{"shown otherwise", edit(func(u *User) { u.Shown = "Anna" }), 2},
			{"another password", edit(func(u *User) { u.Password = "new" }), 2},
			{"disabled", edit(func(u *User) { u.DisabledAt = at(5) }), 1},
			{"a member", edit(func(u *User) { u.Role, u.DisabledAt = Member, time.Time{} }), 1},
			{"an owner", edit(func(u *User) { u.Role = Owner }), 2},
			{"a viewer", edit(func(u *User) { u.Role = Viewer }), 1},
			{"deleted", func() error { return s.Users.Delete(ctx, "anna") }, 1},
		} {
			for _, by := range []string{"anna", "boss"} {
				_ = s.Invites.End(ctx, by)
				want(t, s.Invites.Add(ctx, Invite{Hash: by, Role: Owner, ByID: by, EndsAt: time.Now().Add(time.Hour)}), nil)
			}
			want(t, c.do(), nil)
			if all, err := s.Invites.List(ctx); err != nil || len(all) != c.left {
				t.Errorf("%s: %+v %v", c.name, all, err)
			}
		}
	})
}

// TestDeleteUser: with an account go its sessions and tokens; devices and agents stay, and are nobody's. The last owner stays.
func TestDeleteUser(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		ctx, soon := t.Context(), time.Now().Add(time.Hour)
		addUser(t, s, "boss", Owner)
		addUser(t, s, "anna", Member)
		want(t, s.Users.Delete(ctx, "boss"), ErrLastOwner)
		want(t, s.Users.Delete(ctx, "nobody"), ErrNotFound)
		want(t, s.Sessions.Add(ctx, Session{Hash: "s", UserID: "anna", EndsAt: soon}), nil)
		want(t, s.APITokens.Add(ctx, APIToken{ID: "t", UserID: "anna", Name: "x", Head: "xz_", Hash: "t", Scopes: "read"}), nil)
		want(t, s.Devices.Commit(ctx, DeviceChange{Save: []Identity{{ID: "d", Address: "d", Client: "c", State: DevicePaired}}}), nil)
		_, err := s.Devices.Edit(ctx, "d", func(d *Device) error { d.OwnerID = "anna"; return nil })
		want(t, err, nil)
		want(t, s.Users.Delete(ctx, "anna"), nil)
		_, err = s.Users.Get(ctx, "anna")
		want(t, err, ErrNotFound)
		_, _, err = s.Sessions.Get(ctx, "s")
		want(t, err, ErrNotFound)
		_, err = s.APITokens.Get(ctx, "t")
		want(t, err, ErrNotFound)
		if d, err := s.Devices.Get(ctx, "d"); err != nil || d.OwnerID != "" {
			t.Errorf("%+v %v", d, err)
		}
		addUser(t, s, "anna", Owner)
		_, err = s.Users.Edit(ctx, "anna", func(u *User) error { u.DisabledAt = at(5); return nil })
		want(t, err, nil)
		want(t, s.Users.Delete(ctx, "boss"), ErrLastOwner) // the other one is disabled
		want(t, s.Users.Delete(ctx, "anna"), nil)
	})
}

// TestTokensThatAreOver: they are kept for show, but not for ever.
func TestTokensThatAreOver(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		addUser(t, s, "anna", Member)
		add := func(i int, ends time.Time) {
			id := fmt.Sprintf("%03d", i)
			want(t, s.APITokens.Add(ctx, APIToken{ID: id, UserID: "anna", Name: "x", Head: "xz_", Hash: id, Scopes: "read", CreatedAt: at(i), EndsAt: ends}), nil)
		}
		add(0, time.Time{})
		for i := range maxOver + 5 {
			add(i+1, at(i+2))
		}
		add(maxOver+6, time.Time{})
		all, err := s.APITokens.Of(ctx, "anna")
		if err != nil || len(all) != maxOver+2 || all[maxOver].ID != "006" || all[maxOver+1].ID != "000" {
			t.Errorf("%d tokens, %v", len(all), err)
		}
	})
}
