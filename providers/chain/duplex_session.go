package chain

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"xiaozhi/audio"
	"xiaozhi/internal/timeline"
	"xiaozhi/providers"
)

// micRate is the rate of the sound that these members hear, in Hz.
const micRate = 16000

var (
	errTalkOver = errors.New("the talk is closed")
	errNoMember = errors.New("the member that called the tools is gone")
)

// duplexSession is one talk with the members of a chain. The writer and who asks for
// answers meet under mu; no member is asked to do anything under it that may wait.
type duplexSession struct {
	*Duplex
	req   providers.DuplexRequest
	outer func() context.Context // of Open
	inner func() context.Context // of the members; end ends it
	end   context.CancelFunc

	mu        sync.Mutex
	log       dialog
	pcm       []int16                 // of the utterance that goes on
	fed       int                     // samples of it that live has got
	walk      *run[providers.Duplex]  // along the members for it; nil: it has not begun
	member    int                     // that live is of
	live      providers.DuplexSession // nil: none is open
	failed    error                   // why live is of no more use, until the answer is asked for
	answering bool                    // sound is of the next utterance: it is kept until the answer is complete
	old       []providers.DuplexSession
}

// Write keeps the sound and hands it on.
func (s *duplexSession) Write(pcm []int16) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.over(); err != nil {
		return fmt.Errorf("write to talk: %w", err)
	}
	if len(s.pcm)+len(pcm) > providers.MaxUtterance*micRate {
		return fmt.Errorf("write to talk: %w", providers.ErrUtteranceFull)
	}
	s.pcm = append(audio.Grow(s.pcm, len(pcm)), pcm...)
	if !s.answering && len(s.pcm) > 0 {
		s.feed()
	}
	return nil
}

// over returns why the talk has ended; nil: it goes on.
func (s *duplexSession) over() error {
	if err := s.outer().Err(); err != nil {
		return err
	}
	if s.inner().Err() != nil {
		return errTalkOver
	}
	return nil
}

// feed hands the member that is to answer what it has not got yet. What fails is told when
// the answer is asked for. Its caller holds the lock.
func (s *duplexSession) feed() {
	if s.walk == nil {
		s.walk = s.list.walk()
		s.next(nil)
	}
	if s.live != nil && s.failed == nil && s.fed < len(s.pcm) {
		s.failed = s.live.Write(s.pcm[s.fed:])
		s.fed = len(s.pcm)
	}
}

// next goes on to the next member that opens, after an error of the one before; nil: it is
// the first of an utterance. It reports whether there is one. Its caller holds the lock.
func (s *duplexSession) next(err error) bool {
	for {
		before := s.walk.last
		i, ok := s.walk.next(anyMember)
		if !ok {
			s.drop()
			s.failed = s.walk.err()
			return false
		}
		if before >= 0 {
			s.takeOver(s.inner(), before, i, err)
		}
		if s.live != nil && i == s.member {
			return true
		}
		s.drop()
		req := s.req
		req.History = s.log.all()
		if s.live, err = s.members[i].Open(s.inner(), req); err == nil {
			s.member = i
			return true
		}
		s.live = nil
		s.walk.fail(i, err)
	}
}

// drop gives up the member that is open. It is closed when somebody may wait for that.
func (s *duplexSession) drop() {
	if s.live != nil {
		s.old = append(s.old, s.live)
	}
	s.live, s.fed, s.failed = nil, 0, nil
}

// sweep closes the members that were given up.
func (s *duplexSession) sweep() {
	s.mu.Lock()
	old := s.old
	s.old = nil
	s.mu.Unlock()
	for _, o := range old {
		_ = o.Close()
	}
}

// Respond asks for an answer, and streams it. A member that fails before its first sound or
// call is followed by the next; with results, only the one that called can answer.
func (s *duplexSession) Respond(ctx context.Context, results []providers.ToolResult) iter.Seq2[providers.DuplexDelta, error] {
	return func(yield func(providers.DuplexDelta, error) bool) {
		if err := ctx.Err(); err != nil {
			_ = s.Discard()
			yield(providers.DuplexDelta{}, err)
			return
		}
		defer s.sweep()
		a, err := s.ask(results)
		for err == nil {
			a.begin()
			err = a.run(ctx, yield)
			if a.end(ctx, err); err == nil || a.begun || ctx.Err() != nil || len(results) > 0 {
				break
			}
			err = s.again(a, err)
		}
		s.answered()
		if err != nil && !a.left {
			if over := s.ended(); over != nil && ctx.Err() == nil {
				err = over
			}
			yield(providers.DuplexDelta{}, err)
		}
	}
}

func (s *duplexSession) ended() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over()
}

// ask prepares an answer to what was said, or to results.
func (s *duplexSession) ask(results []providers.ToolResult) (*duplexAnswer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := &duplexAnswer{s: s, results: results}
	if err := s.over(); err != nil {
		return a, err
	}
	s.answering = true
	if len(results) > 0 {
		if s.live == nil {
			return a, errNoMember
		}
		a.member, a.live = s.member, s.live
		return a, nil
	}
	s.log.next()
	s.feed()
	a.said, a.walk = s.pcm, s.walk
	s.pcm, s.fed, s.walk = nil, 0, nil
	if err := s.failed; err != nil {
		if s.failed = nil; s.live == nil {
			return a, err // no member could be opened
		}
		return a, s.turnTo(a, s.member, err)
	}
	a.member, a.live = s.member, s.live
	return a, nil
}

