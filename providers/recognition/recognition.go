// Package recognition drives streaming recognisers. A service's client implements only
// its wire, a [Session]; the driver owns what is the same for all: the buffer of the
// utterance, dialling at the first sound and never before, the pace, joining several
// finished sentences, going on where a service ended its session by itself, the limit
// after the end of the sound, and exactly one final transcript.
package recognition

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"xiaozhi/audio"
	"xiaozhi/providers"
	"xiaozhi/providers/transport"
)

// Kind says what a [Result] means.
type Kind int

// The kinds of results.
const (
	Nothing  Kind = iota // an event that says nothing about the text
	Partial              // the current sentence so far; it replaces what was known of it
	Append               // more of the current sentence
	Sentence             // the current sentence is finished; an empty text takes the partial one
	Over                 // the last message of the session; its text, if any, is a last sentence
)

// Result is one message of a service.
type Result struct {
	Kind Kind
	Text string
	// Part names the sentence within its session, where the service does: then its texts may come
	// in any order, and also after those of the next one. "" is the one that goes on.
	Part     string
	Language string // BCP-47 tag, or "" when the service does not say
}

// Session is the connection for one utterance, or for a part of one that the service
// ended. Send and Finish belong to one goroutine, Receive to another; Close may be called
// by any, makes the others return, and does not wait.
type Session interface {
	// Send hands over sound, 16 bit mono at 16 kHz, in pieces of [Options.Frame].
	Send(pcm []int16) error
	// Finish says that the sound is complete.
	Finish() error
	// Receive waits for the next message. After one of kind Over it is not called again.
	Receive() (Result, error)
	Close()
}

// Options are the settings of a [Recognizer]. Account.Name and Dial must be set.
type Options struct {
	Account transport.Account
	// Dial opens a session and returns when it takes sound. The end of ctx closes the
	// session, also later.
	Dial  func(ctx context.Context, req providers.ASRRequest) (Session, error)
	Frame time.Duration // length of the pieces for Send; 100 ms if 0
	Pace  float64       // how much faster than it is spoken sound may be sent; 0: as fast as it goes
	Burst time.Duration // of sound that may be sent before Pace counts
	Tries int           // of Dial, until it is given up; 2 if 0
	Final time.Duration // from the end of the sound to the last message; 5 s if 0
	// Longest is the length of the sound that a session takes: what is longer goes on in
	// another one; 0: any.
	Longest time.Duration
	Warm    func(ctx context.Context) error
	// Streams says whether texts come while the user speaks; nil: they do. It may be
	// called by any goroutine at any time.
	Streams func() bool
}

// The defaults.
const (
	frame   = 100 * time.Millisecond
	tries   = 2
	final   = 5 * time.Second
	again   = 100 * time.Millisecond // before the next try of Dial
	maxText = 64 << 10               // bytes of the text of one utterance: nobody speaks so much in a minute
	renewal = 20                     // sessions of one utterance: more is a service that ends each at once
)

// Recognizer is a recogniser of any service. It may be used by any number of goroutines
// at once.
type Recognizer struct{ o Options }

// New makes a recogniser. It dials nothing.
func New(o Options) *Recognizer {
	if o.Frame <= 0 {
		o.Frame = frame
	}
	if o.Tries <= 0 {
		o.Tries = tries
	}
	if o.Final <= 0 {
		o.Final = final
	}
	return &Recognizer{o}
}

// Name returns the provider's name.
func (r *Recognizer) Name() string { return r.o.Account.Name }

// Streams says whether transcripts come while the user speaks ([providers.Streamer]).
func (r *Recognizer) Streams() bool { return r.o.Streams == nil || r.o.Streams() }

// Warm gets a connection ready where the service allows that before the sound.
func (r *Recognizer) Warm(ctx context.Context) error {
	if r.o.Warm == nil {
		return nil
	}
	return r.o.Warm(ctx)
}

// Open begins an utterance. It dials nothing: that happens at the first sound.
func (r *Recognizer) Open(ctx context.Context, req providers.ASRRequest) (providers.ASRStream, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if req.Rate <= 0 {
		req.Rate = audio.Recognition.Rate
	}
	req.Phrases = plain(req.Phrases)
	s := &stream{o: &r.o, ctx: func() context.Context { return ctx }, req: req}
	s.more = sync.NewCond(&s.mu)
	return s, nil
}

// plain leaves out phrases that are patterns, with choices and parts that may be left out:
// services take words only.
func plain(phrases []string) []string {
	var out []string
	for _, p := range phrases {
		if !strings.ContainsAny(p, "()[]{}<>|*+") {
			out = append(out, p)
		}
	}
	return out
}

