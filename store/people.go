package store

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// Role says what a person may do.
type Role string

// The roles.
const (
	Owner  Role = "owner"
	Member Role = "member"
	Viewer Role = "viewer"
)

// ErrLastOwner says that nobody else could undo what was asked for.
var ErrLastOwner = errors.New("it is the last owner")

// User is a person with an account.
type User struct {
	ID         string
	Name       string // lower case; once
	Shown      string // as it is written on pages
	Role       Role
	Password   string // hash; "": none yet
	TOTP       string // sealed
	Locale     string
	CreatedAt  time.Time
	PasswordAt time.Time
	DisabledAt time.Time // zero: the account is in use
}

const (
	userColumns = "id, name, shown, role, password, totp, locale, created_at, password_at, disabled_at"
	selectUser  = "SELECT " + userColumns + " FROM users"
)

func (u *User) fields() []any {
	return []any{
		text{&u.ID}, text{&u.Name}, text{&u.Shown}, enum[Role]{&u.Role}, maybe{&u.Password}, maybe{&u.TOTP}, maybe{&u.Locale},
		stamp{&u.CreatedAt}, stamp{&u.PasswordAt}, stamp{&u.DisabledAt},
	}
}

// Users is the table of people.
type Users struct{ db *database }

// Add keeps an account: [ErrExists] if its name is taken.
func (t *Users) Add(ctx context.Context, u User) error {
	u.CreatedAt = orNow(u.CreatedAt, t.db.clock)
	_, err := t.db.exec(ctx, insert("users", userColumns), u.fields()...)
	return err
}

// AddFirst keeps the account of an owner if there is none yet, else [ErrConflict].
func (t *Users) AddFirst(ctx context.Context, u User) error {
	u.Role, u.CreatedAt = Owner, orNow(u.CreatedAt, t.db.clock)
	return t.db.change(ctx, func(tx *sql.Tx) error {
		if t.db.engine == Postgres { // two that come at once
			if _, err := tx.ExecContext(ctx, "LOCK TABLE users IN SHARE ROW EXCLUSIVE MODE"); err != nil {
				return err
			}
		}
		owners, err := count(ctx, tx, "SELECT COUNT(*) FROM users WHERE role = 'owner'")
		if err != nil {
			return err
		}
		if owners > 0 {
			return ErrConflict
		}
		_, err = execIn(ctx, tx, insert("users", userColumns), u.fields()...)
		return err
	})
}

// Get returns the account of an id.
func (t *Users) Get(ctx context.Context, id string) (User, error) {
	return first[User](ctx, t.db.read, selectUser+" WHERE id = $1", id)
}

// Named returns the account of a name.
func (t *Users) Named(ctx context.Context, name string) (User, error) {
	return first[User](ctx, t.db.read, selectUser+" WHERE name = $1", name)
}

// List lists all accounts by name.
func (t *Users) List(ctx context.Context) ([]User, error) {
	return list[User](ctx, t.db.read, selectUser+" ORDER BY name")
}

// HasOwner reports whether somebody owns the server.
func (t *Users) HasOwner(ctx context.Context) (bool, error) {
	n, err := count(ctx, t.db.read, "SELECT COUNT(*) FROM users WHERE role = 'owner'")
	return n > 0, err
}

// alter changes the account of an id as f does: [ErrLastOwner] if no owner would be left in use.
func (t *Users) alter(ctx context.Context, id string, f func(tx *sql.Tx, was User) error) error {
	return t.db.change(ctx, func(tx *sql.Tx) error {
		if t.db.engine == Postgres { // of two owners each of whom is demoted, one stays
			if _, err := tx.ExecContext(ctx, "LOCK TABLE users IN SHARE ROW EXCLUSIVE MODE"); err != nil {
				return err
			}
		}
		was, err := first[User](ctx, tx, selectUser+" WHERE id = $1", id)
		if err != nil {
			return err
		}
		if err := f(tx, was); err != nil || was.Role != Owner {
			return err
		}
		owners, err := count(ctx, tx, "SELECT COUNT(*) FROM users WHERE role = 'owner' AND disabled_at IS NULL")
		if err == nil && owners == 0 {
			err = refused(ErrLastOwner)
		}
		return err
	})
}

