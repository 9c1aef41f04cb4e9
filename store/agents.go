package store

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// Agent is a persona: who speaks from a device.
type Agent struct {
	ID        string
	Slug      string // name in addresses and settings; once
	OwnerID   string // "": it is everybody's
	Rev       int    // number of its newest revision; 0: only devices name it, and it is set somewhere else
	DeletedAt time.Time
}

// AgentRevision holds the settings of an agent from one change to the next.
type AgentRevision struct {
	AgentID string
	Rev     int
	Doc     string // JSON
	Note    string
	ByID    string // name of who made it
	At      time.Time
}

const (
	agentColumns    = "id, slug, owner_id, rev, deleted_at"
	selectAgent     = "SELECT " + agentColumns + " FROM agents"
	revisionColumns = "agent_id, rev, doc, note, by_id, at"
	selectRevision  = "SELECT r.agent_id, r.rev, r.doc, r.note, r.by_id, r.at FROM agent_revisions r JOIN agents a ON a.id = r.agent_id"
)

func (a *Agent) fields() []any {
	return []any{text{&a.ID}, text{&a.Slug}, maybe{&a.OwnerID}, whole{&a.Rev}, stamp{&a.DeletedAt}}
}

func (r *AgentRevision) fields() []any {
	return []any{text{&r.AgentID}, whole{&r.Rev}, text{&r.Doc}, maybe{&r.Note}, maybe{&r.ByID}, stamp{&r.At}}
}

// Agents is the table of agents, with all that they were.
type Agents struct{ db *database }

// Put keeps a revision of the agent of a slug that was made of the one before, r.Rev - 1: [ErrConflict] if that is not
// the newest. The first one makes the agent, which belongs to owner. One that was deleted is there again. Of each
// agent the newest keep revisions stay.
func (t *Agents) Put(ctx context.Context, slug, owner string, r AgentRevision, keep int) error {
	r.At = orNow(r.At, t.db.clock)
	err := t.db.change(ctx, func(tx *sql.Tx) error {
		a, err := t.named(ctx, tx, slug)
		if err != nil {
			return err
		}
		if a.Rev != r.Rev-1 {
			return ErrConflict
		}
		if a.Rev == 0 {
			a.OwnerID = owner
		}
		if _, err := execIn(ctx, tx, "UPDATE agents SET rev = $1, owner_id = $2, deleted_at = NULL WHERE id = $3", r.Rev, maybe{&a.OwnerID}, a.ID); err != nil {
			return err
		}
		r.AgentID = a.ID
		if _, err := execIn(ctx, tx, insert("agent_revisions", revisionColumns), r.fields()...); err != nil {
			return err
		}
		if _, err = execIn(ctx, tx, "DELETE FROM agent_revisions WHERE agent_id = $1 AND rev <= $2", a.ID, r.Rev-keep); err != nil {
			return err
		}
		return agentsChanged(ctx, tx)
	})
	if errors.Is(err, ErrExists) { // somebody else has made it at the same time
		err = ErrConflict
	}
	return err
}

// named returns the agent of a slug, and makes it without any revision if there is none.
func (t *Agents) named(ctx context.Context, tx *sql.Tx, slug string) (Agent, error) {
	a, err := first[Agent](ctx, tx, selectAgent+" WHERE slug = $1"+t.db.forUpdate(), slug)
	if !errors.Is(err, ErrNotFound) {
		return a, err
	}
	a = Agent{ID: NewID(), Slug: slug}
	_, err = execIn(ctx, tx, insert("agents", agentColumns), a.fields()...)
	return a, err
}

// List lists agents that are not deleted, by slug, each with its newest revision.
func (t *Agents) List(ctx context.Context) ([]Agent, []AgentRevision, error) {
	agents, err := list[Agent](ctx, t.db.read, selectAgent+" WHERE deleted_at IS NULL AND rev > 0 ORDER BY slug")
	if err != nil {
		return nil, nil, err
	}
	revisions, err := list[AgentRevision](ctx, t.db.read, selectRevision+" AND a.rev = r.rev WHERE a.deleted_at IS NULL ORDER BY a.slug")
	return agents, revisions, err
}

