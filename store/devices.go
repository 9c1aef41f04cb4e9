package store

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"time"
)

// DeviceState says what the server thinks of a device.
type DeviceState string

// The states of a device. At most one device of an address is paired or a browser.
const (
	DeviceNew      DeviceState = "new"      // nobody knows it yet
	DevicePaired   DeviceState = "paired"   // it is known
	DeviceBrowser  DeviceState = "browser"  // it is known and keeps no token
	DeviceStranger DeviceState = "stranger" // its address belongs to another pair
	DeviceRefused  DeviceState = "refused"  // somebody does not want it
)

// known reports whether a device of that state holds its address.
func (s DeviceState) known() bool { return s == DevicePaired || s == DeviceBrowser }

// Identity names a device: an address with a Client-Id, and what it can prove.
type Identity struct {
	ID         string // all other rows name it
	Address    string // Device-Id in its canonical spelling
	Client     string // hash of the Client-Id; "": it has none
	State      DeviceState
	Name       string   // as people call it
	AcceptedBy string   // who accepted it
	Token      string   // hash of the token that it uses; "": none yet
	Offered    []string // hashes of tokens that were sent since
	Keeps      bool     // it keeps a token that is left out
	Told       bool     // it has described itself
	Board      string
	Firmware   string
	FirstAt    time.Time
	SeenAt     time.Time
	SinceAt    time.Time // it has been in its state since
}

const identityColumns = "id, address, client, state, name, accepted_by, token, offered, keeps, told, board, firmware, first_at, seen_at, since_at"

func (d *Identity) fields() []any {
	return []any{
		text{&d.ID}, text{&d.Address}, text{&d.Client}, enum[DeviceState]{&d.State}, maybe{&d.Name}, maybe{&d.AcceptedBy}, maybe{&d.Token}, words{&d.Offered},
		flag{&d.Keeps}, flag{&d.Told}, maybe{&d.Board}, maybe{&d.Firmware}, stamp{&d.FirstAt}, stamp{&d.SeenAt}, stamp{&d.SinceAt},
	}
}

// Device is a device with all that is known of it.
type Device struct {
	Identity

	OwnerID             string // of a user
	AgentID             string
	Chip                string
	Language, Zone      string // Zone is an IANA name
	Features            string // JSON: what its hello offered
	Remote              string // address it was last seen at
	Overrides           string // JSON: settings of this device alone
	KeepText, KeepSound *int   // days; nil: as the settings say; 0: for ever

	AskedAt, HelloAt, TurnAt time.Time // last OTA, hello, turn
	LastStep                 string    // how far its last attempt to connect came
}

const (
	detailColumns = "owner_id, agent_id, chip, language, zone, features, remote, overrides, keep_text_days, keep_sound_days, asked_at, hello_at, turn_at, last_step"
	deviceColumns = identityColumns + ", " + detailColumns
	selectDevice  = "SELECT " + deviceColumns + " FROM devices"
)

func (d *Device) details() []any {
	return []any{
		maybe{&d.OwnerID}, maybe{&d.AgentID}, maybe{&d.Chip}, maybe{&d.Language}, maybe{&d.Zone}, maybe{&d.Features}, maybe{&d.Remote}, maybe{&d.Overrides},
		choice{&d.KeepText}, choice{&d.KeepSound}, stamp{&d.AskedAt}, stamp{&d.HelloAt}, stamp{&d.TurnAt}, maybe{&d.LastStep},
	}
}

func (d *Device) fields() []any { return append(d.Identity.fields(), d.details()...) }

// Pairing is a device's wish to be known, with the code by which a person finds it.
type Pairing struct {
	DeviceID  string
	Code      string // six digits
	Challenge string
	Remote    string
	BeganAt   time.Time
	EndsAt    time.Time
}

func (p *Pairing) fields() []any {
	return []any{text{&p.DeviceID}, text{&p.Code}, text{&p.Challenge}, maybe{&p.Remote}, stamp{&p.BeganAt}, stamp{&p.EndsAt}}
}

const pairingColumns = "device_id, code, challenge, remote, began_at, ends_at"

// DeviceChange is one step of what is known of devices: all of it is kept, or nothing.
type DeviceChange struct {
	Drop    []string   // ids of devices that go, with all that belongs to them
	Save    []Identity // added, or in place of those of the same ids, whose details and rows stay
	Open    []Pairing  // in place of those of the same devices
	Settled []string   // ids of devices whose pairings are over
}

// Devices is the table of devices, with their pairings.
type Devices struct{ db *database }

// Identities returns all devices and all pairings.
func (t *Devices) Identities(ctx context.Context) ([]Identity, []Pairing, error) {
	all, err := list[Identity](ctx, t.db.read, "SELECT "+identityColumns+" FROM devices ORDER BY id")
	if err != nil {
		return nil, nil, err
	}
	waiting, err := list[Pairing](ctx, t.db.read, "SELECT "+pairingColumns+" FROM pairings ORDER BY device_id")
	return all, waiting, err
}