// stream is one utterance.
type stream struct {
	o   *Options
	ctx func() context.Context // of Open
	req providers.ASRRequest

	mu     sync.Mutex
	more   *sync.Cond // sound came, or the end of it or of everything
	pcm    []int16    // all sound so far: a session that ends is followed by one for the rest
	closed bool       // no more sound comes
	ended  bool       // nobody wants the text any more
	ranged bool
	past   int // sessions that are over
}

// Write keeps a copy of pcm.
func (s *stream) Write(pcm []int16) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fmt.Errorf("write to utterance: %w", providers.ErrUtteranceClosed)
	}
	if len(s.pcm)+len(pcm) > providers.MaxUtterance*s.req.Rate {
		return fmt.Errorf("write to utterance: %w", providers.ErrUtteranceFull)
	}
	s.pcm = append(audio.Grow(s.pcm, len(pcm)), pcm...)
	s.more.Broadcast()
	return nil
}

// CloseWrite says that the utterance is complete.
func (s *stream) CloseWrite() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.more.Broadcast()
	return nil
}

// stop lets whoever waits for sound go.
func (s *stream) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.more.Broadcast()
}

// over ends the wait of a session's sender.
func (s *stream) over() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.past++
	s.more.Broadcast()
}

// next waits for the sound behind a position: a whole piece, or at the end what is left.
// more is false when there is none; closed says whether that is because it is complete.
// The end of a session, of which past were over before, ends the wait.
func (s *stream) next(at, past int) (pcm []int16, more, closed bool) {
	n := s.req.Rate * int(s.o.Frame/time.Millisecond) / 1000
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.ended && !s.closed && s.past == past && len(s.pcm)-at < n {
		s.more.Wait()
	}
	switch {
	case s.ended || s.past != past:
		return nil, false, false
	case len(s.pcm)-at >= n:
		return s.pcm[at : at+n : at+n], true, false
	case len(s.pcm) > at:
		return s.pcm[at:len(s.pcm):len(s.pcm)], true, false
	}
	return nil, false, true
}

// begun waits for the first sound. It says whether there is any.
func (s *stream) begun() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.ended && !s.closed && len(s.pcm) == 0 {
		s.more.Wait()
	}
	return len(s.pcm) > 0 && !s.ended
}

var errRangedTwice = errors.New("transcripts were already asked for")

// Transcripts yields what the service understands, and at the end the final transcript.
func (s *stream) Transcripts() iter.Seq2[providers.Transcript, error] {
	return func(yield func(providers.Transcript, error) bool) {
		s.mu.Lock()
		twice := s.ranged
		s.ranged = true
		s.mu.Unlock()
		if twice {
			yield(providers.Transcript{}, fmt.Errorf("recognize utterance: %w", errRangedTwice))
			return
		}
		ctx, cancel := context.WithCancelCause(s.ctx())
		defer cancel(nil)
		defer s.stop()
		defer context.AfterFunc(ctx, s.stop)()
		t := &talk{stream: s, yield: yield}
		err := t.run(ctx)
		switch {
		case t.left:
		case err != nil:
			yield(providers.Transcript{}, s.o.Account.Wrap(s.ctx(), ctx, "transcribe", err))
		default:
			yield(t.transcript(true), nil)
		}
	}
}

// talk is the text of one utterance as it comes. It is for the goroutine that ranges.
type talk struct {
	*stream
	yield func(providers.Transcript, error) bool

	words    sentences
	heard    bool // something was understood in this session
	language string
	shown    string // what was yielded last
	left     bool   // the consumer has left the loop
}

// transcript is the text so far.
func (t *talk) transcript(final bool) providers.Transcript {
	return providers.Transcript{Text: strings.TrimSpace(t.words.text()), Final: final, Language: t.language, Provider: t.o.Account.Name}
}

// take adds what a message says, and yields the text if it has changed.
func (t *talk) take(r Result) error {
	if r.Language != "" {
		t.language = r.Language
	}
	if r.Kind == Nothing {
		return nil
	}
	t.heard = t.heard || r.Text != ""
	if !t.words.add(r) {
		return errEndless
	}
	if now := t.transcript(false); r.Kind != Over && now.Text != t.shown {
		t.shown = now.Text
		t.left = !t.yield(now, nil)
	}
	return nil
}

// errEndless is the error of a service whose text is longer than any speech.
var errEndless = errors.New("the text does not end")
