package lab

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"xiaozhi/store"
)

// RunState says how a run does.
type RunState string

// The states of a run. All but Running are the end.
const (
	Running   RunState = "running"
	Done      RunState = "done"
	Failed    RunState = "failed"
	Cancelled RunState = "cancelled"
	TimedOut  RunState = "timed-out"
)

// The limits of runs.
const (
	atOnce   = 3  // runs of all people
	keptRuns = 48 // with those that are over
	keepRun  = 10 * time.Minute
)

var errCancelled = errors.New("the run was cancelled")

// Run is some work that a person has begun, and what has come of it so far. Its methods may be called at the same time.
type Run struct {
	ID     string
	Kind   string
	Person string // who may see it
	Began  time.Time

	cancel context.CancelCauseFunc
	told   func() // somebody, of each change

	mu      sync.Mutex
	state   RunState
	of      int // rows that are expected
	rows    []any
	summary any
	why     error // it failed
	ended   time.Time
	changed chan struct{} // closed with the next change
}

// Snapshot describes a run as it is at a moment.
type Snapshot struct {
	ID      string    `json:"id"`
	Kind    string    `json:"kind"`
	State   RunState  `json:"state"`
	Began   time.Time `json:"began"`
	Done    int       `json:"done"`
	Of      int       `json:"of"`
	Rows    []any     `json:"rows"`              // from the one that was asked for on
	Summary any       `json:"summary,omitempty"` // over all rows so far
	Fault   string    `json:"fault,omitempty"`   // why it failed, in both languages
	Why     error     `json:"-"`                 // the same
}

// Snapshot returns a run as it is, with its rows from number after on, and a channel that is closed when it changes.
func (r *Run) Snapshot(after int) (Snapshot, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := Snapshot{ID: r.ID, Kind: r.Kind, State: r.state, Began: r.Began, Done: len(r.rows), Of: r.of, Summary: r.summary, Why: r.why, Rows: []any{}}
	if r.why != nil {
		s.Fault = inWords(r.why)
	}
	if after >= 0 && after < len(r.rows) {
		s.Rows = slices.Clone(r.rows[after:])
	}
	return s, r.changed
}

// add adds a row, and puts what it all comes to in the place of what it came to before.
func (r *Run) add(row, summary any) {
	r.change(func() { r.rows, r.summary = append(r.rows, row), summary })
}

func (r *Run) change(f func()) {
	r.mu.Lock()
	f()
	close(r.changed)
	r.changed = make(chan struct{})
	r.mu.Unlock()
	r.told()
}

// end notes how the work has ended.
func (r *Run) end(ctx context.Context, err error) {
	r.change(func() {
		r.ended, r.state = time.Now(), Done
		switch cause := context.Cause(ctx); {
		case errors.Is(cause, errCancelled):
			r.state = Cancelled
		case errors.Is(cause, context.DeadlineExceeded):
			r.state, r.why = TimedOut, refuse(Invalid, "lab/late")
		case err != nil:
			r.state, r.why = Failed, err
		}
	})
}

// Cancel ends a run that goes on.
func (r *Run) Cancel() { r.cancel(errCancelled) }

// Runs own what people have begun: one of each person at a time. Its methods may be called at the same time.
type Runs struct {
	begin func() (context.Context, context.CancelCauseFunc) // of one run; all end with Close
	stop  context.CancelFunc
	work  sync.WaitGroup

	mu   sync.Mutex
	all  []*Run // the oldest first
	told func(run string)
}

// NewRuns makes an owner of runs, which have the values of ctx.
func NewRuns(ctx context.Context) *Runs {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	return &Runs{stop: stop, begin: func() (context.Context, context.CancelCauseFunc) { return context.WithCancelCause(ctx) }}
}

// Follow has told called with the number of each run that changes from now on. It must not wait.
func (o *Runs) Follow(told func(run string)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.told = told
}

// tell says that a run has changed.
func (o *Runs) tell(run string) {
	o.mu.Lock()
	told := o.told
	o.mu.Unlock()
	if told != nil {
		told(run)
	}
}

// Close ends all runs and waits for them.
func (o *Runs) Close() {
	o.stop()
	o.work.Wait()
}

// Start begins some work of so many rows for a person, who may have none going on ([Busy]), within a time.
func (o *Runs) Start(person, kind string, of int, limit time.Duration, work func(ctx context.Context, r *Run) error) (*Run, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tidy()
	going := 0
	for _, r := range o.all {
		if s, _ := r.Snapshot(0); s.State == Running {
			if going++; r.Person == person {
				return nil, refuse(Busy, "lab/busy")
			}
		}
	}
	ctx, cancel := o.begin()
	if going >= atOnce || ctx.Err() != nil {
		cancel(nil)
		return nil, refuse(Busy, "lab/busy-all")
	}
	r := &Run{ID: store.NewID(), Kind: kind, Person: person, Began: time.Now(), state: Running, of: of, cancel: cancel, changed: make(chan struct{})}
	r.told = func() { o.tell(r.ID) }
	o.all = append(o.all, r)
	o.work.Go(func() {
		ctx, stop := context.WithTimeout(ctx, limit)
		defer stop()
		defer cancel(nil)
		r.end(ctx, work(ctx, r))
	})
	return r, nil
}

// tidy forgets runs that were over long ago, or that are too many. o.mu is held.
func (o *Runs) tidy() {
	now := time.Now()
	over := func(r *Run, long bool) bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.state != Running && (!long || now.Sub(r.ended) > keepRun)
	}
	o.all = slices.DeleteFunc(o.all, func(r *Run) bool { return over(r, true) })
	for i := 0; len(o.all) >= keptRuns && i < len(o.all); {
		if over(o.all[i], false) {
			o.all = slices.Delete(o.all, i, i+1)
		} else {
			i++
		}
	}
}

// Find returns a run of a person.
func (o *Runs) Find(person, id string) (*Run, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, r := range o.all {
		if r.ID == id && r.Person == person {
			return r, nil
		}
	}
	return nil, refuse(Missing, "lab/no-run")
}