// Edit has f change an account and returns it as it is then. [ErrLastOwner] says that no owner would be left in use. An
// account whose role, password or use changes, or that loses its second factor, has no session any more. What an owner
// has invited to and nobody has followed yet ends with the owner's rights.
func (t *Users) Edit(ctx context.Context, id string, f func(*User) error) (u User, err error) {
	err = t.alter(ctx, id, func(tx *sql.Tx, was User) error {
		u = was
		if err := refused(f(&u)); err != nil {
			return err
		}
		u.ID = id
		if _, err := execIn(ctx, tx, "UPDATE users SET "+assign(userColumns)+" WHERE id = $11", append(u.fields(), id)...); err != nil {
			return err
		}
		if u.Role != Owner || !u.DisabledAt.IsZero() {
			if err := withdrawAll(ctx, tx, id); err != nil {
				return err
			}
		}
		if was.Role != u.Role || was.Password != u.Password || was.DisabledAt.IsZero() != u.DisabledAt.IsZero() || was.TOTP != "" && u.TOTP == "" {
			_, err = execIn(ctx, tx, "DELETE FROM sessions WHERE user_id = $1", id)
			return err
		}
		return nil
	})
	return u, err
}

// Delete drops an account with its sessions, its tokens and what it has invited to. Its devices and agents are nobody's then.
func (t *Users) Delete(ctx context.Context, id string) error {
	return t.alter(ctx, id, func(tx *sql.Tx, _ User) error {
		if err := withdrawAll(ctx, tx, id); err != nil {
			return err
		}
		_, err := execIn(ctx, tx, "DELETE FROM users WHERE id = $1", id)
		return err
	})
}

// withdrawAll ends what somebody has invited to.
func withdrawAll(ctx context.Context, tx *sql.Tx, userID string) error {
	_, err := execIn(ctx, tx, "DELETE FROM invites WHERE by_id = $1 AND used_at IS NULL", userID)
	return err
}

// Session is one browser of a person.
type Session struct {
	Hash      string // of its secret
	UserID    string
	CreatedAt time.Time
	SeenAt    time.Time
	ProvedAt  time.Time // the password was shown last
	EndsAt    time.Time
	Remote    string
	Browser   string
}

const (
	sessionColumns = "hash, user_id, created_at, seen_at, proved_at, ends_at, remote, browser"
	selectSession  = "SELECT " + sessionColumns + " FROM sessions"
)

func (s *Session) fields() []any {
	return []any{
		text{&s.Hash}, text{&s.UserID}, stamp{&s.CreatedAt}, stamp{&s.SeenAt}, stamp{&s.ProvedAt}, stamp{&s.EndsAt}, maybe{&s.Remote}, maybe{&s.Browser},
	}
}

// Sessions is the table of browsers that people are logged in with.
type Sessions struct{ db *database }

// maxSessions is how many sessions a person has at once.
const maxSessions = 50

// Add keeps a session; those that have ended go, and of too many of a person the one that was unused for longest.
func (t *Sessions) Add(ctx context.Context, s Session) error {
	now := t.db.clock()
	s.CreatedAt, s.SeenAt, s.ProvedAt = orNow(s.CreatedAt, t.db.clock), orNow(s.SeenAt, t.db.clock), orNow(s.ProvedAt, t.db.clock)
	return t.db.change(ctx, func(tx *sql.Tx) error {
		if _, err := execIn(ctx, tx, "DELETE FROM sessions WHERE ends_at <= $1", now.UnixMilli()); err != nil {
			return err
		}
		if _, err := execIn(ctx, tx, "DELETE FROM sessions WHERE user_id = $1 AND hash NOT IN (SELECT hash FROM sessions WHERE user_id = $2 ORDER BY seen_at DESC, hash LIMIT $3)", s.UserID, s.UserID, maxSessions-1); err != nil {
			return err
		}
		_, err := execIn(ctx, tx, insert("sessions", sessionColumns), s.fields()...)
		return err
	})
}

