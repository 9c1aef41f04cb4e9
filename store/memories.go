package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"strings"
	"time"
)

// Memory is something that is remembered of the people at a device with one agent.
type Memory struct {
	ID             string
	DeviceID       string
	AgentID        string
	Person         string // whom it is of
	Kind           string // fact or summary; of that there is one
	Text           string
	Keys           string // more words by which it is found
	Slot           string
	Language       string
	ConversationID string // that it was learned from
	TurnID         string
	At             time.Time
	Sure           int // in per cent
	Told           bool
	EndedAt        time.Time // when another took its place; zero: it holds
	ByID           string
}

// The kinds of memories.
const (
	FactMemory    = "fact"
	SummaryMemory = "summary"
)

const (
	memoryColumns = "id, device_id, agent_id, person, kind, text, keys, slot, language, conversation_id, turn_id, at, sure, told, ended_at, by_id"
	selectMemory  = "SELECT " + memoryColumns + " FROM memories"
	ofAgent       = "agent_id = (SELECT id FROM agents WHERE slug = $2)"
)

func (m *Memory) fields() []any {
	return []any{
		text{&m.ID}, text{&m.DeviceID}, text{&m.AgentID}, maybe{&m.Person}, text{&m.Kind}, text{&m.Text}, maybe{&m.Keys}, maybe{&m.Slot}, maybe{&m.Language},
		maybe{&m.ConversationID}, maybe{&m.TurnID}, stamp{&m.At}, whole{&m.Sure}, flag{&m.Told}, stamp{&m.EndedAt}, maybe{&m.ByID},
	}
}

// Memories is the table of what is remembered, and of what reading talks has cost.
type Memories struct{ db *database }

// MemoryChange is what was learned, written as a whole.
type MemoryChange struct {
	DeviceID string
	Agent    string // slug; "": nothing is added
	Add      []Memory
	Renew    []string          // ids of what was said again
	Replace  map[string]string // ids of what holds no more, and of what took its place
	Summary  *Memory           // in place of the one before; nil: it stays
	Most     int               // facts that hold; of more the least certain and then the oldest are deleted
	Talk     string            // "": none was read
	Learned  int               // up to which turn it was
	Give     bool              // a service is to be given its turns, too
}

// Write writes a change. A device that is not known is [ErrNotFound].
func (t *Memories) Write(ctx context.Context, c MemoryChange) error {
	now := t.db.clock()
	return t.db.change(ctx, func(tx *sql.Tx) (err error) {
		var agent Agent
		if c.Agent != "" {
			if agent, err = (&Agents{t.db}).named(ctx, tx, c.Agent); err != nil {
				return err
			}
		}
		do := func(query string, args ...any) {
			if err == nil {
				_, err = execIn(ctx, tx, query, args...)
			}
		}
		add := func(m Memory) {
			m.DeviceID, m.AgentID, m.At = c.DeviceID, agent.ID, orNow(m.At, t.db.clock)
			do(insert("memories", memoryColumns), m.fields()...)
		}
		for _, m := range c.Add {
			add(m)
		}
		for _, id := range c.Renew {
			do("UPDATE memories SET at = $1, sure = 100 WHERE id = $2 AND device_id = $3 AND agent_id = $4", now.UnixMilli(), id, c.DeviceID, agent.ID)
		}
		for id, by := range c.Replace {
			do("UPDATE memories SET ended_at = $1, by_id = $2 WHERE id = $3 AND device_id = $4 AND agent_id = $5 AND ended_at IS NULL", now.UnixMilli(), by, id, c.DeviceID, agent.ID)
		}
		if c.Summary != nil {
			do("DELETE FROM memories WHERE device_id = $1 AND agent_id = $2 AND kind = 'summary'", c.DeviceID, agent.ID)
			add(*c.Summary)
		}
		if c.Most > 0 && len(c.Add) > 0 {
			do("DELETE FROM memories WHERE id IN (SELECT id FROM memories WHERE device_id = $1 AND agent_id = $2 AND kind = 'fact' "+
				"ORDER BY CASE WHEN ended_at IS NULL THEN 0 ELSE 1 END, told DESC, sure DESC, at DESC, id DESC LIMIT 1000000 OFFSET $3)", c.DeviceID, agent.ID, c.Most)
		}
		if c.Talk != "" {
			do("UPDATE conversations SET learned = $1 WHERE id = $2", c.Learned, c.Talk)
			if !c.Give {
				do("UPDATE conversations SET given = $1 WHERE id = $2", c.Learned, c.Talk)
			}
		}
		return err
	})
}

