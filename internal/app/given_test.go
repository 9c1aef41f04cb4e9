package app

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"xiaozhi/agent"
	"xiaozhi/agent/feature"
	"xiaozhi/agent/feature/basics"
	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/roster"
	rosterstored "xiaozhi/internal/roster/stored"
	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
	"xiaozhi/store"
)

// TestGivenAgentEndsRole: a role that was taken by voice lasts, over a restart too, until somebody gives the device an
// agent: that one counts from the next turn on, after a restart as well, also if it is the one that the device had before.
func TestGivenAgentEndsRole(t *testing.T) {
	data, between, left := t.TempDir(), t.TempDir(), t.TempDir()
	become := providertest.Call(providers.ToolCall{ID: "1", Name: "change_role", Arguments: `{"role":"pirate"}`})
	settled := func(ctx context.Context, t *testing.T, h *harness, to string) {
		t.Helper()
		time.Sleep(time.Second) // what is handed over is written within a quarter of that
		if err := h.app.stored.Log.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		killed(t, h.app.options.Data, to)
	}
	run := func(data string, llm []providertest.Step, f func(ctx context.Context, t *testing.T, h *harness, d *devicetest.Device, talks func(to string))) {
		t.Helper()
		roles := func(_ *harness, o *agent.Options) { o.Features = []feature.Feature{basics.Feature{}} }
		inMemory(t, script{data: data, llm: llm, replace: roles}, func(ctx context.Context, t *testing.T, h *harness) {
			h.app.crew.shop = &fakeShop{ready: company{}}
			if len(h.app.crew.roster.List()) == 0 {
				for _, name := range []string{"pirate", "nurse"} {
					if _, err := h.app.crew.roster.Set(ctx, roster.Author{}, name, []byte(`{"prompt":"storyteller"}`)); err != nil {
						t.Fatal(err)
					}
				}
			} else {
				h.app.crew.setAgents(castOf(h.app.crew.settings(), h.app.crew.texts, nil))
			}
			d := h.speaker(ctx, t, devicetest.Options{DeviceID: kitchen, NoMCP: true})
			f(ctx, t, h, d, func(to string) {
				t.Helper()
				types(ctx, t, d, "hello")
				if got := h.app.crew.talksTo(kitchen, h); got != to {
					t.Errorf("the device talks to %s, want %s", got, to)
				}
			})
		})
	}
	say := providertest.Say("Yes.")
	run(data, []providertest.Step{become, say, say}, func(ctx context.Context, t *testing.T, h *harness, d *devicetest.Device, talks func(string)) {
		if err := h.app.crew.roster.Assign(ctx, kitchen, "nurse"); err != nil {
			t.Fatal(err)
		}
		types(ctx, t, d, "be a pirate")
		talks("pirate")
		settled(ctx, t, h, between)
	})
	run(between, []providertest.Step{say, say, become, say, say}, func(ctx context.Context, t *testing.T, h *harness, d *devicetest.Device, talks func(string)) {
		talks("pirate")
		if err := h.app.crew.roster.Assign(ctx, kitchen, "nurse"); err != nil { // as before
			t.Fatal(err)
		}
		talks("nurse")
		types(ctx, t, d, "be a pirate")
		talks("pirate")
		if err := h.app.crew.roster.Assign(ctx, kitchen, ""); err != nil {
			t.Fatal(err)
		}
		settled(ctx, t, h, left) // before its next turn
	})
	run(left, []providertest.Step{say}, func(_ context.Context, _ *testing.T, _ *harness, _ *devicetest.Device, talks func(string)) {
		talks("default")
	})
}

// talksTo names whom a connected device talks to.
func (c *crew) talksTo(device string, h *harness) string {
	found, err := h.app.outside.devices.Find(device)
	if err != nil {
		return err.Error()
	}
	return found.(*conversation).Persona().Name
}

// onlookers are users who take every agent.
type onlookers struct{ docs map[string]string }

func (o *onlookers) Stage(_ context.Context, docs map[string]string, _ string) (apply, drop func(), err error) {
	return func() { o.docs = maps.Clone(docs) }, func() {}, nil
}
func (o *onlookers) Names() []string          { return append(slices.Collect(maps.Keys(o.docs)), "default") }
func (o *onlookers) Agent(string) roster.Seen { return roster.Seen{} }
func (o *onlookers) Pinned(string) string     { return "" }
func (o *onlookers) Given()                   {}

// TestAgentsOfAnotherServer: what another program changes in the same database is used here without a restart.
func TestAgentsOfAnotherServer(t *testing.T) {
	onBoth(t, func(t *testing.T, place func(t *testing.T) store.Options) {
		ctx, where := t.Context(), place(t)
		var rosters [2]*roster.Roster
		var users [2]onlookers
		for i := range rosters {
			s, err := store.Open(ctx, where)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if where.Tool = true; i == 0 { // beside the server, as a command opens a file
				devices := []store.Identity{{ID: kitchen, Address: kitchen, State: store.DevicePaired}}
				if err := s.Devices.Commit(ctx, store.DeviceChange{Save: devices}); err != nil {
					t.Fatal(err)
				}
			}
			if rosters[i], err = roster.Open(ctx, roster.Options{Records: rosterstored.New(s), Users: &users[i]}); err != nil {
				t.Fatal(err)
			}
		}
		for i, doc := range []string{`{"voice":"alto"}`, `{"voice":"bass"}`, `{"voice":"tenor"}`} {
			here, there := rosters[i%2], rosters[1-i%2]
			if _, err := here.Set(ctx, roster.Author{Name: "anna"}, "pirate", []byte(doc)); err != nil {
				t.Fatal(err)
			}
			if err := here.Assign(ctx, kitchen, "pirate"); err != nil {
				t.Fatal(err)
			}
			if err := there.Refresh(ctx); err != nil {
				t.Fatal(err)
			}
			want := roster.Given{Agent: "pirate", Times: i + 1}
			if a, _ := there.Get("pirate"); a.Doc != doc || a.Rev != i+1 || users[1-i%2].docs["pirate"] != doc || there.Assigned(kitchen) != want {
				t.Errorf("%d: the other server has %+v of %v", i, a, there.Assigned(kitchen))
			}
		}
	})
}
