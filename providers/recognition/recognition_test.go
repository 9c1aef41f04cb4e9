package recognition

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

// script is a session that answers as it is told: after so many samples, and at the end.
type script struct {
	mu      sync.Mutex
	sent    int
	chunks  []int
	ends    bool
	results chan Result
	closed  chan struct{}
	once    sync.Once
	hear    func(s *script, sent int)
	finish  func(s *script)
	fails   error
}

func newScript() *script {
	return &script{results: make(chan Result, 64), closed: make(chan struct{})}
}

func (s *script) Send(pcm []int16) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent += len(pcm)
	s.chunks = append(s.chunks, len(pcm))
	if s.hear != nil {
		s.hear(s, s.sent)
	}
	return nil
}

func (s *script) Finish() error {
	s.ends = true
	if s.finish != nil {
		s.finish(s)
	}
	return nil
}

func (s *script) Receive() (Result, error) {
	select {
	case r := <-s.results:
		if r.Kind == Over && s.fails != nil {
			return Result{}, s.fails
		}
		return r, nil
	case <-s.closed:
		return Result{}, errors.New("closed")
	}
}

func (s *script) Close() { s.once.Do(func() { close(s.closed) }) }

// recognizer makes one whose sessions are these, one after another.
func recognizer(o Options, sessions ...*script) (*Recognizer, *int) {
	dials := 0
	o.Account.Name = "x"
	o.Dial = func(ctx context.Context, _ providers.ASRRequest) (Session, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		dials++
		return sessions[dials-1], nil
	}
	return New(o), &dials
}

const second = 16000

// recognize speaks and gives all texts and the error.
func recognize(t *testing.T, r *Recognizer, samples int) (partials []string, final string, err error) {
	t.Helper()
	s, err := r.Open(t.Context(), providers.ASRRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var speaking sync.WaitGroup
	defer speaking.Wait()
	speaking.Go(func() {
		for n := samples; n > 0; n -= 960 {
			_ = s.Write(make([]int16, min(n, 960)))
			time.Sleep(60 * time.Millisecond)
		}
		_ = s.CloseWrite()
	})
	finals := 0
	for tr, e := range s.Transcripts() {
		switch {
		case e != nil:
			err = e
		case tr.Final:
			finals++
			final = tr.Text
		default:
			partials = append(partials, tr.Text)
		}
	}
	if err == nil && finals != 1 {
		t.Errorf("%d final transcripts", finals)
	}
	return partials, final, err
}

func TestPartialsThenOneFinal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		s.hear = func(s *script, sent int) {
			switch sent {
			case second / 2:
				s.results <- Result{Kind: Partial, Text: "turn"}
			case second:
				s.results <- Result{Kind: Sentence, Text: "Turn it on."}
			}
		}
		s.finish = func(s *script) {
			s.results <- Result{Kind: Append, Text: "no"}
			s.results <- Result{Kind: Append, Text: "w"}
			s.results <- Result{Kind: Over}
		}
		r, dials := recognizer(Options{}, s)
		partials, final, err := recognize(t, r, 2*second)
		if err != nil || final != "Turn it on. now" || !slices.Contains(partials, "turn") || *dials != 1 || s.sent != 2*second {
			t.Errorf("partials %q, final %q, error %v, %d dials, %d samples", partials, final, err, *dials, s.sent)
		}
		if s.chunks[0] != second/10 {
			t.Errorf("pieces of %d samples, want 100 ms", s.chunks[0])
		}
	})
}

func TestNothingSaidDialsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, dials := recognizer(Options{})
		if partials, final, err := recognize(t, r, 0); err != nil || final != "" || len(partials) > 0 || *dials != 0 {
			t.Errorf("%q, %q, %v, %d dials", partials, final, err, *dials)
		}
	})
}

func TestEndedSessionIsFollowedByAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, next := newScript(), newScript()
		first.hear = func(s *script, sent int) {
			if sent == second {
				s.results <- Result{Kind: Partial, Text: "one"}
				s.results <- Result{Kind: Over}
			}
		}
		next.finish = func(s *script) { s.results <- Result{Kind: Over, Text: "two"} }
		r, dials := recognizer(Options{}, first, next)
		_, final, err := recognize(t, r, 2*second)
		if err != nil || final != "one two" || *dials != 2 {
			t.Errorf("final %q, error %v, %d dials", final, err, *dials)
		}
		if got := first.sent + next.sent; got < 2*second || got > 2*second+second/10 {
			t.Errorf("%d samples in both sessions, want those of 2 s", got)
		}
	})
}

func TestSilentServiceIsGivenUp(t *testing.T) {
	for name, tt := range map[string]struct{ partial, final string }{
		"nothing heard":  {"", ""},
		"a partial text": {"turn it", "turn it"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript()
				s.hear = func(s *script, sent int) {
					if sent == second && tt.partial != "" {
						s.results <- Result{Kind: Partial, Text: tt.partial}
					}
				}
				r, _ := recognizer(Options{}, s)
				begun := time.Now()
				_, final, err := recognize(t, r, second)
				if took := time.Since(begun); took < 5*time.Second || took > 7*time.Second {
					t.Errorf("it took %v", took)
				}
				if final != tt.final || (err == nil) != (tt.final != "") {
					t.Errorf("final %q, error %v", final, err)
				}
			})
		})
	}
}

func TestServiceThatRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		s.fails = transport.Refused(providers.NoCredit, "4402", "no money")
		s.hear = func(s *script, _ int) { s.results <- Result{Kind: Over} }
		r, _ := recognizer(Options{}, s)
		_, _, err := recognize(t, r, second)
		failed, ok := errors.AsType[*providers.Error](err)
		if !ok || failed.Kind != providers.NoCredit || failed.Provider != "x" {
			t.Errorf("got %v", err)
		}
	})
}

func TestPaceIsKept(t *testing.T) {
	for burst, want := range map[time.Duration]time.Duration{0: 2 * time.Second, 3 * time.Second: 500 * time.Millisecond} {
		paceIsKept(t, burst, want)
	}
}

func paceIsKept(t *testing.T, burst, want time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		s.finish = func(s *script) { s.results <- Result{Kind: Over, Text: "x"} }
		r, _ := recognizer(Options{Pace: 2, Burst: burst}, s)
		stream, err := r.Open(t.Context(), providers.ASRRequest{})
		if err != nil {
			t.Fatal(err)
		}
		_ = stream.Write(make([]int16, 4*second))
		_ = stream.CloseWrite()
		begun := time.Now()
		for _, err := range stream.Transcripts() {
			if err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(begun); took < want-100*time.Millisecond || took > want+100*time.Millisecond {
			t.Errorf("4 s of sound were sent in %v, want %v", took, want)
		}
	})
}

func TestEndOfContextEndsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		r, _ := recognizer(Options{}, s)
		ctx, cancel := context.WithCancel(t.Context())
		stream, err := r.Open(ctx, providers.ASRRequest{})
		if err != nil {
			t.Fatal(err)
		}
		_ = stream.Write(make([]int16, second))
		time.AfterFunc(time.Second, cancel)
		var got error
		for _, err := range stream.Transcripts() {
			got = err
		}
		if got != context.Canceled { //nolint:errorlint // unchanged
			t.Errorf("got %v", got)
		}
		synctest.Wait()
		select {
		case <-s.closed:
		default:
			t.Error("the session is open")
		}
	})
}

func TestDialIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for kind, want := range map[providers.Kind]int{providers.Unavailable: 2, providers.Unauthorized: 1} {
			dials := 0
			r := New(Options{Account: transport.Account{Name: "x"}, Dial: func(context.Context, providers.ASRRequest) (Session, error) {
				dials++
				return nil, transport.Refused(kind, "", "no")
			}})
			if _, _, err := recognize(t, r, second); err == nil || dials != want {
				t.Errorf("%s: error %v, %d dials, want %d", kind, err, dials, want)
			}
		}
	})
}

func TestTriesAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, test := range map[string]struct {
			tries  int
			skewed int // dials that find out that the clocks differ
			want   int
		}{"once": {1, 0, 1}, "three times": {3, 0, 3}, "once, with the time put right": {1, 1, 2}, "a clock that cannot be put right": {1, 9, 2}} {
			dials := 0
			r := New(Options{Account: transport.Account{Name: "x"}, Tries: test.tries, Dial: func(context.Context, providers.ASRRequest) (Session, error) {
				dials++
				refused := transport.Refused(providers.Unavailable, "", "no")
				refused.Skewed = dials <= test.skewed
				return nil, refused
			}})
			if _, _, err := recognize(t, r, second); err == nil || dials != test.want {
				t.Errorf("%s: error %v, %d dials, want %d", name, err, dials, test.want)
			}
		}
	})
}

func TestPatternsAreNoPhrases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		r := New(Options{Account: transport.Account{Name: "x"}, Dial: func(_ context.Context, req providers.ASRRequest) (Session, error) {
			got = req.Phrases
			return nil, transport.Refused(providers.BadRequest, "", "enough")
		}})
		s, err := r.Open(t.Context(), providers.ASRRequest{Phrases: []string{"lamp", "turn [the] (lamp|light) on", "light"}})
		if err != nil {
			t.Fatal(err)
		}
		_ = s.Write(make([]int16, second))
		for range s.Transcripts() {
		}
		if !slices.Equal(got, []string{"lamp", "light"}) {
			t.Errorf("got %q", got)
		}
	})
}

func TestTextWithoutEndIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		endless := newScript()
		endless.hear = func(s *script, _ int) {
			s.results <- Result{Kind: Append, Text: strings.Repeat("x", 10<<10)}
		}
		r, _ := recognizer(Options{}, endless)
		partials, _, err := recognize(t, r, 2*second)
		if !errors.Is(err, errEndless) || len(partials) > 6 {
			t.Errorf("error %v after %d texts", err, len(partials))
		}
	})
}
