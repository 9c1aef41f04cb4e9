package store

import (
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func addUser(t *testing.T, s *Store, id string, role Role) User {
	t.Helper()
	u := User{ID: id, Name: id, Shown: "A " + id, Role: role, Password: "hash", Locale: "de", CreatedAt: at(0), PasswordAt: at(1)}
	want(t, s.Users.Add(t.Context(), u), nil)
	return u
}

func TestUsers(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		if has, err := s.Users.HasOwner(ctx); has || err != nil {
			t.Error(has, err)
		}
		var first atomic.Int32
		var wg sync.WaitGroup
		for _, id := range []string{"u1", "u2", "u3", "u4"} {
			wg.Go(func() {
				switch err := s.Users.AddFirst(ctx, User{ID: id, Name: id, Shown: id}); {
				case err == nil:
					first.Add(1)
				case !errors.Is(err, ErrConflict):
					t.Error(err)
				}
			})
		}
		wg.Wait()
		all, err := s.Users.List(ctx)
		if first.Load() != 1 || err != nil || len(all) != 1 || all[0].Role != Owner {
			t.Fatalf("%d first owners: %+v %v", first.Load(), all, err)
		}
		owner := all[0].ID
		u := addUser(t, s, "anna", Member)
		if got, err := s.Users.Named(ctx, "anna"); err != nil || !reflect.DeepEqual(got, u) {
			t.Errorf("%+v %v", got, err)
		}
		want(t, s.Users.Add(ctx, User{ID: "x", Name: "anna", Role: Viewer}), ErrExists)
		for name, f := range map[string]func(*User) error{
			"demoted":  func(u *User) error { u.Role = Member; return nil },
			"disabled": func(u *User) error { u.DisabledAt = at(5); return nil },
		} {
			if _, err := s.Users.Edit(ctx, owner, f); !errors.Is(err, ErrLastOwner) {
				t.Errorf("the last owner was %s: %v", name, err)
			}
		}
		_, err = s.Users.Edit(ctx, "anna", func(u *User) error { u.ID, u.Role = "other", Owner; return nil })
		want(t, err, nil)
		// Two owners are demoted at once: one stays.
		var demoted atomic.Int32
		for _, id := range []string{owner, "anna"} {
			wg.Go(func() {
				switch _, err := s.Users.Edit(ctx, id, func(u *User) error { u.Role = Viewer; return nil }); {
				case err == nil:
					demoted.Add(1)
				case !errors.Is(err, ErrLastOwner):
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if has, err := s.Users.HasOwner(ctx); !has || err != nil || demoted.Load() != 1 {
			t.Error(demoted.Load(), has, err)
		}
		_, err = s.Users.Edit(ctx, "nobody", func(*User) error { return nil })
		want(t, err, ErrNotFound)
	})
}

func TestSessions(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		ctx, soon := t.Context(), time.Now().Add(time.Hour).Truncate(time.Millisecond).UTC()
		addUser(t, s, "boss", Owner)
		addUser(t, s, "anna", Member)
		for _, hash := range []string{"h1", "h2", "h3"} {
			want(t, s.Sessions.Add(ctx, Session{Hash: hash, UserID: "anna", EndsAt: soon, Remote: "1.2.3.4", Browser: "b"}), nil)
		}
		want(t, s.Sessions.Add(ctx, Session{Hash: "old", UserID: "anna", EndsAt: time.Now().Add(-time.Second)}), nil)
		_, _, err := s.Sessions.Get(ctx, "old")
		want(t, err, ErrNotFound)
		if session, u, err := s.Sessions.Get(ctx, "h1"); err != nil || u.Name != "anna" || !session.EndsAt.Equal(soon) || session.Browser != "b" {
			t.Errorf("%+v %+v %v", session, u, err)
		}
		want(t, s.Sessions.Seen(ctx, "h1", soon.Add(time.Hour)), nil)
		want(t, s.Sessions.End(ctx, "h3"), nil)
		if all, err := s.Sessions.Of(ctx, "anna"); err != nil || len(all) != 2 {
			t.Error(len(all), err)
		}
		want(t, s.Sessions.EndAll(ctx, "anna", "h1"), nil)
		_, _, err = s.Sessions.Get(ctx, "h2")
		want(t, err, ErrNotFound)
		_, err = s.Users.Edit(ctx, "anna", func(u *User) error { u.Shown = "Anna"; return nil })
		want(t, err, nil)
		_, _, err = s.Sessions.Get(ctx, "h1")
		want(t, err, nil)
		_, err = s.Users.Edit(ctx, "anna", func(u *User) error { u.Password = "new"; return nil })
		want(t, err, nil)
		_, _, err = s.Sessions.Get(ctx, "h1")
		want(t, err, ErrNotFound)                       // the password has changed
		for _, sealed := range []string{"sealed", ""} { // a second factor ends nothing until it is taken away
			if err := s.Sessions.Add(ctx, Session{Hash: "f" + sealed, UserID: "anna", EndsAt: soon}); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Users.Edit(ctx, "anna", func(u *User) error { u.TOTP = "sealed"; return nil }); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Users.Edit(ctx, "anna", func(u *User) error { u.TOTP = sealed; return nil }); err != nil {
				t.Fatal(err)
			}
			if _, _, err := s.Sessions.Get(ctx, "f"+sealed); (err == nil) != (sealed != "") {
				t.Errorf("second factor %q: %v", sealed, err)
			}
		}
		for i := range maxSessions + 5 {
			seen := at(0).Add(time.Duration(i) * time.Second)
			want(t, s.Sessions.Add(ctx, Session{Hash: fmt.Sprintf("many-%02d", i), UserID: "anna", SeenAt: seen, EndsAt: time.Now().Add(time.Hour)}), nil)
		}
		if all, err := s.Sessions.Of(ctx, "anna"); err != nil || len(all) != maxSessions || all[0].Hash != "many-54" || all[maxSessions-1].Hash != "many-05" {
			t.Errorf("%d sessions, %v", len(all), err)
		}
	})
}

func TestInvites(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		want(t, s.Invites.Add(ctx, Invite{Hash: "a", Role: Member, EndsAt: time.Now().Add(time.Hour)}), nil)
		want(t, s.Invites.Add(ctx, Invite{Hash: "b", Role: Member, EndsAt: time.Now().Add(-time.Hour)}), nil)
		if i, err := s.Invites.Take(ctx, "a"); err != nil || i.Role != Member || i.UsedAt.IsZero() {
			t.Errorf("%+v %v", i, err)
		}
		for _, hash := range []string{"a", "b", "c"} {
			_, err := s.Invites.Take(ctx, hash)
			want(t, err, ErrNotFound)
			want(t, s.Invites.End(ctx, hash), ErrNotFound)
		}
		soon := time.Now().Add(time.Hour).Truncate(time.Millisecond).UTC()
		for _, hash := range []string{"d", "e"} {
			want(t, s.Invites.Add(ctx, Invite{Hash: hash, Role: Owner, ByID: "boss", EndsAt: soon}), nil)
		}
		if n, err := count(ctx, s.db.read, "SELECT COUNT(*) FROM invites WHERE hash = 'b'"); n != 0 || err != nil {
			t.Error("one that has ended is kept", err)
		}
		want(t, s.Invites.End(ctx, "d"), nil)
		if all, err := s.Invites.List(ctx); err != nil || !reflect.DeepEqual(all, []Invite{{Hash: "e", Role: Owner, ByID: "boss", EndsAt: soon}}) {
			t.Errorf("%+v %v", all, err)
		}
	})
}

