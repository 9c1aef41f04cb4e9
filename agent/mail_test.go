package agent

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/agent/feature"
	"xiaozhi/agent/feature/mail"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp/router"
)

// TestMail: a letter to a sleeping device is told at its next contact, once, and its fate says how much was heard.
func TestMail(t *testing.T) {
	o := oddOptions(t, oddFeature{})
	synctest.Test(t, func(t *testing.T) {
		ids := 0
		office := mail.New(t.Context(), mail.Options{Store: mail.NewMemory(), NewID: func() string { ids++; return strconv.Itoa(ids) }})
		o.Devices, o.Features = NewDevices(), []feature.Feature{office}
		send := func(l mail.Letter) mail.Letter {
			t.Helper()
			sent, err := office.Send(t.Context(), l)
			if err != nil || sent.Fate != mail.Queued {
				t.Fatalf("%+v %v", sent, err)
			}
			return sent
		}
		fate := func(id string, want mail.Fate, heard int) {
			t.Helper()
			if l, err := office.Find(t.Context(), id); err != nil || l.Fate != want || l.Heard != heard {
				t.Errorf("letter %s: %s, %d characters heard, %v, want %s, %d", id, l.Fate, l.Heard, err, want, heard)
			}
		}
		dinner, gone := send(mail.Letter{Device: "d", Text: " Dinner is ready. "}), send(mail.Letter{Device: "d", Text: "Never.", Ends: time.Now().Add(time.Minute)})
		back := send(mail.Letter{Device: "d", Text: "Not this."})
		if _, err := office.Withdraw(t.Context(), back.ID); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * time.Minute)
		fate(gone.ID, mail.Expired, 0)
		fate(dinner.ID, mail.Queued, 0)
		if office.There("d") {
			t.Error("it sleeps")
		}

		v := connect(t, o, router.Options{})
		time.Sleep(500 * time.Millisecond)
		fate(dinner.ID, mail.Delivered, 0)
		if l, err := office.Await(t.Context(), dinner.ID); err != nil || l.Fate != mail.Heard || l.Heard != l.Length() {
			t.Errorf("%+v %v", l, err)
		}
		if _, err := office.Withdraw(t.Context(), dinner.ID); err == nil {
			t.Error("what was told is taken back")
		}
		long := send(mail.Letter{Device: "d", Text: "A long announcement that somebody stops with the button."})
		time.AfterFunc(3*time.Second, func() {
			if err := v.c.Post(wire.Abort{}); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(5 * time.Second)
		if l, err := office.Find(t.Context(), long.ID); err != nil || l.Fate != mail.Heard || l.Heard < 5 || l.Heard > 30 {
			t.Errorf("%+v %v", l, err)
		}
		short := send(mail.Letter{Device: "away", Text: "Nobody comes.", Ends: time.Now().Add(time.Minute)})
		if l, err := office.Await(t.Context(), short.ID); err != nil || l.Fate != mail.Expired {
			t.Errorf("%+v %v", l, err)
		}
		late := send(mail.Letter{Device: "d", Text: "Too late for this contact."})
		v.bye()
		fate(late.ID, mail.Queued, 0)

		again := connect(t, o, router.Options{})
		time.Sleep(time.Minute)
		again.bye()
		fate(late.ID, mail.Heard, len("Too late for this contact."))
		for _, words := range []string{"Dinner", "A long", "Never", "Not this"} {
			if said := again.box.String(); strings.Contains(said, words) {
				t.Errorf("%q is said again:\n%s", words, said)
			}
		}
		if all, err := office.Last(t.Context(), "d", 2); err != nil || len(all) != 2 || all[0].ID != late.ID || all[1].ID != long.ID {
			t.Errorf("%+v %v", all, err)
		}
		office.Close()
		o.Devices.Close()
	})
}

// TestMailUnheard: what is stopped before anything of it was heard is told again, and refused in the end.
func TestMailUnheard(t *testing.T) {
	o := oddOptions(t, oddFeature{})
	o.TTS = &toneTTS{rate: 16000, lines: slices.Repeat([]string{"!error"}, 40)}
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var fates []string
		office := mail.New(t.Context(), mail.Options{Store: mail.NewMemory(), NewID: func() string { return "1" }, Changed: func(l mail.Letter) {
			mu.Lock()
			defer mu.Unlock()
			fates = append(fates, string(l.Fate))
		}})
		o.Devices, o.Features = NewDevices(), []feature.Feature{office}
		v := connect(t, o, router.Options{})
		if _, err := office.Send(t.Context(), mail.Letter{Device: "d", Text: "No voice says this."}); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
		defer stop()
		l, err := office.Await(ctx, "1")
		if got := strings.Join(fates, " "); err != nil || l.Fate != mail.Refused || got != strings.Repeat("queued delivered ", 5)+"refused" {
			t.Errorf("%+v %v: %s", l, err, got)
		}
		v.bye()
		office.Close()
		o.Devices.Close()
	})
}
