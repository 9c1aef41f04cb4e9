// Package synthesis drives voices behind WebSockets. A service's client implements only
// its wire, a [Conn]; the driver owns what is the same for all: dialling, connections that
// are kept from one sentence to the next, time limits, reading the sound as it comes,
// cancelling, and one more try where a kept connection turns out to be dead.
package synthesis

import (
	"cmp"
	"context"
	"errors"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/sound"
	"xiaozhi/providers/transport"
)

// Conn is a connection on which sentences are spoken, one after another. It is for one
// goroutine at a time, but for Close.
type Conn interface {
	// Say sends a whole sentence and its end.
	Say(req providers.TTSRequest) error
	// Receive waits for more sound of the sentence, for no longer than within. At its end the
	// error is [io.EOF]. A message without sound may be given as none.
	Receive(within time.Duration) ([]byte, error)
	// Cancel gives up the sentence. It says whether the connection is good for another.
	Cancel() bool
	// Bind makes the end of ctx close the connection; the function that it returns undoes
	// that and says whether ctx had not ended.
	Bind(ctx context.Context) (release func() bool)
	Close()
}

// Rated is a [Conn] whose service says at which rate its bare sound comes, with the first of it.
type Rated interface {
	Rate() int // in Hz; 0 if it has not said so
}

// Options are the settings of a [Voice]. Account.Name and Dial must be set.
type Options struct {
	Account transport.Account
	// Dial opens a connection that is ready for a sentence. The end of ctx closes it until
	// it is bound to another.
	Dial   func(ctx context.Context) (Conn, error)
	Text   sound.Longest // of one request
	Format string        // pcm, wav, mp3 or opus; pcm if empty
	Rate   int           // of bare pcm in Hz; 24000 if 0
	// Keep is how long a connection may be idle between two sentences; 0: each serves one.
	Keep  time.Duration
	Idle  int           // connections that are kept; 2 if 0
	First time.Duration // to the first sound; 10 s if 0
	Next  time.Duration // between two pieces of it; 5 s if 0
	Tries int           // of a sentence that gets no sound because the service is not there; 1 if 0
}

// Voice is a voice of any service. It may be used by any number of goroutines at once.
type Voice struct {
	o       Options
	players sound.Pool

	mu      sync.Mutex
	retired bool
	idle    []*kept // the newest last
}

// kept is a connection that waits for the next sentence.
type kept struct {
	conn  Conn
	timer *time.Timer // closes it
}

// New makes a voice. It dials nothing.
func New(o Options) *Voice {
	o.Format, o.Rate = cmp.Or(o.Format, "pcm"), cmp.Or(o.Rate, 24000)
	o.Idle = cmp.Or(o.Idle, 2)
	o.First, o.Next = cmp.Or(o.First, 10*time.Second), cmp.Or(o.Next, 5*time.Second)
	return &Voice{o: o}
}

// Name returns the provider's name.
func (v *Voice) Name() string { return v.o.Account.Name }

// Synthesize streams the sound of one sentence, each piece as soon as it has come.
func (v *Voice) Synthesize(ctx context.Context, req providers.TTSRequest) iter.Seq2[providers.Sound, error] {
	return v.players.Speak(ctx, req, v.o.Text, func(part providers.TTSRequest, p *sound.Player) error {
		err := v.speak(ctx, part, p, true)
		if errors.Is(err, errStale) {
			err = v.speak(ctx, part, p, false)
		}
		for try := 1; try < v.o.Tries && !p.HeardPart() && transport.MayPass(err) && transport.Wait(ctx, again); try++ {
			err = v.speak(ctx, part, p, false)
		}
		if err != nil && !p.Left() {
			return v.o.Account.Wrap(ctx, ctx, "speak", err)
		}
		return nil
	})
}

// again is how long a service that is not there has until it is asked again.
const again = 200 * time.Millisecond

// ErrForgotten is the cause of an error of [Conn] that says that the service knows nothing of
// the connection any more, even a new one: the sentence is said once more on another.
var ErrForgotten = errors.New("the service has forgotten the connection")

var (
	errStale   = errors.New("the kept connection is dead")
	errNoSound = errors.New("the service sent no sound")
)

// speak speaks a sentence on a connection, a kept one if there is one and it may be.
func (v *Voice) speak(ctx context.Context, req providers.TTSRequest, p *sound.Player, mayKept bool) error {
	conn, old := v.take(ctx, mayKept)
	if conn == nil {
		var err error
		if conn, err = v.dial(ctx); err != nil {
			return err
		}
	}
	release := conn.Bind(ctx)
	r := &reader{conn: conn, first: v.o.First, next: v.o.Next}
	err := conn.Say(req)
	if err == nil {
		err = r.wait()
	}
	if err == nil {
		err = p.Decode(r, sound.Expected{Format: v.o.Format, Rate: v.rate(conn), MediaType: "audio/" + v.o.Format})
	}
	good := release()
	switch {
	case ctx.Err() != nil:
		conn.Close()
		return ctx.Err()
	case err != nil:
		conn.Close()
		if stale := old && !isRefusal(err) || mayKept && errors.Is(err, ErrForgotten); stale && r.got == 0 {
			return errStale
		}
		return err
	case !r.ended: // the consumer has left
		v.put(conn, good && conn.Cancel())
	default:
		v.put(conn, good)
	}
	if !p.HeardPart() && !p.Left() {
		return errNoSound
	}
	return nil
}

