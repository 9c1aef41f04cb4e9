package fleet

import (
	"context"
	"strings"
	"testing"
	"time"

	"xiaozhi/agent/turn"
	"xiaozhi/connection/identity"
	"xiaozhi/internal/contact"
)

// TestStates: each device is in the state that is true of it.
func TestStates(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC)
	refused := func(device, id string, when time.Time) contact.Head {
		return contact.Head{Caller: contact.Caller{Device: device}, Why: contact.Why{ID: "contact" + "/refused-" + id}, Refused: when}
	}
	f := New()
	f.now = func() time.Time { return at }
	f.SetSources(Sources{
		Known: func() []identity.Known {
			return []identity.Known{
				{ID: "talks", State: "paired", First: at}, {ID: "sleeps", State: "paired"}, {ID: "new", State: "paired"}, {ID: "denied", State: "refused"},
				{ID: "waits", State: "new", Code: "123456"}, {ID: "late", State: "new"}, {ID: "lost", State: "paired"}, {ID: "again", State: "paired"},
			}
		},
		Contacts: func() []contact.Head {
			return []contact.Head{
				refused("late", "unpaired", at), refused("lost", "token", at), refused("again", "busy", at.Add(-time.Hour)), refused("stranger", "closed", at),
				{Caller: contact.Caller{Device: "?192.168.1.9"}},
			}
		},
		Named: func(string) string { return "" }, Agent: func(string) string { return "" },
		Details: func(context.Context) (map[string]Detail, error) {
			return map[string]Detail{"sleeps": {Owner: "anna", Talked: at}, "again": {Talked: at}}, nil
		},
	})
	check := func(want map[string]State) {
		t.Helper()
		all, err := f.List(t.Context())
		if err != nil || len(all) != 9 || all[0].ID != "talks" {
			t.Fatal(all, err)
		}
		for _, d := range all {
			if s, ok := want[d.ID]; ok && d.State != s {
				t.Errorf("%s is %s, want %s", d.ID, d.State, s)
			}
			if (d.State == Refused) != (d.Why.ID != "" && d.State != Waiting) {
				t.Errorf("%s: %+v", d.ID, d.Why)
			}
		}
	}
	check(map[string]State{
		"talks": Started, "sleeps": Asleep, "new": Started, "denied": Refused, "waits": Waiting, "late": Waiting, "lost": Refused, "again": Asleep, "stranger": Refused,
	})
	var told []string
	stop := f.Follow(func(id string) { told = append(told, id) })
	old := f.Talk("talks")
	old.Begin()
	for phase, want := range map[turn.Phase]State{turn.Listening: Listening, turn.Recognizing: Thinking, turn.Thinking: Thinking, turn.Talking: Speaking, turn.Idle: Idle} {
		old.Phase(phase)
		check(map[string]State{"talks": want})
	}
	newer := f.Talk("talks")
	newer.Begin()
	newer.Phase(turn.Talking)
	old.End()
	check(map[string]State{"talks": Speaking})
	newer.End()
	check(map[string]State{"talks": Asleep})
	n := len(told)
	if stop(); n < 6 || strings.Trim(strings.Join(told, ""), "talks") != "" {
		t.Error(told)
	}
	f.Forget("talks")
	check(map[string]State{"talks": Started})
	if len(told) != n {
		t.Error("who follows no longer is told")
	}
}
