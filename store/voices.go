package store

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"
)

// Person is somebody whose voice may be known. They need no account.
type Person struct {
	ID     string
	Name   string // once, whatever its letters
	UserID string // their account; "": none
	ByName string // who has added them
	At     time.Time
}

// Voice is a print of a person's voice.
type Voice struct {
	ID       string
	PersonID string
	Service  string // section of the settings that has made it
	Model    string // that has made it
	Print    []byte // nil: the service keeps it under the id
	Source   string // how the sound came
	DeviceID string // that it came from; "": none
	Length   time.Duration
	At       time.Time
}

// VoiceRemoval is a print that a service is still to forget.
type VoiceRemoval struct {
	ID      string
	Service string
	At      time.Time
	NextAt  time.Time // not before
	Tries   int
	Fault   string // of the last try
}

const (
	personColumns = "id, name, folded, user_id, by_name, at"
	selectPerson  = "SELECT " + personColumns + " FROM people"
	voiceColumns  = "id, person_id, service, model, print, source, device_id, ms, at"
	removeColumns = "id, service, at, next_at, tries, fault"
)

func (p *Person) fields() []any {
	folded := fold(p.Name)
	return []any{text{&p.ID}, text{&p.Name}, text{&folded}, maybe{&p.UserID}, maybe{&p.ByName}, stamp{&p.At}}
}

func (v *Voice) fields() []any {
	return []any{
		text{&v.ID}, text{&v.PersonID}, text{&v.Service}, text{&v.Model}, octets{&v.Print}, text{&v.Source}, maybe{&v.DeviceID}, span{&v.Length}, stamp{&v.At},
	}
}

func (r *VoiceRemoval) fields() []any {
	return []any{text{&r.ID}, text{&r.Service}, stamp{&r.At}, stamp{&r.NextAt}, whole{&r.Tries}, maybe{&r.Fault}}
}

// fold is the form of a name by which it is found.
func fold(name string) string { return strings.ToLower(strings.Join(strings.Fields(name), " ")) }

// People is the table of people whose voices may be known, with those of voices and of what services are to forget.
type People struct{ db *database }

// changed runs f in a transaction and counts the change, so that other servers read the people again.
func (t *People) changed(ctx context.Context, f func(tx *sql.Tx) error) error {
	return t.db.change(ctx, func(tx *sql.Tx) error {
		if err := f(tx); err != nil {
			return err
		}
		_, err := execIn(ctx, tx, "UPDATE changes SET times = times + 1 WHERE what = 'people'")
		return err
	})
}

// Changes counts the changes that anybody has made of people and voices.
func (t *People) Changes(ctx context.Context) (int, error) {
	return count(ctx, t.db.read, "SELECT times FROM changes WHERE what = 'people'")
}

// List lists all people by name, all voices, the oldest first, and what services are to forget.
func (t *People) List(ctx context.Context) (people []Person, voices []Voice, removals []VoiceRemoval, err error) {
	if people, err = list[Person](ctx, t.db.read, selectPerson+" ORDER BY folded"); err != nil {
		return nil, nil, nil, err
	}
	if voices, err = list[Voice](ctx, t.db.read, "SELECT "+voiceColumns+" FROM voices ORDER BY at, id"); err != nil {
		return nil, nil, nil, err
	}
	removals, err = list[VoiceRemoval](ctx, t.db.read, "SELECT "+removeColumns+" FROM voice_removals ORDER BY at, id")
	return people, voices, removals, err
}

// Add keeps a person: [ErrExists] if somebody has the name.
func (t *People) Add(ctx context.Context, p Person) error {
	p.At = orNow(p.At, t.db.clock)
	return t.changed(ctx, func(tx *sql.Tx) error {
		_, err := execIn(ctx, tx, insert("people", personColumns), p.fields()...)
		return err
	})
}

// Edit changes name and account of a person: [ErrNotFound], or [ErrExists] if somebody else has the name. What is remembered of
// them is of the new name then.
func (t *People) Edit(ctx context.Context, id, name, userID string) error {
	folded := fold(name)
	return t.changed(ctx, func(tx *sql.Tx) error {
		was, err := first[Person](ctx, tx, selectPerson+" WHERE id = $1"+t.db.forUpdate(), id)
		if err != nil {
			return err
		}
		if _, err := execIn(ctx, tx, "UPDATE people SET name = $1, folded = $2, user_id = $3 WHERE id = $4", text{&name}, text{&folded}, maybe{&userID}, id); err != nil {
			return err
		}
		_, err = execIn(ctx, tx, "UPDATE memories SET person = $1 WHERE person = $2", text{&name}, text{&was.Name})
		return err
	})
}