// Get returns the session of a hash that has not ended, with the person, whose account is in use.
func (t *Sessions) Get(ctx context.Context, hash string) (s Session, u User, err error) {
	if s, err = first[Session](ctx, t.db.read, selectSession+" WHERE hash = $1 AND ends_at > $2", hash, t.db.clock().UnixMilli()); err == nil {
		u, err = first[User](ctx, t.db.read, selectUser+" WHERE id = $1 AND disabled_at IS NULL", s.UserID)
	}
	return s, u, err
}

// Of lists the sessions of a person that have not ended, the one that was seen last first.
func (t *Sessions) Of(ctx context.Context, userID string) ([]Session, error) {
	return list[Session](ctx, t.db.read, selectSession+" WHERE user_id = $1 AND ends_at > $2 ORDER BY seen_at DESC, hash", userID, t.db.clock().UnixMilli())
}

// Seen notes that a session was used, and that it ends then.
func (t *Sessions) Seen(ctx context.Context, hash string, ends time.Time) error {
	return t.db.execOne(ctx, "UPDATE sessions SET seen_at = $1, ends_at = $2 WHERE hash = $3", t.db.clock().UnixMilli(), ends.UnixMilli(), hash)
}

// End ends a session.
func (t *Sessions) End(ctx context.Context, hash string) error {
	_, err := t.db.exec(ctx, "DELETE FROM sessions WHERE hash = $1", hash)
	return err
}

// EndAll ends all sessions of a person but one, "" for all.
func (t *Sessions) EndAll(ctx context.Context, userID, but string) error {
	_, err := t.db.exec(ctx, "DELETE FROM sessions WHERE user_id = $1 AND hash <> $2", userID, but)
	return err
}

// Invite lets somebody make an account, or set the password of one.
type Invite struct {
	Hash   string
	Role   Role
	UserID string // whose password is set; "": a new account
	ByID   string
	EndsAt time.Time
	UsedAt time.Time
}

const inviteColumns = "hash, role, user_id, by_id, ends_at, used_at"

func (i *Invite) fields() []any {
	return []any{text{&i.Hash}, enum[Role]{&i.Role}, maybe{&i.UserID}, maybe{&i.ByID}, stamp{&i.EndsAt}, stamp{&i.UsedAt}}
}

// Invites is the table of invites.
type Invites struct{ db *database }

// Add keeps an invite; those that have ended go.
func (t *Invites) Add(ctx context.Context, i Invite) error {
	now := t.db.clock().UnixMilli()
	return t.db.change(ctx, func(tx *sql.Tx) error {
		if _, err := execIn(ctx, tx, "DELETE FROM invites WHERE ends_at <= $1", now); err != nil {
			return err
		}
		_, err := execIn(ctx, tx, insert("invites", inviteColumns), i.fields()...)
		return err
	})
}

// List lists the invites that can be used, the one that ends first first.
func (t *Invites) List(ctx context.Context) ([]Invite, error) {
	return list[Invite](ctx, t.db.read, "SELECT "+inviteColumns+" FROM invites WHERE used_at IS NULL AND ends_at > $1 ORDER BY ends_at, hash", t.db.clock().UnixMilli())
}

// End ends an invite that can be used, else [ErrNotFound].
func (t *Invites) End(ctx context.Context, hash string) error {
	return t.db.execOne(ctx, "DELETE FROM invites WHERE hash = $1 AND used_at IS NULL AND ends_at > $2", hash, t.db.clock().UnixMilli())
}

// Open returns an invite that can be used, else [ErrNotFound].
func (t *Invites) Open(ctx context.Context, hash string) (Invite, error) {
	return first[Invite](ctx, t.db.read, "SELECT "+inviteColumns+" FROM invites WHERE hash = $1 AND used_at IS NULL AND ends_at > $2", hash, t.db.clock().UnixMilli())
}

