package roster

import (
	"context"
	"maps"
	"slices"
	"time"
)

// The time between two looks at what others have changed, each of which is a query of one row, and the time until the
// next one after a failure: engines may have been loaded for nothing.
const (
	followEach  = 2 * time.Second
	followAgain = 30 * time.Second
)

// Follow takes over what other programs change in the records, until ctx ends: other servers of the same database.
func (r *Roster) Follow(ctx context.Context) {
	timer := time.NewTimer(followEach)
	defer timer.Stop()
	for failed := false; ; {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		err := r.Refresh(ctx)
		if err != nil && !failed && ctx.Err() == nil {
			r.o.Log.Warn("agents that were changed elsewhere are not used", "err", err)
		}
		if failed = err != nil; failed {
			timer.Reset(followAgain)
		} else {
			timer.Reset(followEach)
		}
	}
}

// Refresh takes over what others have changed in the records, if they have. What cannot be used here is left out, and its
// users say why.
func (r *Roster) Refresh(ctx context.Context) error {
	changes, err := r.o.Records.Changes(ctx)
	if err != nil || changes == r.seen() {
		return err
	}
	unlock, err := r.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	kept, err := r.o.Records.Load(ctx)
	if err != nil {
		return err
	}
	agents := map[string]Revision{}
	for _, a := range kept.Agents {
		agents[a.Agent] = a
	}
	err = r.takeAgents(ctx, agents)
	if r.takeDevices(kept.Devices); err != nil {
		return err
	}
	r.mu.Lock()
	r.changes = kept.Changes
	r.mu.Unlock()
	return nil
}

// seen is the number of changes when the records were read last.
func (r *Roster) seen() int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.changes
}

// takeAgents puts what agents are in the records in the place of what they are here. A change goes on.
func (r *Roster) takeAgents(ctx context.Context, agents map[string]Revision) error {
	r.mu.RLock()
	old := r.agents
	r.mu.RUnlock()
	sameRev := func(a, b Revision) bool { return a.Rev == b.Rev && a.Doc == b.Doc && a.Owner == b.Owner }
	if maps.EqualFunc(old, agents, sameRev) {
		return nil
	}
	docs := map[string]string{}
	for name, a := range agents {
		docs[name] = a.Doc
	}
	apply, _, err := r.o.Users.Stage(ctx, docs, "")
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.agents = agents
	r.mu.Unlock()
	apply()
	for _, name := range slices.Sorted(maps.Keys(agents)) {
		if was, there := old[name]; !there || !sameRev(was, agents[name]) {
			r.o.Log.Info("an agent was changed elsewhere", "agent", name, "rev", agents[name].Rev, "by", agents[name].By)
		}
	}
	return nil
}

// takeDevices puts whom devices were given in the records in the place of what is known here. A change goes on.
func (r *Roster) takeDevices(devices map[string]Given) {
	r.mu.RLock()
	same := maps.Equal(r.devices, devices)
	r.mu.RUnlock()
	if same {
		return
	}
	r.mu.Lock()
	maps.DeleteFunc(r.devices, func(device string, _ Given) bool { _, there := devices[device]; return !there })
	r.mu.Unlock()
	r.give(devices)
	r.o.Users.Given()
}
