// Package platform drives services that keep the dialogue themselves. They are sent the
// user's newest words only; what they call the dialogue is remembered for each device and
// agent, and an answer that is given up is stopped at the service, which would go on with
// it. What a service's requests and events look like is told by its own folder, as a [Wire].
package platform

import (
	"cmp"
	"context"
	"errors"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/generation"
	"xiaozhi/providers/transport"
)

const (
	stopTime  = 3 * time.Second // for the request that stops an answer
	stopPause = time.Second     // that the next turn waits for it
	keptFor   = time.Hour       // that a dialogue is remembered, unless the service forgets it earlier
)

// Wire speaks the protocol of a service. It may be used by any number of goroutines at once.
type Wire interface {
	// Request makes the HTTP request for a turn. Its body can be read again.
	Request(ctx context.Context, t *Turn) (*http.Request, error)
	// Answer begins to read the answer to a turn. It notes what the service calls the
	// dialogue and the answer in the turn.
	Answer(t *Turn) generation.Answer
	// Judge puts the kind of a refusal right by the service's own codes, and reports
	// whether it says that the dialogue is gone.
	Judge(r *transport.Refusal) (gone bool)
	// Stop makes the request that stops the answer of a turn; nil if there is none.
	Stop(ctx context.Context, t *Turn) (*http.Request, error)
}

// Turn is one request to a service and its answer. It is for one goroutine.
type Turn struct {
	providers.LLMRequest
	User string // names the device to the service; it tells nothing of it
	Own  string // names the dialogue, the same after a restart
	Talk string // what the service calls the dialogue; "" begins one
	Run  string // what the service calls the answer under way; "" if it cannot be stopped

	Waits bool // the service waits for what tools give

	complete bool
}

// Options are the settings of a [Model].
type Options struct {
	generation.Options
	Can  providers.Capabilities
	Idle time.Duration // after which the service forgets a dialogue; 1 h if 0
	Log  *slog.Logger  // nil: nothing is logged
}

// Model is a service that keeps the dialogue. It may be used by any number of goroutines
// at once. Nothing of it outlives a loop but the request that stops an answer: the next
// turn of the dialogue and Close wait for it, and it ends within 3 s.
type Model struct {
	o     Options
	wire  Wire
	talks *talks

	mu       sync.Mutex
	closed   bool
	stopping sync.WaitGroup // requests that stop answers
}

// New makes a model that speaks by a wire.
func New(o Options, w Wire) *Model {
	return &Model{o: o, wire: w, talks: newTalks(cmp.Or(o.Idle, keptFor))}
}

// Close waits until the answers that were given up are stopped, for 3 s at most. Others are not
// stopped any more.
func (m *Model) Close() error {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.stopping.Wait()
	return nil
}

// beside does something that Close waits for. It reports false after that.
func (m *Model) beside(do func()) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.closed {
		m.stopping.Go(do)
	}
	return !m.closed
}

// Name returns the provider's name.
func (m *Model) Name() string { return m.o.Account.Name }

// Capabilities says that the service keeps the dialogue, and that a question cannot be
// taken back.
func (m *Model) Capabilities() providers.Capabilities {
	can := m.o.Can
	can.Stateful, can.NoTrials, can.NoHedge = true, true, true
	return can
}

// Generate streams the answer to the user's newest words. If the service has lost the
// dialogue, they begin another one, with what was said last.
func (m *Model) Generate(ctx context.Context, req providers.LLMRequest) iter.Seq2[providers.Delta, error] {
	return func(yield func(providers.Delta, error) bool) {
		key, req := keyOf(req), m.Capabilities().Narrow(req)
		if !handsIn(req) { // it waits for results that will not come
			m.stop(ctx, key, m.talks.waiting(key, req))
		}
		if err := m.talks.settle(ctx, key); err != nil {
			yield(providers.Delta{}, err)
			return
		}
		a := &asking{m: m, key: key, turn: m.talks.turn(key, req)}
		m.recall(a.turn)
		began := a.turn.Talk
		failed := a.run(ctx, yield)
		if began != "" && !a.said && !a.left && m.lost(failed) {
			m.talks.forget(key)
			a.turn = m.talks.turn(key, req)
			if err := a.turn.retell(); err != nil {
				yield(providers.Delta{}, m.o.Account.Wrap(ctx, ctx, "chat", err))
				return
			}
			failed = a.run(ctx, yield)
		}
		if failed != nil && !a.left {
			yield(providers.Delta{}, failed)
		}
	}
}

// handsIn reports whether a request brings what tools have given.
func handsIn(req providers.LLMRequest) bool {
	n := len(req.Messages)
	return n > 0 && req.Messages[n-1].Role == providers.RoleTool
}

// lost reports whether a failure says that the dialogue is gone.
func (m *Model) lost(failed error) bool {
	r, ok := errors.AsType[*transport.Refusal](failed)
	if !ok {
		return false
	}
	seen := *r
	return m.wire.Judge(&seen)
}

// asking is one turn with a service, on the caller's goroutine.
type asking struct {
	m    *Model
	key  string
	turn *Turn
	said bool // something was yielded
	left bool // the consumer has left the loop
}

// run asks, yields the answer, and remembers the dialogue. An answer that is not complete
// is stopped. It returns the failure.
func (a *asking) run(ctx context.Context, yield func(providers.Delta, error) bool) (failed error) {
	defer func() {
		a.m.talks.keep(a.key, a.turn)
		if !a.turn.complete {
			a.m.stop(ctx, a.key, a.turn)
		}
	}()
	for d, err := range generation.New(a.m.o.Options, &step{a.m.wire, a.turn, a.m}).Generate(ctx, a.turn.LLMRequest) {
		if err != nil {
			return err
		}
		a.said = true
		if !yield(d, nil) {
			a.left = true
			return nil
		}
	}
	return nil
}

// stop has the service stop an answer, beside what comes next.
func (m *Model) stop(ctx context.Context, key string, t *Turn) {
	if t.Run == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	req, err := m.wire.Stop(ctx, t)
	if err != nil || req == nil {
		cancel()
		return
	}
	stopped := m.talks.stopping(key)
	if !m.beside(func() {
		defer cancel()
		defer stopped()
		resp, err := m.o.Client.Do(req)
		if err == nil {
			defer func() { _ = resp.Body.Close() }()
			if resp.StatusCode > 299 {
				err = transport.ReadRefusal(resp)
			}
			_, _ = io.CopyN(io.Discard, resp.Body, transport.MaxErrorBody) // so that the connection can be used again
		}
		if err != nil && m.o.Log != nil {
			m.o.Log.Debug("answer not stopped", "provider", m.Name(), "err", m.o.Account.Wrap(ctx, ctx, "stop", err))
		}
	}) {
		stopped()
		cancel()
	}
}

// reset takes back what an earlier try has noted of the answer under way.
func (t *Turn) reset() { t.Run, t.Waits, t.complete = "", false, false }
