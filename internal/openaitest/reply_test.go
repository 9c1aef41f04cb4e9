package openaitest

import (
	"context"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// Delays are kept to the millisecond: of the status, of each piece, and of what
// follows it.
func TestDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := time.Now()
		var began time.Duration
		done := TextEvery(25*time.Millisecond, "a", "b", "c").After(400*time.Millisecond).
			write(t.Context(), httptest.NewRecorder(), func() {
				if began == 0 {
					began = time.Since(from)
				}
			})
		if took := time.Since(from); !done || began != 425*time.Millisecond || took != 475*time.Millisecond {
			t.Errorf("complete %v, first piece after %s, all after %s", done, began, took)
		}
	})
}

// A reply that hangs, as a whole or after a piece, ends with its client.
func TestHanging(t *testing.T) {
	for name, r := range map[string]Reply{"at once": {Hang: true}, "later": Text("a").Then(Piece{Hang: true})} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			from := time.Now()
			if r.write(ctx, httptest.NewRecorder(), func() {}) {
				t.Errorf("%s: complete", name)
			}
			if took := time.Since(from); took != time.Minute {
				t.Errorf("%s: ended after %s", name, took)
			}
		})
	}
}

// Only as many requests are kept as asked for; all are counted.
func TestKeep(t *testing.T) {
	s, c := start(t)
	s.Keep(4)
	for range 9 {
		if _, _, err := post(t.Context(), t, c, s.URL()+"/chat/completions", "", "{}"); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(s.Requests("")); n > 4 || n < 2 || s.Total() != 9 {
		t.Errorf("%d of %d requests are kept", n, s.Total())
	}
}
