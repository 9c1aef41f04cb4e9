package talk

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/connection/identity"
	"xiaozhi/internal/account"
)

// A ticket is good for a minute, and of too many the oldest counts no more.
func TestTicketsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewDesk(Options{Session: func(*http.Request) (account.Person, error) { return account.Person{}, account.ErrNoSession }})
		try := func(secret string) error {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Header.Set("Origin", "http://here")
			_, err := d.Redeem(r, secret)
			return err
		}
		fresh, old := d.issue(account.Person{}, "http://here", identity.Guest{}), ""
		if err := try(fresh); err != ErrPerson { //nolint:errorlint // it is the value itself
			t.Errorf("a fresh ticket: %v", err)
		}
		old = d.issue(account.Person{}, "http://here", identity.Guest{})
		time.Sleep(ticketTime)
		if err := try(old); err != ErrNoTicket { //nolint:errorlint // it is the value itself
			t.Errorf("a ticket of a minute: %v", err)
		}
		first := d.issue(account.Person{}, "http://here", identity.Guest{})
		for range maxTickets {
			d.issue(account.Person{}, "http://here", identity.Guest{})
		}
		if err := try(first); err != ErrNoTicket || len(d.tickets) != maxTickets { //nolint:errorlint // it is the value itself
			t.Errorf("the first of too many: %v; %d wait", err, len(d.tickets))
		}
	})
}
