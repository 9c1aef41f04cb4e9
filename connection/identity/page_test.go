package identity

import (
	"errors"
	"testing"
	"testing/synctest"
)

// The page of a person is known at once and kept; nobody else is it, and a refusal holds.
func TestPagesAdmit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		pages := func() Pages { return Pages{r.Book} }
		const id = "web-0123456789abcdef"
		g, created, err := pages().Admit(t.Context(), id, "ann")
		if err != nil || !created || g.ID != id || !g.Regular || g.Unknown || g.Away != nil {
			t.Fatalf("%+v, %v, %v", g, created, err)
		}
		r.restart(nil)
		if g, created, err = pages().Admit(t.Context(), id, "ann"); err != nil || created || g.Away != nil {
			t.Fatalf("after a restart: %+v, %v, %v", g, created, err)
		}
		for _, client := range []string{"", clientA} {
			if got := r.Arrive(Visit{Address: id, ClientID: client, Near: true, Page: true}); got.ID == id && got.Away == nil {
				t.Errorf("a stranger with Client-Id %q is the page: %+v", client, got)
			}
		}
		if err := r.Refuse(t.Context(), id, "ann"); err != nil {
			t.Fatal(err)
		}
		if g, _, err = pages().Admit(t.Context(), id, "ann"); err != nil || g.Away == nil {
			t.Errorf("refused: %+v, %v", g, err)
		}
		r.records.err = errors.New("disk full")
		if _, created, err = pages().Admit(t.Context(), "web-2", "ann"); err == nil || created {
			t.Error("a page is known that could not be written down")
		}
	})
}
