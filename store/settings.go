package store

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"time"
)

// SettingsState says whether a revision of the settings counts.
type SettingsState string

// The states of a revision. One at most is active.
const (
	SettingsActive SettingsState = "active"
	SettingsPast   SettingsState = "past"
	SettingsUndone SettingsState = "undone"
)

// SettingsRevision holds the settings of the server from one change to the next.
type SettingsRevision struct {
	ID        int
	BaseID    int    // it was made of; 0: of nothing
	Doc       string // a part of the settings, in their shape
	State     SettingsState
	Note      string
	ByID      string
	At        time.Time
	WhyUndone string
	Kind      string // how it came, as the caller names it
}

const (
	settingsColumns = "id, base_id, doc, state, note, by_id, at, why_undone, kind"
	selectSettings  = "SELECT " + settingsColumns + " FROM settings_revisions"
)

func (s *SettingsRevision) fields() []any {
	return []any{
		whole{&s.ID}, number{&s.BaseID}, text{&s.Doc}, enum[SettingsState]{&s.State}, maybe{&s.Note}, maybe{&s.ByID}, stamp{&s.At}, maybe{&s.WhyUndone}, maybe{&s.Kind},
	}
}

// Settings is the table of the revisions of the settings.
type Settings struct{ db *database }

// Active returns the revision that counts, [ErrNotFound] if nothing was set.
func (t *Settings) Active(ctx context.Context) (SettingsRevision, error) {
	return first[SettingsRevision](ctx, t.db.read, selectSettings+" WHERE state = 'active'")
}

// Get returns a revision.
func (t *Settings) Get(ctx context.Context, id int) (SettingsRevision, error) {
	return first[SettingsRevision](ctx, t.db.read, selectSettings+" WHERE id = $1", id)
}

// List lists revisions older than before, the newest first, at most limit of them; before 0 begins with the newest.
func (t *Settings) List(ctx context.Context, before, limit int) ([]SettingsRevision, error) {
	if before <= 0 {
		before = math.MaxInt32
	}
	return list[SettingsRevision](ctx, t.db.read, selectSettings+" WHERE id < $1 ORDER BY id DESC LIMIT $2", before, min(limit, MaxPage))
}

// KeptRevisions is how many revisions of the settings can be looked at and undone. One more is kept: what the oldest of them
// was made of.
const KeptRevisions = 500

// Save makes a revision the active one and returns its id; those that are too old are dropped. It must have been made of the active one, which is past or,
// with a reason why, undone from then on; else [ErrConflict].
func (t *Settings) Save(ctx context.Context, s SettingsRevision, whyUndone string) (id int, err error) {
	err = t.db.change(ctx, func(tx *sql.Tx) error {
		if t.db.engine == Postgres {
			if _, err := tx.ExecContext(ctx, "LOCK TABLE settings_revisions IN SHARE ROW EXCLUSIVE MODE"); err != nil {
				return err
			}
		}
		active, err := first[SettingsRevision](ctx, tx, selectSettings+" WHERE state = 'active'")
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		if active.ID != s.BaseID {
			return ErrConflict
		}
		active.State = SettingsPast
		if whyUndone != "" {
			active.State = SettingsUndone
		}
		if _, err := execIn(ctx, tx, "UPDATE settings_revisions SET state = $1, why_undone = $2 WHERE id = $3", enum[SettingsState]{&active.State}, maybe{&whyUndone}, active.ID); err != nil {
			return err
		}
		last, err := count(ctx, tx, "SELECT COALESCE(MAX(id), 0) FROM settings_revisions")
		if err != nil {
			return err
		}
		s.ID, s.State, s.At = last+1, SettingsActive, orNow(s.At, t.db.clock)
		id = s.ID
		if _, err := execIn(ctx, tx, insert("settings_revisions", settingsColumns), s.fields()...); err != nil {
			return err
		}
		_, err = execIn(ctx, tx, "DELETE FROM settings_revisions WHERE id < $1 AND state <> 'active'", s.ID-KeptRevisions)
		return err
	})
	return id, err
}

// Secret is a key of a service, sealed by the caller.
type Secret struct {
	Name   string
	Sealed string
	Tail   string // last signs, by which people know it
	Bound  string // host that it may be sent to
	ByID   string
	At     time.Time
}

const (
	secretColumns = "name, sealed, tail, bound, by_id, at"
	selectSecret  = "SELECT " + secretColumns + " FROM secrets"
)

