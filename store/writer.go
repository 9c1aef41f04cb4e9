package store

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"time"
)

// run writes batches until the log is closed.
func (l *Log) run(ctx context.Context) {
	defer close(l.done)
	var due <-chan time.Time // nil: nothing waits
	for wait := batchTime; ; {
		full := l.full
		if wait > batchTime { // while the database fails a whole batch waits too
			full = nil
		}
		var answer chan error
		select {
		case <-l.wake:
			if due == nil {
				due = time.After(wait)
			}
			continue
		case <-due:
		case <-full:
		case answer = <-l.flushes:
		case <-l.stop:
			if err := l.writeAll(ctx); err != nil {
				l.log.Error("turns were lost at the end of the program", "err", err, "turns", l.Stats().Waiting)
			}
			return
		}
		due = nil
		err := l.writeAll(ctx)
		if answer != nil {
			answer <- err
		}
		if err == nil {
			wait = batchTime
		} else {
			wait = min(2*wait, maxRetry)
			signal(l.wake)
		}
	}
}

// writeAll writes what waits, a batch after the other.
func (l *Log) writeAll(ctx context.Context) error {
	for {
		b := l.take()
		if b.empty() {
			return nil
		}
		for _, e := range b.entries {
			e.complete()
		}
		err := l.writeAfter(ctx, &b)
		if err != nil {
			l.restore(&b)
			stats := l.Stats()
			l.log.Warn("the store did not take turns, which wait", "err", err, "waiting", stats.Waiting, "dropped", stats.Dropped)
			return err
		}
		l.mu.Lock()
		l.flight = load{}
		told := l.told
		l.mu.Unlock()
		if told != nil && len(b.entries) > 0 {
			told()
		}
	}
}

// writeAfter writes a batch once what it refers to is written.
func (l *Log) writeAfter(ctx context.Context, b *batch) error {
	l.mu.Lock()
	first := l.first
	l.mu.Unlock()
	if first != nil {
		if err := first(ctx); err != nil && !isData(err) { // what the database never takes holds nothing else up
			return err
		}
	}
	return l.write(ctx, b)
}

// take takes up to a batch of entries, and all else that waits.
func (l *Log) take() batch {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, rest := l.waiting, newBatch()
	if len(b.entries) > batchRows {
		b.entries, rest.entries = b.entries[:batchRows:batchRows], b.entries[batchRows:]
		for _, e := range rest.entries {
			rest.bytes += e.bytes
		}
		b.bytes -= rest.bytes
		b.ends, rest.ends = rest.ends, b.ends // after the last turn of each
		b.over, rest.over = nil, b.over
	}
	l.waiting, l.flight = rest, load{len(b.entries), b.bytes}
	clear(l.forgotten)
	return b
}

// restore puts what was not written in front of what has come since.
func (l *Log) restore(b *batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id := range l.forgotten {
		b.dropDevice(id)
	}
	w := &l.waiting
	for _, e := range w.entries { // their conversations go on
		delete(b.ends, e.Turn.ConversationID)
	}
	maps.Copy(b.ends, w.ends)
	w.ends = b.ends
	w.entries, w.bytes = append(b.entries, w.entries...), w.bytes+b.bytes
	for id, s := range w.seen {
		merge(b.seen, id, s)
	}
	w.seen = b.seen
	maps.Copy(w.erased, b.erased)
	w.drop(func(e *Entry) bool { return w.erased[e.Turn.ConversationID] })
	for key, s := range b.states {
		if _, ok := w.states[key]; !ok {
			w.states[key] = s
			w.stateBytes += len(s.doc)
		}
	}
	w.calls, w.over = append(b.calls, w.calls...), append(b.over, w.over...)
	l.flight = load{}
	l.limit()
}

// write writes a batch in one transaction. If the database will never take something of it, what it takes is written
// and the rest is counted: that is no error.
func (l *Log) write(ctx context.Context, b *batch) error {
	err := l.db.transact(ctx, l.db.later, func(tx *sql.Tx) error {
		w, err := prepare(ctx, tx)
		if err != nil {
			return err
		}
		for _, e := range b.entries {
			if err := w.entry(ctx, e); err != nil {
				return err
			}
		}
		for _, write := range b.others(l.db.clock()) {
			if err := write(ctx, w); err != nil {
				return err
			}
		}
		return nil
	})
	written, rejected := len(b.entries), 0
	if isData(err) {
		written, rejected, err = l.writeEach(ctx, b)
	}
	if err == nil {
		l.db.health.keeps(b.newest(), l.db.size())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.stats.Written += uint64(written)
		l.stats.Rejected += uint64(rejected)
	}
	return err
}

