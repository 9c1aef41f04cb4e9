package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"xiaozhi/agent/feature/mail"
)

// Ledger counts how often the sound of each text has begun.
type Ledger struct {
	mu    sync.Mutex
	heard map[string]int
	dead  bool
}

// NewLedger returns an empty one.
func NewLedger() *Ledger { return &Ledger{heard: map[string]int{}} }

// Hear counts a text, unless the program is dead.
func (l *Ledger) Hear(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.dead {
		l.heard[text]++
	}
}

// die says whether the program is dead: nothing is heard of it any more.
func (l *Ledger) die(dead bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead = dead
}

// Check compares the fates of all letters with what was heard: each has one, nothing was heard twice, what is said to have been
// heard was, and what is said not to have been was not, but for what was lost when the program was killed.
func (l *Ledger) Check(tb testing.TB, all []mail.Letter) {
	tb.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	fates := map[string]int{}
	for _, one := range all {
		n := l.heard[one.Text]
		fates[string(one.Fate)+" "+string(one.Why)]++
		var least, most int
		switch {
		case one.Fate == mail.Heard, one.Fate == mail.Answered:
			least, most = 1, 1
		case one.Fate == mail.Refused && one.Why == mail.Lost:
			most = 1
		case !one.Fate.Over():
			most = -1
		}
		if n < least || n > most {
			tb.Errorf("%s to %s is %s %s, and its sound was begun %d times", one.Text, one.Device, one.Fate, one.Why, n)
		}
	}
	tb.Logf("%d letters: %v", len(all), fates)
}

// gate lets a program work on a store until it is killed.
type gate struct {
	mail.Store

	mu   sync.RWMutex
	dead bool
}

var errDead = errors.New("the program was killed")

// kill ends the program: what it has not committed by now it never does.
func (g *gate) kill() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.dead = true
}

// alive runs f, unless the program is dead.
func (g *gate) alive(f func() error) error {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if g.dead {
		return errDead
	}
	return f()
}

func (g *gate) Add(ctx context.Context, all []mail.Letter, most mail.Bounds) (failed []error, err error) {
	err = g.alive(func() (err error) { failed, err = g.Store.Add(ctx, all, most); return err })
	return failed, err
}

func (g *gate) First(ctx context.Context, p mail.Pick) (l mail.Letter, err error) {
	err = g.alive(func() (err error) { l, err = g.Store.First(ctx, p); return err })
	return l, err
}

func (g *gate) Change(ctx context.Context, was, now mail.Letter) (changed bool, err error) {
	err = g.alive(func() (err error) { changed, err = g.Store.Change(ctx, was, now); return err })
	return changed, err
}

func (g *gate) Expire(ctx context.Context, limit int) (ended []mail.Letter, err error) {
	err = g.alive(func() (err error) { ended, err = g.Store.Expire(ctx, limit); return err })
	return ended, err
}

// Soak sends n letters to devices that come and go, of a program that is killed often, and checks the fate of each. The store
// knows all devices that known lists. It takes an hour or more, which should be fake.
func Soak(t *testing.T, in mail.Store, known []string, n int, seed uint64) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a storm that can be raised again
	ledger, sent, kills := NewLedger(), 0, 0
	var ids []string
	for run := uint64(0); ; run++ {
		g := &gate{Store: in}
		office := mail.New(t.Context(), mail.Options{Store: g, NewID: func() string { return fmt.Sprintf("%016x", random.Uint64()) }})
		ledger.die(false)
		if err := office.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		there := map[string]func(){}
		last := sent >= n
		for range 20 {
			for range random.IntN(12) {
				if sent < n {
					if id := soakLetter(t, office, known, sent, random); id != "" {
						ids = append(ids, id)
					}
					sent++
				}
			}
			device := known[random.IntN(len(known))]
			if stop := there[device]; stop != nil && random.IntN(2) == 0 {
				stop()
				delete(there, device)
			} else if stop == nil {
				there[device] = soakListener(ledger, device).Talk(office, seed+run)
			}
			time.Sleep(time.Duration(random.IntN(2500)) * time.Millisecond)
		}
		if last { // all come, and stay until everything is over
			for _, device := range known {
				if there[device] == nil {
					there[device] = soakListener(ledger, device).Talk(office, seed+run)
				}
			}
			time.Sleep(time.Hour)
		} else {
			g.kill()
			kills++
		}
		ledger.die(!last)
		for _, stop := range there {
			stop()
		}
		office.Close()
		if last {
			break
		}
	}
	var all []mail.Letter
	for _, id := range ids {
		l, err := in.Get(t.Context(), id)
		if err != nil {
			t.Fatalf("a letter was lost: %v", err)
		}
		all = append(all, l)
	}
	t.Logf("seed %d: %d letters sent, %d kept, %d kills", seed, sent, len(all), kills)
	ledger.Check(t, all)
}

// soakListener is a device that takes up to 4 s for a text.
func soakListener(ledger *Ledger, device string) *Listener {
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(1, uint64(len(device)))) //nolint:gosec // as above
	return &Listener{Device: device, Heard: ledger.Hear, Takes: func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return time.Duration(random.IntN(4000)) * time.Millisecond
	}}
}

// soakLetter sends a letter of some kind, and returns its id; "": there was no room for it.
func soakLetter(t *testing.T, office *mail.Office, known []string, i int, random *rand.Rand) (id string) {
	t.Helper()
	l := mail.Letter{Device: known[random.IntN(len(known))], Text: fmt.Sprintf("letter %d", i), Priority: mail.Priority(random.IntN(3) - 1), Now: random.IntN(8) == 0}
	if random.IntN(5) == 0 {
		l.Kind = mail.Ask
	}
	switch random.IntN(10) {
	case 0:
		l.Ends = time.Now().Add(time.Duration(1+random.IntN(20)) * time.Second)
	case 1:
		l.At = time.Now().Add(time.Duration(random.IntN(60)) * time.Second)
	}
	kept, err := office.Send(t.Context(), l)
	if errors.Is(err, mail.ErrFull) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	if random.IntN(20) == 0 {
		_, _ = office.Withdraw(t.Context(), kept.ID) // it may be told already
	}
	return kept.ID
}