func (s *Secret) fields() []any {
	return []any{text{&s.Name}, text{&s.Sealed}, maybe{&s.Tail}, maybe{&s.Bound}, maybe{&s.ByID}, stamp{&s.At}}
}

// Secrets is the table of sealed secrets.
type Secrets struct{ db *database }

// Put keeps a secret in place of the one of its name.
func (t *Secrets) Put(ctx context.Context, s Secret) error {
	s.At = orNow(s.At, t.db.clock)
	_, err := t.db.exec(ctx, insert("secrets", secretColumns)+" ON CONFLICT (name) DO UPDATE SET "+replace(secretColumns), s.fields()...)
	return err
}

// Get returns the secret of a name.
func (t *Secrets) Get(ctx context.Context, name string) (Secret, error) {
	return first[Secret](ctx, t.db.read, selectSecret+" WHERE name = $1", name)
}

// List lists all secrets by name.
func (t *Secrets) List(ctx context.Context) ([]Secret, error) {
	return list[Secret](ctx, t.db.read, selectSecret+" ORDER BY name")
}

// Delete deletes the secret of a name.
func (t *Secrets) Delete(ctx context.Context, name string) error {
	return t.db.execOne(ctx, "DELETE FROM secrets WHERE name = $1", name)
}

// Act is something that somebody did to the server, without words of talks and without secrets.
type Act struct {
	ID     string
	At     time.Time
	Who    string // name of a user, or what acts by itself
	Via    string // console, token, command, device
	Remote string
	Act    string // such as login, pair, forget
	Object string
	Detail string
	OK     bool
}

const actColumns = "id, at, who, via, remote, act, object, detail, ok"

func (a *Act) fields() []any {
	return []any{
		text{&a.ID}, stamp{&a.At}, text{&a.Who}, text{&a.Via}, maybe{&a.Remote}, text{&a.Act}, maybe{&a.Object}, maybe{&a.Detail}, flag{&a.OK},
	}
}

// Audit is the table of acts.
type Audit struct{ db *database }

// Add keeps an act. Its id and its time are made if they are not set.
func (t *Audit) Add(ctx context.Context, a Act) error {
	if a.ID == "" {
		a.ID = NewID()
	}
	a.At = orNow(a.At, t.db.clock)
	_, err := t.db.exec(ctx, insert("audit", actColumns), a.fields()...)
	return err
}

// List lists acts, the newest first.
func (t *Audit) List(ctx context.Context, p Page) ([]Act, error) {
	at, id, limit := p.bounds()
	return list[Act](ctx, t.db.read, "SELECT "+actColumns+" FROM audit WHERE (at, id) < ($1, $2) ORDER BY at DESC, id DESC LIMIT $3", at, id, limit)
}

// Trim deletes acts from before a time.
func (t *Audit) Trim(ctx context.Context, before time.Time) (int64, error) {
	return t.db.exec(ctx, "DELETE FROM audit WHERE at < $1", before.UnixMilli())
}

// Switch is something that somebody has switched on beside the settings.
type Switch struct {
	Name   string
	EndsAt time.Time // zero: it is on until somebody switches it off
	By     string    // name of who has switched it on
	At     time.Time
}

const switchColumns = "name, ends_at, by_name, at"

func (s *Switch) fields() []any {
	return []any{text{&s.Name}, stamp{&s.EndsAt}, maybe{&s.By}, stamp{&s.At}}
}

// Switches is the table of what is switched on.
type Switches struct{ db *database }

// Put keeps a switch in place of the one of its name.
func (t *Switches) Put(ctx context.Context, s Switch) error {
	s.At = orNow(s.At, t.db.clock)
	_, err := t.db.exec(ctx, insert("switches", switchColumns)+" ON CONFLICT (name) DO UPDATE SET "+replace(switchColumns), s.fields()...)
	return err
}

// List returns what is switched on.
func (t *Switches) List(ctx context.Context) ([]Switch, error) {
	return list[Switch](ctx, t.db.read, "SELECT "+switchColumns+" FROM switches ORDER BY name")
}

// Get returns the switch of a name, or [ErrNotFound]: it is off.
func (t *Switches) Get(ctx context.Context, name string) (Switch, error) {
	return first[Switch](ctx, t.db.read, "SELECT "+switchColumns+" FROM switches WHERE name = $1", name)
}

// Delete switches off what has a name, or returns [ErrNotFound].
func (t *Switches) Delete(ctx context.Context, name string) error {
	return t.db.execOne(ctx, "DELETE FROM switches WHERE name = $1", name)
}
