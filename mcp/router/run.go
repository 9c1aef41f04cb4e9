package router

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"xiaozhi/mcp"
)

// Run runs a call and waits for its outcome. When ctx ends it returns at once:
// a call that the device is already busy with keeps its place until the reply
// or the time-out comes, one that still waits for its turn is never sent, and a
// tool that is not the device's is cancelled. Every outcome, a full queue and a
// crash of the tool too, is an ActionResponse.
func (t *Router) Run(ctx context.Context, p Prepared) mcp.ActionResponse {
	return t.Begin(ctx, p)()
}

// Begin is Run in two halves: the call has its place among those of its device
// when Begin returns, which never waits; the function it returns waits for the
// outcome and is called once.
func (t *Router) Begin(ctx context.Context, p Prepared) (wait func() mcp.ActionResponse) {
	p.Info = mcp.InfoFrom(ctx)
	outcome := make(chan mcp.ActionResponse, 1)
	err := t.launch(p, func(j *job) {
		j.awaited = true
		outcome <- j.perform(ctx)
	})
	return func() mcp.ActionResponse {
		if err != nil {
			return t.rejected(p, err)
		}
		select {
		case r := <-outcome:
			return r
		case <-ctx.Done():
			return failure(p, p.Info.Language, errGivenUp)
		}
	}
}

// Go sends a call without waiting for its outcome. It does not depend on any
// caller's context: it ends with its reply, its time-out or Close. Then done is
// called, exactly once, from a goroutine of the router; done must not call
// Close. With an error the call was not taken and done is never called.
func (t *Router) Go(p Prepared, done func(mcp.ActionResponse)) error {
	err := t.launch(p, func(j *job) { done(j.perform(t.life)) })
	if err != nil {
		t.rejected(p, err)
		return fmt.Errorf("call %s: %w", p.Offer.Tool.Name, err)
	}
	return nil
}

// rejected is the outcome of a call that found no place among those running; it
// leaves its record. Nobody has assumed its success.
func (t *Router) rejected(p Prepared, err error) mcp.ActionResponse {
	r := failure(p, p.Info.Language, err)
	t.record(p, r, span{}, true)
	return r
}

// Detach runs a call that outlives its conversation, and waits for its outcome:
// it ends with its reply, with ctx or after JobTimeout, and Close neither ends
// nor awaits it. It is for jobs. The device's own tools end with their source.
func (t *Router) Detach(ctx context.Context, p Prepared) mcp.ActionResponse {
	t.mu.Lock()
	j, err := t.place(p)
	t.mu.Unlock()
	if err != nil {
		return t.rejected(p, err)
	}
	j.awaited = true
	var o outcome
	var sent span
	if o.err = t.device.wait(ctx, t.life.Done(), j.ticket); o.err == nil {
		callCtx, cancel := context.WithTimeoutCause(mcp.WithPeer(mcp.WithInfo(ctx, p.Info), t.Peer(p.Call.ID)), t.options.JobTimeout, errNoReply)
		defer cancel()
		sent.began = time.Now()
		o = j.invoke(callCtx)
		sent.took = time.Since(sent.began)
		if o.err != nil && callCtx.Err() != nil {
			o.err = context.Cause(callCtx)
		}
		t.device.release(j.ticket)
	}
	return j.finish(o, sent)
}

// Close cancels all calls and waits for them. It may be called many times.
func (t *Router) Close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.end()
	t.wg.Wait()
}

// job is one call on its way.
type job struct {
	toolbox *Router
	call    Prepared
	key     string // what makes it the same as another call; "" for one from outside
	ticket  *slot  // nil for tools that run in parallel
	awaited bool   // false: its success is assumed meanwhile
}

// launch gives the call its place among those running and starts run in a
// goroutine that Close waits for. The order of launching is the order in which
// a device gets its calls.
func (t *Router) launch(p Prepared, run func(*job)) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	j, err := t.place(p)
	if err != nil {
		return err
	}
	t.wg.Go(func() {
		defer t.contain(p) // of what the caller does with the outcome
		run(j)
	})
	return nil
}

// place gives the call its place among those running; finish frees it. The
// caller holds mu.
func (t *Router) place(p Prepared) (*job, error) {
	if p.source == nil {
		return nil, errUnprepared
	}
	arguments, err := json.Marshal(p.Arguments)
	if err != nil {
		return nil, fmt.Errorf("encode arguments: %w", err)
	}
	j := &job{toolbox: t, call: p}
	if t.closed {
		return nil, errClosing
	}
	if !p.Call.Outside { // a model that repeats itself; others do not know of one another
		j.key = p.Offer.LLMName + "\x00" + string(arguments)
		if _, ok := t.running[j.key]; ok {
			return nil, errRunning
		}
	}
	if p.Offer.Tool.OfDevice() {
		if j.ticket = t.device.acquire(p.Call.Outside); j.ticket == nil {
			return nil, errFull
		}
	}
	if j.key != "" {
		t.running[j.key] = struct{}{}
	}
	return j, nil
}

