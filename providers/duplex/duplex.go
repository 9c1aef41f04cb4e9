// Package duplex drives services that hear and speak by themselves. A service's client
// implements only its messages, a [Wire]; the driver owns what is the same for all: dialling
// at the first sound, the sound of an utterance until it is answered, the pace, one answer
// at a time, cancelling, what was heard of an answer, what was said so far, connections that
// end, time limits, and exactly one error at the end.
package duplex

import (
	"context"
	"errors"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/transport"
)

// ErrNotOffered is what a [Wire] returns for what its service cannot do. The driver then
// begins another session, with what was said so far.
var ErrNotOffered = errors.New("the service does not offer this")

// Event holds what a message of a service says. Any of its members may be set.
type Event struct {
	Heard   string // the user's words so far; replaces what came before
	More    string // more of the user's words
	Text    string // more of what is spoken
	PCM     []int16
	Item    string // what [Wire.Truncate] calls the sound of PCM
	Calls   []providers.ToolCall
	Nearly  bool  // all sound of the answer has come; words may follow for a moment
	Done    bool  // the answer is complete, or waits for results
	Doubt   error // the service complains, but may answer all the same
	Leaving bool  // the connection ends soon, and is good for no other answer

	Usage providers.Usage // of the answer so far
}

// empty says whether an event tells nothing.
func (e Event) empty() bool {
	return e.Heard == "" && e.More == "" && e.Text == "" && len(e.PCM) == 0 && len(e.Calls) == 0 && !e.Done && !e.Nearly && e.Usage == (providers.Usage{})
}

// Wire is a connection of a service that takes sound. Receive belongs to one goroutine, all
// else but Close to another; Close may be called by any, makes the others return, and does
// not wait.
type Wire interface {
	// Append hands over sound of the user, mono at 16 kHz, in pieces of [Options.Frame].
	Append(pcm []int16) error
	// Commit says that the user has finished, and asks for the answer.
	Commit() error
	// Results hands over the results of all calls of an answer, which then goes on.
	Results(results []providers.ToolResult) error
	// Cancel gives the answer up: nothing of it is received any more.
	Cancel() error
	// Truncate says how much of the sound of an item was heard.
	Truncate(item string, heard time.Duration) error
	// Discard gives up what was appended since the last Commit.
	Discard() error
	// Receive waits for the next message and returns what reads it. No Cancel comes
	// between reading and finding the answer that the event belongs to.
	Receive() (read func() (Event, error), err error)
	Close()
}

// Options are the settings of a [Provider]. Account.Name and Dial must be set.
type Options struct {
	Account transport.Account
	// Dial opens a connection and returns when it takes sound. The end of ctx closes it,
	// also later.
	Dial func(ctx context.Context, req providers.DuplexRequest) (Wire, error)
	// Resume opens a connection that goes on with the session of another, which the service
	// has ended between two answers. What was said is not sent again. No wire and no error
	// say that it cannot; nil: the service offers no such thing.
	Resume func(ctx context.Context, req providers.DuplexRequest, ended Wire) (Wire, error)

	Rate  int           // Hz of the answers' sound; 24000 if 0
	Frame time.Duration // length of the pieces for Append; 100 ms if 0
	Pace  float64       // how much faster than it is spoken sound may be sent; 0: as fast as it goes
	Hold  bool          // sound is not sent while an answer runs, which it would interrupt
	Tries int           // of Dial, until it is given up; 2 if 0
	First time.Duration // from Respond to the first delta; 10 s if 0
	Next  time.Duration // between two deltas; 10 s if 0
	Able  providers.Capabilities
}

// The defaults, and limits.
const (
	rate       = 24000
	frame      = 100 * time.Millisecond
	tries      = 2
	limit      = 10 * time.Second
	again      = 100 * time.Millisecond // before the next try of Dial
	grace      = 100 * time.Millisecond // for the service to say why it takes nothing
	doubt      = time.Second            // for an answer after a complaint
	linger     = 500 * time.Millisecond // for the user's words after the answer
	inRate     = 16000                  // Hz of the user's sound
	piece      = 10                     // pieces a second, at the most, in which sound is yielded
	mostEvents = 64                     // that wait for the consumer; then the service waits
	mostEmpty  = 10000                  // messages in a row that say nothing
	mostSound  = 10 * time.Minute       // of one answer
	mostText   = 64 << 10               // bytes of one answer
)

// Provider is a [providers.Duplex] of any service. It may be used by any number of
// goroutines at once.
type Provider struct{ o Options }

// New makes a provider. It dials nothing.
func New(o Options) *Provider {
	if o.Rate <= 0 {
		o.Rate = rate
	}
	if o.Frame <= 0 {
		o.Frame = frame
	}
	if o.Tries <= 0 {
		o.Tries = tries
	}
	if o.First <= 0 {
		o.First = limit
	}
	if o.Next <= 0 {
		o.Next = limit
	}
	o.Able.SpeechToSpeech, o.Able.NoTrials, o.Able.NoHedge = true, true, true
	return &Provider{o}
}

// Name returns the provider's name.
func (p *Provider) Name() string { return p.o.Account.Name }

// Capabilities says that it hears and speaks, and takes no trial.
func (p *Provider) Capabilities() providers.Capabilities { return p.o.Able }

// Open begins a talk. It does not dial: that happens at the first sound.
func (p *Provider) Open(ctx context.Context, req providers.DuplexRequest) (providers.DuplexSession, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	inner, end := context.WithCancel(ctx)
	return &session{
		o: &p.o, req: req, end: end, wake: make(chan struct{}, 1), talk: newTalk(req.History), spoken: &utterance{},
		outer: func() context.Context { return ctx }, inner: func() context.Context { return inner },
	}, nil
}
