package app

import (
	"context"
	"strings"
	"testing"
	"time"

	"xiaozhi/agent"
	"xiaozhi/internal/devicetest"
	"xiaozhi/mcp"
	"xiaozhi/mcp/gateway/offer"
)

// TestSayAsleep: what a program has a sleeping speaker say and ask waits for it, and the program is told so; later it is told what was
// heard and answered.
func TestSayAsleep(t *testing.T) {
	s := script{data: t.TempDir()}
	s.replace = func(h *harness, o *agent.Options) {
		o.Features = features(h.app.reminders(h.t.Context(), h.app.stored), h.app.outside.letters, nil, h.app.outside.known, quietSwitch{h.app})
	}
	inMemory(t, s, func(ctx context.Context, t *testing.T, h *harness) {
		ctx = mcp.WithInfo(ctx, mcp.Info{Language: "en"})
		out := h.app.outside
		if _, err := out.Say(ctx, kitchen, "Hello.", false); err == nil {
			t.Error("a device that nobody knows is spoken to")
		}
		d := h.speaker(ctx, t, devicetest.Options{DeviceID: kitchen, NoMCP: true})
		time.Sleep(time.Second)
		if said, err := out.Say(ctx, kitchen, "Awake.", false); err != nil || said != (offer.Said{Heard: "Awake.", Whole: true}) {
			t.Errorf("%+v %v", said, err)
		}
		if len(out.Sleeping()) != 0 {
			t.Errorf("%+v", out.Sleeping())
		}
		d.Close()
		time.Sleep(time.Second)
		if all := out.Sleeping(); len(all) != 1 || all[0].ID != kitchen {
			t.Errorf("%+v", all)
		}
		said, err := out.Say(ctx, kitchen, "The wash is done.", true)
		if err != nil || said.Fate != "queued" || said.ID == "" || said.Whole || said.Expires.Sub(time.Now()) < 23*time.Hour {
			t.Errorf("%+v %v", said, err)
		}
		asked, err := out.Ask(ctx, kitchen, "Shall I open?")
		if err != nil || asked.Fate != "queued" {
			t.Errorf("%+v %v", asked, err)
		}
		time.Sleep(5 * time.Minute)
		d = h.speaker(ctx, t, devicetest.Options{DeviceID: kitchen, NoMCP: true})
		for range 2 {
			if _, err := d.WaitReply(ctx); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		if err := d.Detect("yes please"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if id, now, err := out.Letter(ctx, said.ID); id != kitchen || err != nil || now.Fate != "heard" || !now.Whole {
			t.Errorf("%+v %v", now, err)
		}
		if _, now, err := out.Letter(ctx, asked.ID); err != nil || now.Fate != "answered" || now.Answer != "yes please" {
			t.Errorf("%+v %v", now, err)
		}
		if err := out.quiet.Begin(ctx, kitchen, time.Now().Add(time.Hour), "ann"); err != nil {
			t.Fatal(err)
		}
		if said, err := out.Say(ctx, kitchen, "Not now.", true); err != nil || said.Fate != "queued" {
			t.Errorf("in quiet mode: %+v %v", said, err)
		}
		leaving, leave := context.WithTimeout(ctx, 500*time.Millisecond)
		defer leave()
		if _, err := out.quiet.End(ctx, kitchen); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if _, err := out.Say(leaving, kitchen, "A caller who leaves is not heard.", false); err == nil {
			t.Error("it was heard at once")
		}
		all, err := out.letters.Last(ctx, kitchen, 9)
		var fates []string
		for _, l := range all {
			fates = append(fates, string(l.Fate)+" "+string(l.Kind)+" "+l.Source)
		}
		if got := strings.Join(fates, ", "); err != nil || !strings.HasSuffix(got, "heard say mcp, answered ask mcp, heard say mcp, heard say mcp") {
			t.Error(got, err)
		}
	})
}
