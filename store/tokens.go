package store

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// maxUnused is the number of tokens of a device that may wait to be used first. A device that asks more often than
// it connects has lost the older ones.
const maxUnused = 8

// DeviceTokens is the table of the tokens of devices, as hashes. A device has one that was used, or some that were
// sent and not used yet.
type DeviceTokens struct{ db *database }

// DeviceToken is a token of a device.
type DeviceToken struct {
	Hash      string
	DeviceID  string
	CreatedAt time.Time
	UsedAt    time.Time // zero: never
}

func (t *DeviceToken) fields() []any {
	return []any{text{&t.Hash}, text{&t.DeviceID}, stamp{&t.CreatedAt}, stamp{&t.UsedAt}}
}

const (
	deviceTokenColumns = "hash, device_id, created_at, used_at"
	selectDeviceToken  = "SELECT " + deviceTokenColumns + " FROM device_tokens"
)

// Add keeps the hash of a token that is sent to a device. The tokens that it has stay valid until this one is used.
func (t *DeviceTokens) Add(ctx context.Context, deviceID, hash string) error {
	n := DeviceToken{Hash: hash, DeviceID: deviceID, CreatedAt: t.db.clock()}
	return t.db.change(ctx, func(tx *sql.Tx) error {
		_, err := execIn(ctx, tx, "DELETE FROM device_tokens WHERE device_id = $1 AND used_at IS NULL AND hash NOT IN "+
			"(SELECT hash FROM device_tokens WHERE device_id = $2 AND used_at IS NULL ORDER BY created_at DESC, hash LIMIT $3)", deviceID, deviceID, maxUnused-1)
		if err == nil {
			_, err = execIn(ctx, tx, insert("device_tokens", deviceTokenColumns), n.fields()...)
		}
		return err
	})
}

// Use returns the token of a hash, and whether this is the first time that it is used: then all other tokens of the
// device have ended. [ErrNotFound] if there is none, or if its device is not known or was refused.
func (t *DeviceTokens) Use(ctx context.Context, hash string) (token DeviceToken, first bool, err error) {
	if token, err = t.find(ctx, t.db.read, hash); err != nil || !token.UsedAt.IsZero() {
		return token, false, err
	}
	err = t.db.change(ctx, func(tx *sql.Tx) error {
		token.UsedAt = t.db.clock()
		n, err := execIn(ctx, tx, "UPDATE device_tokens SET used_at = $1 WHERE hash = $2 AND used_at IS NULL", stamp{&token.UsedAt}, hash)
		if err != nil || n == 0 {
			return err
		}
		first = true
		_, err = execIn(ctx, tx, "DELETE FROM device_tokens WHERE device_id = $1 AND hash <> $2", token.DeviceID, hash)
		if err == nil {
			_, err = execIn(ctx, tx, "UPDATE devices SET reissue_until = NULL WHERE id = $1", token.DeviceID)
		}
		return err
	})
	if err == nil && !first { // somebody else was first, perhaps with another token
		token, err = t.find(ctx, t.db.read, hash)
	}
	return token, first && err == nil, err
}

func (t *DeviceTokens) find(ctx context.Context, q queryer, hash string) (DeviceToken, error) {
	return first[DeviceToken](ctx, q, selectDeviceToken+" WHERE hash = $1 AND EXISTS (SELECT 1 FROM devices WHERE id = device_id AND state IN ('paired', 'browser'))", hash)
}

// Used reports whether the device has used a token: then none is sent to it any more.
func (t *DeviceTokens) Used(ctx context.Context, deviceID string) (bool, error) {
	n, err := count(ctx, t.db.read, "SELECT COUNT(*) FROM device_tokens WHERE device_id = $1 AND used_at IS NOT NULL", deviceID)
	return n > 0, err
}

// Revoke ends all tokens of a device.
func (t *DeviceTokens) Revoke(ctx context.Context, deviceID string) error {
	_, err := t.db.exec(ctx, "DELETE FROM device_tokens WHERE device_id = $1", deviceID)
	return err
}

// Pairing is a device's wish to be known, with the code by which a person finds it.
type Pairing struct {
	DeviceID  string
	Code      string // six digits
	Challenge string
	Remote    string
	Polls     int // how often the device has asked whether it is accepted
	CreatedAt time.Time
	EndsAt    time.Time
}

