package synthesis

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/sound"
	"xiaozhi/providers/transport"
)

// line is a connection that speaks as it is told.
type line struct {
	pieces  []time.Duration // after which 10 ms of sound come, each
	at      int
	said    int
	dead    error // of the next sentence
	endless bool
	closed  atomic.Bool
	good    bool // after a cancel
}

func (l *line) Say(providers.TTSRequest) error {
	l.at = 0
	l.said++
	return nil
}

func (l *line) Receive(within time.Duration) ([]byte, error) {
	switch {
	case l.dead != nil:
		return nil, l.dead
	case l.endless:
		return make([]byte, 480), nil
	case l.at == len(l.pieces):
		return nil, io.EOF
	}
	d := l.pieces[l.at]
	if d > within {
		time.Sleep(within)
		return nil, transport.ErrStalled
	}
	time.Sleep(d)
	l.at++
	return make([]byte, 480), nil
}

func (l *line) Cancel() bool { return l.good }

func (l *line) Bind(ctx context.Context) func() bool { return func() bool { return ctx.Err() == nil } }

func (l *line) Close() { l.closed.Store(true) }

// voice makes one whose connections are these, one after another.
func voice(o Options, lines ...*line) (*Voice, *int) {
	dials := 0
	o.Account.Name = "x"
	o.Dial = func(context.Context) (Conn, error) {
		dials++
		return lines[dials-1], nil
	}
	return New(o), &dials
}

// say speaks a sentence and gives its length and error.
func say(ctx context.Context, v *Voice) (d time.Duration, err error) {
	for s, e := range v.Synthesize(ctx, providers.TTSRequest{Text: "hello"}) {
		d += time.Duration(len(s.PCM)) * time.Second / time.Duration(max(s.Rate, 1))
		err = e
	}
	return d, err
}

func pieces(n int) []time.Duration { return make([]time.Duration, n) }

func TestConnectionServesManySentences(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &line{pieces: pieces(10)}
		v, dials := voice(Options{Keep: time.Minute}, l)
		for range 3 {
			if d, err := say(t.Context(), v); err != nil || d != 100*time.Millisecond {
				t.Errorf("%v of sound, error %v", d, err)
			}
		}
		if *dials != 1 || l.said != 3 || l.closed.Load() {
			t.Errorf("%d dials, %d sentences, closed %v", *dials, l.said, l.closed.Load())
		}
		time.Sleep(2 * time.Minute)
		if !l.closed.Load() {
			t.Error("an idle connection is kept for ever")
		}
	})
}

func TestRetiredVoiceKeepsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, next := &line{pieces: pieces(1)}, &line{pieces: pieces(1)}
		v, _ := voice(Options{Keep: time.Hour}, first, next)
		if _, err := say(t.Context(), v); err != nil || first.closed.Load() {
			t.Fatalf("error %v, closed %v", err, first.closed.Load())
		}
		if err := v.Close(); err != nil || !first.closed.Load() {
			t.Errorf("error %v, closed %v", err, first.closed.Load())
		}
		if d, err := say(t.Context(), v); err != nil || d == 0 || !next.closed.Load() {
			t.Errorf("%v of sound, error %v, closed %v", d, err, next.closed.Load())
		}
	}) // it waits for every timer
}

// slower is a line whose sound comes at another rate than was asked for.
type slower struct{ *line }

func (slower) Rate() int { return 12000 }

func TestRateThatTheServiceSays(t *testing.T) {
	v := New(Options{Rate: 24000, Dial: func(context.Context) (Conn, error) { return slower{&line{pieces: pieces(1)}}, nil }})
	if d, err := say(t.Context(), v); d != 20*time.Millisecond || err != nil {
		t.Errorf("%v of sound, error %v", d, err)
	}
}

func TestDeadKeptConnectionIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, next := &line{pieces: pieces(1)}, &line{pieces: pieces(1)}
		v, dials := voice(Options{Keep: time.Hour}, first, next)
		if _, err := say(t.Context(), v); err != nil {
			t.Fatal(err)
		}
		first.dead = errors.New("broken pipe")
		if d, err := say(t.Context(), v); err != nil || d == 0 || *dials != 2 || !first.closed.Load() {
			t.Errorf("%v of sound, error %v, %d dials", d, err, *dials)
		}
		next.dead = transport.Refused(providers.NoCredit, "1", "no money")
		if _, err := say(t.Context(), v); err == nil || *dials != 2 {
			t.Errorf("a refusal was tried again: error %v, %d dials", err, *dials)
		}
	})
}

func TestSingleUseConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &line{pieces: pieces(1)}, &line{pieces: pieces(1)}
		v, dials := voice(Options{}, a, b)
		for range 2 {
			if _, err := say(t.Context(), v); err != nil {
				t.Error(err)
			}
		}
		if *dials != 2 || !a.closed.Load() || !b.closed.Load() {
			t.Errorf("%d dials, closed %v %v", *dials, a.closed.Load(), b.closed.Load())
		}
	})
}

