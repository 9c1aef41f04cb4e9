// Package talk lets the browsers of people talk: it gives tickets for sockets, and ends those whose person has left.
package talk

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"xiaozhi/connection/identity"
	"xiaozhi/internal/account"
)

const (
	ticketTime = time.Minute // from the ticket to the socket
	maxTickets = 256         // that wait; then the oldest counts no more
	settleTime = 10 * time.Second
	askAgain   = time.Second // whether the person of a socket may still talk
	maxBrowser = 64          // bytes of a browser's id
)

// Why a ticket lets nobody in.
var (
	ErrNoTicket = errors.New("the ticket is unknown, used or too old")
	ErrOrigin   = errors.New("the page is not the one that was given the ticket")
	ErrPerson   = errors.New("the ticket is that of another session, or its session has ended")
)

// Sessions are the sockets that talk now; those of a connection.Registry.
type Sessions interface {
	Talks(id string) bool
	// Dismiss ends the session of a device whose person may talk no longer. It does not wait.
	Dismiss(id string)
}

// Options make a [Desk]. All must be set.
type Options struct {
	// Session returns whose session a request shows by its cookie.
	Session func(r *http.Request) (account.Person, error)
	// Page makes a known device of a person's browser, or finds it.
	Page func(r *http.Request, p account.Person, id string) (identity.Guest, error)
	// Sessions may be set until Run begins.
	Sessions Sessions
}

// Desk gives tickets and takes them. Its methods may be called at the same time.
type Desk struct {
	o Options

	mu      sync.Mutex
	tickets []ticket // the oldest first
	live    map[string]pass
}

// ticket lets one page open one socket.
type ticket struct {
	hash   string
	origin string
	person account.Person
	guest  identity.Guest
	until  time.Time
}

// pass is a socket that a ticket has opened.
type pass struct {
	request *http.Request // shows the session, as long as there is one
	person  account.Person
	since   time.Time
}

// NewDesk makes a desk.
func NewDesk(o Options) *Desk { return &Desk{o: o, live: map[string]pass{}} }

// issue returns a ticket for a page of an origin.
func (d *Desk) issue(p account.Person, origin string, guest identity.Guest) string {
	secret, now := rand.Text(), time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.expire(now)
	if len(d.tickets) >= maxTickets {
		d.tickets = d.tickets[1:]
	}
	d.tickets = append(d.tickets, ticket{hash: hashOf(secret), origin: strings.ToLower(origin), person: p, guest: guest, until: now.Add(ticketTime)})
	return secret
}

// expire drops what is too old. The caller holds mu.
func (d *Desk) expire(now time.Time) {
	for len(d.tickets) > 0 && !now.Before(d.tickets[0].until) {
		d.tickets = d.tickets[1:]
	}
}

// Redeem returns the device of the page that asks for a socket with a ticket. The ticket is used up whatever comes of
// it. The request must come from the page's origin and show the session that the ticket was given to: neither is enough
// alone.
func (d *Desk) Redeem(r *http.Request, secret string) (identity.Guest, error) {
	t, ok := d.take(hashOf(secret))
	if !ok {
		return identity.Guest{}, ErrNoTicket
	}
	if origin := r.Header.Get("Origin"); origin == "" || !strings.EqualFold(origin, t.origin) {
		return identity.Guest{}, ErrOrigin
	}
	person, err := d.o.Session(r)
	if err != nil || !person.Same(t.person) || !mayTalk(person) {
		return identity.Guest{}, ErrPerson
	}
	shown := &http.Request{Method: http.MethodGet, URL: r.URL, Header: r.Header.Clone(), Host: r.Host, RemoteAddr: r.RemoteAddr, TLS: r.TLS}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.live[t.guest.ID] = pass{request: shown, person: person, since: time.Now()}
	return t.guest, nil
}

func (d *Desk) take(hash string) (t ticket, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.expire(time.Now())
	for i, t := range d.tickets {
		if t.hash == hash {
			d.tickets = append(d.tickets[:i:i], d.tickets[i+1:]...)
			return t, true
		}
	}
	return ticket{}, false
}

// Run ends sockets whose person has logged out, was disabled or may talk no longer, within a second, until ctx ends.
func (d *Desk) Run(ctx context.Context) {
	tick := time.NewTicker(askAgain)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for id, p := range d.passes() {
			if d.over(ctx, id, p) {
				d.close(id, p)
			}
		}
	}
}

func (d *Desk) passes() map[string]pass {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := make(map[string]pass, len(d.live))
	for id, p := range d.live {
		all[id] = p
	}
	return all
}

// over reports whether a socket has ended or must. A database that does not answer ends none.
func (d *Desk) over(ctx context.Context, id string, p pass) bool {
	if !d.o.Sessions.Talks(id) {
		return time.Since(p.since) > settleTime // before, it may be about to come
	}
	now, err := d.o.Session(p.request.WithContext(ctx))
	if _, definite := errors.AsType[account.ReasonError](err); err != nil && !definite {
		return false
	}
	if err == nil && mayTalk(now) {
		return false
	}
	d.o.Sessions.Dismiss(id)
	return true
}

func (d *Desk) close(id string, p pass) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.live[id].request == p.request { // else another socket has taken its place
		delete(d.live, id)
	}
}

// need is what a person must be to talk.
var need = account.Need{Role: account.Member, Scope: account.Admin}

func mayTalk(p account.Person) bool {
	return p.Scopes == nil && p.May(need, "", time.Time{}) == nil
}

// deviceID is the id of a person's browser. It tells nothing of either, and no other person gets it.
func deviceID(p account.Person, browser string) string {
	return "web-" + hashOf(p.ID + "\x00" + browser)[:16]
}

func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}