func TestAPITokens(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		addUser(t, s, "boss", Owner)
		addUser(t, s, "anna", Member)
		a := APIToken{ID: "t1", UserID: "anna", Name: "n", Head: "xz_1", Hash: "h1", Scopes: "read say", Streams: "a b", Rate: 3, CreatedAt: at(0)}
		want(t, s.APITokens.Add(ctx, a), nil)
		want(t, s.APITokens.Add(ctx, APIToken{ID: "t2", UserID: "anna", Name: "n", Head: "x", Hash: "h2", EndsAt: at(0)}), nil)
		if got, err := s.APITokens.Get(ctx, "h1"); err != nil || !reflect.DeepEqual(got, a) {
			t.Errorf("%+v %v", got, err)
		}
		_, err := s.APITokens.Get(ctx, "h2")
		want(t, err, ErrNotFound) // it has ended
		want(t, s.APITokens.Used(ctx, "t1", time.Now()), nil)
		_, err = s.Users.Edit(ctx, "anna", func(u *User) error { u.DisabledAt = at(1); return nil })
		want(t, err, nil)
		_, err = s.APITokens.Get(ctx, "h1")
		want(t, err, ErrNotFound) // its person's account is not in use
		want(t, s.APITokens.Revoke(ctx, "t1"), nil)
		want(t, s.APITokens.Revoke(ctx, "t1"), ErrNotFound)
		if all, err := s.APITokens.Of(ctx, "anna"); err != nil || len(all) != 2 {
			t.Error(len(all), err)
		}
	})
}

