package agent

import (
	"time"

	"xiaozhi/agent/history"
	"xiaozhi/agent/turn"
	"xiaozhi/internal/text"
	"xiaozhi/providers"
)

// Memory holds what a device's record knows from earlier conversations, as far as
// it decides how the next one goes.
type Memory struct {
	History  []providers.Message `json:",omitempty"`
	Language string              `json:",omitempty"` // of the last turn
	Role     string              `json:",omitempty"` // the prompt that the user chose
	Hinted   time.Time           `json:",omitzero"`  // when a hint about recognition was last spoken
	Pause    time.Duration       `json:",omitempty"` // learned: the user's pauses
	Fast     int                 `json:",omitempty"` // turns without such a pause
	Echoes   bool                `json:",omitempty"` // the microphone hears what is played
	Waiting  bool                `json:",omitempty"` // jobs, timers, notices or music are there, which Memory does not hold
}

// memory returns what the record holds. The caller has borrowed it.
func (d *Device) memory() Memory {
	return Memory{
		History: d.history.Snapshot(), Language: string(d.learned.Lang), Role: d.role, Hinted: d.learned.Hinted,
		Pause: d.learned.Pause.Need, Fast: d.learned.Pause.Fast, Echoes: d.learned.Echoes, Waiting: d.waits() > 0,
	}
}

// Remember makes the record of a device that has none yet, for a replay.
func (d *Devices) Remember(id string, m Memory) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.byID[id] != nil {
		return
	}
	dev := d.record(id)
	dev.history = history.New(m.History)
	dev.role = m.Role
	dev.learned = turn.Learned{
		Lang: text.Lang(m.Language), Pause: turn.LearnedPause{Need: m.Pause, Fast: m.Fast}, Echoes: m.Echoes, Hinted: m.Hinted,
	}
}
