package app

import (
	"context"
	"testing"
	"time"

	"xiaozhi/agent"
	"xiaozhi/agent/feature"
	"xiaozhi/agent/feature/mail"
	"xiaozhi/agent/feature/mail/storetest"
	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/letters"
	"xiaozhi/store"
)

// TestStoredLetters: both engines keep letters as memory does.
func TestStoredLetters(t *testing.T) {
	onBoth(t, func(t *testing.T, place func(t *testing.T) store.Options) {
		storetest.Run(t, func(t *testing.T) mail.Store {
			s, err := store.Open(t.Context(), place(t))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
			for _, id := range []string{"kitchen", "hall"} {
				device := store.Identity{ID: id, Address: id, State: store.DeviceNew, FirstAt: time.Now(), SeenAt: time.Now(), SinceAt: time.Now()}
				if err := s.Devices.Commit(t.Context(), store.DeviceChange{Save: []store.Identity{device}}); err != nil {
					t.Fatal(err)
				}
			}
			return letters.New(s.Outbox)
		})
	})
}

// TestMailOutlivesProgram: what was sent to a sleeping device is told after the program was killed, once.
func TestMailOutlivesProgram(t *testing.T) {
	data, left, id := t.TempDir(), t.TempDir(), ""
	first := script{data: data}
	first.replace = func(h *harness, o *agent.Options) { o.Features = []feature.Feature{h.app.outside.letters} }
	inMemory(t, first, func(ctx context.Context, t *testing.T, h *harness) {
		if _, err := h.app.outside.letters.Send(ctx, mail.Letter{Device: kitchen, Text: "Hello."}); err != mail.ErrNoDevice {
			t.Error(err)
		}
		d := h.dial(ctx, devicetest.Options{DeviceID: kitchen, NoMCP: true})
		time.Sleep(time.Second)
		d.Close()
		time.Sleep(time.Second)
		l, err := h.app.outside.letters.Send(ctx, mail.Letter{Device: kitchen, Text: "Dinner is ready.", Source: "api", By: "anna"})
		if err != nil {
			t.Fatal(err)
		}
		id = l.ID
		killed(t, data, left)
	})
	again := first
	again.data = left
	inMemory(t, again, func(ctx context.Context, t *testing.T, h *harness) {
		if l, err := h.app.outside.letters.Find(ctx, id); err != nil || l.Fate != mail.Queued || l.By != "anna" || l.Source != "api" || l.Ends.Sub(l.Made) != 24*time.Hour {
			t.Fatalf("%+v %v", l, err)
		}
		for range 2 {
			d := h.dial(ctx, devicetest.Options{DeviceID: kitchen, NoMCP: true})
			time.Sleep(20 * time.Second)
			d.Close()
			time.Sleep(time.Second)
		}
		l, err := h.app.outside.letters.Find(ctx, id)
		if err != nil || l.Fate != mail.Heard || l.Heard != l.Length() || l.Tries != 1 || l.Told.IsZero() {
			t.Errorf("%+v %v", l, err)
		}
		if all, err := h.app.outside.letters.Last(ctx, kitchen, 9); err != nil || len(all) != 1 || all[0] != l {
			t.Errorf("%+v %v", all, err)
		}
		turns, err := h.app.stored.Turns.List(ctx, kitchen, store.Page{})
		if err != nil || len(turns) != 1 {
			t.Errorf("%d turns, %v", len(turns), err)
		}
	})
}