func TestAgents(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		want(t, s.Users.Add(ctx, User{ID: "u", Name: "anna", Role: Member}), nil)
		want(t, s.Agents.Put(ctx, "pirate", "u", AgentRevision{Rev: 2, Doc: "{}"}, 3), ErrConflict)
		want(t, s.Agents.Put(ctx, "pirate", "u", AgentRevision{Rev: 1, Doc: "{}", At: at(0)}, 3), nil)
		want(t, s.Agents.Put(ctx, "pirate", "", AgentRevision{Rev: 1, Doc: "{}"}, 3), ErrConflict)
		r := AgentRevision{Rev: 2, Doc: `{"voice":"x"}`, Note: "n", ByID: "u", At: at(1)}
		want(t, s.Agents.Put(ctx, "pirate", "", r, 3), nil)
		want(t, s.Agents.Put(ctx, "pirate", "", r, 3), ErrConflict) // somebody else was first
		all, revisions, err := s.Agents.List(ctx)
		if err != nil || len(all) != 1 || len(revisions) != 1 {
			t.Fatal(all, revisions, err)
		}
		if r.AgentID = all[0].ID; all[0].Rev != 2 || all[0].OwnerID != "u" || !reflect.DeepEqual(revisions[0], r) {
			t.Errorf("%+v %+v", all, revisions)
		}
		if all, owner, err := s.Agents.Revisions(ctx, "pirate"); err != nil || owner != "u" || len(all) != 2 || all[1].Rev != 1 {
			t.Errorf("%+v %v", all, err)
		}
		want(t, s.Agents.Delete(ctx, "pirate"), nil)
		want(t, s.Agents.Delete(ctx, "pirate"), ErrNotFound)
		if all, revisions, err := s.Agents.List(ctx); err != nil || len(all)+len(revisions) != 0 {
			t.Error(len(all), len(revisions), err)
		}
		for rev := 3; rev <= 5; rev++ { // it is there again
			want(t, s.Agents.Put(ctx, "pirate", "", AgentRevision{Rev: rev, Doc: "{}"}, 3), nil)
		}
		if all, owner, err := s.Agents.Revisions(ctx, "pirate"); err != nil || owner != "u" || len(all) != 3 || all[2].Rev != 3 {
			t.Errorf("%+v %v", all, err)
		}
		if all, _, err := s.Agents.List(ctx); err != nil || len(all) != 1 || all[0].OwnerID != "u" {
			t.Errorf("%+v %v", all, err)
		}
	})
}

func TestAgentsOfDevices(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		want(t, s.Devices.Commit(ctx, DeviceChange{Save: []Identity{{ID: "d", Address: "d", State: DevicePaired}, {ID: "e", Address: "e", State: DevicePaired}}}), nil)
		want(t, s.Agents.Put(ctx, "pirate", "", AgentRevision{Rev: 1, Doc: "{}"}, 3), nil)
		assign := func(device, slug string, times int, failure error) {
			t.Helper()
			if n, err := s.Agents.Assign(ctx, device, slug); n != times || !errors.Is(err, failure) {
				t.Errorf("%d %v, want %d %v", n, err, times, failure)
			}
		}
		assign("d", "pirate", 1, nil)
		assign("e", "teacher", 1, nil) // which is set somewhere else
		assign("f", "nurse", 0, ErrNotFound)
		given := func(want map[string]Assignment) {
			t.Helper()
			if got, err := s.Agents.Assigned(ctx); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%v %v, want %v", got, err, want)
			}
		}
		given(map[string]Assignment{"d": {"pirate", 1}, "e": {"teacher", 1}})
		if all, _, err := s.Agents.List(ctx); err != nil || len(all) != 1 {
			t.Errorf("%+v %v", all, err)
		}
		want(t, s.Agents.Delete(ctx, "teacher"), ErrNotFound)
		want(t, s.Agents.Delete(ctx, "pirate"), nil)
		given(map[string]Assignment{"d": {"pirate", 1}, "e": {"teacher", 1}})
		want(t, s.Agents.Put(ctx, "teacher", "", AgentRevision{Rev: 1, Doc: "{}"}, 3), nil)
		assign("d", "", 2, nil)
		given(map[string]Assignment{"d": {"", 2}, "e": {"teacher", 1}})
		want(t, s.Devices.Commit(ctx, DeviceChange{Drop: []string{"e"}}), nil)
		given(map[string]Assignment{"d": {"", 2}})
		want(t, s.Devices.Commit(ctx, DeviceChange{Drop: []string{"nobody"}}), nil)
		if n, err := s.Agents.Changes(ctx); n != 7 || err != nil { // what failed, and who had none, does not count
			t.Errorf("%d changes, %v", n, err)
		}
	})
}

