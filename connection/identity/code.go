package identity

import (
	"crypto/rand"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"slices"
	"time"

	"xiaozhi/internal/lockout"
	"xiaozhi/internal/nearby"
)

// Limits of codes.
const (
	codeLife    = 10 * time.Minute // after the device has asked last
	maxPairings = 64               // that wait at once
	maxFar      = 32               // of public addresses: the other half is for speakers at home
	maxOfOne    = 8                // of one address, or of one network of IPv6
	maxWrong    = 5                // wrong codes of one person in an hour
	maxWrongAll = 20               // of all
	guessWindow = time.Hour
	maxSpent    = 256         // codes whose end is remembered
	endsEvery   = time.Minute // between two notes of when a code ends
)

// Why a code is not accepted.
var (
	ErrNoSuchCode  = errors.New("no device here waits with this code")
	ErrCodeUsed    = errors.New("this code was used already")
	ErrCodeExpired = errors.New("this code has expired; the device says a new one when it is switched on")
	ErrNotACode    = errors.New("a code has six digits")
	ErrGuesses     = errors.New("too many wrong codes; accept the device by its id, or wait an hour")
	errCrowd       = errors.New("too many devices wait to be paired")
)

// desk holds the codes that wait for a person, and those that were typed wrongly. It
// is for one goroutine at a time.
type desk struct {
	byID    map[string]*Pairing
	spent   []spentCode // the oldest first
	guesses []guess     // of the last hour, the oldest first
}

type spentCode struct {
	code string
	why  error
}

type guess struct {
	by string
	at time.Time
}

func newDesk() *desk { return &desk{byID: map[string]*Pairing{}} }

// load takes a pairing of before the start.
func (d *desk) load(p Pairing) { d.byID[p.ID] = &p }

// extend lets the code of a device that asks live on, and reports whether that is
// worth to be written down; p is nil if it has none.
func (d *desk) extend(id string, now time.Time) (p *Pairing, write bool) {
	if p = d.byID[id]; p == nil {
		return nil, false
	}
	ends := now.Add(codeLife)
	if ends.Sub(p.Ends) < endsEvery {
		return p, false
	}
	p.Ends = ends
	return p, true
}

// open returns a new pairing of a device that has none.
func (d *desk) open(id, remote string, now time.Time) (Pairing, error) {
	if !d.room(remote) {
		return Pairing{}, errCrowd
	}
	made := &Pairing{ID: id, Code: d.unusedCode(), Challenge: rand.Text(), Remote: remote, Began: now, Ends: now.Add(codeLife)}
	d.byID[id] = made
	return *made, nil
}

// room reports whether one more device of an address may wait.
func (d *desk) room(remote string) bool {
	ofOne, far := 0, 0
	for _, p := range d.byID {
		if network(p.Remote) == network(remote) {
			ofOne++
		}
		if isFar(p.Remote) {
			far++
		}
	}
	return len(d.byID) < maxPairings && ofOne < maxOfOne && (far < maxFar || !isFar(remote))
}

// network returns the address, or the network, by which somebody is counted.
func network(remote string) string { return lockout.Address(net.JoinHostPort(remote, "0")) }

// isFar reports whether an address is a public one.
func isFar(remote string) bool {
	_, err := netip.ParseAddr(remote)
	return err == nil && !nearby.IsHost(remote)
}

// unusedCode returns six digits that no device has now, or had a short time ago.
func (d *desk) unusedCode() string {
	for {
		n, _ := rand.Int(rand.Reader, big.NewInt(1_000_000)) // it never fails
		code := fmt.Sprintf("%06d", n.Int64())
		if d.find(code) == nil && d.endOf(code) == nil {
			return code
		}
	}
}

// accept returns the id of the device with a code, for a person. The code waits on
// until settle.
func (d *desk) accept(code, by string, now time.Time) (id string, err error) {
	if d.guessedTooOften(by, now) {
		return "", ErrGuesses
	}
	if p := d.find(code); p != nil {
		return p.ID, nil
	}
	d.guesses = append(d.guesses, guess{by, now})
	if why := d.endOf(code); why != nil {
		return "", why
	}
	return "", ErrNoSuchCode
}

// guessedTooOften reports whether nobody, or not this person, may try a code now.
func (d *desk) guessedTooOften(by string, now time.Time) bool {
	for len(d.guesses) > 0 && now.Sub(d.guesses[0].at) >= guessWindow {
		d.guesses = d.guesses[1:]
	}
	own := 0
	for _, g := range d.guesses {
		if g.by == by {
			own++
		}
	}
	return own >= maxWrong || len(d.guesses) >= maxWrongAll
}

// settle ends the pairing of a device, if it has one.
func (d *desk) settle(id string, why error) {
	if p := d.byID[id]; p != nil {
		delete(d.byID, id)
		d.spent = append(d.spent, spentCode{p.Code, why})
		if over := len(d.spent) - maxSpent; over > 0 {
			d.spent = d.spent[over:]
		}
	}
}

// expire ends the pairings of devices that have stopped asking, and returns their ids.
func (d *desk) expire(now time.Time) (ids []string) {
	for id, p := range d.byID {
		if !now.Before(p.Ends) {
			ids = append(ids, id)
		}
	}
	for _, id := range ids {
		d.settle(id, ErrCodeExpired)
	}
	return ids
}

func (d *desk) find(code string) *Pairing {
	for _, p := range d.byID {
		if same(code, p.Code) {
			return p
		}
	}
	return nil
}

// endOf says how a code has ended that waits no more; nil: it is not remembered.
func (d *desk) endOf(code string) error {
	for _, s := range slices.Backward(d.spent) {
		if s.code == code {
			return s.why
		}
	}
	return nil
}

func isCode(s string) bool { return len(s) == 6 && digitsOnly(s) }

func digitsOnly(s string) bool {
	for _, c := range s {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}
