package account

import (
	"context"
	"crypto/subtle"
	"errors"
	"net/netip"
	"time"

	"xiaozhi/store"
)

// Origin tells where a request comes from.
type Origin struct {
	Remote  netip.Addr
	Browser string // as it calls itself
}

// Ways of coming, for the audit.
const (
	viaConsole  = "console"
	viaToken    = "token"
	viaSettings = "settings"
	ViaCommand  = "command"
)

// AdminName is who asks by the admin token, in the audit. No account can be made of this name.
const AdminName = "admin-token"

// What is guessed at beside passwords, among their names. No account has these.
const (
	setupName  = "/setup"  // the setup code
	inviteName = "/invite" // invitations
	codeName   = "/code/"  // codes of a second factor, with the id of the account
	oddName    = "/odd"    // all names that no account can have
)

// same compares secrets in a time that does not depend on them.
func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// How long a session lasts.
const (
	idleTime    = 7 * 24 * time.Hour
	sessionTime = 30 * 24 * time.Hour
	seenEvery   = time.Minute // how exactly it is known when a session was used
	maxBrowser  = 200         // bytes kept of what a browser says of itself
)

// SessionSeconds is how long a browser keeps the cookie of a session, which may end before.
const SessionSeconds = int(sessionTime / time.Second)

// Login begins a session, and returns the secret for the cookie. A wrong name and a wrong password are the same.
func (s *Service) Login(ctx context.Context, name string, shown Proof, from Origin) (secret string, err error) {
	if name, err = CheckName(name); err != nil {
		name = oddName
	}
	var u store.User
	err = s.guesses.guess(name, from.Remote, func() (ok bool, err error) {
		if u, ok, err = s.right(ctx, name, shown.Password); ok {
			ok, err = s.second(ctx, u, shown.Code)
		}
		return ok, err
	})
	if err == nil {
		secret, err = s.begin(ctx, u, from)
	}
	who := name
	if err != nil && u.ID == "" {
		who = "" // it may be a password that was typed into the wrong field
	}
	s.did(ctx, Actor{who, viaConsole, from.Remote.String()}, "login", who, err)
	return secret, err
}

// right looks whether a name and a password belong together, at the same cost for names that nobody has.
func (s *Service) right(ctx context.Context, name, password string) (u store.User, ok bool, err error) {
	u, err = s.db.Users.Named(ctx, name)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return u, false, err
	}
	var old bool
	if err := s.hasher.do(ctx, func() { ok, old = s.hasher.cost.matches(u.Password, password) }); err != nil {
		return u, false, err
	}
	ok = ok && u.DisabledAt.IsZero()
	if ok && old {
		s.renew(ctx, u, password)
	}
	return u, ok, nil
}

// renew hashes a password as it is done today, if it is still the same.
func (s *Service) renew(ctx context.Context, u store.User, password string) {
	phc := ""
	err := s.hasher.do(ctx, func() { phc = s.hasher.cost.hash(password) })
	if err == nil {
		_, err = s.db.Users.Edit(ctx, u.ID, func(now *store.User) error {
			if now.Password == u.Password {
				now.Password = phc
			}
			return nil
		})
	}
	if err != nil {
		s.log.Warn("a password keeps its old hash", "user", u.Name, "err", err)
	}
}

// begin adds a session of a user. It looks again afterwards: a change of the password or a disabling that came first has
// not seen it, and one that comes later ends it.
func (s *Service) begin(ctx context.Context, u store.User, from Origin) (secret string, err error) {
	secret, kept := newSecret("")
	now := s.now()
	browser := from.Browser[:min(len(from.Browser), maxBrowser)]
	err = s.db.Sessions.Add(ctx, store.Session{
		Hash: kept, UserID: u.ID, CreatedAt: now, SeenAt: now, ProvedAt: now, EndsAt: now.Add(idleTime), Remote: from.Remote.String(), Browser: browser,
	})
	if err != nil {
		return "", err
	}
	is, err := s.db.Users.Get(ctx, u.ID)
	if err != nil || !is.DisabledAt.IsZero() || !is.PasswordAt.Equal(u.PasswordAt) {
		return "", errors.Join(ErrBadLogin, err, s.db.Sessions.End(context.WithoutCancel(ctx), kept))
	}
	return secret, nil
}

// Begin begins a session for a person whose others have ended, as they changed their password or second factor.
func (s *Service) Begin(ctx context.Context, p Person, from Origin) (secret string, err error) {
	u, err := s.db.Users.Get(ctx, p.ID)
	if err != nil {
		return "", orReason(err, store.ErrNotFound, ErrNoUser)
	}
	return s.begin(ctx, u, from)
}

// Session returns who has the secret of a session, or [ErrNoSession].
func (s *Service) Session(ctx context.Context, secret string) (p Person, err error) {
	if secret == "" {
		return p, ErrNoSession
	}
	session, u, err := s.db.Sessions.Get(ctx, keep(secret))
	if err != nil {
		return p, orReason(err, store.ErrNotFound, ErrNoSession)
	}
	now := s.now()
	if now.Sub(session.SeenAt) >= seenEvery {
		ends := session.CreatedAt.Add(sessionTime)
		if idle := now.Add(idleTime); idle.Before(ends) {
			ends = idle
		}
		if err := s.db.Sessions.Seen(ctx, session.Hash, ends); err != nil { // it goes on as it was
			s.log.Warn("a session cannot be kept longer", "user", u.Name, "err", err)
		}
	}
	return Person{ID: u.ID, Name: u.Name, Shown: u.Shown, Role: u.Role, Proved: session.ProvedAt, Second: u.TOTP != "", session: session.Hash}, nil
}

// Prove shows the password of a session again, and a code where there is a second factor. Another session goes on in
// the place of that one, whose secret is returned: who has stolen the one before has nothing of it.
func (s *Service) Prove(ctx context.Context, p Person, shown Proof, from Origin) (secret string, err error) {
	u, err := s.shows(ctx, p, shown, from)
	if err == nil {
		secret, err = s.begin(ctx, u, from)
	}
	if err == nil {
		err = s.db.Sessions.End(ctx, p.session)
	}
	s.did(ctx, p.Actor(from.Remote.String()), "prove", p.Name, err)
	return secret, err
}

// Shows is Prove for one act: the session stays as it is.
func (s *Service) Shows(ctx context.Context, p Person, shown Proof, from Origin) error {
	_, err := s.shows(ctx, p, shown, from)
	s.did(ctx, p.Actor(from.Remote.String()), "prove", p.Name, err)
	return err
}

func (s *Service) shows(ctx context.Context, p Person, shown Proof, from Origin) (u store.User, err error) {
	if p.session == "" { // a program has no password
		return u, ErrForbidden
	}
	err = s.guesses.guess(p.Name, from.Remote, func() (ok bool, err error) {
		if u, ok, err = s.right(ctx, p.Name, shown.Password); ok {
			ok, err = s.second(ctx, u, shown.Code)
		}
		return ok, err
	})
	return u, err
}

// Refused keeps that somebody asked for what is not for them.
func (s *Service) Refused(ctx context.Context, by Actor, what string) {
	s.did(ctx, by, "refused", what, ErrForbidden)
}

// Logout ends a session.
func (s *Service) Logout(ctx context.Context, p Person, from Origin) error {
	err := s.db.Sessions.End(ctx, p.session)
	s.did(ctx, p.Actor(from.Remote.String()), "logout", p.Name, err)
	return err
}