// Take uses an invite, which works once: [ErrNotFound] if there is none, or it has ended, or was used.
func (t *Invites) Take(ctx context.Context, hash string) (i Invite, err error) {
	now := t.db.clock().UnixMilli()
	err = t.db.change(ctx, func(tx *sql.Tx) error {
		n, err := execIn(ctx, tx, "UPDATE invites SET used_at = $1 WHERE hash = $2 AND used_at IS NULL AND ends_at > $3", now, hash, now)
		if err == nil && n == 0 {
			err = ErrNotFound
		}
		if err == nil {
			i, err = first[Invite](ctx, tx, "SELECT "+inviteColumns+" FROM invites WHERE hash = $1", hash)
		}
		return err
	})
	return i, err
}

// APIToken lets a program act for a person.
type APIToken struct {
	ID        string
	UserID    string
	Name      string
	Head      string // first signs, by which people know it
	Hash      string
	Scopes    string // separated by spaces
	Streams   string // patterns, separated by spaces; "": all
	Rate      int    // requests in a second; 0: no limit
	CreatedAt time.Time
	UsedAt    time.Time
	EndsAt    time.Time // zero: never
	RevokedAt time.Time
}

const (
	apiTokenColumns = "id, user_id, name, head, hash, scopes, streams, rate, created_at, used_at, ends_at, revoked_at"
	selectAPIToken  = "SELECT " + apiTokenColumns + " FROM api_tokens"
)

func (a *APIToken) fields() []any {
	return []any{
		text{&a.ID}, text{&a.UserID}, text{&a.Name}, text{&a.Head}, text{&a.Hash}, text{&a.Scopes}, maybe{&a.Streams}, number{&a.Rate},
		stamp{&a.CreatedAt}, stamp{&a.UsedAt}, stamp{&a.EndsAt}, stamp{&a.RevokedAt},
	}
}

// APITokens is the table of tokens of programs.
type APITokens struct{ db *database }

// maxOver is how many tokens of a person are kept for show that can be used no more.
const maxOver = 100

// Add keeps a token; of too many of the person that are over the oldest go.
func (t *APITokens) Add(ctx context.Context, a APIToken) error {
	const over = "user_id = $1 AND (revoked_at IS NOT NULL OR ends_at <= $2)"
	now := t.db.clock().UnixMilli()
	a.CreatedAt = orNow(a.CreatedAt, t.db.clock)
	return t.db.change(ctx, func(tx *sql.Tx) error {
		if _, err := execIn(ctx, tx, "DELETE FROM api_tokens WHERE "+over+" AND id NOT IN (SELECT id FROM api_tokens WHERE "+over+" ORDER BY created_at DESC, id DESC LIMIT $3)", a.UserID, now, maxOver); err != nil {
			return err
		}
		_, err := execIn(ctx, tx, insert("api_tokens", apiTokenColumns), a.fields()...)
		return err
	})
}

// Get returns the token of a hash that can be used: of a person whose account is.
func (t *APITokens) Get(ctx context.Context, hash string) (APIToken, error) {
	return first[APIToken](ctx, t.db.read, selectAPIToken+" WHERE hash = $1 AND revoked_at IS NULL AND (ends_at IS NULL OR ends_at > $2) "+
		"AND EXISTS (SELECT 1 FROM users WHERE users.id = user_id AND disabled_at IS NULL)", hash, t.db.clock().UnixMilli())
}

// Of lists the tokens of a person, the newest first.
func (t *APITokens) Of(ctx context.Context, userID string) ([]APIToken, error) {
	return list[APIToken](ctx, t.db.read, selectAPIToken+" WHERE user_id = $1 ORDER BY created_at DESC, id", userID)
}

// Used notes when a token was used.
func (t *APITokens) Used(ctx context.Context, id string, at time.Time) error {
	return t.db.execOne(ctx, "UPDATE api_tokens SET used_at = $1 WHERE id = $2", at.UnixMilli(), id)
}

// Revoke ends a token.
func (t *APITokens) Revoke(ctx context.Context, id string) error {
	return t.db.execOne(ctx, "UPDATE api_tokens SET revoked_at = $1 WHERE id = $2 AND revoked_at IS NULL", t.db.clock().UnixMilli(), id)
}