// Of lists what holds for a device with an agent, the newest first.
func (t *Memories) Of(ctx context.Context, deviceID, agent string) ([]Memory, error) {
	return list[Memory](ctx, t.db.read, selectMemory+" WHERE device_id = $1 AND "+ofAgent+" AND ended_at IS NULL ORDER BY at DESC, id DESC", deviceID, agent)
}

// List lists the memories of a device with all its agents, the newest first, also those that hold no more.
func (t *Memories) List(ctx context.Context, deviceID string, p Page) ([]Memory, error) {
	at, id, limit := p.bounds()
	return list[Memory](ctx, t.db.read, selectMemory+" WHERE device_id = $1 AND (at, id) < ($2, $3) ORDER BY at DESC, id DESC LIMIT $4", deviceID, at, id, limit)
}

// Agents lists the agents with which something of a device is remembered, here or by a service.
func (t *Memories) Agents(ctx context.Context, deviceID string) ([]string, error) {
	names, err := list[name](ctx, t.db.read, "SELECT slug FROM agents WHERE id IN (SELECT agent_id FROM memories WHERE device_id = $1) "+
		"UNION SELECT agent FROM memory_places WHERE device_id = $1 AND what = '' ORDER BY 1", deviceID)
	all := make([]string, len(names))
	for i, n := range names {
		all[i] = n.s
	}
	return all, err
}

// Edit replaces the text of a fact; what it was found by beside its text ends. The error is [ErrNotFound].
func (t *Memories) Edit(ctx context.Context, deviceID, agent, id, words string) error {
	return t.db.execOne(ctx, "UPDATE memories SET text = $1, keys = NULL, slot = NULL, vector = NULL, vector_of = NULL, told = TRUE, sure = 100 "+
		"WHERE device_id = $2 AND agent_id = (SELECT id FROM agents WHERE slug = $3) AND id = $4 AND kind = 'fact'", words, deviceID, agent, id)
}

// Delete deletes memories, and those whose place they took, for good: see [Store.Forget].
func (t *Memories) Delete(ctx context.Context, deviceID, agent string, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	args := arguments{deviceID, agent}
	marks := make([]string, len(ids))
	for i, id := range ids {
		marks[i] = args.mark(id)
	}
	in := "(" + strings.Join(marks, ", ") + ")"
	n, err := t.db.exec(ctx, "DELETE FROM memories WHERE device_id = $1 AND "+ofAgent+" AND (id IN "+in+" OR by_id IN "+in+")", args...)
	if err == nil && n == 0 {
		return ErrNotFound
	}
	if err != nil {
		return err
	}
	return t.db.empty(ctx)
}

// DeleteAll deletes all memories of a device with an agent, or with all of them for "", for good, and returns how many facts held. Talks up to
// now are not read any more.
func (t *Memories) DeleteAll(ctx context.Context, deviceID, agent string) (facts int, err error) {
	err = t.db.change(ctx, func(tx *sql.Tx) error {
		where, args := "device_id = $1", []any{deviceID}
		if agent != "" {
			where, args = where+" AND "+ofAgent, append(args, agent)
		}
		row := tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM memories WHERE "+where+" AND kind = 'fact' AND ended_at IS NULL", args...)
		if err := row.Scan(&facts); err != nil {
			return err
		}
		if _, err := execIn(ctx, tx, "DELETE FROM memories WHERE "+where, args...); err != nil {
			return err
		}
		_, err := execIn(ctx, tx, "UPDATE conversations SET learned = turns, given = turns WHERE "+where+" AND (turns > learned OR turns > given)", args...)
		return err
	})
	if err != nil {
		return 0, err
	}
	return facts, t.db.empty(ctx)
}

