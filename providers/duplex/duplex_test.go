package duplex

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/transport"
)

// script is a connection that answers as it is told. It notes what it is asked to do.
type script struct {
	mu     sync.Mutex
	did    []string
	sent   int
	req    providers.DuplexRequest
	events chan outcome
	closed chan struct{}
	once   sync.Once
	answer []Event // to a commit or to results
	cannot bool    // truncate and discard
	fails  error   // in place of an answer
}

func newScript(answer ...Event) *script {
	return &script{events: make(chan outcome, 256), closed: make(chan struct{}), answer: answer}
}

func (s *script) note(what string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.did = append(s.did, what)
	return nil
}

func (s *script) done() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.did, " ")
}

// took is how many samples came.
func (s *script) took() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent
}

func (s *script) Append(pcm []int16) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent += len(pcm)
	return nil
}

func (s *script) say(what string) error {
	_ = s.note(what)
	if s.fails != nil {
		s.events <- outcome{err: s.fails}
		return nil
	}
	for _, e := range s.answer {
		s.events <- outcome{Event: e}
	}
	return nil
}

func (s *script) Commit() error { return s.say("commit") }

func (s *script) Results(r []providers.ToolResult) error { return s.say("results " + r[0].Output) }

func (s *script) Cancel() error { return s.note("cancel") }

func (s *script) Truncate(item string, heard time.Duration) error {
	if s.cannot {
		return ErrNotOffered
	}
	return s.note("truncate " + item + " " + heard.String())
}

func (s *script) Discard() error {
	if s.cannot {
		return ErrNotOffered
	}
	s.mu.Lock()
	s.sent = 0
	s.mu.Unlock()
	return s.note("discard")
}

func (s *script) Receive() (func() (Event, error), error) {
	select {
	case o := <-s.events:
		return func() (Event, error) { return o.Event, nil }, o.err
	case <-s.closed:
		return nil, errors.New("closed")
	}
}

func (s *script) Close() { s.once.Do(func() { close(s.closed) }) }

const second = 16000

// begin opens a session over these connections, one after another.
func begin(t *testing.T, o Options, scripts ...*script) (providers.DuplexSession, *int) {
	t.Helper()
	dials := new(int)
	o.Account.Name = "x"
	o.Dial = func(_ context.Context, req providers.DuplexRequest) (Wire, error) {
		if *dials++; *dials > len(scripts) {
			return nil, transport.Refused(providers.BadRequest, "", "one dial too many")
		}
		scripts[*dials-1].req = req
		return scripts[*dials-1], nil
	}
	s, err := New(o).Open(t.Context(), providers.DuplexRequest{History: []providers.Message{{Role: providers.RoleUser, Content: "before"}}})
	if err != nil {
		t.Fatal(err)
	}
	return s, dials
}

// heard sums up an answer.
type heard struct {
	usage       providers.Usage
	words, text string
	long        time.Duration
	calls       []providers.ToolCall
	err         error
}

// ask takes an answer, and leaves it after so much sound if leave is not 0.
func ask(ctx context.Context, s providers.DuplexSession, results []providers.ToolResult, leave time.Duration) heard {
	var h heard
	for d, err := range s.Respond(ctx, results) {
		if err != nil {
			h.err = err
			continue
		}
		if d.Heard != "" {
			h.words = d.Heard
		}
		h.text += d.Text
		h.usage.Completion += d.Usage.Completion
		h.calls = append(h.calls, d.ToolCalls...)
		if len(d.Sound.PCM) > 0 {
			h.long += length(d.Sound)
		}
		if leave > 0 && h.long >= leave {
			break
		}
	}
	return h
}

func reply(item string) []Event {
	return []Event{{Heard: "hello"}, {Text: "hi there"}, {PCM: make([]int16, rate), Item: item}, {PCM: make([]int16, rate), Item: item}, {Done: true}}
}