// Commit writes a change.
func (t *Devices) Commit(ctx context.Context, c DeviceChange) error {
	return t.db.change(ctx, func(tx *sql.Tx) error {
		given := 0
		for _, id := range c.Drop {
			n, err := count(ctx, tx, "SELECT COUNT(*) FROM devices WHERE id = $1 AND agent_times > 0", id)
			if given += n; err != nil {
				return err
			}
			if _, err := execIn(ctx, tx, "DELETE FROM devices WHERE id = $1", id); err != nil {
				return err
			}
		}
		for _, d := range unknownFirst(c.Save) {
			d.FirstAt = orNow(d.FirstAt, t.db.clock)
			if _, err := execIn(ctx, tx, insert("devices", identityColumns)+" ON CONFLICT (id) DO UPDATE SET "+replace(identityColumns), d.fields()...); err != nil {
				return err
			}
		}
		for _, p := range c.Open {
			if _, err := execIn(ctx, tx, insert("pairings", pairingColumns)+" ON CONFLICT (device_id) DO UPDATE SET "+replace(pairingColumns), p.fields()...); err != nil {
				return err
			}
		}
		for _, id := range c.Settled {
			if _, err := execIn(ctx, tx, "DELETE FROM pairings WHERE device_id = $1", id); err != nil {
				return err
			}
		}
		if given > 0 {
			return agentsChanged(ctx, tx)
		}
		return nil
	})
}

// unknownFirst puts devices that give up their address before those that take it.
func unknownFirst(all []Identity) []Identity {
	rank := func(d Identity) int {
		if d.State.known() {
			return 1
		}
		return 0
	}
	return slices.SortedStableFunc(slices.Values(all), func(a, b Identity) int { return rank(a) - rank(b) })
}

// Get returns the device of an id.
func (t *Devices) Get(ctx context.Context, id string) (Device, error) {
	return first[Device](ctx, t.db.read, selectDevice+" WHERE id = $1", id)
}

// List lists devices, the one that was seen first last.
func (t *Devices) List(ctx context.Context, p Page) ([]Device, error) {
	at, id, limit := p.bounds()
	return list[Device](ctx, t.db.read, selectDevice+" WHERE (first_at, id) < ($1, $2) ORDER BY first_at DESC, id DESC LIMIT $3", at, id, limit)
}

// Presence has of a device whose it is, and when it talked last.
type Presence struct {
	DeviceID, OwnerID string
	TurnAt            time.Time
}

func (p *Presence) fields() []any {
	return []any{text{&p.DeviceID}, maybe{&p.OwnerID}, stamp{&p.TurnAt}}
}

// Presences returns it of all devices, in order.
func (t *Devices) Presences(ctx context.Context) ([]Presence, error) {
	return list[Presence](ctx, t.db.read, "SELECT id, owner_id, turn_at FROM devices ORDER BY id")
}

// OwnedBy returns the ids of the devices of a person, in order.
func (t *Devices) OwnedBy(ctx context.Context, userID string) (ids []string, err error) {
	rows, err := t.db.read.QueryContext(ctx, "SELECT id FROM devices WHERE owner_id = $1 ORDER BY id", userID)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

// Edit has f change the details of a device, and returns it as it is then. An error of f changes nothing. Who the
// device is stays: that is changed by [Devices.Commit].
func (t *Devices) Edit(ctx context.Context, id string, f func(*Device) error) (d Device, err error) {
	err = t.db.change(ctx, func(tx *sql.Tx) error {
		if d, err = first[Device](ctx, tx, selectDevice+" WHERE id = $1"+t.db.forUpdate(), id); err != nil {
			return err
		}
		who := d.Identity
		if err := refused(f(&d)); err != nil {
			return err
		}
		d.Identity = who
		_, err = execIn(ctx, tx, "UPDATE devices SET "+assign(detailColumns)+" WHERE id = $15", append(d.details(), id)...)
		return err
	})
	return d, err
}

// Learned returns what [Log.Learned] has kept of a device, by name.
func (t *Devices) Learned(ctx context.Context, id string) (map[string]string, error) {
	rows, err := t.db.read.QueryContext(ctx, "SELECT name, doc FROM device_states WHERE device_id = $1", id)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	docs := map[string]string{}
	for rows.Next() {
		var name, doc string
		if err := rows.Scan(&name, &doc); err != nil {
			return nil, err
		}
		docs[name] = doc
	}
	return docs, rows.Err()
}

// replace is the part of an INSERT that writes all columns but the first over those of the row that is there.
func replace(columns string) string {
	var set strings.Builder
	for i, name := range strings.Split(columns, ", ")[1:] {
		if i > 0 {
			set.WriteString(", ")
		}
		set.WriteString(name + " = excluded." + name)
	}
	return set.String()
}
