// Package generation drives language models behind HTTP. It makes the request of a step,
// asks again where that helps, keeps the time limits, reads the stream, and turns what
// services say of failures into one kind of error. What a service's requests and events
// look like is told by its own folder, as a [Wire].
package generation

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"net/http"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/sse"
	"xiaozhi/providers/transport"
)

const (
	firstPause = 75 * time.Millisecond   // before the first retry, doubled for the next, give or take a half
	retryUntil = 1300 * time.Millisecond // after the beginning: later, the next member of the chain should be asked
	maxAdapted = 4                       // times that one step is asked in another way
)

// Wire speaks the protocol of a service. It may be used by any number of goroutines at once.
type Wire interface {
	// Request makes the HTTP request for a step. Its body can be read again.
	Request(ctx context.Context, req providers.LLMRequest) (*http.Request, error)
	// Answer begins to read the answer to a step.
	Answer(req providers.LLMRequest) Answer
	// Adapt reports whether the wire asks in another way from now on, because a service
	// has refused the request for what it held. said is the body of the refusal.
	Adapt(refusal *transport.Refusal, said []byte) bool
}

// Answer reads one answer. It is for one goroutine.
type Answer interface {
	// Event reads one event and gives what it holds. It reports whether the answer is
	// complete. What comes after that may still tell what it has cost. The event's data
	// is lent.
	Event(e sse.Event, give Give) (complete bool, err error)
	// End gives what was held back. It is called once, when the answer is complete.
	End(give Give) error
}

// Ending is an [Answer] that may be over with its stream, without a word of that.
type Ending interface {
	// EOF reads the end of the stream. It returns [ErrIncomplete] if there must be more.
	EOF(give Give) error
}

// Whole is a [Wire] whose service may answer in one piece though a stream was asked for, as some
// gateways and servers at home do. Whole reports whether a body, which is valid JSON, is an answer:
// it is read as the only event of a stream.
type Whole interface {
	Whole(body []byte) bool
}

// ErrIncomplete says that a stream broke off.
var ErrIncomplete = errors.New("the stream ended before the answer was complete")

// Give takes a piece of an answer. Usage and Echo are kept until the end.
type Give func(d providers.Delta)

// Options are the settings of a [Model]. Name, Model and Client must be set.
type Options struct {
	Account transport.Account
	Model   string // as the service calls it
	Client  *http.Client
	Retries int           // before the first token; 0: none
	First   time.Duration // to the first token, all tries and waits together; 15 s if 0
	Next    time.Duration // between two tokens; 10 s if 0
	Drain   time.Duration // for the end of a finished stream: what it has cost, and its connection for another request; 100 ms if 0
	Lines   bool          // the stream is lines of JSON, not events
	JSON    bool          // answers may be said to be JSON, which stands for a refusal elsewhere
	Plain   bool          // answers may be said to be HTML, as plain text is by some servers
}

// Model is a language model behind HTTP. It may be used by any number of goroutines at once.
type Model struct {
	o    Options
	wire Wire
}

// New makes a model that speaks by a wire.
func New(o Options, w Wire) *Model {
	if o.First <= 0 {
		o.First = 15 * time.Second
	}
	if o.Next <= 0 {
		o.Next = 10 * time.Second
	}
	if o.Drain <= 0 {
		o.Drain = 100 * time.Millisecond
	}
	return &Model{o: o, wire: w}
}

// Name returns the provider's name.
func (m *Model) Name() string { return m.o.Account.Name }

// Owner names the model in an echo: the provider's name and its model.
func Owner(name, model string) string { return name + " " + model }

// Generate streams one step. A server that is down or busy is asked again as
// long as nothing was yielded; the first token's time limit holds for all tries
// together. An answer with neither text nor tool call is an error.
func (m *Model) Generate(ctx context.Context, req providers.LLMRequest) iter.Seq2[providers.Delta, error] {
	return func(yield func(providers.Delta, error) bool) {
		begun := time.Now()
		for tries, adapted := 0, 0; ; {
			a := &attempt{m: m, yield: yield, deadline: begun.Add(m.o.First)}
			err := a.run(ctx, req)
			switch {
			case err == nil || a.stage == left:
				return
			case a.adapted && adapted < maxAdapted:
				adapted++
			case a.stage == silent && tries < m.o.Retries && retry(ctx, err, tries, begun):
				tries++
			default:
				yield(providers.Delta{}, err)
				return
			}
		}
	}
}

// retry waits before the next try and says whether there is to be one.
func retry(ctx context.Context, err error, try int, begun time.Time) bool {
	failed, ok := errors.AsType[*providers.Error](err)
	if !ok || failed.Kind != providers.Unavailable && failed.Kind != providers.RateLimited {
		return false
	}
	pause := firstPause << try
	pause += time.Duration((rand.Float64() - 0.5) * float64(pause))
	if refused, ok := errors.AsType[*transport.Refusal](err); ok {
		pause = max(pause, refused.After)
	}
	if time.Since(begun)+pause > retryUntil {
		return false
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done(): // the next try gives the context's error
	}
	return true
}
