package roster

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"
)

// Revision holds the settings of an agent from one change to the next.
type Revision struct {
	Agent string // its name
	Rev   int    // from 1 on
	Doc   string // JSON, in the shape of agents.NAME of the settings
	Note  string
	By    string // name of who made it
	At    time.Time
	Owner string // id of the account whose agent it is; "": everybody's. That of the first revision counts
}

// Kept holds all that [Records] keep, but the past of agents.
type Kept struct {
	Agents  []Revision       // the newest of each agent that is not deleted, by name
	Devices map[string]Given // by the ids of devices that were given agents, be those deleted or not
	Changes int              // how many there were before this was read, of anybody
}

// Given is the agent that a device was given.
type Given struct {
	Agent string // its name; "": none any more
	Times int    // how often the device was given one, or none
}

// Why records do not keep something.
var (
	ErrNone     = errors.New("there is no such agent, revision or device")
	ErrConflict = errors.New("somebody else has changed the agent meanwhile")
)

// Records keep agents with all that they were. What is kept when a method returns without an error outlives
// the program; with an error nothing has changed. Methods may be called at the same time.
type Records interface {
	// Load returns what there is.
	Load(ctx context.Context) (Kept, error)
	// Save keeps a revision that was made of the one before: [ErrConflict] if that is not the newest. The first one of
	// an agent makes it. One that was deleted is there again.
	Save(ctx context.Context, r Revision) error
	// Delete hides an agent, whose revisions stay: [ErrNone] if it is not there.
	Delete(ctx context.Context, name string) error
	// Revisions lists what an agent was, the newest first, also of one that was deleted: none if it never was. Whose it is
	// says at least the newest.
	Revisions(ctx context.Context, name string) ([]Revision, error)
	// Assign gives an agent of any name to a device, "" takes it away, and returns how often that was done with it:
	// [ErrNone] if the device is not known.
	Assign(ctx context.Context, device, name string) (times int, err error)
	// Changes counts what was saved, deleted and assigned, by other programs too. It costs little.
	Changes(ctx context.Context) (int, error)
}

// MaxRevisions is how many revisions of an agent are kept.
const MaxRevisions = 200

// Memory is [Records] that end with the program. All devices are known.
type Memory struct {
	mu      sync.Mutex
	agents  map[string][]Revision // oldest first
	deleted map[string]bool
	devices map[string]Given
	changes int
}

// NewMemory returns records that hold nothing.
func NewMemory() *Memory {
	return &Memory{agents: map[string][]Revision{}, deleted: map[string]bool{}, devices: map[string]Given{}}
}

// Load implements [Records].
func (m *Memory) Load(context.Context) (Kept, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := Kept{Devices: maps.Clone(m.devices), Changes: m.changes}
	for _, name := range slices.Sorted(maps.Keys(m.agents)) {
		if !m.deleted[name] {
			k.Agents = append(k.Agents, m.agents[name][len(m.agents[name])-1])
		}
	}
	return k, nil
}

// Save implements [Records].
func (m *Memory) Save(ctx context.Context, r Revision) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.agents[r.Agent]
	last := 0
	if len(all) > 0 {
		last, r.Owner = all[len(all)-1].Rev, all[0].Owner
	}
	if r.Rev != last+1 {
		return ErrConflict
	}
	all = append(all, r)
	m.agents[r.Agent] = slices.Clone(all[max(0, len(all)-MaxRevisions):])
	delete(m.deleted, r.Agent)
	m.changes++
	return nil
}

// Delete implements [Records].
func (m *Memory) Delete(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.agents[name] == nil || m.deleted[name] {
		return ErrNone
	}
	m.deleted[name] = true
	m.changes++
	return nil
}

// Revisions implements [Records].
func (m *Memory) Revisions(_ context.Context, name string) ([]Revision, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := slices.Clone(m.agents[name])
	slices.Reverse(all)
	return all, nil
}

// Changes implements [Records].
func (m *Memory) Changes(context.Context) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changes, nil
}

// Assign implements [Records].
func (m *Memory) Assign(ctx context.Context, device, name string) (times int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.changes++
	times = m.devices[device].Times + 1
	m.devices[device] = Given{name, times}
	return times, nil
}