// Delete deletes a person with their voices for good, and has services forget those that they keep; memories: also what is
// remembered of them. What they said before stays, without their name. [ErrNotFound] if they are not there.
func (t *People) Delete(ctx context.Context, id string, memories bool) error {
	err := t.changed(ctx, func(tx *sql.Tx) error {
		was, err := first[Person](ctx, tx, selectPerson+" WHERE id = $1"+t.db.forUpdate(), id)
		if err != nil {
			return err
		}
		if err := t.remove(ctx, tx, "person_id", id); err != nil {
			return err
		}
		if memories {
			if _, err := execIn(ctx, tx, "DELETE FROM memories WHERE person = $1", text{&was.Name}); err != nil {
				return err
			}
		}
		_, err = execIn(ctx, tx, "DELETE FROM people WHERE id = $1", id)
		return err
	})
	if err != nil {
		return err
	}
	return t.db.empty(ctx)
}

// remove has services forget the prints that they keep of the voices where a column has a value, at once.
func (t *People) remove(ctx context.Context, tx *sql.Tx, column, value string) error {
	now := t.db.clock().UnixMilli()
	_, err := execIn(ctx, tx, "INSERT INTO voice_removals (id, service, at, next_at, tries) SELECT id, service, CAST($1 AS BIGINT), CAST($2 AS BIGINT), 0 FROM voices WHERE "+column+" = $3 AND print IS NULL",
		now, now, value)
	return err
}

// Begin notes a print that a service is being asked to keep: unless [People.AddVoice] follows, it is to forget it from then on.
func (t *People) Begin(ctx context.Context, r VoiceRemoval) error {
	r.At = orNow(r.At, t.db.clock)
	_, err := t.db.exec(ctx, insert("voice_removals", removeColumns), r.fields()...)
	return err
}

// AddVoice keeps a voice, of which at most most of the person stay, the newest ones: [ErrNotFound] for a person who is not there.
func (t *People) AddVoice(ctx context.Context, v Voice, most int) error {
	v.At = orNow(v.At, t.db.clock)
	return t.changed(ctx, func(tx *sql.Tx) error {
		if _, err := first[Person](ctx, tx, selectPerson+" WHERE id = $1"+t.db.forUpdate(), v.PersonID); err != nil {
			return err
		}
		if _, err := execIn(ctx, tx, "DELETE FROM voice_removals WHERE id = $1", v.ID); err != nil {
			return err
		}
		if _, err := execIn(ctx, tx, insert("voices", voiceColumns), v.fields()...); err != nil {
			return err
		}
		old, err := list[Voice](ctx, tx, "SELECT "+voiceColumns+" FROM voices WHERE person_id = $1 ORDER BY at DESC, id DESC LIMIT 1000 OFFSET $2", v.PersonID, most)
		for i := range old {
			if err = errors.Join(err, t.drop(ctx, tx, old[i].ID)); err != nil {
				return err
			}
		}
		return err
	})
}

// drop deletes a voice, and has its service forget it.
func (t *People) drop(ctx context.Context, tx *sql.Tx, id string) error {
	if err := t.remove(ctx, tx, "id", id); err != nil {
		return err
	}
	_, err := execIn(ctx, tx, "DELETE FROM voices WHERE id = $1", id)
	return err
}

// DeleteVoice deletes a voice of a person for good, and has its service forget it: [ErrNotFound].
func (t *People) DeleteVoice(ctx context.Context, personID, id string) error {
	err := t.changed(ctx, func(tx *sql.Tx) error {
		n, err := count(ctx, tx, "SELECT COUNT(*) FROM voices WHERE id = $1 AND person_id = $2", id, personID)
		if err == nil && n == 0 {
			err = ErrNotFound
		}
		if err == nil {
			err = t.drop(ctx, tx, id)
		}
		return err
	})
	if err != nil {
		return err
	}
	return t.db.empty(ctx)
}

// Removed says that a service has forgotten a print.
func (t *People) Removed(ctx context.Context, id string) error {
	_, err := t.db.exec(ctx, "DELETE FROM voice_removals WHERE id = $1", id)
	return err
}

// NotRemoved says why a service has not forgotten a print, and when it is asked again.
func (t *People) NotRemoved(ctx context.Context, id, fault string, next time.Time) error {
	_, err := t.db.exec(ctx, "UPDATE voice_removals SET tries = tries + 1, fault = $1, next_at = $2 WHERE id = $3", maybe{&fault}, next.UnixMilli(), id)
	return err
}

// Names returns the names of people by their ids.
func (t *People) Names(ctx context.Context) (map[string]string, error) {
	people, err := list[Person](ctx, t.db.read, selectPerson)
	names := make(map[string]string, len(people))
	for _, p := range people {
		names[p.ID] = p.Name
	}
	return names, err
}