// Unread is a conversation that was not read whole.
type Unread struct {
	ID       string
	DeviceID string
	Learned  int // up to which turn it was read
	Turns    int
	LastAt   time.Time // of its last turn
}

func (u *Unread) fields() []any {
	return []any{text{&u.ID}, text{&u.DeviceID}, whole{&u.Learned}, whole{&u.Turns}, stamp{&u.LastAt}}
}

// Unread lists conversations that were not read whole, the oldest first.
func (t *Memories) Unread(ctx context.Context, limit int) ([]Unread, error) {
	return list[Unread](ctx, t.db.read, "SELECT c.id, c.device_id, c.learned, c.turns, COALESCE((SELECT MAX(at) FROM turns WHERE conversation_id = c.id), c.began_at) "+
		"FROM conversations c WHERE c.turns > c.learned ORDER BY c.began_at, c.id LIMIT $1", limit)
}

// Ungiven lists conversations of which a service was not given all turns that were read, the oldest first. Learned is
// up to which turn it was given them, Turns up to which it is to be.
func (t *Memories) Ungiven(ctx context.Context, limit int) ([]Unread, error) {
	return list[Unread](ctx, t.db.read, "SELECT c.id, c.device_id, c.given, CASE WHEN c.learned < c.turns THEN c.learned "+
		"ELSE (SELECT COALESCE(MAX(seq), c.learned) FROM turns WHERE conversation_id = c.id) END, c.began_at FROM conversations c WHERE c.learned > c.given ORDER BY c.began_at, c.id LIMIT $1", limit)
}

// Given says up to which turn a service was given a conversation.
func (t *Memories) Given(ctx context.Context, conversationID string, turn int) error {
	_, err := t.db.exec(ctx, "UPDATE conversations SET given = $1 WHERE id = $2", turn, conversationID)
	return err
}

// Place is something that a memory service keeps.
type Place struct {
	Service  string
	DeviceID string
	Agent    string // slug
	What     string // of it: a fact, a talk; "": all
	Gone     bool   // it is to be deleted there
	At       time.Time
}

const placeColumns = "service, device_id, agent, what, gone, at"

func (p *Place) fields() []any {
	return []any{text{&p.Service}, text{&p.DeviceID}, text{&p.Agent}, text{&p.What}, flag{&p.Gone}, stamp{&p.At}}
}

// Put notes that a service keeps something, or is to delete it; what it is to delete it is, also if it is to keep more.
func (t *Memories) Put(ctx context.Context, p Place) error {
	p.At = orNow(p.At, t.db.clock)
	_, err := t.db.exec(ctx, insert("memory_places", placeColumns)+" ON CONFLICT (service, device_id, agent, what) DO UPDATE SET gone = memory_places.gone OR excluded.gone", p.fields()...)
	return err
}

// Leave says that a service is to delete all that it keeps of a device.
func (t *Memories) Leave(ctx context.Context, service, deviceID string) error {
	_, err := t.db.exec(ctx, "UPDATE memory_places SET gone = TRUE WHERE service = $1 AND device_id = $2 AND what = ''", service, deviceID)
	return err
}

// Places lists what a service is to delete, the oldest first.
func (t *Memories) Places(ctx context.Context, service string) ([]Place, error) {
	return list[Place](ctx, t.db.read, "SELECT "+placeColumns+" FROM memory_places WHERE service = $1 AND gone ORDER BY at, device_id, agent, what LIMIT 1000", service)
}

// TalkPlace begins what a service is to delete if that is what it has learned from a talk, whose id follows.
const TalkPlace = "talk:"

