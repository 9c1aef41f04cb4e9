package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"
)

// TalkFilter says which talks are wanted. Its zero value: all.
type TalkFilter struct {
	Owner  string // id of the user to whom the devices belong; "": everybody's and nobody's
	Device string
	Agent  string // slug
	Kept   bool

	// At least one turn of the talk is such a turn, all of them the same one.
	Text        string // in what was said or heard, whatever the case of ASCII letters
	Failed      bool
	Interrupted bool
	Slower      time.Duration // than that until the first sound
	Tool        string        // was called, by its name
}

// ofTurns reports whether turns must be looked at.
func (f *TalkFilter) ofTurns() bool {
	return f.Text != "" || f.Failed || f.Interrupted || f.Slower > 0 || f.Tool != ""
}

// Talk is a conversation as it is listed, with what is counted of its turns.
type Talk struct {
	Conversation

	DeviceName  string
	OwnerID     string // of the device
	Agent       string // slug
	Words       string // of the user, the first ones
	Failed      int    // turns
	Interrupted int    // turns
	Slowest     time.Duration
	LastAt      time.Time // of its last turn
	CostMicros  int
}

// cutShort are the causes of turns of which the user did not want the rest, as package agent/turn names them.
const cutShort = "cause IN ('barge-in', 'aborted', 'replaced by a newer turn')"

const selectTalk = "SELECT c.id, c.device_id, c.agent_id, c.user_id, c.began_at, c.ended_at, c.cause, c.turns, c.title, c.kept, d.name, d.owner_id, a.slug, " +
	"(SELECT heard FROM turns WHERE conversation_id = c.id AND heard IS NOT NULL ORDER BY seq LIMIT 1), " +
	"(SELECT COUNT(*) FROM turns WHERE conversation_id = c.id AND fault IS NOT NULL), " +
	"(SELECT COUNT(*) FROM turns WHERE conversation_id = c.id AND " + cutShort + "), " +
	"(SELECT MAX(e2e_ms) FROM turns WHERE conversation_id = c.id), " +
	"(SELECT MAX(at) FROM turns WHERE conversation_id = c.id), " +
	"(SELECT CAST(SUM(cost_micros) AS BIGINT) FROM turns WHERE conversation_id = c.id) FROM "

const talkJoins = " c JOIN devices d ON d.id = c.device_id LEFT JOIN agents a ON a.id = c.agent_id"

func (t *Talk) fields() []any {
	return append(t.Conversation.fields(), maybe{&t.DeviceName}, maybe{&t.OwnerID}, maybe{&t.Agent}, maybe{&t.Words}, whole{&t.Failed}, whole{&t.Interrupted},
		span{&t.Slowest}, stamp{&t.LastAt}, number{&t.CostMicros})
}

// TalkList is a part of a list of talks.
type TalkList struct {
	Talks []Talk
	// Next begins the next part. Zero: this was the last one. Of talks that are searched it may lie beyond the last one
	// that was found: so far nothing more was.
	Next Cursor
}

// Talks looks at conversations with their turns.
type Talks struct{ db *database }

// searched is how many conversations are looked through for one part of a list: so it takes the same time however much was
// said.
const searched = 1000

// arguments collect the parameters of a statement.
type arguments []any

// mark adds one, and returns what stands for it.
func (a *arguments) mark(v any) string {
	*a = append(*a, v)
	return fmt.Sprintf("$%d", len(*a))
}

// List lists talks that began before a place, the newest first.
func (t *Talks) List(ctx context.Context, f TalkFilter, p Page) (l TalkList, err error) {
	at, id, limit := p.bounds()
	window := limit
	if f.ofTurns() || f.Agent != "" || f.Kept {
		window = searched
	}
	devices, all, err := t.devices(ctx, f)
	if err != nil || !all && len(devices) == 0 {
		return l, err
	}
	var args arguments
	from := t.window(&args, devices, all, at, id, window)
	query := selectTalk + "(" + from + ")" + talkJoins + t.where(&f, &args) + " ORDER BY c.began_at DESC, c.id DESC LIMIT " + args.mark(limit)
	if l.Talks, err = list[Talk](ctx, t.db.read, query, args...); err != nil {
		return l, err
	}
	if len(l.Talks) == limit {
		last := &l.Talks[limit-1]
		l.Next = Cursor{last.BeganAt, last.ID}
		return l, nil
	}
	if window == limit {
		return l, nil
	}
	args = nil
	last, err := list[Cursor](ctx, t.db.read, "SELECT w.began_at, w.id FROM ("+t.window(&args, devices, all, at, id, window)+") w ORDER BY w.began_at DESC, w.id DESC LIMIT 1 OFFSET "+
		args.mark(window-1), args...)
	if err == nil && len(last) > 0 { // there may be more
		l.Next = last[0]
	}
	return l, err
}

