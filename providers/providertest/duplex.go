package providertest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"xiaozhi/providers"
)

// DuplexPart is a piece of a scripted answer of a [Duplex].
type DuplexPart struct {
	Delay time.Duration // before it
	Delta providers.DuplexDelta
	Err   error // ends the answer
	Hang  bool  // nothing more until the context ends
}

// Reply returns an answer to heard words: text, and a tone of that length for each piece of it.
func Reply(heard string, length time.Duration, pieces ...string) []DuplexPart {
	parts := []DuplexPart{{Delta: providers.DuplexDelta{Heard: heard}}}
	at := time.Duration(0)
	for _, text := range pieces {
		parts = append(parts, DuplexPart{Delta: providers.DuplexDelta{Text: text}})
		for end := at + length; at < end; at += 100 * time.Millisecond {
			sound := providers.Sound{Rate: 24000, PCM: tone(24000, at, min(at+100*time.Millisecond, end))}
			parts = append(parts, DuplexPart{Delta: providers.DuplexDelta{Sound: sound}})
		}
	}
	return parts
}

// Duplex is a fake of what hears and speaks by itself. It notes what it is asked to do.
type Duplex struct {
	Label  string         // its name; "fake-duplex" if empty
	Script [][]DuplexPart // one for each Respond in order, over all sessions; the last one for all further ones
	Fails  error          // of Open

	mu       sync.Mutex
	asked    int
	did      []string
	requests []providers.DuplexRequest
	open     int
}

// Name returns the label.
func (d *Duplex) Name() string { return cmp.Or(d.Label, "fake-duplex") }

// Did lists what was done, in order: "open", "respond 1.2s" with the length of the sound,
// "respond NAME=OUTPUT", "truncate 1s", "discard 1s", "close".
func (d *Duplex) Did() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.did, ", ")
}

// Requests returns those of all sessions so far.
func (d *Duplex) Requests() []providers.DuplexRequest {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.requests)
}

// Sessions counts those that are open.
func (d *Duplex) Sessions() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.open
}

// Open begins a session.
func (d *Duplex) Open(ctx context.Context, req providers.DuplexRequest) (providers.DuplexSession, error) {
	if err := cmp.Or(ctx.Err(), d.Fails); err != nil {
		return nil, err
	}
	req.History, req.Tools = slices.Clone(req.History), slices.Clone(req.Tools)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.did, d.requests, d.open = append(d.did, "open"), append(d.requests, req), d.open+1
	inner, end := context.WithCancel(ctx)
	return &duplexFake{d: d, inner: func() context.Context { return inner }, end: end}, nil
}

// duplexFake is one session. Its fields are guarded by the lock of d.
type duplexFake struct {
	d      *Duplex
	inner  func() context.Context
	end    context.CancelFunc
	heard  int // samples since the last answer
	runs   bool
	closed bool
}

var errFakeClosed = errors.New("the session is closed")

func (s *duplexFake) note(format string, args ...any) {
	s.d.did = append(s.d.did, fmt.Sprintf(format, args...))
}

// length returns the length of what was heard, in steps of 10 ms.
func (s *duplexFake) length() time.Duration {
	return (time.Duration(s.heard) * time.Second / 16000).Round(10 * time.Millisecond)
}

func (s *duplexFake) Write(pcm []int16) error {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if s.closed {
		return errFakeClosed
	}
	s.heard += len(pcm)
	return nil
}

func (s *duplexFake) Respond(ctx context.Context, results []providers.ToolResult) iter.Seq2[providers.DuplexDelta, error] {
	return func(yield func(providers.DuplexDelta, error) bool) {
		parts, err := s.ask(results)
		defer func() {
			s.d.mu.Lock()
			defer s.d.mu.Unlock()
			s.runs = false
		}()
		for _, part := range parts {
			if err = s.wait(ctx, part); err != nil || !yield(part.Delta, nil) {
				break
			}
		}
		if err != nil {
			yield(providers.DuplexDelta{}, err)
		}
	}
}

// ask begins an answer.
func (s *duplexFake) ask(results []providers.ToolResult) ([]DuplexPart, error) {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	switch {
	case s.closed:
		return nil, errFakeClosed
	case s.runs:
		return nil, errors.New("an answer is still running")
	case len(results) > 0:
		var out []string
		for _, r := range results {
			out = append(out, r.Name+"="+r.Output)
		}
		s.note("respond %s", strings.Join(out, " "))
	case s.heard == 0:
		return nil, errors.New("nothing was said")
	default:
		s.note("respond %s", s.length())
		s.heard = 0
	}
	s.runs = true
	s.d.asked++
	return pick(s.d.Script, s.d.asked-1), nil
}

// wait waits until a part is due.
func (s *duplexFake) wait(ctx context.Context, part DuplexPart) error {
	timer := time.NewTimer(part.Delay)
	defer timer.Stop()
	due := timer.C
	if part.Hang {
		due = nil
	}
	select {
	case <-due:
		return cmp.Or(ctx.Err(), part.Err)
	case <-ctx.Done():
		return ctx.Err()
	case <-s.inner().Done():
		return errFakeClosed
	}
}

func (s *duplexFake) Truncate(heard time.Duration) error {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	s.note("truncate %s", heard.Round(10*time.Millisecond))
	return nil
}

func (s *duplexFake) Discard() error {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	s.note("discard %s", s.length())
	s.heard = 0
	return nil
}

func (s *duplexFake) Close() error {
	s.end()
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if !s.closed {
		s.closed = true
		s.d.open--
		s.note("close")
	}
	return nil
}
