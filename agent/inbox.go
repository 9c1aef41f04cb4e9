package agent

import (
	"context"
	"errors"
	"reflect"
	"sync"

	"xiaozhi/agent/turn"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/mcp"
	"xiaozhi/mcp/router"
)

// maxJobs is how many jobs of one device may run; more are refused.
const maxJobs = 8

// Why a job is not begun.
var (
	errJobs   = errors.New("too many tasks are running already")
	errJobRun = errors.New("the same task is running already")
	errNoJobs = errors.New("the server is stopping")
)

// errShutdown is why jobs end with the server.
var errShutdown = errors.New("server is stopping")

// jobRefused is why a job is not begun, in a language.
func jobRefused(err error, lang text.Lang) error {
	id := map[error]string{errJobs: "agent/job-many", errJobRun: "agent/job-same", errNoJobs: "agent/job-stopping"}[err]
	if id == "" {
		return err
	}
	return errors.New(message.In(lang, id))
}

// inbox keeps news for a device until it is taken by whichever conversation holds
// its record, if any does: the true outcomes of control calls, and the results
// of jobs. It owns the goroutines of the jobs. Its size is bounded by the calls
// that conversations can have on their way. Its methods may be called at the
// same time.
type inbox struct {
	notify chan struct{} // size 1: something is waiting
	wg     sync.WaitGroup

	mu     sync.Mutex
	items  []any // lateCall, jobDone
	jobs   map[*job]struct{}
	closed bool
}

// job is one long call. It belongs to the device's record, so that it outlives
// the connection in which it was begun.
type job struct {
	prepared router.Prepared
	cancel   context.CancelCauseFunc
}

// jobDone is the outcome of a job.
type jobDone struct {
	prepared router.Prepared
	response mcp.ActionResponse
}

// lateCall is the true outcome of a control call whose success was assumed.
type lateCall struct {
	prepared router.Prepared
	response mcp.ActionResponse
	gone     bool // the connection had ended: nobody knows whether it was done
}

func newInbox() *inbox {
	return &inbox{notify: make(chan struct{}, 1), jobs: map[*job]struct{}{}}
}

// post leaves news. It never waits.
func (m *inbox) post(item any) {
	m.mu.Lock()
	m.items = append(m.items, item)
	m.mu.Unlock()
	m.ring()
}

func (m *inbox) ring() {
	select {
	case m.notify <- struct{}{}:
	default:
	}
}

// take empties the inbox.
func (m *inbox) take() []any {
	m.mu.Lock()
	defer m.mu.Unlock()
	items := m.items
	m.items = nil
	return items
}

// start runs a job, whose outcome is posted. ctx gives it its values, not its
// end: a job ends by itself or with the inbox.
func (m *inbox) start(ctx context.Context, p router.Prepared, run func(context.Context, router.Prepared) mcp.ActionResponse) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for j := range m.jobs { // also one that was begun on an earlier connection
		if j.prepared.Offer.Tool.Name == p.Offer.Tool.Name && reflect.DeepEqual(j.prepared.Arguments, p.Arguments) {
			return errJobRun
		}
	}
	switch {
	case m.closed:
		return errNoJobs
	case len(m.jobs) >= maxJobs:
		return errJobs
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx)) // it outlives the turn and the connection
	j := &job{prepared: p, cancel: cancel}
	m.jobs[j] = struct{}{}
	m.wg.Go(func() {
		defer cancel(turn.ErrDone)
		r := run(ctx, p)
		m.mu.Lock()
		delete(m.jobs, j)
		m.items = append(m.items, jobDone{p, r}) // in the same moment, so that waiting never says no in between
		m.mu.Unlock()
		m.ring()
	})
	return nil
}

// waiting reports whether a job runs or news has not been taken.
func (m *inbox) waiting() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.jobs) > 0 || len(m.items) > 0
}

// close cancels all jobs and waits for them.
func (m *inbox) close() {
	m.mu.Lock()
	m.closed = true
	for j := range m.jobs {
		j.cancel(errShutdown)
	}
	m.mu.Unlock()
	m.wg.Wait()
}