// rate is that of bare sound on a connection.
func (v *Voice) rate(conn Conn) int {
	if rated, ok := conn.(Rated); ok {
		return cmp.Or(rated.Rate(), v.o.Rate)
	}
	return v.o.Rate
}

// isRefusal reports whether a service has said why, and not only that the connection ends.
func isRefusal(err error) bool {
	refused, ok := errors.AsType[*transport.Refusal](err)
	return ok && !strings.HasPrefix(refused.Code, "close ")
}

// dial opens a connection, and once more where the clocks were not the same.
func (v *Voice) dial(ctx context.Context) (Conn, error) {
	conn, err := v.o.Dial(ctx)
	if refused, ok := errors.AsType[*transport.Refusal](err); ok && refused.Skewed {
		return v.o.Dial(ctx)
	}
	return conn, err
}

// reader reads the sound of a sentence from its connection.
type reader struct {
	conn        Conn
	first, next time.Duration
	rest        []byte
	got         int  // bytes
	ended       bool // the service has said so
}

// Read gives what has come of the sound.
func (r *reader) Read(p []byte) (int, error) {
	if err := r.wait(); err != nil {
		return 0, err
	}
	if len(r.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// wait waits until there is sound, or no more of it.
func (r *reader) wait() error {
	for begun := time.Now(); len(r.rest) == 0 && !r.ended; {
		within := r.next
		if r.got == 0 {
			within = r.first
		}
		if within -= time.Since(begun); within <= 0 { // messages without sound do not count
			return transport.ErrStalled
		}
		var err error
		if r.rest, err = r.conn.Receive(within); err != nil {
			r.ended = errors.Is(err, io.EOF)
			if !r.ended {
				return err
			}
		}
		r.got += len(r.rest)
	}
	return nil
}

// take takes a connection that is kept, and says whether it was.
func (v *Voice) take(ctx context.Context, may bool) (conn Conn, old bool) {
	if !may || v.o.Keep <= 0 || ctx.Err() != nil {
		return nil, false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.idle) == 0 {
		return nil, false
	}
	k := v.idle[len(v.idle)-1]
	v.idle = v.idle[:len(v.idle)-1]
	k.timer.Stop() // one that fires all the same finds nothing to close
	return k.conn, true
}

// put keeps a connection for the next sentence, or closes it.
func (v *Voice) put(conn Conn, good bool) {
	if !good || v.o.Keep <= 0 {
		conn.Close()
		return
	}
	v.mu.Lock()
	if full := v.retired || len(v.idle) >= v.o.Idle; full {
		v.mu.Unlock()
		conn.Close()
		return
	}
	k := &kept{conn: conn}
	k.timer = time.AfterFunc(v.o.Keep, func() { v.expire(k) })
	v.idle = append(v.idle, k)
	v.mu.Unlock()
}

// expire closes a connection that nobody wanted.
func (v *Voice) expire(k *kept) {
	v.mu.Lock()
	i := slices.Index(v.idle, k)
	if i >= 0 {
		v.idle = slices.Delete(v.idle, i, i+1)
	}
	v.mu.Unlock()
	if i >= 0 {
		k.conn.Close()
	}
}

// Retire closes the connections that are kept and keeps none from now on. Sentences that are
// being spoken go on.
func (v *Voice) Retire() {
	v.mu.Lock()
	idle := v.idle
	v.idle, v.retired = nil, true
	v.mu.Unlock()
	for _, k := range idle {
		k.timer.Stop()
		k.conn.Close()
	}
}

// Close is Retire, for the end of the program.
func (v *Voice) Close() error {
	v.Retire()
	return nil
}

// Warm opens a connection for the next sentence, if connections are kept and none is.
func (v *Voice) Warm(ctx context.Context) error {
	v.mu.Lock()
	ready := len(v.idle) > 0
	v.mu.Unlock()
	if ready || v.o.Keep <= 0 {
		return nil
	}
	dialCtx, cancel := context.WithTimeoutCause(ctx, v.o.First, transport.ErrStalled)
	defer cancel()
	conn, err := v.dial(dialCtx)
	if err != nil {
		return v.o.Account.Wrap(ctx, dialCtx, "connect", err)
	}
	v.put(conn, conn.Bind(context.WithoutCancel(ctx))())
	return nil
}
