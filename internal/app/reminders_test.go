package app

import (
	"context"
	"strings"
	"testing"
	"time"

	"xiaozhi/agent"
	"xiaozhi/agent/feature/alarm"
	"xiaozhi/agent/feature/alarm/storetest"
	"xiaozhi/internal/alarms"
	"xiaozhi/internal/config"
	"xiaozhi/internal/devicetest"
	"xiaozhi/mcp"
	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
	"xiaozhi/store"
)

// TestStoredReminders: both engines keep reminders as memory does.
func TestStoredReminders(t *testing.T) {
	onBoth(t, func(t *testing.T, place func(t *testing.T) store.Options) {
		storetest.Run(t, func(t *testing.T) alarm.Store {
			s, err := store.Open(t.Context(), place(t))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
			for _, id := range []string{"kitchen", "hall", "many"} {
				device := store.Identity{ID: id, Address: id, State: store.DeviceNew, FirstAt: time.Now(), SeenAt: time.Now(), SinceAt: time.Now()}
				if err := s.Devices.Commit(t.Context(), store.DeviceChange{Save: []store.Identity{device}}); err != nil {
					t.Fatal(err)
				}
			}
			return alarms.New(s.Reminders)
		})
	})
}

// TestZoneOfDevice: "at seven" is by the clocks where the device is.
func TestZoneOfDevice(t *testing.T) {
	order := providers.ToolCall{ID: "c1", Name: "set_reminder", Arguments: `{"time":"every day at 7 am","text":"take the pills"}`}
	e := script{data: t.TempDir(), llm: []providertest.Step{providertest.Call(order)}}
	e.replace = func(h *harness, o *agent.Options) {
		h.app.cfg.Devices.ByID["24:6f:28:aa:10:02"] = config.Device{Zone: "America/New_York"}
		o.Features = features(h.app.reminders(h.t.Context(), h.app.stored), h.app.outside.letters, nil, h.app.outside.known, quietSwitch{h.app})
	}
	inMemory(t, e, func(ctx context.Context, t *testing.T, h *harness) {
		d := h.dial(ctx, devicetest.Options{NoMCP: true})
		types(ctx, t, d, "remind me of the pills")
		all, err := h.app.stored.Reminders.Find(ctx, store.ReminderQuery{})
		if err != nil || len(all) != 1 {
			t.Fatalf("%+v %v\n%s", all, err, h.log)
		}
		zone, err := time.LoadLocation("America/New_York")
		if err != nil {
			t.Fatal(err)
		}
		if got := all[0].DueAt.In(zone).Format("15:04 -0700"); all[0].Zone != zone.String() || got != "07:00 -0500" {
			t.Errorf("%s in %s", got, all[0].Zone)
		}
		answer, _ := h.app.outside.Call(ctx, "24:6f:28:aa:10:02", mcp.Call{Name: "get_current_time", Language: "en"})
		if now := time.Now().In(zone).Format("2006-01-02 15:04"); !strings.Contains(mcp.ResultText(answer), now) {
			t.Errorf("%s, want %s", mcp.ResultText(answer), now)
		}
	})
}
