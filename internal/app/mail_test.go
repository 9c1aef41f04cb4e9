package app

import (
	"context"
	"strings"
	"testing"
	"time"

	"xiaozhi/agent"
	"xiaozhi/agent/feature"
	"xiaozhi/agent/feature/mail"
	"xiaozhi/agent/feature/mail/storetest"
	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/letters"
	"xiaozhi/mcp"
	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
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

// TestOutcomesOutliveProgram: what became of a control, and of a job, whose device had gone meanwhile is told after the program was killed, once.
func TestOutcomesOutliveProgram(t *testing.T) {
	data, left := t.TempDir(), t.TempDir()
	calls := []providers.ToolCall{{ID: "c1", Name: "self_lamp", Arguments: `{}`}, {ID: "c2", Name: "self_dig", Arguments: `{}`}}
	s := script{data: data, llm: []providertest.Step{providertest.Call(calls...), providertest.Say("I do.")}}
	s.replace = func(h *harness, o *agent.Options) {
		h.app.cfg.Tools.Kinds, h.app.cfg.Tools.Jobs = map[string]mcp.Kind{"self.lamp": mcp.Control}, []string{"self.dig"}
		o.Features = features(h.app.reminders(h.t.Context(), h.app.stored), h.app.outside.letters, nil, h.app.outside.known, quietSwitch{h.app})
	}
	slow := func(name string) devicetest.Tool {
		return devicetest.Tool{Name: "self." + name, Description: name, Call: func(ctx context.Context, _ devicetest.Call) (devicetest.Result, error) {
			<-ctx.Done()
			return devicetest.Result{}, ctx.Err()
		}}
	}
	inMemory(t, s, func(ctx context.Context, t *testing.T, h *harness) {
		d := h.dial(ctx, devicetest.Options{DeviceID: kitchen, Tools: []devicetest.Tool{slow("lamp"), slow("dig")}})
		time.Sleep(time.Second)
		if err := d.Detect("the lamp, and dig"); err != nil { // the lamp keeps the device busy
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		d.Close()
		time.Sleep(time.Second)
		killed(t, data, left)
	})
	again := s
	again.data, again.llm = left, nil
	inMemory(t, again, func(ctx context.Context, t *testing.T, h *harness) {
		d := h.speaker(ctx, t, devicetest.Options{DeviceID: kitchen, NoMCP: true})
		var said []string
		for {
			ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
			r, err := d.WaitReply(ctx)
			cancel()
			if err != nil {
				break
			}
			said = append(said, r.Text())
		}
		all := strings.Join(said, "|")
		if strings.Count(all, "the connection broke off: lamp.") != 1 || strings.Count(all, "the connection broke off: dig.") != 1 {
			t.Errorf("it says %q\n%s", said, h.log)
		}
	})
}
