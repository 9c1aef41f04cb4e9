package router

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"xiaozhi/mcp"
)

// Run runs a call and waits for its outcome. When ctx ends it returns at once: a call that the
// device is already busy with keeps its place until the reply or the time-out comes, one that still
// waits for its turn is never sent, and a tool that is not the device's is cancelled. Every
// outcome, a full queue and a crash of the tool too, is an ActionResponse.
func (rt *Router) Run(ctx context.Context, p Prepared) mcp.ActionResponse {
	return rt.Begin(ctx, p)()
}

// Begin is [Router.Run] in two halves. It never waits: when it returns, the call has its
// place among those of its device. wait waits for the outcome and is called once.
func (rt *Router) Begin(ctx context.Context, p Prepared) (wait func() mcp.ActionResponse) {
	p.Info = mcp.InfoFrom(ctx)
	outcome := make(chan mcp.ActionResponse, 1)
	err := rt.launch(p, func(j *job) {
		j.awaited = true
		outcome <- j.perform(ctx)
	})
	return func() mcp.ActionResponse {
		if err != nil {
			return rt.rejected(p, err)
		}
		select {
		case r := <-outcome:
			return r
		case <-ctx.Done():
			return failure(p, errGivenUp)
		}
	}
}

// Go sends a call without waiting for its outcome. It does not depend on any
// caller's context: it ends with its reply, its time-out or Close. Then done is
// called, exactly once, from a goroutine of the router; done must not call
// Close. With an error the call was not taken and done is never called.
func (rt *Router) Go(p Prepared, done func(mcp.ActionResponse)) error {
	err := rt.launch(p, func(j *job) { done(j.perform(rt.life)) })
	if err != nil {
		rt.rejected(p, err)
		return fmt.Errorf("call %s: %w", p.Offer.Tool.Name, err)
	}
	return nil
}

// rejected returns the outcome of a call that found no place among those running,
// and leaves its record.
func (rt *Router) rejected(p Prepared, err error) mcp.ActionResponse {
	r := failure(p, err)
	why := RefusedBusy
	switch {
	case errors.Is(err, errNoConsent):
		why = RefusedConsent
	case errors.Is(err, errClosing):
		why = RefusedClosed
	}
	rt.refuse(p, why, r)
	return r
}

// Detach runs a job and waits for its outcome. The call outlives the conversation:
// it ends with its reply, with ctx or after its limit, and Close neither ends nor
// awaits it. The device's own tools end with their source.
func (rt *Router) Detach(ctx context.Context, p Prepared) mcp.ActionResponse {
	rt.mu.Lock()
	j, err := rt.place(p)
	rt.mu.Unlock()
	if err != nil {
		return rt.rejected(p, err)
	}
	j.awaited, j.detached = true, true
	return j.perform(ctx)
}

// Close cancels all calls and waits for them. It may be called many times.
func (rt *Router) Close() {
	rt.mu.Lock()
	rt.closed = true
	rt.mu.Unlock()
	rt.end()
	rt.wg.Wait()
}

// job is one call on its way.
type job struct {
	router   *Router
	call     Prepared
	key      string        // what makes it the same as another call; "" for one from outside
	slot     *slot         // nil for tools that run in parallel
	awaited  bool          // false: its success is assumed meanwhile
	refusal  Refusal       // of one that is not made
	detached bool          // of a job: its own caller ends it, the router does not
	free     func()        // gives its place at the device to others
	gone     atomic.Bool   // its source has said that the device has it
	began    time.Time     // when it was sent; zero if it never was
	took     time.Duration // from then on
}