// eraseFromServices notes that services are to delete what they have learned from a talk: its id, the time and its id again.
const eraseFromServices = "INSERT INTO memory_places (" + placeColumns + ") SELECT p.service, p.device_id, p.agent, CAST($1 AS TEXT), TRUE, CAST($2 AS BIGINT) " +
	"FROM memory_places p JOIN conversations c ON c.device_id = p.device_id WHERE c.id = $3 AND p.what = '' ON CONFLICT (service, device_id, agent, what) DO UPDATE SET gone = TRUE"

// statement is one of SQL.
type statement struct {
	query string
	args  []any
}

// fromServices has services delete what they have learned from a talk.
func fromServices(talk string, at time.Time) statement {
	return statement{eraseFromServices, []any{TalkPlace + talk, stamp{&at}, talk}}
}

// eraseTalk deletes a talk for good, as its last statement, and what was learned from it, also by services.
func eraseTalk(id string, at time.Time) []statement {
	return []statement{fromServices(id, at), {"DELETE FROM memories WHERE conversation_id = $1", []any{id}}, {"DELETE FROM conversations WHERE id = $1", []any{id}}}
}

// Left says that a service has deleted something. With all of an owner go its parts.
func (t *Memories) Left(ctx context.Context, p Place) error {
	_, err := t.db.exec(ctx, "DELETE FROM memory_places WHERE service = $1 AND device_id = $2 AND agent = $3 AND (what = $4 OR $4 = '')", p.Service, p.DeviceID, p.Agent, p.What)
	return err
}

// SaidTurn is what was said in a turn.
type SaidTurn struct {
	ID       string
	Seq      int
	At       time.Time
	Agent    string // slug
	Language string
	Heard    string
	Said     string
	Forgets  bool // something that was remembered was forgotten in it

	Speaker string // name of the person whose voice it was; "": a stranger's, or it is not known
}

func (s *SaidTurn) fields() []any {
	return []any{text{&s.ID}, whole{&s.Seq}, stamp{&s.At}, maybe{&s.Agent}, maybe{&s.Language}, maybe{&s.Heard}, maybe{&s.Said}, flag{&s.Forgets}, maybe{&s.Speaker}}
}

// Said lists the turns of a conversation after one, in their order.
func (t *Memories) Said(ctx context.Context, conversationID string, after, limit int) ([]SaidTurn, error) {
	return list[SaidTurn](ctx, t.db.read, "SELECT t.id, t.seq, t.at, a.slug, t.language, t.heard, t.said, "+
		"EXISTS (SELECT 1 FROM tool_calls WHERE turn_id = t.id AND name IN ('forget_memory', 'erase_memory')), p.name FROM turns t LEFT JOIN agents a ON a.id = t.agent_id LEFT JOIN people p ON p.id = t.speaker AND t.speaker_sure > 0 "+
		"WHERE t.conversation_id = $1 AND t.seq > $2 ORDER BY t.seq, t.id LIMIT $3", conversationID, after, limit)
}

// MemoryRun is what reading a conversation has cost.
type MemoryRun struct {
	DeviceID       string
	ConversationID string
	At             time.Time
	Took           time.Duration
	LLM            string
	TokensIn       int
	TokensOut      int
	CostMicros     *int // nil: not known
	Facts          int
	Fault          string
}

// Spent keeps what reading a conversation with an agent has cost.
func (t *Memories) Spent(ctx context.Context, agent string, r MemoryRun) error {
	err := t.db.change(ctx, func(tx *sql.Tx) error {
		a, err := (&Agents{t.db}).named(ctx, tx, agent)
		if err != nil {
			return err
		}
		_, err = execIn(ctx, tx, insert("memory_runs", "id, device_id, agent_id, conversation_id, at, took_ms, llm, tokens_in, tokens_out, cost_micros, facts, fault"),
			NewID(), r.DeviceID, a.ID, r.ConversationID, stamp{&r.At}, span{&r.Took}, maybe{&r.LLM}, number{&r.TokensIn}, number{&r.TokensOut}, choice{&r.CostMicros}, number{&r.Facts}, maybe{&r.Fault})
		return err
	})
	if err != nil {
		return fmt.Errorf("keep what remembering has cost: %w", err)
	}
	return nil
}