// newest is the time of the newest turn.
func (b *batch) newest() (at time.Time) {
	for _, e := range b.entries {
		at = latest(at, e.Turn.At)
	}
	return at
}

// writeEach writes each entry, and each of what else there is, in a transaction of its own.
func (l *Log) writeEach(ctx context.Context, b *batch) (written, rejected int, err error) {
	one := func(f func(w *writer) error) error {
		return l.db.transact(ctx, l.db.later, func(tx *sql.Tx) error {
			w, err := prepare(ctx, tx)
			if err == nil {
				err = f(w)
			}
			return err
		})
	}
	for _, e := range b.entries {
		switch err := one(func(w *writer) error { return w.entry(ctx, e) }); {
		case err == nil, errors.Is(err, ErrExists) && l.has(ctx, e.Turn.ID): // an attempt of before was taken after all
			written++
		case isData(err):
			rejected++
			l.log.Warn("the store refused a turn", "device_id", e.Turn.DeviceID, "turn", e.Turn.ID, "err", err)
		default:
			return written, rejected, err
		}
	}
	for _, write := range b.others(l.db.clock()) {
		switch err := one(func(w *writer) error { return write(ctx, w) }); {
		case isData(err):
			l.log.Warn("the store refused what is no turn", "err", err)
		case err != nil:
			return written, rejected, err
		}
	}
	return written, rejected, nil
}

// has reports whether a turn was written.
func (l *Log) has(ctx context.Context, id string) bool {
	n, err := count(ctx, l.db.later, "SELECT COUNT(*) FROM turns WHERE id = $1", id)
	return err == nil && n > 0
}

// isData reports whether an error is due to what shall be written, and not to the database.
func isData(err error) bool {
	return errors.Is(err, errData) || errors.Is(err, ErrExists) || errors.Is(err, ErrNotFound)
}

// writer holds the statements of one transaction.
type writer struct {
	conversation, turn, message, call *sql.Stmt
	tx                                *sql.Tx
	agents                            map[string]string // ids, by slug
}

func prepare(ctx context.Context, tx *sql.Tx) (*writer, error) {
	w := &writer{tx: tx, agents: map[string]string{}}
	for _, s := range []struct {
		to  **sql.Stmt
		sql string
	}{
		{&w.conversation, insert("conversations", conversationColumns) + " ON CONFLICT (id) DO UPDATE SET turns = conversations.turns + 1, ended_at = NULL, cause = NULL, " +
			"agent_id = COALESCE(EXCLUDED.agent_id, conversations.agent_id)"},
		{&w.turn, insert("turns", turnColumns)},
		{&w.message, insert("messages", messageColumns)},
		{&w.call, insert("tool_calls", callColumns)},
	} {
		var err error
		if *s.to, err = tx.PrepareContext(ctx, s.sql); err != nil { // they end with the transaction
			return nil, err
		}
	}
	return w, nil
}

// entry writes a turn with all that belongs to it.
func (w *writer) entry(ctx context.Context, e *Entry) error {
	c, turn := e.Conversation, e.Turn
	c.Turns = 1
	if e.Agent != "" {
		var err error
		if c.AgentID, err = w.agent(ctx, e.Agent); err != nil {
			return err
		}
		turn.AgentID = c.AgentID
	}
	if _, err := w.conversation.ExecContext(ctx, c.fields()...); err != nil {
		return err
	}
	if _, err := w.turn.ExecContext(ctx, turn.fields()...); err != nil {
		return err
	}
	for i, m := range e.Messages {
		m.TurnID, m.Seq = turn.ID, i+1
		if _, err := w.message.ExecContext(ctx, m.fields()...); err != nil {
			return err
		}
	}
	for _, call := range e.Calls {
		call.TurnID, call.DeviceID = turn.ID, c.DeviceID
		if _, err := w.call.ExecContext(ctx, call.fields()...); err != nil {
			return err
		}
	}
	return nil
}

