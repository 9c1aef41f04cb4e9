// Package recordstest holds the suite of tests that all [identity.Records] must pass.
package recordstest

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"xiaozhi/connection/identity"
)

// Run tests records. open returns those of a place that is empty at the first call,
// and what is kept there at every later one, as after a start of the program.
func Run(t *testing.T, open func(t *testing.T) identity.Records) {
	t.Helper()
	at := time.Date(2026, 11, 22, 7, 0, 0, 0, time.UTC)
	speaker := identity.Record{
		ID: "24:6f:28:aa:10:02", Address: "24:6f:28:aa:10:02", Client: "c1", State: identity.Paired, Name: "Küche", By: "anna",
		Tokens: identity.Tokens{Used: "t1", Offered: []string{"t2", "t3"}}, Keeps: true, Told: true,
		Board: "bread", Firmware: "2.4.2", First: at, Seen: at.Add(time.Hour), Since: at.Add(time.Minute),
	}
	stranger := identity.Record{
		ID: "24:6f:28:aa:10:02~0a1b2c3d", Address: "24:6f:28:aa:10:02", Client: "c2", State: identity.Stranger,
		First: at, Seen: at, Since: at,
	}
	waiting := identity.Record{ID: "page", Address: "page", First: at, Seen: at, Since: at}
	code := identity.Pairing{ID: "page", Code: "048291", Challenge: "ch", Remote: "192.168.1.7", Began: at, Ends: at.Add(10 * time.Minute)}

	holds(t, open(t), nil, nil)
	commit(t, open(t), identity.Change{Save: []identity.Record{speaker, stranger, waiting}, Open: []identity.Pairing{code}})
	holds(t, open(t), []identity.Record{speaker, stranger, waiting}, []identity.Pairing{code})

	speaker.State, speaker.Tokens, speaker.Name = identity.Refused, identity.Tokens{}, ""
	code.Ends = at.Add(20 * time.Minute)
	commit(t, open(t), identity.Change{Save: []identity.Record{speaker}, Open: []identity.Pairing{code}})
	holds(t, open(t), []identity.Record{speaker, stranger, waiting}, []identity.Pairing{code})

	t.Run("of a change that fails nothing is kept", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := open(t).Commit(ctx, identity.Change{Drop: []string{speaker.ID}, Save: []identity.Record{{ID: "x", Address: "x"}}}); !errors.Is(err, context.Canceled) {
			t.Errorf("commit after its context has ended: %v", err)
		}
		holds(t, open(t), []identity.Record{speaker, stranger, waiting}, []identity.Pairing{code})
	})

	// One pair takes the address of another: the old record goes before the new one comes.
	stranger.ID, stranger.State = speaker.ID, identity.Paired
	commit(t, open(t), identity.Change{Drop: []string{"24:6f:28:aa:10:02~0a1b2c3d", "never seen"}, Save: []identity.Record{stranger}, Settled: []string{"page", "never seen"}})
	holds(t, open(t), []identity.Record{stranger, waiting}, nil)

	commit(t, open(t), identity.Change{Open: []identity.Pairing{code}})
	commit(t, open(t), identity.Change{Drop: []string{"page"}})
	holds(t, open(t), []identity.Record{stranger}, nil)
}

func commit(t *testing.T, r identity.Records, c identity.Change) {
	t.Helper()
	if err := r.Commit(t.Context(), c); err != nil {
		t.Fatalf("commit: %v", err)
	}
}

// holds fails the test unless exactly this is kept.
func holds(t *testing.T, r identity.Records, records []identity.Record, pairings []identity.Pairing) {
	t.Helper()
	gotRecords, gotPairings, err := r.Load(t.Context())
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	same(t, byID(gotRecords, func(r identity.Record) string { return r.ID }), byID(records, func(r identity.Record) string { return r.ID }))
	same(t, byID(gotPairings, func(p identity.Pairing) string { return p.ID }), byID(pairings, func(p identity.Pairing) string { return p.ID }))
}

func byID[V any](list []V, id func(V) string) map[string]V {
	m := map[string]V{}
	for _, v := range list {
		m[id(v)] = v
	}
	return m
}

func same[V any](t *testing.T, got, want map[string]V) {
	t.Helper()
	for id, w := range want {
		if g, ok := got[id]; !ok || !reflect.DeepEqual(plain(g), plain(w)) {
			t.Errorf("%s: got %+v\nwant %+v", id, got[id], w)
		}
	}
	for id := range got {
		if _, ok := want[id]; !ok {
			t.Errorf("%s is kept", id)
		}
	}
}

// plain is a value without what may differ: the zone of times, and an empty list for none.
func plain(v any) any {
	switch v := v.(type) {
	case identity.Record:
		v.First, v.Seen, v.Since = v.First.UTC(), v.Seen.UTC(), v.Since.UTC()
		if len(v.Tokens.Offered) == 0 {
			v.Tokens.Offered = nil
		}
		return v
	case identity.Pairing:
		v.Began, v.Ends = v.Began.UTC(), v.Ends.UTC()
		return v
	}
	return v
}
