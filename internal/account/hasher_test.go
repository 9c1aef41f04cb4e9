package account

import (
	"context"
	"errors"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestUnknownNamesCostTheSame: whoever logs in waits for one hash, whether there is an account or not, whether it has a
// password, is disabled, or has a second factor. The least of some tries is all hashing.
func TestUnknownNamesCostTheSame(t *testing.T) {
	r, ctx := newRig(t).owner(), t.Context()
	for _, name := range []string{"disabled", "bare"} {
		r.must(r.Add(ctx, command(), NewUser{Name: name, Role: Viewer, Password: map[string]string{"disabled": good}[name]}))
	}
	r.must(r.Disable(ctx, command(), "disabled", true))
	names := []string{"ann", "nobody", "disabled", "bare", oddName}
	least := map[string]time.Duration{}
	for range 8 { // in turn, so that a machine that slows down slows all
		for _, name := range names {
			start := time.Now()
			_, ok, err := r.right(ctx, name, "wrong password")
			if took := time.Since(start); least[name] == 0 || took < least[name] {
				least[name] = took
			}
			if ok || err != nil {
				t.Fatal(ok, err)
			}
		}
	}
	for _, name := range names {
		if least[name] < least["ann"]/2 || least[name] > least["ann"]*2 {
			t.Errorf("%q takes %v, a name that is there %v", name, least[name], least["ann"])
		}
	}
	t.Log(least)
}

// TestLoginsHashOnce: a login that is looked at hashes once, for a name that is there and for any other, and says the same.
func TestLoginsHashOnce(t *testing.T) {
	r, ctx := newRig(t).owner(), t.Context()
	for i, name := range []string{"ann", "nobody", "no name/at all", ""} {
		before := r.hasher.begun.Load()
		_, err := r.Login(ctx, name, Proof{Password: "wrong password"}, Origin{Remote: netip.AddrFrom4([4]byte{10, 0, byte(i), 1})})
		r.want(err, ErrBadLogin)
		if n := r.hasher.begun.Load() - before; n != 1 {
			t.Errorf("%q: %d hashes", name, n)
		}
	}
}

// TestHashesAtOnce: of a flood one is hashed at a time and eight wait; all others hear at once that there are too many, and
// so does a login. Who goes away while waiting leaves the place.
func TestHashesAtOnce(t *testing.T) {
	r, ctx := newRig(t).owner(), t.Context()
	synctest.Test(t, func(t *testing.T) {
		h := newHasher(testCost())
		var now, most, busy, done atomic.Int32
		flood := func(n int, ctx context.Context) {
			for range n {
				go func() {
					err := h.do(ctx, func() {
						most.Store(max(most.Load(), now.Add(1)))
						time.Sleep(time.Second)
						now.Add(-1)
					})
					switch {
					case err == nil:
						done.Add(1)
					case errors.Is(err, ErrBusy):
						busy.Add(1)
					}
				}()
			}
			synctest.Wait()
		}
		gone, leave := context.WithCancel(t.Context())
		flood(1, t.Context())
		flood(maxWaiting, gone)
		leave()
		synctest.Wait()
		flood(100, t.Context())
		if busy.Load() != 100-maxWaiting {
			t.Errorf("%d of 100 hear it at once", busy.Load())
		}
		time.Sleep((1 + maxWaiting) * time.Second)
		synctest.Wait()
		if most.Load() != 1 || done.Load() != 1+maxWaiting {
			t.Errorf("%d at a time, %d in all", most.Load(), done.Load())
		}
	})
	for range 1 + maxWaiting {
		r.hasher.places <- struct{}{}
	}
	_, err := r.Login(ctx, "ann", Proof{Password: good}, r.from)
	r.want(err, ErrBusy)
}

// TestGuessesAtOnce: those of a name that come at once from a network are no more than those that come one after the other.
func TestGuessesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuesses(time.Now)
		var looked, waits atomic.Int32
		flood := func() {
			for i := range 50 {
				go func() {
					err := g.guess("ann", netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), func() (bool, error) {
						looked.Add(1)
						time.Sleep(time.Millisecond)
						return false, nil
					})
					if _, often := errors.AsType[*TooOftenError](err); often {
						waits.Add(1)
					}
				}()
			}
			time.Sleep(2 * time.Millisecond)
			synctest.Wait()
		}
		flood()
		if looked.Load() != freeGuesses || waits.Load() != 50-freeGuesses {
			t.Errorf("%d were looked at, %d wait", looked.Load(), waits.Load())
		}
		for range 3 { // later one at a time
			time.Sleep(maxGuessWait)
			before := looked.Load()
			if flood(); looked.Load() != before+1 {
				t.Errorf("%d were looked at after a minute", looked.Load()-before)
			}
		}
		if len(g.flying) != 0 {
			t.Error(g.flying)
		}
	})
}
