package app

import (
	"testing"
	"time"

	"xiaozhi/agent/feature/alarm"
	"xiaozhi/agent/feature/alarm/storetest"
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
			return storedReminders{s.Reminders}
		})
	})
}