func (c *Cursor) fields() []any { return []any{stamp{&c.At}, text{&c.ID}} }

// devices lists those whose talks are wanted; all: of every one.
func (t *Talks) devices(ctx context.Context, f TalkFilter) (ids []string, all bool, err error) {
	if f.Owner == "" {
		if f.Device == "" {
			return nil, true, nil
		}
		return []string{f.Device}, false, nil
	}
	rows, err := list[name](ctx, t.db.read, "SELECT id FROM devices WHERE owner_id = $1 AND ($2 = '' OR id = $2)", f.Owner, f.Device)
	for _, r := range rows {
		ids = append(ids, r.s)
	}
	return ids, false, err
}

// name is a row of one text.
type name struct{ s string }

func (n *name) fields() []any { return []any{text{&n.s}} }

// window selects the conversations that are looked through: those before a place, of each device by its index.
func (t *Talks) window(args *arguments, devices []string, all bool, at int64, id string, limit int) string {
	const newest = " ORDER BY began_at DESC, id DESC LIMIT "
	if all {
		return selectConversation + " WHERE (began_at, id) < (" + args.mark(at) + ", " + args.mark(id) + ")" + newest + args.mark(limit)
	}
	var each []string
	for i, d := range devices {
		each = append(each, "SELECT * FROM ("+selectConversation+" WHERE device_id = "+args.mark(d)+" AND (began_at, id) < ("+args.mark(at)+", "+args.mark(id)+")"+newest+
			args.mark(limit)+fmt.Sprintf(") o%d", i))
	}
	return "SELECT * FROM (" + strings.Join(each, " UNION ALL ") + ") u" + newest + args.mark(limit)
}

// where says what talks and their turns must be like.
func (t *Talks) where(f *TalkFilter, args *arguments) string {
	var all []string
	if f.Agent != "" {
		all = append(all, "a.slug = "+args.mark(f.Agent))
	}
	if f.Kept {
		all = append(all, "c.kept")
	}
	if f.ofTurns() {
		all = append(all, "EXISTS (SELECT 1 FROM turns t WHERE t.conversation_id = c.id"+t.turns(f, args)+")")
	}
	if len(all) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(all, " AND ")
}

// turns says what one turn must be like.
func (t *Talks) turns(f *TalkFilter, args *arguments) (where string) {
	if f.Text != "" {
		like := " LIKE "
		if t.db.engine == Postgres {
			like = " ILIKE "
		}
		words := args.mark("%" + strings.NewReplacer("!", "!!", "%", "!%", "_", "!_").Replace(clean(f.Text)) + "%")
		where += " AND (t.heard" + like + words + " ESCAPE '!' OR t.said" + like + words + " ESCAPE '!')"
	}
	if f.Failed {
		where += " AND t.fault IS NOT NULL"
	}
	if f.Interrupted {
		where += " AND t." + cutShort
	}
	if f.Slower > 0 {
		where += " AND t.e2e_ms > " + args.mark(f.Slower.Milliseconds())
	}
	if f.Tool != "" {
		where += " AND EXISTS (SELECT 1 FROM tool_calls x WHERE x.turn_id = t.id AND x.name = " + args.mark(f.Tool) + ")"
	}
	return where
}

// Get returns a talk; [ErrNotFound] if there is none.
func (t *Talks) Get(ctx context.Context, id string) (Talk, error) {
	return first[Talk](ctx, t.db.read, selectTalk+"conversations"+talkJoins+" WHERE c.id = $1", id)
}

// OfTurn returns the talk of a turn; [ErrNotFound] if there is none.
func (t *Talks) OfTurn(ctx context.Context, turnID string) (Talk, error) {
	return first[Talk](ctx, t.db.read, selectTalk+"conversations"+talkJoins+" WHERE c.id = (SELECT conversation_id FROM turns WHERE id = $1)", turnID)
}