// again has the next member answer in the place of one that has failed.
func (s *duplexSession) again(a *duplexAnswer, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if over := s.over(); over != nil {
		return over
	}
	return s.turnTo(a, a.member, err)
}

// turnTo opens the next member for an answer, after an error of a member, and gives it all that
// was said. Its caller holds the lock.
func (s *duplexSession) turnTo(a *duplexAnswer, failed int, err error) error {
	kept := s.walk
	s.walk = a.walk
	defer func() { s.walk = kept }()
	for {
		s.walk.fail(failed, err)
		s.drop()
		s.log.again()
		if !s.next(err) {
			err, s.failed = s.failed, nil
			return err
		}
		if err = s.live.Write(a.said); err == nil {
			a.member, a.live, a.text = s.member, s.live, ""
			return nil
		}
		failed = s.member
	}
}

// answered lets the next utterance have the member.
func (s *duplexSession) answered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answering = false
}

// broken gives up a member after an answer that broke off.
func (s *duplexSession) broken(live providers.DuplexSession) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live == live {
		s.drop()
	}
}

// Truncate keeps what was heard, and tells the member.
func (s *duplexSession) Truncate(heard time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.over(); err != nil {
		return err
	}
	s.log.cut(heard)
	if s.live == nil {
		return nil
	}
	return s.live.Truncate(heard)
}

// Discard gives up what the user has said.
func (s *duplexSession) Discard() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.over(); err != nil {
		return err
	}
	fed := s.fed > 0
	s.pcm, s.fed = nil, 0
	if s.walk != nil && s.live != nil {
		s.breakers[s.member].released()
	}
	s.walk = nil
	if s.live == nil {
		s.failed = nil
		return nil
	}
	if err := s.failed; err != nil || !fed {
		if err != nil {
			s.drop()
		}
		return nil
	}
	return s.live.Discard()
}

// Close ends all.
func (s *duplexSession) Close() error {
	s.end()
	s.mu.Lock()
	s.drop()
	s.mu.Unlock()
	s.sweep()
	return nil
}

// duplexAnswer is one answer. It is for the goroutine of Respond.
type duplexAnswer struct {
	s       *duplexSession
	said    []int16                // that it answers
	results []providers.ToolResult // or these
	walk    *run[providers.Duplex]
	member  int
	live    providers.DuplexSession
	text    string // that came before its sound
	begun   bool   // sound or a call was handed on
	left    bool   // the consumer is gone
	record  timeline.Attempt
}

// begin begins the record of asking the member.
func (a *duplexAnswer) begin() {
	a.record = timeline.Attempt{
		Op: a.s.op, Provider: a.s.members[a.member].Name(), Asked: time.Now(), Sound: time.Duration(len(a.said)) * time.Second / micRate,
	}
}

// run yields the member's answer, the error apart. What it says before it gives sound is
// kept back: another may answer in its place.
func (a *duplexAnswer) run(ctx context.Context, yield func(providers.DuplexDelta, error) bool) error {
	answer, begun := a.s.respond(ctx, a.member, a.live, a.results)
	for d, err := range answer {
		if err != nil {
			return err
		}
		if lengthOf(d.Sound) > 0 || len(d.ToolCalls) > 0 {
			begun()
			if a.record.First == 0 {
				a.record.First = max(time.Since(a.record.Asked), 1)
				a.s.breakers[a.member].gave(a.record.First)
			}
			a.begun = true
		}
		if !a.begun {
			a.text += d.Text
			d.Text = ""
		} else if a.text != "" {
			d.Text, a.text = a.text+d.Text, ""
		}
		a.record.Tokens.Prompt += d.Usage.Prompt
		a.record.Tokens.Completion += d.Usage.Completion
		a.record.Cached += d.Usage.Cached
		a.s.take(d)
		if a.left = !yield(d, nil); a.left {
			return nil
		}
	}
	if !a.begun && len(a.results) == 0 {
		return errEmpty
	}
	return nil
}

// take keeps what was said.
func (s *duplexSession) take(d providers.DuplexDelta) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log.take(d)
}

// end notes what came of asking the member.
func (a *duplexAnswer) end(ctx context.Context, err error) {
	r := &a.record
	r.Took, r.Outcome = time.Since(r.Asked), timeline.Answered
	switch b := a.s.breakers[a.member]; {
	case a.left && !a.begun, err != nil && (isContext(err) || a.s.ended() != nil):
		r.Outcome = timeline.Left
		b.released()
	case err == nil:
		b.succeeded()
	default:
		r.Outcome, r.Fault = timeline.Failed, err.Error()
		if a.begun || len(a.results) > 0 { // else it is reported where the next takes over
			a.s.report(a.member, err)
			a.s.broken(a.live)
		}
	}
	timeline.NoteAttempt(ctx, *r)
}