func TestVoiceFailures(t *testing.T) {
	for name, tt := range map[string]struct {
		l    *line
		want error
	}{
		"silence at first":     {&line{pieces: []time.Duration{time.Hour}}, transport.ErrStalled},
		"silence in the midst": {&line{pieces: []time.Duration{0, time.Hour}}, transport.ErrStalled},
		"no sound at all":      {&line{}, errNoSound},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v, _ := voice(Options{First: time.Second, Next: time.Second}, tt.l)
				_, err := say(t.Context(), v)
				if failed, ok := errors.AsType[*providers.Error](err); !ok || !errors.Is(failed.Err, tt.want) || !tt.l.closed.Load() {
					t.Errorf("got %v, want %v", err, tt.want)
				}
			})
		})
	}
}

func TestLeftLoopCancelsTheSentence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, good := range []bool{true, false} {
			l := &line{endless: true, good: good}
			v, _ := voice(Options{Keep: time.Second}, l)
			for range v.Synthesize(t.Context(), providers.TTSRequest{Text: "hello"}) {
				break
			}
			if l.closed.Load() == good {
				t.Errorf("good for another sentence %v, closed %v", good, l.closed.Load())
			}
		}
	})
}

func TestNothingToSayAsksNobody(t *testing.T) {
	v, dials := voice(Options{})
	for _, words := range []string{"", " ", "…!", "。"} {
		for range v.Synthesize(t.Context(), providers.TTSRequest{Text: words}) {
			t.Errorf("%q has sound", words)
		}
	}
	if *dials != 0 {
		t.Errorf("%d dials", *dials)
	}
}

func TestTriesAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken, refused := errors.New("broken pipe"), transport.Refused(providers.NoCredit, "1", "no money")
		for name, test := range map[string]struct {
			tries int
			first *line
			dials int
			fails bool
		}{
			"once":                    {0, &line{dead: broken}, 1, true},
			"twice":                   {2, &line{dead: broken}, 2, false},
			"not after a refusal":     {2, &line{dead: refused}, 1, true},
			"not after a time limit":  {2, &line{pieces: []time.Duration{time.Hour}}, 1, true},
			"not after the beginning": {2, &line{pieces: []time.Duration{0, time.Hour}}, 1, true},
		} {
			v, dials := voice(Options{Tries: test.tries, First: time.Second, Next: time.Second}, test.first, &line{pieces: pieces(1)})
			if _, err := say(t.Context(), v); *dials != test.dials || (err != nil) != test.fails {
				t.Errorf("%s: %d dials, error %v", name, *dials, err)
			}
		}
	})
}

// lastWords is a connection that ends with its last sound.
type lastWords struct {
	Conn
	asked int
}

func (l *lastWords) Receive(time.Duration) ([]byte, error) {
	l.asked++
	return make([]byte, 480), io.EOF
}

func TestSoundMayComeWithTheEnd(t *testing.T) {
	l := &lastWords{}
	b, err := io.ReadAll(&reader{conn: l, first: time.Second, next: time.Second})
	if err != nil || len(b) != 480 || l.asked != 1 {
		t.Errorf("%d bytes, %v, asked %d times", len(b), err, l.asked)
	}
}

func TestLongTextsAreSpokenInParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &line{pieces: pieces(3), good: true}
		v, dials := voice(Options{Keep: time.Minute, Text: sound.Longest{Most: 4}}, l)
		if d, err := say(t.Context(), v); d != 60*time.Millisecond || err != nil || *dials != 1 || l.said != 2 {
			t.Errorf("%v of sound of %d parts on %d connections, error %v", d, l.said, *dials, err)
		}
		time.Sleep(2 * time.Minute)
	})
}

// A new connection of which the service knows nothing is replaced, but once only.
func TestForgottenConnectionIsReplacedOnce(t *testing.T) {
	forgotten := fmt.Errorf("%w: %w", ErrForgotten, transport.Refused(providers.Unavailable, "close 1000", "non-exist session"))
	v, dials := voice(Options{}, &line{dead: forgotten}, &line{pieces: pieces(1)})
	if d, err := say(t.Context(), v); d != 10*time.Millisecond || err != nil || *dials != 2 {
		t.Errorf("%v of sound, error %v after %d connections", d, err, *dials)
	}
	v, dials = voice(Options{}, &line{dead: forgotten}, &line{dead: forgotten})
	if _, err := say(t.Context(), v); err == nil || *dials != 2 || !strings.Contains(err.Error(), "non-exist session") {
		t.Errorf("error %v after %d connections", err, *dials)
	}
}
