package account

import (
	"context"
	"errors"
	"time"

	"xiaozhi/store"
)

// NewUser is an account that is to be made.
type NewUser struct {
	Name     string
	Role     Role
	Password string // "": they cannot log in yet
	Locale   string
}

// prepare checks an account that is to be made, and hashes its password.
func (s *Service) prepare(ctx context.Context, n NewUser) (u store.User, err error) {
	name, err := CheckName(n.Name)
	if err != nil {
		return u, err
	}
	if name == AdminName {
		return u, ErrNameTaken
	}
	if _, err := ParseRole(string(n.Role)); err != nil {
		return u, err
	}
	now := s.now()
	u = store.User{ID: store.NewID(), Name: name, Shown: n.Name, Role: n.Role, Locale: n.Locale, CreatedAt: now}
	if n.Password != "" {
		u.Password, err = s.hashed(ctx, name, n.Password)
		u.PasswordAt = now
	}
	return u, err
}

// hashed checks a password and hashes it.
func (s *Service) hashed(ctx context.Context, name, password string) (phc string, err error) {
	if err := CheckPassword(name, password); err != nil {
		return "", err
	}
	err = s.hasher.do(ctx, func() { phc = s.hasher.cost.hash(password) })
	return phc, err
}

// Add makes an account.
func (s *Service) Add(ctx context.Context, by Actor, n NewUser) error {
	u, err := s.prepare(ctx, n)
	if err == nil {
		err = orReason(s.db.Users.Add(ctx, u), store.ErrExists, ErrNameTaken)
	}
	s.did(ctx, by, "user.add", n.Name, err)
	return err
}

// Setup makes the first owner. It is refused for good once there is one.
func (s *Service) Setup(ctx context.Context, code string, n NewUser, from Origin) error {
	by := Actor{"", viaConsole, from.Remote.String()}
	err := s.guesses.guess(setupName, from.Remote, func() (bool, error) { return same(code, s.setup) && !s.HasOwner(ctx), nil })
	if err == nil {
		by.Name, n.Role = n.Name, Owner
		err = s.first(ctx, n)
	}
	s.did(ctx, by, "setup", by.Name, err)
	return err
}

// Found makes the first owner as the settings say. Where there is an owner it does nothing.
func (s *Service) Found(ctx context.Context, name, password string) error {
	if s.HasOwner(ctx) {
		return nil
	}
	err := s.first(ctx, NewUser{Name: name, Role: Owner, Password: password})
	if errors.Is(err, ErrHasOwner) { // another process was faster
		return nil
	}
	s.did(ctx, Actor{name, viaSettings, ""}, "setup", name, err)
	return err
}

func (s *Service) first(ctx context.Context, n NewUser) error {
	if n.Password == "" {
		return ErrPasswordShort
	}
	u, err := s.prepare(ctx, n)
	if err == nil {
		err = s.db.Users.AddFirst(ctx, u)
	}
	if err == nil {
		s.mu.Lock()
		s.owned = true
		s.mu.Unlock()
	}
	return orReason(orReason(err, store.ErrConflict, ErrHasOwner), store.ErrExists, ErrNameTaken)
}

// change has f change the account of a name. The last owner stays one. An account whose role, password or use changes
// has no session any more.
func (s *Service) change(ctx context.Context, by Actor, act, name string, f func(u *store.User)) error {
	u, err := named(ctx, s.db.Users, name)
	if err == nil {
		_, err = s.db.Users.Edit(ctx, u.ID, func(u *store.User) error { f(u); return nil })
	}
	err = orReason(orReason(err, store.ErrLastOwner, ErrLastOwner), store.ErrNotFound, ErrNoUser)
	s.did(ctx, by, act, name, err)
	return err
}

// SetRole changes what somebody may do, at their next request.
func (s *Service) SetRole(ctx context.Context, by Actor, name string, role Role) error {
	if _, err := ParseRole(string(role)); err != nil {
		return err
	}
	return s.change(ctx, by, "user.role", name, func(u *store.User) { u.Role = role })
}

// SetPassword changes a password, and ends all sessions. The tokens of programs stay.
func (s *Service) SetPassword(ctx context.Context, by Actor, name, password string) error {
	phc, err := s.hashed(ctx, name, password)
	if err != nil {
		return err
	}
	return s.change(ctx, by, "user.password", name, func(u *store.User) { u.Password, u.PasswordAt = phc, s.now() })
}

// Disable ends an account's use, with its sessions and, while it lasts, its tokens; or opens it again.
func (s *Service) Disable(ctx context.Context, by Actor, name string, disabled bool) error {
	if !disabled {
		return s.change(ctx, by, "user.enable", name, func(u *store.User) { u.DisabledAt = time.Time{} })
	}
	return s.change(ctx, by, "user.disable", name, func(u *store.User) { u.DisabledAt = s.now() })
}

// Delete drops an account with its sessions, its tokens and its invitations, for good. Its devices are nobody's then.
func (s *Service) Delete(ctx context.Context, by Actor, name string) error {
	u, err := named(ctx, s.db.Users, name)
	if err == nil {
		err = s.db.Users.Delete(ctx, u.ID)
	}
	err = orReason(orReason(err, store.ErrLastOwner, ErrLastOwner), store.ErrNotFound, ErrNoUser)
	s.did(ctx, by, "user.delete", name, err)
	return err
}

// Unfactor takes the second factor of somebody away, and ends all their sessions.
func (s *Service) Unfactor(ctx context.Context, by Actor, name string) error {
	return s.change(ctx, by, "totp.off", name, func(u *store.User) { u.TOTP = "" })
}

// EndSessions logs somebody out everywhere.
func (s *Service) EndSessions(ctx context.Context, by Actor, name string) error {
	u, err := named(ctx, s.db.Users, name)
	if err == nil {
		err = s.db.Sessions.EndAll(ctx, u.ID, "")
	}
	s.did(ctx, by, "session.end-all", name, err)
	return err
}

// EndOtherSessions logs a person out everywhere but where they ask.
func (s *Service) EndOtherSessions(ctx context.Context, p Person, by Actor) error {
	err := s.db.Sessions.EndAll(ctx, p.ID, p.session)
	s.did(ctx, by, "session.end-others", p.Name, err)
	return err
}

// Sessions lists the sessions of somebody.
func (s *Service) Sessions(ctx context.Context, name string) ([]store.Session, error) {
	u, err := named(ctx, s.db.Users, name)
	if err != nil {
		return nil, err
	}
	return s.db.Sessions.Of(ctx, u.ID)
}

func named(ctx context.Context, users *store.Users, name string) (store.User, error) {
	name, err := CheckName(name)
	if err != nil {
		return store.User{}, ErrNoUser
	}
	u, err := users.Named(ctx, name)
	return u, orReason(err, store.ErrNotFound, ErrNoUser)
}

// Audit lists what was done, the newest first.
func (s *Service) Audit(ctx context.Context, p store.Page) ([]store.Act, error) {
	return s.db.Audit.List(ctx, p)
}

// Users lists all accounts by name.
func (s *Service) Users(ctx context.Context) ([]store.User, error) { return s.db.Users.List(ctx) }

// ActivePeople lists who may use the server now.
func ActivePeople(ctx context.Context, s *Service) (people []Person, err error) {
	all, err := s.Users(ctx)
	for _, u := range all {
		if u.DisabledAt.IsZero() {
			people = append(people, Person{ID: u.ID, Name: u.Name, Role: u.Role})
		}
	}
	return people, err
}
