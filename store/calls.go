package store

import (
	"context"
	"strings"
	"time"
)

// CallFilter says which calls of tools are wanted. Its zero value: all.
type CallFilter struct {
	Owner  string // id of the user to whom the devices belong; "": everybody's and nobody's
	Device string
	Tool   string // a part of its name, whatever the case of ASCII letters
	Source string // as the call was kept with it; one that ends with ":" is of all that begin so
	Failed bool
}

// CallList is a part of a list of calls.
type CallList struct {
	Calls []Call
	Next  Cursor // begins the next part, as that of a [TalkList]
}

const selectCall = "SELECT " + callColumns + " FROM tool_calls"

// Calls lists calls on a device, or on all for "", the newest first.
func (t *Turns) Calls(ctx context.Context, deviceID string, p Page) ([]Call, error) {
	at, id, limit := p.bounds()
	if deviceID == "" {
		return list[Call](ctx, t.db.read, selectCall+" WHERE (at, id) < ($1, $2) ORDER BY at DESC, id DESC LIMIT $3", at, id, limit)
	}
	return list[Call](ctx, t.db.read, selectCall+" WHERE device_id = $1 AND (at, id) < ($2, $3) ORDER BY at DESC, id DESC LIMIT $4", deviceID, at, id, limit)
}

// FindCalls lists calls from before a place, the newest first.
func (t *Turns) FindCalls(ctx context.Context, f CallFilter, p Page) (l CallList, err error) {
	at, id, limit := p.bounds()
	rows := limit
	if f.Tool != "" || f.Source != "" || f.Failed {
		rows = searched
	}
	const newest = " ORDER BY at DESC, id DESC LIMIT "
	var args arguments
	window := selectCall + " WHERE (at, id) < (" + args.mark(at) + ", " + args.mark(id) + ")"
	if f.Owner != "" {
		window += " AND device_id IN (SELECT id FROM devices WHERE owner_id = " + args.mark(f.Owner) + ")"
	}
	if f.Device != "" {
		window += " AND device_id = " + args.mark(f.Device)
	}
	window += newest + args.mark(rows)
	known := len(args) // those of the window
	if l.Calls, err = list[Call](ctx, t.db.read, "SELECT "+callColumns+" FROM ("+window+") w"+t.callsWhere(&f, &args)+newest+args.mark(limit), args...); err != nil {
		return l, err
	}
	if n := len(l.Calls); n == limit {
		l.Next = Cursor{l.Calls[n-1].At, l.Calls[n-1].ID}
		return l, nil
	}
	if rows == limit {
		return l, nil
	}
	args = args[:known]
	last, err := list[Cursor](ctx, t.db.read, "SELECT w.at, w.id FROM ("+window+") w"+newest+"1 OFFSET "+args.mark(rows-1), args...)
	if err == nil && len(last) > 0 { // there may be more
		l.Next = last[0]
	}
	return l, err
}

// callsWhere says what calls must be like.
func (t *Turns) callsWhere(f *CallFilter, args *arguments) string {
	var all []string
	escaped := strings.NewReplacer("!", "!!", "%", "!%", "_", "!_")
	if f.Tool != "" {
		like := " LIKE "
		if t.db.engine == Postgres {
			like = " ILIKE "
		}
		all = append(all, "name"+like+args.mark("%"+escaped.Replace(clean(f.Tool))+"%")+" ESCAPE '!'")
	}
	switch {
	case strings.HasSuffix(f.Source, ":"):
		all = append(all, "source LIKE "+args.mark(escaped.Replace(clean(f.Source))+"%")+" ESCAPE '!'")
	case f.Source != "":
		all = append(all, "source = "+args.mark(clean(f.Source)))
	}
	if f.Failed {
		all = append(all, "fault IS NOT NULL")
	}
	if len(all) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(all, " AND ")
}

// TrimCalls deletes calls of a device, or those of none for "", from before a time that belong to no turn, at most limit of
// them, and returns how many.
func (t *Turns) TrimCalls(ctx context.Context, deviceID string, before time.Time, limit int) (int64, error) {
	const trim = "DELETE FROM tool_calls WHERE id IN (SELECT id FROM tool_calls WHERE turn_id IS NULL AND at < $1 AND "
	if deviceID == "" {
		return t.db.exec(ctx, trim+"device_id IS NULL ORDER BY at, id LIMIT $2)", before.UnixMilli(), limit)
	}
	return t.db.exec(ctx, trim+"device_id = $2 ORDER BY at, id LIMIT $3)", before.UnixMilli(), deviceID, limit)
}