// TestOldSettingsGo: so many revisions are kept as can be undone, and what the oldest of those was made of.
func TestOldSettingsGo(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		err := s.db.change(ctx, func(tx *sql.Tx) error {
			for i := range KeptRevisions + 20 {
				r := SettingsRevision{ID: i + 1, BaseID: i, Doc: "d", State: SettingsPast, At: at(i)}
				if r.ID == KeptRevisions+20 {
					r.State = SettingsActive
				}
				if _, err := execIn(ctx, tx, insert("settings_revisions", settingsColumns), r.fields()...); err != nil {
					return err
				}
			}
			return nil
		})
		want(t, err, nil)
		id, err := s.Settings.Save(ctx, SettingsRevision{BaseID: KeptRevisions + 20, Doc: "new"}, "")
		want(t, err, nil)
		oldest := id - KeptRevisions
		if one, err := s.Settings.Get(ctx, oldest); err != nil || one.ID != oldest {
			t.Errorf("what the oldest was made of: %+v %v", one, err)
		}
		_, err = s.Settings.Get(ctx, oldest-1)
		want(t, err, ErrNotFound)
		if n, err := count(ctx, s.db.read, "SELECT COUNT(*) FROM settings_revisions"); err != nil || n != KeptRevisions+1 {
			t.Errorf("%d are kept, %v", n, err)
		}
		if now, err := s.Settings.Active(ctx); err != nil || now.ID != id || now.Doc != "new" {
			t.Errorf("in force: %+v %v", now, err)
		}
	})
}

func TestSettingsRevisions(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		_, err := s.Settings.Active(ctx)
		want(t, err, ErrNotFound)
		id, err := s.Settings.Save(ctx, SettingsRevision{Doc: "a", Note: "n", ByID: "u", At: at(0)}, "")
		if id != 1 || err != nil {
			t.Error(id, err)
		}
		_, err = s.Settings.Save(ctx, SettingsRevision{Doc: "b"}, "")
		want(t, err, ErrConflict) // it was made of nothing, and there is something
		id, err = s.Settings.Save(ctx, SettingsRevision{BaseID: 1, Doc: "b", At: at(1), Kind: "edit"}, "")
		want(t, err, nil)
		_, err = s.Settings.Save(ctx, SettingsRevision{BaseID: id, Doc: "a", At: at(2)}, "every turn failed")
		want(t, err, nil)
		if got, err := s.Settings.Active(ctx); err != nil || got.Doc != "a" || got.BaseID != 2 || got.ID != 3 {
			t.Errorf("%+v %v", got, err)
		}
		all, err := s.Settings.List(ctx, 0, 10)
		if err != nil || len(all) != 3 || all[1].State != SettingsUndone || all[1].WhyUndone == "" || all[2].State != SettingsPast {
			t.Errorf("%+v %v", all, err)
		}
		if all, err = s.Settings.List(ctx, 3, 1); err != nil || len(all) != 1 || all[0].ID != 2 || all[0].Kind != "edit" {
			t.Errorf("%+v %v", all, err)
		}
		if one, err := s.Settings.Get(ctx, 1); err != nil || one.Doc != "a" || one.Kind != "" {
			t.Errorf("%+v %v", one, err)
		}
		_, err = s.Settings.Get(ctx, 9)
		want(t, err, ErrNotFound)
	})
}

func TestSecretsAndAudit(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		secret := Secret{Name: "openai", Sealed: "x", Tail: "1234", Bound: "api.openai.com", ByID: "u", At: at(0)}
		want(t, s.Secrets.Put(ctx, Secret{Name: "openai", Sealed: "old"}), nil)
		want(t, s.Secrets.Put(ctx, secret), nil)
		if got, err := s.Secrets.Get(ctx, "openai"); err != nil || !reflect.DeepEqual(got, secret) {
			t.Errorf("%+v %v", got, err)
		}
		if all, err := s.Secrets.List(ctx); err != nil || len(all) != 1 {
			t.Error(len(all), err)
		}
		want(t, s.Secrets.Delete(ctx, "openai"), nil)
		want(t, s.Secrets.Delete(ctx, "openai"), ErrNotFound)

		act := Act{ID: "1", At: at(1), Who: "u", Via: "console", Remote: "r", Act: "login", Object: "o", Detail: "d", OK: true}
		want(t, s.Audit.Add(ctx, act), nil)
		want(t, s.Audit.Add(ctx, Act{Who: "u", Via: "command", Act: "login"}), nil)
		all, err := s.Audit.List(ctx, Page{})
		if err != nil || len(all) != 2 || !reflect.DeepEqual(all[1], act) || all[0].ID == "" || all[0].OK {
			t.Errorf("%+v %v", all, err)
		}
		if n, err := s.Audit.Trim(ctx, at(2)); n != 1 || err != nil {
			t.Error(n, err)
		}
	})
}
