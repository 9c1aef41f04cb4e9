package store

import (
	"context"
	"database/sql"
	"time"
)

// DeviceState says what the server thinks of a device.
type DeviceState string

// The states of a device. At most one device of a MAC is paired.
const (
	DeviceNew      DeviceState = "new"      // it has asked, and nobody has accepted it
	DevicePaired   DeviceState = "paired"   // it is known
	DeviceStranger DeviceState = "stranger" // its MAC belongs to another pair
	DeviceRefused  DeviceState = "refused"  // somebody does not want it
	DeviceBrowser  DeviceState = "browser"  // it keeps no token
)

// Device is a MAC with a Client-Id, and what is known of it.
type Device struct {
	ID       string // made by the caller; all other rows name it
	MAC      string // canonical
	ClientID string
	State    DeviceState
	Name     string // as people call it
	OwnerID  string // of a user
	AgentID  string

	Board, Chip, Firmware string
	Language, Zone        string // Zone is an IANA name
	Features              string // JSON: what its hello offered
	Remote                string // address it was last seen at
	Overrides             string // JSON: settings of this device alone
	KeepText, KeepSound   *int   // days; nil: as the settings say

	FirstAt, AskedAt, HelloAt, TurnAt time.Time // first and last signs of life: any, OTA, hello, turn
	LastStep                          string    // how far its last attempt to connect came
	PairedAt                          time.Time
	PairedBy                          string
	ReissueUntil                      time.Time // until then a new token may be given to the pair
}

const deviceColumns = "id, mac, client_id, state, name, owner_id, agent_id, board, chip, firmware, language, zone, features, remote, overrides, " +
	"keep_text_days, keep_sound_days, first_at, asked_at, hello_at, turn_at, last_step, paired_at, paired_by, reissue_until"

func (d *Device) fields() []any {
	return []any{
		text{&d.ID}, text{&d.MAC}, text{&d.ClientID}, enum[DeviceState]{&d.State}, maybe{&d.Name}, maybe{&d.OwnerID}, maybe{&d.AgentID},
		maybe{&d.Board}, maybe{&d.Chip}, maybe{&d.Firmware}, maybe{&d.Language}, maybe{&d.Zone}, maybe{&d.Features}, maybe{&d.Remote}, maybe{&d.Overrides},
		choice{&d.KeepText}, choice{&d.KeepSound}, stamp{&d.FirstAt}, stamp{&d.AskedAt}, stamp{&d.HelloAt}, stamp{&d.TurnAt}, maybe{&d.LastStep},
		stamp{&d.PairedAt}, maybe{&d.PairedBy}, stamp{&d.ReissueUntil},
	}
}

const selectDevice = "SELECT " + deviceColumns + " FROM devices"

// Devices is the table of devices.
type Devices struct{ db *database }

// Bind returns the device of a MAC and a Client-Id. If there is none, n is added: as n.State, or as a stranger if
// that is paired and another pair of this MAC is. Two that come at once get different states.
func (t *Devices) Bind(ctx context.Context, n Device) (d Device, added bool, err error) {
	if d, err = t.Find(ctx, n.MAC, n.ClientID); err == nil {
		return d, false, nil
	}
	n.FirstAt = orNow(n.FirstAt, t.db.clock)
	err = t.db.change(ctx, func(tx *sql.Tx) error {
		for _, state := range []DeviceState{n.State, DeviceStranger} {
			n.State = state
			done, err := execIn(ctx, tx, insert("devices", deviceColumns)+" ON CONFLICT DO NOTHING", n.fields()...)
			if err != nil {
				return err
			}
			if added = done > 0; added {
				break
			}
		}
		d, err = first[Device](ctx, tx, selectDevice+" WHERE mac = $1 AND client_id = $2", n.MAC, n.ClientID)
		return err
	})
	return d, added, err
}

// Get returns the device of an id.
func (t *Devices) Get(ctx context.Context, id string) (Device, error) {
	return first[Device](ctx, t.db.read, selectDevice+" WHERE id = $1", id)
}

// Find returns the device of a MAC and a Client-Id.
func (t *Devices) Find(ctx context.Context, mac, clientID string) (Device, error) {
	return first[Device](ctx, t.db.read, selectDevice+" WHERE mac = $1 AND client_id = $2", mac, clientID)
}

// OfMAC lists all pairs of a MAC, the one that is paired first.
func (t *Devices) OfMAC(ctx context.Context, mac string) ([]Device, error) {
	return list[Device](ctx, t.db.read, selectDevice+" WHERE mac = $1 ORDER BY CASE state WHEN 'paired' THEN 0 ELSE 1 END, first_at, id", mac)
}

// List lists devices, the one that was seen first last.
func (t *Devices) List(ctx context.Context, p Page) ([]Device, error) {
	at, id, limit := p.bounds()
	return list[Device](ctx, t.db.read, selectDevice+" WHERE (first_at, id) < ($1, $2) ORDER BY first_at DESC, id DESC LIMIT $3", at, id, limit)
}

// Count counts the devices of a state.
func (t *Devices) Count(ctx context.Context, state DeviceState) (int, error) {
	return count(ctx, t.db.read, "SELECT COUNT(*) FROM devices WHERE state = $1", string(state))
}

// Edit has f change a device, and returns it as it is then. Its id stays. An error of f changes nothing.
// [ErrExists] says that another pair of its MAC is paired already; see [Devices.Pair].
func (t *Devices) Edit(ctx context.Context, id string, f func(*Device) error) (Device, error) {
	return edit(ctx, t.db, selectDevice+" WHERE id = $1", "UPDATE devices SET "+assign(deviceColumns)+" WHERE id = $26", id, func(d *Device) error {
		err := f(d)
		d.ID = id
		return err
	})
}

// Pair accepts a device in the name of by. Another pair of the same MAC becomes a stranger and loses its tokens.
func (t *Devices) Pair(ctx context.Context, id, by string) (d Device, err error) {
	err = t.db.change(ctx, func(tx *sql.Tx) error {
		d, err = pair(ctx, t.db, tx, id, by)
		return err
	})
	return d, err
}

func pair(ctx context.Context, db *database, tx *sql.Tx, id, by string) (Device, error) {
	d, err := first[Device](ctx, tx, selectDevice+" WHERE id = $1"+db.forUpdate(), id)
	if err != nil {
		return d, err
	}
	const others = "SELECT id FROM devices WHERE mac = $1 AND id <> $2 AND state = 'paired'"
	if _, err := execIn(ctx, tx, "DELETE FROM device_tokens WHERE device_id IN ("+others+")", d.MAC, id); err != nil {
		return d, err
	}
	if _, err := execIn(ctx, tx, "UPDATE devices SET state = 'stranger' WHERE id IN ("+others+")", d.MAC, id); err != nil {
		return d, err
	}
	d.State, d.PairedAt, d.PairedBy = DevicePaired, db.clock(), by
	_, err = execIn(ctx, tx, "UPDATE devices SET state = 'paired', paired_at = $1, paired_by = $2 WHERE id = $3", stamp{&d.PairedAt}, maybe{&d.PairedBy}, id)
	return d, err
}
