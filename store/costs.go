package store

import (
	"context"
	"fmt"
	"time"
)

// CostQuery says which turns are summed up.
type CostQuery struct {
	DeviceID string // "": of all
	OwnerID  string // of devices of this person alone; "": of anybody
	From     time.Time
	To       time.Time     // before it
	Offset   time.Duration // of the zone in which days begin, east of Greenwich
}

// CostRow sums up the turns of one device with one agent on one day.
type CostRow struct {
	DeviceID   string
	AgentID    string // "": not known
	Day        int    // days since 1970, in the zone of the query
	Turns      int
	Unpriced   int // of Turns, those of which no cost is known
	CostMicros int
	TokensIn   int
	TokensOut  int
	TTSChars   int
	ASRSound   time.Duration
}

func (r *CostRow) fields() []any {
	return []any{
		text{&r.DeviceID}, maybe{&r.AgentID}, whole{&r.Day}, whole{&r.Turns}, whole{&r.Unpriced}, whole{&r.CostMicros}, whole{&r.TokensIn}, whole{&r.TokensOut},
		whole{&r.TTSChars}, millis{&r.ASRSound},
	}
}

const maxCosts = 20_000

// where are the conditions of a query. SQLite gives numbers their values in the order in which they stand first, so that they
// begin at first.
func (CostQuery) where(first int) string {
	return fmt.Sprintf(" FROM turns t WHERE t.at >= $%d AND t.at < $%d AND ($%d = '' OR t.device_id = $%d) AND ($%d = '' OR t.device_id IN (SELECT id FROM devices WHERE owner_id = $%d))",
		first, first+1, first+2, first+3, first+4, first+5)
}

func (q CostQuery) args() []any {
	return []any{q.From.UnixMilli(), q.To.UnixMilli(), q.DeviceID, q.DeviceID, q.OwnerID, q.OwnerID}
}

// Costs sums up what turns have cost by device, agent and day, the newest day first; then what reading talks has cost to remember them, in
// rows that count no turns.
func (t *Turns) Costs(ctx context.Context, q CostQuery) ([]CostRow, error) {
	rows, err := t.costs(ctx, q)
	if err != nil {
		return nil, err
	}
	read, err := (&Memories{t.db}).costs(ctx, q)
	return append(rows, read...), err
}

func (t *Turns) costs(ctx context.Context, q CostQuery) ([]CostRow, error) {
	sum := func(column string) string { return "CAST(COALESCE(SUM(t." + column + "), 0) AS BIGINT)" }
	return list[CostRow](ctx, t.db.read, "SELECT t.device_id, t.agent_id, (t.at + CAST($1 AS BIGINT)) / 86400000 AS day, COUNT(*), "+
		"COUNT(*) - COUNT(t.cost_micros), "+sum("cost_micros")+", "+sum("tokens_in")+", "+sum("tokens_out")+", "+sum("tts_chars")+", "+sum("asr_sound_ms")+
		q.where(2)+" GROUP BY t.device_id, t.agent_id, 3 ORDER BY 3 DESC, t.device_id, t.agent_id LIMIT $8",
		append(append([]any{q.Offset.Milliseconds()}, q.args()...), maxCosts)...)
}

// Summary counts turns, and tells how long they had their users wait.
type Summary struct {
	Turns  int
	Failed int // of Turns
	Cut    int // of Turns, those that users ended before they were said whole
	P50    time.Duration
	P95    time.Duration // from the end of what was said to the first sound; zero: no turn tells
}

// Summary sums up the turns of a query.
func (t *Turns) Summary(ctx context.Context, q CostQuery) (s Summary, err error) {
	var timed int
	row := t.db.read.QueryRowContext(ctx, "SELECT COUNT(*), COUNT(NULLIF(t.fault, '')), COUNT(CASE WHEN t."+cutShort+" THEN 1 END), COUNT(NULLIF(t.e2e_ms, 0))"+q.where(1), q.args()...)
	if err := row.Scan(&s.Turns, &s.Failed, &s.Cut, &timed); err != nil || timed == 0 {
		return s, err
	}
	for _, of := range []struct {
		rank int
		into *time.Duration
	}{{(timed - 1) / 2, &s.P50}, {(timed*95 - 1) / 100, &s.P95}} {
		row := t.db.read.QueryRowContext(ctx, "SELECT t.e2e_ms"+q.where(1)+" AND t.e2e_ms > 0 ORDER BY t.e2e_ms LIMIT 1 OFFSET $7", append(q.args(), of.rank)...)
		if err := row.Scan(millis{of.into}); err != nil {
			return s, err
		}
	}
	return s, nil
}

// HourRow counts the turns of an hour.
type HourRow struct {
	Hour   int // from the beginning of the query on
	Turns  int
	Failed int // of Turns
}

func (r *HourRow) fields() []any { return []any{whole{&r.Hour}, whole{&r.Turns}, whole{&r.Failed}} }

// Hours counts the turns of each hour in which there are some, the first hour first.
func (t *Turns) Hours(ctx context.Context, q CostQuery) ([]HourRow, error) {
	return list[HourRow](ctx, t.db.read, "SELECT (t.at - CAST($1 AS BIGINT)) / 3600000 AS hour, COUNT(*), COUNT(NULLIF(t.fault, ''))"+q.where(2)+" GROUP BY 1 ORDER BY 1",
		append([]any{q.From.UnixMilli()}, q.args()...)...)
}

// Spans hands over the spans of turns, as they are kept, the newest first, at most limit of them.
func (t *Turns) Spans(ctx context.Context, q CostQuery, limit int, each func(spans string)) error {
	rows, err := t.db.read.QueryContext(ctx, "SELECT t.spans"+q.where(1)+" AND t.spans IS NOT NULL ORDER BY t.at DESC, t.id DESC LIMIT $7", append(q.args(), limit)...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var doc string
		if err := rows.Scan(&doc); err != nil {
			return err
		}
		each(doc)
	}
	return rows.Err()
}

// Before lists the messages of the last turns of the same talk before a turn, at most limit turns of them, in their order.
func (t *Turns) Before(ctx context.Context, turn Turn, limit int) ([]Message, error) {
	return list[Message](ctx, t.db.read, "SELECT m.turn_id, m.seq, m.role, m.body FROM messages m JOIN turns t ON t.id = m.turn_id "+
		"WHERE t.conversation_id = $1 AND t.seq < $2 AND t.seq >= $3 ORDER BY t.seq, m.turn_id, m.seq", turn.ConversationID, turn.Seq, turn.Seq-limit)
}
