package job

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"time"

	"xiaozhi/agent/feature"
	"xiaozhi/agent/turn"
	"xiaozhi/mcp"
	"xiaozhi/mcp/router"
)

// maxJobs is how many jobs of one device may run; more are refused.
const maxJobs = 8

// errShutdown is why jobs end with the server.
var errShutdown = errors.New("server is stopping")

// inbox keeps the outcomes of calls until a conversation takes them. It belongs to
// the device and owns the goroutines of its jobs. Its size is bounded by the calls
// that conversations can have on their way.
//
// # Concurrency
//
// All methods may be called at any time.
type inbox struct {
	wg sync.WaitGroup

	mu       sync.Mutex
	outcomes []outcome
	jobs     map[*router.Prepared]context.CancelCauseFunc
	wake     func() // tells the present conversation; nil: there is none
	closed   bool
}

// outcome holds the response to a call.
type outcome struct {
	prepared router.Prepared
	response mcp.ActionResponse
	job      bool // else it is a control whose success was assumed
	gone     bool // of a control: the conversation had ended, nobody knows whether it was done
}

func newInbox() *inbox { return &inbox{jobs: map[*router.Prepared]context.CancelCauseFunc{}} }

// attach has wake called when there are outcomes, also those that wait already.
// nil: nobody takes any.
func (m *inbox) attach(wake func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wake = wake
}

// put leaves an outcome. ended is the job that it is of; nil: none.
func (m *inbox) put(o outcome, ended *router.Prepared) {
	m.mu.Lock()
	delete(m.jobs, ended) // in the same moment, so that waiting never says no in between
	m.outcomes = append(m.outcomes, o)
	wake := m.wake
	m.mu.Unlock()
	if wake != nil {
		wake()
	}
}

// take empties the inbox.
func (m *inbox) take() []outcome {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.outcomes
	m.outcomes = nil
	return all
}

// start runs a job. ctx gives it its values, not its end: a job ends by itself or
// with the inbox. refused is the message that says why it is not begun; "": it is.
func (m *inbox) start(ctx context.Context, p router.Prepared, run func(context.Context, router.Prepared) mcp.ActionResponse) (refused string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for running := range m.jobs { // also one that was begun on an earlier connection
		if running.Offer.Tool.Name == p.Offer.Tool.Name && reflect.DeepEqual(running.Arguments, p.Arguments) {
			return "agent/job-same"
		}
	}
	switch {
	case m.closed:
		return "agent/job-stopping"
	case len(m.jobs) >= maxJobs:
		return "agent/job-many"
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	m.jobs[&p] = cancel
	m.wg.Go(func() {
		defer cancel(turn.ErrDone)
		m.put(outcome{prepared: p, response: run(ctx, p), job: true}, &p)
	})
	return ""
}

// waiting reports whether a job runs or an outcome was not taken.
func (m *inbox) waiting() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.jobs) > 0 || len(m.outcomes) > 0
}

func (m *inbox) Keep(time.Time) time.Duration {
	if m.waiting() {
		return feature.KeepWaiting
	}
	return 0
}

// Close cancels all jobs and waits for them.
func (m *inbox) Close() {
	m.mu.Lock()
	m.closed = true
	for _, cancel := range m.jobs {
		cancel(errShutdown)
	}
	m.mu.Unlock()
	m.wg.Wait()
}