// costs sums up what reading conversations has cost, as [Turns.Costs] does of turns. It counts no turns.
func (t *Memories) costs(ctx context.Context, q CostQuery) ([]CostRow, error) {
	return list[CostRow](ctx, t.db.read, "SELECT t.device_id, t.agent_id, (t.at + CAST($1 AS BIGINT)) / 86400000 AS day, 0, 0, "+
		"CAST(COALESCE(SUM(t.cost_micros), 0) AS BIGINT), CAST(COALESCE(SUM(t.tokens_in), 0) AS BIGINT), CAST(COALESCE(SUM(t.tokens_out), 0) AS BIGINT), 0, 0"+
		strings.Replace(q.where(2), "FROM turns t", "FROM memory_runs t", 1)+" GROUP BY t.device_id, t.agent_id, 3 ORDER BY 3 DESC, t.device_id, t.agent_id LIMIT $8",
		append(append([]any{q.Offset.Milliseconds()}, q.args()...), maxCosts)...)
}

// octets joins bytes to their column; NULL is none.
type octets struct{ b *[]byte }

// Value returns what the column holds.
func (c octets) Value() (driver.Value, error) {
	if len(*c.b) == 0 {
		return nil, nil
	}
	return *c.b, nil
}

// Scan takes in what the column holds.
func (c octets) Scan(src any) error {
	*c.b = nil
	if b, ok := src.([]byte); ok {
		*c.b = append([]byte(nil), b...)
	}
	return nil
}

// Vector is that of a memory.
type Vector struct {
	MemoryID string
	Text     string // of which it was made
	Data     []byte
}

func (v *Vector) fields() []any { return []any{text{&v.MemoryID}, text{&v.Text}, octets{&v.Data}} }

// Vectors lists those that a model has made of the facts of a device with an agent which hold.
func (t *Memories) Vectors(ctx context.Context, deviceID, agent, model string) ([]Vector, error) {
	return list[Vector](ctx, t.db.read, "SELECT id, text, vector FROM memories WHERE device_id = $1 AND agent_id = (SELECT id FROM agents WHERE slug = $2)"+
		" AND kind = 'fact' AND ended_at IS NULL AND vector_of = $3 AND vector IS NOT NULL", deviceID, agent, model)
}

// Unlike is a fact without the vector that it should have.
type Unlike struct {
	Memory

	Agent string // slug
}

func (u *Unlike) fields() []any { return append(u.Memory.fields(), text{&u.Agent}) }

// Unlike lists facts that hold and have no vector of a model, or one of another length in bytes, if that is not 0: of all devices, in the
// order of their ids, from the one after an id on.
func (t *Memories) Unlike(ctx context.Context, model string, bytes int, after string, limit int) ([]Unlike, error) {
	return list[Unlike](ctx, t.db.read, "SELECT m.id, m.device_id, m.agent_id, m.person, m.kind, m.text, m.keys, m.slot, m.language, m.conversation_id, m.turn_id, m.at, "+
		"m.sure, m.told, m.ended_at, m.by_id, a.slug FROM memories m JOIN agents a ON a.id = m.agent_id WHERE m.kind = 'fact' AND m.ended_at IS NULL AND m.id > $1 AND "+
		"(m.vector IS NULL OR m.vector_of IS NULL OR m.vector_of <> $2 OR (CAST($3 AS INTEGER) > 0 AND length(m.vector) <> CAST($3 AS INTEGER))) "+
		"ORDER BY m.id LIMIT $4", after, model, bytes, limit)
}

// SetVectors keeps vectors that a model has made. A fact whose text is another one by now, or which is gone, keeps none.
func (t *Memories) SetVectors(ctx context.Context, model string, all []Vector) error {
	return t.db.change(ctx, func(tx *sql.Tx) error {
		for i := range all {
			if _, err := execIn(ctx, tx, "UPDATE memories SET vector = $1, vector_of = $2 WHERE id = $3 AND text = $4", octets{&all[i].Data}, model, all[i].MemoryID, all[i].Text); err != nil {
				return err
			}
		}
		return nil
	})
}