// agent returns the id of the agent of a slug, which is made if the store has none: it is set somewhere else.
func (w *writer) agent(ctx context.Context, slug string) (id string, err error) {
	if id = w.agents[slug]; id != "" {
		return id, nil
	}
	const find = selectAgent + " WHERE slug = $1"
	a, err := first[Agent](ctx, w.tx, find, slug)
	if errors.Is(err, ErrNotFound) { // or somebody makes it at the same time
		a = Agent{ID: NewID(), Slug: slug}
		if _, err = execIn(ctx, w.tx, insert("agents", agentColumns)+" ON CONFLICT (slug) DO NOTHING", a.fields()...); err == nil {
			a, err = first[Agent](ctx, w.tx, find, slug)
		}
	}
	w.agents[slug] = a.ID
	return a.ID, err
}

// others returns functions that write the rest of a batch, a row each: calls outside of turns, the ends of calls and of
// conversations, the signs of life, and what was learned. What is of no device any more changes nothing.
func (b *batch) others(at time.Time) (all []func(context.Context, *writer) error) {
	exec := func(query string, args ...any) {
		all = append(all, func(ctx context.Context, w *writer) error {
			_, err := execIn(ctx, w.tx, query, args...)
			return err
		})
	}
	for _, c := range b.calls {
		all = append(all, func(ctx context.Context, w *writer) error { return w.outside(ctx, c) })
	}
	for _, e := range b.over {
		exec("UPDATE tool_calls SET at = COALESCE($1, at), took_ms = $2, result = COALESCE($3, result), result_digest = $4, fault = $5, refusal = $6, late = $7, "+
			"name = COALESCE($8, name), source = COALESCE($9, source), kind = COALESCE($10, kind) WHERE id = $11",
			stamp{&e.At}, span{&e.Took}, maybe{&e.Result}, maybe{&e.ResultDigest}, maybe{&e.Fault}, maybe{&e.Refusal}, e.Late,
			maybe{&e.Name}, maybe{&e.Source}, maybe{&e.Kind}, e.ID)
	}
	for id, e := range b.ends {
		exec("UPDATE conversations SET ended_at = $1, cause = $2 WHERE id = $3", stamp{&e.at}, maybe{&e.cause}, id)
	}
	for id := range b.erased {
		for _, do := range eraseTalk(id, at) {
			exec(do.query, do.args...)
		}
	}
	for id, s := range b.seen {
		exec("UPDATE devices SET asked_at = COALESCE($1, asked_at), hello_at = COALESCE($2, hello_at), turn_at = COALESCE($3, turn_at), "+
			"board = COALESCE($4, board), chip = COALESCE($5, chip), firmware = COALESCE($6, firmware), language = COALESCE($7, language), "+
			"features = COALESCE($8, features), remote = COALESCE($9, remote), last_step = COALESCE($10, last_step) WHERE id = $11",
			stamp{&s.AskedAt}, stamp{&s.HelloAt}, stamp{&s.TurnAt}, maybe{&s.Board}, maybe{&s.Chip}, maybe{&s.Firmware}, maybe{&s.Language},
			maybe{&s.Features}, maybe{&s.Remote}, maybe{&s.LastStep}, id)
	}
	for key, s := range b.states {
		if s.doc == "" {
			exec("DELETE FROM device_states WHERE name = $1 AND device_id = $2", key.name, key.device)
			continue
		}
		exec("INSERT INTO device_states (device_id, name, doc, at) SELECT id, CAST($1 AS TEXT), CAST($2 AS TEXT), CAST($3 AS BIGINT) FROM devices WHERE id = $4 "+
			"ON CONFLICT (device_id, name) DO UPDATE SET doc = excluded.doc, at = excluded.at", key.name, text{&s.doc}, stamp{&s.at}, key.device)
	}
	return all
}

// outside writes a call outside of turns, unless its device is not known.
func (w *writer) outside(ctx context.Context, c Call) (err error) {
	known := c.DeviceID == ""
	if !known {
		known, err = w.has(ctx, c.DeviceID)
	}
	if err == nil && known {
		_, err = w.call.ExecContext(ctx, c.fields()...)
	}
	return err
}

// has reports whether a device is known.
func (w *writer) has(ctx context.Context, deviceID string) (bool, error) {
	var n int
	err := w.tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM devices WHERE id = $1", deviceID).Scan(&n)
	return n > 0, err
}