// contain logs a panic, which is this call's trouble and nobody else's.
func (t *Router) contain(p Prepared) {
	if v := recover(); v != nil {
		t.log.Error("tool outcome not taken", "tool", p.Offer.Tool.Name, "call_id", p.Call.ID,
			"panic", fmt.Sprint(v), "stack", string(debug.Stack()))
	}
}

// outcome is the answer of a source.
type outcome struct {
	result any
	err    error
}

// perform waits for the call's turn, runs it and frees its place. ctx is the
// caller's; a device's call does not end with it once it is sent.
func (j *job) perform(ctx context.Context) mcp.ActionResponse {
	t, p := j.toolbox, j.call
	var o outcome
	var sent span
	if err := t.device.wait(ctx, t.life.Done(), j.ticket); err != nil {
		o.err = err
	} else {
		sent.began = time.Now()
		o = j.send(ctx)
		sent.took = time.Since(sent.began)
		t.device.release(j.ticket)
		if o.err == nil && p.Offer.Kind == mcp.Query {
			o.result = j.look(ctx, o.result)
		}
	}
	return j.finish(o, sent)
}

// span is the time that a call took, from its sending; zero for one never sent.
type span struct {
	began time.Time
	took  time.Duration
}

// finish frees the call's place, makes its outcome and leaves its record.
func (j *job) finish(o outcome, sent span) mcp.ActionResponse {
	t, p := j.toolbox, j.call
	t.mu.Lock()
	delete(t.running, j.key)
	t.mu.Unlock()
	r := t.response(p, p.Info.Language, o.result, j.cause(o.err))
	t.record(p, r, sent, j.awaited)
	return r
}

// send runs the tool until it answers or its time is over.
func (j *job) send(ctx context.Context) outcome {
	t, p := j.toolbox, j.call
	limit := t.options.CallTimeout
	if slow(p.Offer.Tool) {
		limit = t.options.SlowTimeout
	}
	callCtx, cancel := context.WithTimeoutCause(mcp.WithPeer(mcp.WithInfo(t.life, p.Info), t.Peer(p.Call.ID)), limit, errNoReply)
	defer cancel()
	switch {
	case j.ticket == nil:
		stop := context.AfterFunc(ctx, cancel)
		defer stop()
	case p.Offer.Kind == mcp.Query:
		callCtx = mcp.WithCaller(callCtx, ctx)
	}
	answer := make(chan outcome, 1)
	t.wg.Go(func() { answer <- j.invoke(callCtx) })
	select {
	case o := <-answer:
		if errors.Is(o.err, context.DeadlineExceeded) || errors.Is(o.err, context.Canceled) {
			o.err = cmp.Or(context.Cause(callCtx), o.err)
		}
		return o
	case <-callCtx.Done(): // a source that does not heed its ctx must not hold us up
		return outcome{err: context.Cause(callCtx)}
	}
}

// invoke calls the source; a panic of it becomes an error.
func (j *job) invoke(ctx context.Context) (o outcome) {
	defer func() {
		if p := recover(); p != nil {
			j.toolbox.log.Error("tool crashed", "tool", j.call.Offer.Tool.Name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			o = outcome{err: errPanic}
		}
	}()
	result, err := j.call.source.CallTool(ctx, j.call.Offer.Tool.Name, j.call.Arguments)
	return outcome{result: result, err: err}
}

// cause tells a call that was given up from one that Close ended.
func (j *job) cause(err error) error {
	switch {
	case err == nil || !errors.Is(err, context.Canceled):
		return err
	case j.toolbox.life.Err() != nil:
		return errClosing
	default:
		return errGivenUp
	}
}

// record leaves the one line and the one record that every call has, also one
// that was refused: that was never sent. awaited is false for a call whose
// success was assumed.
func (t *Router) record(p Prepared, r mcp.ActionResponse, sent span, awaited bool) {
	rec := Record{
		CallID: p.Call.ID, Tool: p.Offer.Tool.Name, Source: p.Offer.Tool.Source, Kind: p.Offer.Kind,
		Arguments: summary(p.Arguments), Started: sent.began, Took: sent.took, Outcome: r.Action.String(), Awaited: awaited,
		Late: !awaited && r.Action.Failed(),
	}
	text := mcp.ResultText(r)
	attrs := []any{
		"tool", rec.Tool, "kind", rec.Kind, "source", rec.Source, "call_id", rec.CallID,
		"arguments", rec.Arguments, "action", rec.Outcome, "awaited", rec.Awaited, "late_failure", rec.Late,
	}
	if !rec.Started.IsZero() {
		attrs = append(attrs, "started", rec.Started)
	}
	t.log.Info("tool call", append(attrs, "took", rec.Took, "size", len(text))...)
	t.log.Debug("tool result", "tool", rec.Tool, "call_id", rec.CallID, "result", resultSummary(text))
	if t.options.Record != nil {
		t.options.Record(rec)
	}
}
