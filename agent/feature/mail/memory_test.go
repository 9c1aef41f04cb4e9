package mail_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/agent/feature/mail"
	"xiaozhi/agent/feature/mail/storetest"
	"xiaozhi/internal/testall"
)

func TestMemory(t *testing.T) {
	storetest.Run(t, func(*testing.T) mail.Store { return mail.NewMemory() })
}

// patient has letters told by a device that hears each to its end, 5 s, and returns what became of them after two minutes.
func patient(t *testing.T, in mail.Store, meanwhile func(), letters ...mail.Letter) (fates []mail.Fate) {
	t.Helper()
	n := 0
	office := mail.New(t.Context(), mail.Options{Store: in, NewID: func() string { n++; return strconv.Itoa(n) }})
	l := &storetest.Listener{Device: "hall", Heard: func(string) {}, Takes: func() time.Duration { return 5 * time.Second }, Patient: true}
	stop := l.Talk(office, 1)
	defer office.Close()
	defer stop()
	for _, l := range letters {
		l.Device = "hall"
		if _, err := office.Send(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
	}
	meanwhile()
	time.Sleep(2 * time.Minute)
	for i := range letters {
		l, err := in.Get(t.Context(), strconv.Itoa(i+1))
		if err != nil {
			t.Fatal(err)
		}
		fates = append(fates, l.Fate)
	}
	return fates
}

// TestTwoQuestions: an urgent question behind another one that nobody has answered yet takes nothing from it: both end, and what waits
// is told.
func TestTwoQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fates := patient(t, mail.NewMemory(), func() {},
			mail.Letter{Kind: mail.Ask, Text: "first"}, mail.Letter{Kind: mail.Ask, Text: "second", Priority: mail.Urgent}, mail.Letter{Text: "third"})
		if !slices.Equal(fates, []mail.Fate{mail.Heard, mail.Heard, mail.Heard}) {
			t.Error(fates)
		}
	})
}

// TestOvertaken: what was meant at once, and had to wait behind something urgent until it was not fresh any more, is told all the
// same.
func TestOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		letters := []mail.Letter{}
		for range 15 {
			letters = append(letters, mail.Letter{Text: "urgent", Priority: mail.Urgent})
		}
		fates := patient(t, mail.NewMemory(), func() {}, append(letters, mail.Letter{Text: "now", Now: true})...)
		if slices.ContainsFunc(fates, func(f mail.Fate) bool { return f != mail.Heard }) {
			t.Error(fates)
		}
	})
}

// failing is a store that fails for a while.
type failing struct {
	mail.Store
	fails atomic.Bool
}

func (f *failing) First(ctx context.Context, p mail.Pick) (mail.Letter, error) {
	time.Sleep(time.Second) // others come meanwhile
	if f.fails.Load() {
		return mail.Letter{}, errors.New("the disk is full")
	}
	return f.Store.First(ctx, p)
}

// TestStoreFails: what came while the store had failed is told when it works again.
func TestStoreFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := &failing{Store: mail.NewMemory()}
		in.fails.Store(true)
		fates := patient(t, in, func() {
			time.Sleep(3 * time.Second)
			in.fails.Store(false)
		}, mail.Letter{Text: "first"}, mail.Letter{Text: "second"})
		if !slices.Equal(fates, []mail.Fate{mail.Heard, mail.Heard}) {
			t.Error(fates)
		}
	})
}

// TestSoak: of letters to devices that come and go, sent by a program that is killed again and again, each is told once, or not at
// all, and its fate says so.
func TestSoak(t *testing.T) {
	devices := strings.Fields("kitchen hall attic cellar bath bed garden porch study shed")
	for seed := range uint64(testall.Pick(50, 1)) {
		synctest.Test(t, func(t *testing.T) {
			storetest.Soak(t, mail.NewMemory(), devices, testall.Pick(600, 200), seed)
		})
	}
}