// launch gives the call its place among those running and starts run in a
// goroutine that Close waits for. A device gets its calls in the order of launch.
// A panic in what the caller does with the outcome ends this call only.
func (rt *Router) launch(p Prepared, run func(*job)) error {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	j, err := rt.place(p)
	if err != nil {
		return err
	}
	rt.wg.Go(func() {
		defer func() {
			if v := recover(); v != nil {
				rt.log.Error("tool outcome not taken", "tool", p.Offer.Tool.Name, "call_id", p.Call.ID,
					"panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			}
		}()
		run(j)
	})
	return nil
}

// place gives the call its place among those running; perform frees it. The caller holds mu.
func (rt *Router) place(p Prepared) (*job, error) {
	switch {
	case p.source == nil:
		return nil, errUnprepared
	case p.verdict.Decision == Denied && p.verdict.id == "router/ask-others":
		return nil, errOthers
	case p.verdict.Decision != Allowed:
		return nil, errNoConsent
	}
	arguments, err := json.Marshal(p.Arguments)
	if err != nil {
		return nil, fmt.Errorf("encode arguments: %w", err)
	}
	j := &job{router: rt, call: p}
	if rt.closed {
		return nil, errClosing
	}
	if !p.Call.By.Outside() { // a model that repeats itself; others do not know of one another
		j.key = p.Offer.LLMName + "\x00" + string(arguments)
		if _, ok := rt.running[j.key]; ok {
			return nil, errRunning
		}
	}
	if p.Offer.Tool.OfDevice() {
		if j.slot = rt.device.acquire(p.Call.By.Outside()); j.slot == nil {
			return nil, errFull
		}
	}
	if j.key != "" {
		rt.running[j.key] = j
	}
	return j, nil
}

// forget lets the same call be made again.
func (j *job) forget() {
	rt := j.router
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if rt.running[j.key] == j {
		delete(rt.running, j.key)
	}
}

// sent notes that the device has the call: others need not wait until its outcome is known.
func (j *job) sent() {
	j.gone.Store(true)
	j.free()
	j.forget()
}

// outcome is the answer of a source.
type outcome struct {
	result any
	err    error
}

// perform waits for the call's turn, runs it, frees its place, makes its outcome and leaves
// its record. ctx is the caller's; a device's call does not end with it once it is sent.
func (j *job) perform(ctx context.Context) mcp.ActionResponse {
	rt, p := j.router, j.call
	var o outcome
	if o.err = rt.device.wait(ctx, rt.life.Done(), j.slot); o.err == nil {
		j.began = time.Now()
		j.free = sync.OnceFunc(func() { rt.device.release(j.slot) })
		if p.Offer.Job || j.detached { // others need not wait for it
			early := time.AfterFunc(jobHolds, j.free)
			defer early.Stop()
		}
		o = j.send(ctx)
		j.took = time.Since(j.began)
		j.free()
		if o.err == nil && p.Offer.Kind == mcp.Query && !j.detached {
			o.result = j.look(ctx, o.result)
		}
	}
	if errors.Is(o.err, context.Canceled) { // given up, or ended by Close
		if o.err = errGivenUp; rt.life.Err() != nil {
			o.err = errClosing
		}
	}
	j.forget()
	r := response(p, o.result, o.err)
	j.record(r)
	return r
}

// limit returns how long the call may take. A job that a turn waits for is a call like all others.
func (j *job) limit() time.Duration {
	o := j.call.Offer
	if o.Job = j.detached || o.Job && j.call.Call.By.Outside(); o.Job != j.call.Offer.Job {
		return j.router.limits.Load().Times.limitOf(o)
	}
	return cmp.Or(o.Limit, callTimeout)
}

// send runs the tool until it answers or its time is over.
func (j *job) send(ctx context.Context) outcome {
	rt, p := j.router, j.call
	life, limit := rt.life, j.limit()
	if j.detached {
		life = ctx
	}
	callCtx, cancel := context.WithTimeoutCause(mcp.WithPeer(mcp.WithInfo(life, p.Info), rt.Peer(p.Call.ID)), limit, errNoReply)
	defer cancel()
	callCtx = mcp.WithSent(callCtx, j.sent)
	if heard := mcp.ProgressFrom(ctx); heard != nil {
		callCtx = mcp.WithProgress(callCtx, heard)
	}
	if !j.awaited {
		callCtx = mcp.WithAssumed(callCtx)
	}
	switch {
	case j.detached:
		o := j.invoke(callCtx)
		if o.err != nil && callCtx.Err() != nil {
			o.err = context.Cause(callCtx)
		}
		return o
	case j.slot == nil:
		stop := context.AfterFunc(ctx, cancel)
		defer stop()
	case p.Offer.Kind == mcp.Query:
		callCtx = mcp.WithCaller(callCtx, ctx)
	}
	answer := make(chan outcome, 1)
	rt.wg.Go(func() { answer <- j.invoke(callCtx) })
	select {
	case o := <-answer:
		if errors.Is(o.err, context.DeadlineExceeded) || errors.Is(o.err, context.Canceled) {
			o.err = cmp.Or(context.Cause(callCtx), o.err)
		}
		return o
	case <-callCtx.Done(): // a source that does not heed its ctx must not hold us up
		if !j.awaited && j.gone.Load() {
			return outcome{result: true} // it was sent, and nothing says that it was not done
		}
		return outcome{err: context.Cause(callCtx)}
	}
}

// invoke calls the source; a panic of it becomes an error.
func (j *job) invoke(ctx context.Context) (o outcome) {
	defer func() {
		if p := recover(); p != nil {
			j.router.log.Error("tool crashed", "tool", j.call.Offer.Tool.Name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			o = outcome{err: errPanic}
		}
	}()
	result, err := j.call.source.CallTool(ctx, j.call.Offer.Tool.Name, j.call.Arguments)
	return outcome{result: result, err: err}
}

// record writes the log line and the [Record] of a call, one of each. A call that
// was refused was never sent.
func (j *job) record(r mcp.ActionResponse) {
	rt, p := j.router, j.call
	rec := Record{
		CallID: p.Call.ID, Tool: p.Offer.Tool.Name, Source: p.Offer.Tool.Source, Kind: p.Offer.Kind,
		Started: j.began, Took: j.took, Outcome: r.Action.String(), Awaited: j.awaited,
		Late: !j.awaited && r.Action.Failed(), Refusal: j.refusal, By: p.Call.By, ArgumentsDigest: p.digest(),
	}
	text := mcp.ResultText(r)
	attrs := []any{
		"tool", rec.Tool, "kind", rec.Kind, "source", rec.Source, "call_id", rec.CallID,
		"action", rec.Outcome, "awaited", rec.Awaited, "late_failure", rec.Late,
	}
	if rec.Refusal == "" {
		rec.ResultDigest = Digest(text)
	} else {
		attrs = append(attrs, "refusal", rec.Refusal)
	}
	if rt.options.Words {
		rec.Arguments = summary(p.Arguments)
		if !p.Offer.Tool.Quotes {
			rec.Result = resultSummary(text, maxKeptResult)
		}
		attrs = append(attrs, "arguments", rec.Arguments)
	}
	if !rec.Started.IsZero() {
		attrs = append(attrs, "started", rec.Started)
	}
	rt.log.Info("tool call", append(attrs, "took", rec.Took, "size", len(text))...)
	if p.Invalid != "" && !rt.options.Words || p.Offer.Tool.Quotes {
		text = "" // it quotes the arguments, or what is not to be kept
	}
	rt.log.Debug("tool result", "tool", rec.Tool, "call_id", rec.CallID, "result", resultSummary(text, maxResultSummary))
	if rt.options.Record != nil {
		rt.options.Record(rec)
	}
	if rt.options.Ended != nil {
		rt.options.Ended(rec, mcp.ResultText(r))
	}
}