// Neighbours hold the rows that belong to the turns of a talk, by their ids.
type Neighbours struct {
	Messages   map[string][]Message
	Calls      map[string][]Call
	Recordings map[string][]Recording
}

// With returns what belongs to the turns of a talk, of those after seq, at most limit turns, as [Turns.Of] lists them.
func (t *Talks) With(ctx context.Context, id string, seq, limit int) (n Neighbours, err error) {
	const of = " WHERE turn_id IN (SELECT id FROM turns WHERE conversation_id = $1 AND seq > $2 ORDER BY seq, id LIMIT $3)"
	limit = min(limit, MaxPage)
	n = Neighbours{map[string][]Message{}, map[string][]Call{}, map[string][]Recording{}}
	messages, err := list[Message](ctx, t.db.read, "SELECT "+messageColumns+" FROM messages"+of+" ORDER BY turn_id, seq", id, seq, limit)
	if err != nil {
		return n, err
	}
	for _, m := range messages {
		n.Messages[m.TurnID] = append(n.Messages[m.TurnID], m)
	}
	calls, err := list[Call](ctx, t.db.read, "SELECT "+callColumns+" FROM tool_calls"+of+" ORDER BY at, id", id, seq, limit)
	if err != nil {
		return n, err
	}
	for i := range calls {
		n.Calls[calls[i].TurnID] = append(n.Calls[calls[i].TurnID], calls[i])
	}
	recordings, err := list[Recording](ctx, t.db.read, selectRecording+of+" ORDER BY turn_id, side", id, seq, limit)
	for _, r := range recordings {
		n.Recordings[r.TurnID] = append(n.Recordings[r.TurnID], r)
	}
	return n, err
}

// DeleteTalk deletes a talk with its turns and what was learned from them, also those that still wait to be written. When it returns nil, none of these words
// is left in the files of SQLite. The caller deletes its recordings. [ErrNotFound] if there is none.
func (s *Store) DeleteTalk(ctx context.Context, id string) error {
	s.Log.Erase(id)
	if err := s.db.change(ctx, func(tx *sql.Tx) error { return s.db.erase(ctx, tx, id) }); err != nil {
		return err
	}
	return s.db.empty(ctx)
}

// erase deletes a talk with what was learned from it.
func (d *database) erase(ctx context.Context, tx *sql.Tx, id string) error {
	var last int64
	for _, do := range eraseTalk(id, d.clock()) {
		var err error
		if last, err = execIn(ctx, tx, do.query, do.args...); err != nil {
			return err
		}
	}
	if last == 0 {
		return ErrNotFound
	}
	return nil
}

// DeleteTurn deletes a turn with what was learned from it, and its talk if that has no other one. When it returns nil, none of these words is left in the
// files of SQLite. The caller deletes its recordings. [ErrNotFound] if there is none.
func (s *Store) DeleteTurn(ctx context.Context, id string) error {
	err := s.db.change(ctx, func(tx *sql.Tx) error {
		of, err := first[name](ctx, tx, "SELECT conversation_id FROM turns WHERE id = $1", id)
		if err != nil {
			return err
		}
		for _, do := range []statement{
			fromServices(of.s, s.db.clock()), // they do not know of turns, and are given the rest of the talk again
			{"UPDATE conversations SET given = 0 WHERE id = $1 AND EXISTS (SELECT 1 FROM memory_places p WHERE p.device_id = conversations.device_id AND p.what = $2)", []any{of.s, TalkPlace + of.s}},
			{"DELETE FROM memories WHERE turn_id = $1", []any{id}},
			{"DELETE FROM turns WHERE id = $1", []any{id}},
			{"UPDATE conversations SET turns = (SELECT COUNT(*) FROM turns WHERE conversation_id = $1) WHERE id = $1", []any{of.s}},
			{"UPDATE conversations SET learned = CASE WHEN learned > turns THEN turns ELSE learned END, " + // else what comes is not read
				"given = CASE WHEN given > turns THEN turns ELSE given END WHERE id = $1", []any{of.s}},
		} {
			if _, err := execIn(ctx, tx, do.query, do.args...); err != nil {
				return err
			}
		}
		_, err = execIn(ctx, tx, "DELETE FROM conversations WHERE id = $1 AND turns = 0", of.s)
		return err
	})
	if err != nil {
		return err
	}
	return s.db.empty(ctx)
}