func (p *Pairing) fields() []any {
	return []any{text{&p.DeviceID}, text{&p.Code}, text{&p.Challenge}, maybe{&p.Remote}, whole{&p.Polls}, stamp{&p.CreatedAt}, stamp{&p.EndsAt}}
}

const (
	pairingColumns = "device_id, code, challenge, remote, polls, created_at, ends_at"
	selectPairing  = "SELECT " + pairingColumns + " FROM pairings"
)

// ErrFull says that there are as many as there may be.
var ErrFull = errors.New("there are too many")

// Limits of pairings that are open at once.
const (
	maxPairings       = 64
	maxPairingsRemote = 8 // of one address
)

// Pairings is the table of pairings that wait for a person.
type Pairings struct{ db *database }

// Open adds a pairing, or replaces that of the device. Pairings that have ended make room first; [ErrFull] if there
// is none, [ErrExists] if the code belongs to another device: make another one.
func (t *Pairings) Open(ctx context.Context, p Pairing) error {
	p.CreatedAt = orNow(p.CreatedAt, t.db.clock)
	return t.db.change(ctx, func(tx *sql.Tx) error {
		if _, err := execIn(ctx, tx, "DELETE FROM pairings WHERE ends_at <= $1 OR device_id = $2", t.db.clock().UnixMilli(), p.DeviceID); err != nil {
			return err
		}
		all, err := count(ctx, tx, "SELECT COUNT(*) FROM pairings")
		if err != nil {
			return err
		}
		near, err := count(ctx, tx, "SELECT COUNT(*) FROM pairings WHERE remote = $1", p.Remote)
		if err != nil {
			return err
		}
		if all >= maxPairings || near >= maxPairingsRemote {
			return ErrFull
		}
		_, err = execIn(ctx, tx, insert("pairings", pairingColumns), p.fields()...)
		return err
	})
}

// Of returns the pairing of a device, if it has not ended.
func (t *Pairings) Of(ctx context.Context, deviceID string) (Pairing, error) {
	return first[Pairing](ctx, t.db.read, selectPairing+" WHERE device_id = $1 AND ends_at > $2", deviceID, t.db.clock().UnixMilli())
}

// Find returns the pairing of a code, if it has not ended.
func (t *Pairings) Find(ctx context.Context, code string) (Pairing, error) {
	return first[Pairing](ctx, t.db.read, selectPairing+" WHERE code = $1 AND ends_at > $2", code, t.db.clock().UnixMilli())
}

// List lists the pairings that wait, the newest first.
func (t *Pairings) List(ctx context.Context) ([]Pairing, error) {
	return list[Pairing](ctx, t.db.read, selectPairing+" WHERE ends_at > $1 ORDER BY created_at DESC, device_id", t.db.clock().UnixMilli())
}

// Polled counts that the device has asked, and keeps its pairing until then.
func (t *Pairings) Polled(ctx context.Context, deviceID string, until time.Time) error {
	return t.db.execOne(ctx, "UPDATE pairings SET polls = polls + 1, ends_at = $1 WHERE device_id = $2", until.UnixMilli(), deviceID)
}

// Accept pairs the device that shows the code, in the name of by. A code works once; [ErrNotFound] says that nobody
// shows it now.
func (t *Pairings) Accept(ctx context.Context, code, by string) (d Device, err error) {
	err = t.db.change(ctx, func(tx *sql.Tx) error {
		p, err := first[Pairing](ctx, tx, selectPairing+" WHERE code = $1 AND ends_at > $2"+t.db.forUpdate(), code, t.db.clock().UnixMilli())
		if err != nil {
			return err
		}
		if _, err := execIn(ctx, tx, "DELETE FROM pairings WHERE device_id = $1", p.DeviceID); err != nil {
			return err
		}
		d, err = pair(ctx, t.db, tx, p.DeviceID, by)
		return err
	})
	return d, err
}

// Drop ends the pairing of a device, if there is one.
func (t *Pairings) Drop(ctx context.Context, deviceID string) error {
	_, err := t.db.exec(ctx, "DELETE FROM pairings WHERE device_id = $1", deviceID)
	return err
}