func history(s *script) string {
	var out []string
	for _, m := range s.req.History {
		out = append(out, string(m.Role)+":"+m.Content)
	}
	return strings.Join(out, " ")
}

func TestOneConnectionForManyTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newScript(reply("a")...)
		s, dials := begin(t, Options{}, w)
		synctest.Wait()
		if *dials != 0 {
			t.Error("Open has dialled")
		}
		for range 2 {
			if err := s.Write(make([]int16, second)); err != nil {
				t.Fatal(err)
			}
			if h := ask(t.Context(), s, nil, 0); h.err != nil || h.words != "hello" || h.text != "hi there" || h.long != 2*time.Second {
				t.Errorf("got %+v", h)
			}
		}
		if *dials != 1 || w.done() != "commit commit" || w.took() != 2*second || history(w) != "user:before" {
			t.Errorf("%d dials, %q, %d samples, %q", *dials, w.done(), w.took(), history(w))
		}
		_ = s.Close()
		if err := s.Write(make([]int16, 1)); err == nil {
			t.Error("a closed session takes sound")
		}
	})
}

func TestCutTellsWhatWasHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newScript(reply("a")...)
		s, _ := begin(t, Options{}, w)
		defer s.Close()
		_ = s.Write(make([]int16, second))
		_ = ask(t.Context(), s, nil, time.Second)
		if err := s.Truncate(500 * time.Millisecond); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if got := w.done(); got != "commit cancel truncate a 500ms" {
			t.Errorf("got %q", got)
		}
	})
}

func TestAllHeardIsNoCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newScript(reply("a")...)
		s, _ := begin(t, Options{}, w)
		defer s.Close()
		_ = s.Write(make([]int16, second))
		_ = ask(t.Context(), s, nil, 0)
		_ = s.Truncate(3 * time.Second)
		synctest.Wait()
		if got := w.done(); got != "commit" {
			t.Errorf("got %q", got)
		}
	})
}

func TestServiceWithoutTruncateIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, next := newScript(reply("a")...), newScript(reply("b")...)
		first.cannot = true
		s, dials := begin(t, Options{}, first, next)
		defer s.Close()
		_ = s.Write(make([]int16, second))
		_ = ask(t.Context(), s, nil, 0)
		_ = s.Truncate(time.Second) // half of it
		_ = s.Write(make([]int16, second))
		if h := ask(t.Context(), s, nil, 0); h.err != nil || h.long == 0 {
			t.Errorf("got %+v", h)
		}
		if *dials != 2 || history(next) != "user:before user:hello assistant:hi t" || next.took() != second {
			t.Errorf("%d dials, history %q, %d samples", *dials, history(next), next.took())
		}
	})
}

func TestToolRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		call := providers.ToolCall{ID: "1", Name: "lamp", Arguments: "{}"}
		w := newScript(Event{Heard: "lamp on"}, Event{Calls: []providers.ToolCall{call}, Done: true})
		s, _ := begin(t, Options{}, w)
		defer s.Close()
		_ = s.Write(make([]int16, second))
		h := ask(t.Context(), s, nil, 0)
		if !slices.Equal(h.calls, []providers.ToolCall{call}) {
			t.Errorf("got %+v", h)
		}
		w.answer = reply("b")
		w.answer[1].Usage.Completion, w.answer[4].Usage.Completion = 3, 8 // so far
		if h := ask(t.Context(), s, []providers.ToolResult{{ID: "1", Name: "lamp", Output: "done"}}, 0); h.err != nil || h.text != "hi there" || h.usage.Completion != 8 {
			t.Errorf("got %+v", h)
		}
		if got := w.done(); got != "commit results done" {
			t.Errorf("got %q", got)
		}
	})
}

func TestLostConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, next := newScript(reply("a")...), newScript(reply("b")...)
		s, dials := begin(t, Options{}, first, next)
		defer s.Close()
		_ = s.Write(make([]int16, second))
		_ = ask(t.Context(), s, nil, 0)
		first.Close() // between two turns
		synctest.Wait()
		_ = s.Write(make([]int16, second))
		if h := ask(t.Context(), s, nil, 0); h.err != nil || h.long == 0 || *dials != 2 {
			t.Errorf("got %+v, %d dials", h, *dials)
		}
		if history(next) != "user:before user:hello assistant:hi there" {
			t.Errorf("history %q", history(next))
		}
	})
}

func TestKeptConnectionThatFailsIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, next := newScript(reply("a")...), newScript(reply("b")...)
		s, _ := begin(t, Options{}, first, next)
		defer s.Close()
		_ = s.Write(make([]int16, second))
		_ = ask(t.Context(), s, nil, 0)
		first.fails = errors.New("broken pipe")
		_ = s.Write(make([]int16, second))
		if h := ask(t.Context(), s, nil, 0); h.err != nil || h.long == 0 || next.took() != second {
			t.Errorf("got %+v, %d samples", h, next.took())
		}
	})
}

func TestFailures(t *testing.T) {
	for name, test := range map[string]struct {
		w    *script
		want providers.Kind
		took time.Duration
	}{
		"refused":  {&script{fails: transport.Refused(providers.NoCredit, "", "no money")}, providers.NoCredit, 0},
		"silent":   {&script{}, providers.Unavailable, 10 * time.Second},
		"doubtful": {&script{answer: []Event{{Doubt: transport.Refused(providers.BadRequest, "", "no")}}}, providers.BadRequest, time.Second},
		"stalls":   {&script{answer: []Event{{Text: "hi"}}}, providers.Unavailable, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fresh := newScript(test.w.answer...)
				fresh.fails = test.w.fails
				s, _ := begin(t, Options{}, fresh, newScript(reply("b")...))
				defer s.Close()
				_ = s.Write(make([]int16, second))
				begun := time.Now()
				h := ask(t.Context(), s, nil, 0)
				failed, ok := errors.AsType[*providers.Error](h.err)
				if !ok || failed.Kind != test.want || failed.Provider != "x" || time.Since(begun) != test.took {
					t.Errorf("got %v after %v", h.err, time.Since(begun))
				}
				_ = s.Write(make([]int16, second))
				if h := ask(t.Context(), s, nil, 0); h.err != nil || h.long == 0 {
					t.Errorf("the next answer: %+v", h)
				}
			})
		})
	}
}

func TestCancelAndDiscard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newScript()
		s, _ := begin(t, Options{}, w)
		defer s.Close()
		_ = s.Write(make([]int16, second))
		synctest.Wait()
		if err := s.Discard(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if h := ask(t.Context(), s, nil, 0); h.err == nil {
			t.Error("what was given up is answered")
		}
		_ = s.Write(make([]int16, second))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if h := ask(ctx, s, nil, 0); h.err != context.Canceled { //nolint:errorlint // unchanged
			t.Errorf("got %v", h.err)
		}
		synctest.Wait()
		if got := w.done(); got != "discard commit cancel" {
			t.Errorf("got %q", got)
		}
	})
}

func TestWordsBeforeAndAfterTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newScript(Event{More: " world"}, Event{Text: "hi", Done: true})
		s, _ := begin(t, Options{}, w)
		defer s.Close()
		_ = s.Write(make([]int16, second))
		synctest.Wait()
		w.events <- outcome{Event: Event{More: "hello"}}
		synctest.Wait()
		if h := ask(t.Context(), s, nil, 0); h.words != "hello world" {
			t.Errorf("got %+v", h)
		}
		w.answer = []Event{{Text: "hi", Done: true}, {Heard: "late"}}
		_ = s.Write(make([]int16, second))
		if h := ask(t.Context(), s, nil, 0); h.words != "late" || h.err != nil {
			t.Errorf("got %+v", h)
		}
	})
}

func TestLateWordsAreAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newScript(Event{Heard: "hello", PCM: make([]int16, rate)}, Event{Nearly: true}, Event{Text: "hi"})
		s, _ := begin(t, Options{}, w)
		defer s.Close()
		_ = s.Write(make([]int16, second))
		begun := time.Now()
		if h := ask(t.Context(), s, nil, 0); h.err != nil || h.text != "hi" || time.Since(begun) != linger {
			t.Errorf("got %+v after %v", h, time.Since(begun))
		}
	})
}

func TestSoundIsHeldAndPaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newScript(Event{Text: "hi"})
		s, _ := begin(t, Options{Hold: true, Pace: 2}, w)
		defer s.Close()
		_ = s.Write(make([]int16, 2*second))
		time.Sleep(500 * time.Millisecond)
		if w.took() < second || w.took() > second*3/2 {
			t.Errorf("%d samples in half a second", w.took())
		}
		for d, err := range s.Respond(t.Context(), nil) {
			if err != nil || d.Text != "hi" {
				t.Error(d, err)
			}
			_ = s.Write(make([]int16, second))
			time.Sleep(time.Second)
			if w.took() != 2*second {
				t.Errorf("sound was sent while an answer runs: %d", w.took())
			}
			break
		}
		time.Sleep(time.Second)
		if w.took() != 3*second {
			t.Errorf("sound was not sent after it: %d", w.took())
		}
	})
}

func TestLeavingConnectionIsReplacedBetweenTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, next := newScript(append([]Event{{Leaving: true}}, reply("a")...)...), newScript(reply("b")...)
		s, dials := begin(t, Options{}, first, next)
		defer s.Close()
		for range 2 {
			_ = s.Write(make([]int16, second))
			if h := ask(t.Context(), s, nil, 0); h.err != nil || h.long == 0 {
				t.Errorf("got %+v", h)
			}
			synctest.Wait()
		}
		if *dials != 2 {
			t.Errorf("%d dials", *dials)
		}
	})
}

// A session that the service ends between two answers goes on, unless it cannot or an answer was cut.
func TestSessionsAreResumed(t *testing.T) {
	for name, c := range map[string]struct{ can, cut bool }{"resumed": {true, false}, "lost": {false, false}, "cut": {true, true}} {
		synctest.Test(t, func(t *testing.T) {
			first, next, again := newScript(append([]Event{{Leaving: true}}, reply("a")...)...), newScript(reply("b")...), newScript(reply("c")...)
			resumed := 0
			s, dials := begin(t, Options{Resume: func(_ context.Context, _ providers.DuplexRequest, ended Wire) (Wire, error) {
				if resumed++; ended != Wire(first) || !c.can {
					return nil, errors.New("not found")
				}
				return again, nil
			}}, first, next)
			defer s.Close()
			for i := range 2 {
				_ = s.Write(make([]int16, second))
				cut := time.Duration(0)
				if c.cut && i == 0 {
					cut = 1
				}
				if h := ask(t.Context(), s, nil, cut); h.err != nil || h.text != "hi there" {
					t.Errorf("%s: got %+v", name, h)
				}
				synctest.Wait()
			}
			if c.cut && resumed > 0 || !c.cut && resumed != 1 || name == "resumed" && *dials != 1 {
				t.Errorf("%s: %d dials, %d times resumed", name, *dials, resumed)
			}
		})
	}
}

func TestEndOfContextEndsTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newScript()
		ctx, cancel := context.WithCancel(t.Context())
		s, err := New(Options{Account: transport.Account{Name: "x"}, Dial: func(context.Context, providers.DuplexRequest) (Wire, error) { return w, nil }}).Open(ctx, providers.DuplexRequest{})
		if err != nil {
			t.Fatal(err)
		}
		_ = s.Write(make([]int16, second))
		time.AfterFunc(time.Second, cancel)
		if h := ask(t.Context(), s, nil, 0); h.err != context.Canceled { //nolint:errorlint // unchanged
			t.Errorf("got %v", h.err)
		}
		synctest.Wait()
		select {
		case <-w.closed:
		default:
			t.Error("the connection is open")
		}
	})
}