// Names returns the slugs of all agents that turns or devices can be of, by id, also of those that settings or prompts make.
func (t *Agents) Names(ctx context.Context) (map[string]string, error) {
	agents, err := list[Agent](ctx, t.db.read, selectAgent)
	names := make(map[string]string, len(agents))
	for _, a := range agents {
		names[a.ID] = a.Slug
	}
	return names, err
}

// Revisions lists what an agent was, the newest first, also of one that was deleted, and whose it is.
func (t *Agents) Revisions(ctx context.Context, slug string) (all []AgentRevision, owner string, err error) {
	a, err := first[Agent](ctx, t.db.read, selectAgent+" WHERE slug = $1", slug)
	if errors.Is(err, ErrNotFound) {
		return nil, "", nil
	}
	if err == nil {
		all, err = list[AgentRevision](ctx, t.db.read, selectRevision+" WHERE a.slug = $1 ORDER BY r.rev DESC", slug)
	}
	return all, a.OwnerID, err
}

// Delete hides an agent: [ErrNotFound] if it is not there. Its revisions and the devices that have it stay.
func (t *Agents) Delete(ctx context.Context, slug string) error {
	return t.db.change(ctx, func(tx *sql.Tx) error {
		n, err := execIn(ctx, tx, "UPDATE agents SET deleted_at = $1 WHERE slug = $2 AND deleted_at IS NULL AND rev > 0", t.db.clock().UnixMilli(), slug)
		if err == nil && n == 0 {
			return ErrNotFound
		}
		if err != nil {
			return err
		}
		return agentsChanged(ctx, tx)
	})
}

// Deleted reports whether the agent of a slug was deleted, and is not there again.
func (t *Agents) Deleted(ctx context.Context, slug string) (bool, error) {
	n, err := count(ctx, t.db.read, "SELECT COUNT(*) FROM agents WHERE slug = $1 AND deleted_at IS NOT NULL", slug)
	return n > 0, err
}

// agentsChanged counts a change of agents, or of whom devices have. It is the last step of a transaction: those of other
// servers wait for it.
func agentsChanged(ctx context.Context, tx *sql.Tx) error {
	_, err := execIn(ctx, tx, "UPDATE changes SET times = times + 1 WHERE what = 'agents'")
	return err
}

// Changes counts the changes that anybody has made of agents, and of whom devices have. It is one row: ask it as often as
// you like.
func (t *Agents) Changes(ctx context.Context) (int, error) {
	return count(ctx, t.db.read, "SELECT times FROM changes WHERE what = 'agents'")
}

// Assignment is the agent that a device was given.
type Assignment struct {
	Slug  string // "": none any more
	Times int    // how often it was given one, or none
}

// Assign gives a device the agent of a slug, wherever that is set; "" takes it away. It returns how often that was done
// with the device. [ErrNotFound]: there is no such device.
func (t *Agents) Assign(ctx context.Context, deviceID, slug string) (times int, err error) {
	err = t.db.change(ctx, func(tx *sql.Tx) error {
		var a Agent
		if slug != "" {
			var err error
			if a, err = t.named(ctx, tx, slug); err != nil {
				return err
			}
		}
		n, err := execIn(ctx, tx, "UPDATE devices SET agent_id = $1, agent_times = agent_times + 1 WHERE id = $2", maybe{&a.ID}, deviceID)
		if err == nil && n == 0 {
			err = ErrNotFound
		}
		if err != nil {
			return err
		}
		if times, err = count(ctx, tx, "SELECT agent_times FROM devices WHERE id = $1", deviceID); err != nil {
			return err
		}
		return agentsChanged(ctx, tx)
	})
	return times, err
}

// Assigned returns whom devices were given, by their ids.
func (t *Agents) Assigned(ctx context.Context) (map[string]Assignment, error) {
	const query = "SELECT d.id, a.slug, d.agent_times FROM devices d LEFT JOIN agents a ON a.id = d.agent_id WHERE d.agent_id IS NOT NULL OR d.agent_times > 0"
	rows, err := t.db.read.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := map[string]Assignment{}
	for rows.Next() {
		var id string
		var a Assignment
		if err := rows.Scan(&id, maybe{&a.Slug}, whole{&a.Times}); err != nil {
			return nil, err
		}
		all[id] = a
	}
	return all, rows.Err()
}
