package chain

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/providers"
	pt "xiaozhi/providers/providertest"
)

// down is an error of this kind.
func down(name string, kind providers.Kind) error {
	return &providers.Error{Provider: name, Op: "x", Kind: kind, Err: errors.New(name + " is down")}
}

// unavailable is the usual error.
func unavailable(name string) error { return down(name, providers.Unavailable) }

// think reads an answer: its text, who gave it, when each piece came, and the error.
func think(ctx context.Context, l providers.LLM) (text, provider string, at []time.Duration, last error) {
	start := time.Now()
	for d, err := range l.Generate(ctx, providers.LLMRequest{}) {
		if last = err; err != nil {
			continue
		}
		text += d.Text + d.Thought
		for _, call := range d.ToolCalls {
			text += "[" + call.Name + "]"
		}
		provider = d.Provider
		at = append(at, time.Since(start))
	}
	return text, provider, at, last
}

func newLLM(t *testing.T, o Options, members ...providers.LLM) *LLM {
	t.Helper()
	l, err := NewLLM(members, o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// hang never says anything.
var hang = pt.Step{{Hang: true}}

func TestLLMFailover(t *testing.T) {
	thought := pt.Part{Delta: providers.Delta{Thought: "hm "}}
	tests := []struct {
		name           string
		first, second  pt.Step
		text, provider string
		at             time.Duration // of the last piece
		fails          string
	}{
		{"the first answers", pt.Say("a"), pt.Say("b"), "a", "first", 0, ""},
		{"the first fails at once", pt.Fail(unavailable("first")), pt.Say("b"), "b", "second", 0, ""},
		{"the first says nothing", nil, pt.Say("b"), "b", "second", 0, ""},
		{"a bad request goes on too", pt.Fail(down("first", providers.BadRequest)), pt.Say("b"), "b", "second", 0, ""},
		{"a thought is no answer", pt.Step{thought, {Err: unavailable("first")}}, pt.Say("b"), "hm b", "second", 0, ""},
		{"an empty delta is no answer", pt.Step{{}, {Hang: true}}, pt.Say("b"), "b", "second", 1500 * time.Millisecond, ""},
		{"after the first text its error counts", pt.Step{{Delta: providers.Delta{Text: "a"}}, {Err: unavailable("first")}}, pt.Say("b"), "a", "first", 0, "first is down"},
		{"after the first call its error counts", append(pt.Call(providers.ToolCall{Name: "f"}), pt.Part{Err: unavailable("first")}), pt.Say("b"), "[f]", "first", 0, "first is down"},
		{"late", hang, pt.Say("b"), "b", "second", 1500 * time.Millisecond, ""},
		{"late, but before the second", pt.Say("a").After(2 * time.Second), pt.Say("b").After(time.Second), "a", "first", 2 * time.Second, ""},
		{"late, and after the second", pt.Say("a").After(3 * time.Second), pt.Say("b").After(time.Second), "b", "second", 2500 * time.Millisecond, ""},
		{"a thinker is not late", pt.Step{thought, {Delay: 5 * time.Second, Delta: providers.Delta{Text: "a"}}}, pt.Say("b"), "hm a", "first", 5 * time.Second, ""},
		{"late, and the second fails", pt.Say("a").After(3 * time.Second), pt.Fail(unavailable("second")), "a", "first", 3 * time.Second, ""},
		{"late, then it fails", pt.Step{{Delay: 2 * time.Second, Err: unavailable("first")}}, pt.Say("b").After(time.Second), "b", "second", 2500 * time.Millisecond, ""},
		{"both fail", pt.Fail(unavailable("first")), pt.Fail(unavailable("second")), "", "", 0, "first is down"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first := &pt.LLM{Label: "first", Script: []pt.Step{tt.first}}
				second := &pt.LLM{Label: "second", Script: []pt.Step{tt.second}}
				text, provider, at, err := think(t.Context(), newLLM(t, Options{}, first, second))
				if text != tt.text || provider != tt.provider || len(at) > 0 && at[len(at)-1] != tt.at {
					t.Errorf("%q by %q at %v, want %q by %q at %v", text, provider, at, tt.text, tt.provider, tt.at)
				}
				if (err != nil) != (tt.fails != "") || err != nil && !strings.Contains(err.Error(), tt.fails) {
					t.Errorf("error %v, want %q", err, tt.fails)
				}
				for _, l := range []*pt.LLM{first, second} {
					for _, a := range l.Asked() {
						if !a.Ended {
							t.Errorf("the request of %s is still open", l.Name())
						}
					}
				}
			})
		})
	}
}

func TestLoserIsClosedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := &pt.LLM{Label: "first", Script: []pt.Step{hang}}
		second := &pt.LLM{Label: "second", Script: []pt.Step{{{Delta: providers.Delta{Text: "b"}}, {Delay: time.Minute, Delta: providers.Delta{Text: "c"}}}}}
		for d, err := range newLLM(t, Options{}, first, second).Generate(t.Context(), providers.LLMRequest{}) {
			if err != nil {
				t.Fatal(err)
			}
			if d.Text == "b" {
				synctest.Wait()
				if a := first.Asked()[0]; !a.Cancelled || !a.Ended {
					t.Errorf("the loser is still asked: %+v", a)
				}
			}
		}
	})
}

func TestLastResort(t *testing.T) {
	rules := func() *pt.LLM {
		return &pt.LLM{Label: "rules", Last: true, Script: []pt.Step{pt.Say("sorry")}}
	}
	tests := []struct {
		name    string
		models  []pt.Step
		text    string
		at      time.Duration
		fallsTo bool
	}{
		{"not for lateness", []pt.Step{pt.Say("a").After(10 * time.Second)}, "a", 10 * time.Second, false},
		{"not while one is still asked", []pt.Step{pt.Say("a").After(10 * time.Second), pt.Fail(unavailable("m1"))}, "a", 10 * time.Second, false},
		{"when the only one has failed", []pt.Step{pt.Fail(unavailable("m0"))}, "sorry", 0, true},
		{"when all have failed, late or not", []pt.Step{{{Delay: 3 * time.Second, Err: unavailable("m0")}}, pt.Fail(unavailable("m1"))}, "sorry", 3 * time.Second, true},
		{"when there is no other", nil, "sorry", 0, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				members := []providers.LLM{rules()} // wherever it stands
				for i, step := range tt.models {
					members = append(members, &pt.LLM{Label: "m" + string(rune('0'+i)), Script: []pt.Step{step}})
				}
				text, provider, at, err := think(t.Context(), newLLM(t, Options{}, members...))
				if err != nil || text != tt.text || at[0] != tt.at || (provider == "rules") != tt.fallsTo {
					t.Errorf("%q by %s at %v, %v", text, provider, at, err)
				}
			})
		})
	}
	t.Run("named by the options", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := newLLM(t, Options{LastResort: []string{"plain"}}, &pt.LLM{Label: "plain", Script: []pt.Step{pt.Say("sorry")}}, &pt.LLM{Label: "m", Script: []pt.Step{pt.Say("a").After(time.Minute)}})
			if text, _, _, err := think(t.Context(), l); text != "a" || err != nil || l.Name() != "m" {
				t.Errorf("%q, %v, name %s", text, err, l.Name())
			}
		})
	})
}

func TestPatienceOfEachMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &pt.LLM{Label: "a", Script: []pt.Step{hang}}
		b := &pt.LLM{Label: "b", Script: []pt.Step{hang}}
		c := &pt.LLM{Label: "c", Script: []pt.Step{pt.Say("c")}}
		l := newLLM(t, Options{HedgeAfter: map[string]time.Duration{"a": 200 * time.Millisecond, "b": 300 * time.Millisecond}}, a, b, c)
		if text, _, at, err := think(t.Context(), l); text != "c" || err != nil || at[0] != 500*time.Millisecond {
			t.Errorf("%q at %v, %v", text, at, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		a := &pt.LLM{Label: "a", Script: []pt.Step{pt.Say("a").After(time.Hour)}}
		l := newLLM(t, Options{HedgeAfter: map[string]time.Duration{"a": -1}}, a, &pt.LLM{Script: []pt.Step{pt.Say("b")}})
		if text, _, _, err := think(t.Context(), l); text != "a" || err != nil {
			t.Errorf("%q, %v", text, err)
		}
	})
}

func TestLLMBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := &pt.LLM{Label: "first", Script: []pt.Step{
			pt.Fail(unavailable("first")), hang, pt.Fail(unavailable("first")), pt.Fail(unavailable("first")), pt.Say("a"),
		}}
		l := newLLM(t, Options{}, first, &pt.LLM{Label: "second", Script: []pt.Step{pt.Say("b")}})
		answer := func(want string, asked int) {
			t.Helper()
			if text, _, _, err := think(t.Context(), l); text != want || err != nil || len(first.Asked()) != asked {
				t.Errorf("%q, %v, the first was asked %d times; want %q and %d", text, err, len(first.Asked()), want, asked)
			}
		}
		for i := range 3 { // to be overtaken counts as a failure
			answer("b", i+1)
		}
		answer("b", 3)
		time.Sleep(30*time.Second - time.Second - 1)
		answer("b", 3)
		time.Sleep(time.Second + 1)
		answer("b", 4) // the probe fails
		answer("b", 4)
		time.Sleep(30 * time.Second)
		answer("a", 5) // the probe succeeds
		answer("a", 6)
	})
}

func TestBreakerIgnoresErrors(t *testing.T) {
	for name, step := range map[string]pt.Step{
		"bad requests":   pt.Fail(down("first", providers.BadRequest)),
		"context errors": pt.Fail(context.DeadlineExceeded),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first := &pt.LLM{Label: "first", Script: []pt.Step{step}}
				l := newLLM(t, Options{}, first, &pt.LLM{Label: "second", Script: []pt.Step{pt.Say("b")}})
				for range 5 {
					if text, _, _, err := think(t.Context(), l); text != "b" || err != nil {
						t.Errorf("%q, %v", text, err)
					}
				}
				if n := len(first.Asked()); n != 5 {
					t.Errorf("the first was asked %d times", n)
				}
			})
		})
	}
	t.Run("hang-ups", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			first := &pt.LLM{Label: "first", Script: []pt.Step{hang, hang, hang, hang, pt.Say("a")}}
			l := newLLM(t, Options{}, first, &pt.LLM{Label: "second", Script: []pt.Step{pt.Say("b")}})
			for range 4 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				if _, _, _, err := think(ctx, l); err != context.DeadlineExceeded { //nolint:errorlint // unchanged
					t.Errorf("got %v", err)
				}
				cancel()
			}
			if text, _, _, err := think(t.Context(), l); text != "a" || err != nil {
				t.Errorf("%q, %v", text, err)
			}
		})
	})
}

func TestAllLeftOutTriesTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := func(name string) *pt.LLM {
			return &pt.LLM{Label: name, Script: []pt.Step{pt.Fail(unavailable(name))}}
		}
		first, second := bad("first"), bad("second")
		l := newLLM(t, Options{}, first, second)
		for range 5 {
			_, _, _, err := think(t.Context(), l)
			pt.WantError(t, err, "first", providers.Unavailable)
			for _, name := range []string{"first", "second"} {
				if !strings.Contains(err.Error(), name) {
					t.Errorf("the error does not name %s: %v", name, err)
				}
			}
			if strings.Index(err.Error(), "first") > strings.Index(err.Error(), "second") {
				t.Errorf("not in order: %v", err)
			}
		}
		if a, b := len(first.Asked()), len(second.Asked()); a != 3 || b != 5 {
			t.Errorf("asked %d and %d times, want 3 and 5", a, b)
		}
	})
}

func TestTakeOverIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		o := Options{Log: slog.New(slog.NewTextHandler(&log, nil))}
		l := newLLM(t, o, &pt.LLM{Label: "first", Script: []pt.Step{pt.Fail(unavailable("first"))}}, &pt.LLM{Label: "second", Script: []pt.Step{pt.Say("b")}})
		if _, _, _, err := think(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		line := log.String()
		for _, part := range []string{"level=WARN", "provider=second", "from=first", "op=think", "first is down"} {
			if !strings.Contains(line, part) {
				t.Errorf("the log lacks %s: %s", part, line)
			}
		}
		if n := strings.Count(line, "\n"); n != 1 {
			t.Errorf("%d lines", n)
		}
	})
}

func TestChainLeavesNothingRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // a goroutine left would keep the bubble from ending
		first := &pt.LLM{Label: "first", Script: []pt.Step{hang, pt.Say("a", "b", "c")}}
		second := &pt.LLM{Label: "second", Script: []pt.Step{hang}}
		l := newLLM(t, Options{}, first, second)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		start := time.Now()
		if _, _, _, err := think(ctx, l); err != context.DeadlineExceeded || time.Since(start) != 5*time.Second { //nolint:errorlint // unchanged
			t.Errorf("%v after %v", err, time.Since(start))
		}
		for range l.Generate(t.Context(), providers.LLMRequest{}) {
			break
		}
		for _, a := range slices.Concat(first.Asked(), second.Asked()) {
			if !a.Ended {
				t.Errorf("still asked: %+v", a)
			}
		}
	})
}

// panics is a model that breaks.
type panics struct{ pt.LLM }

func (*panics) Generate(context.Context, providers.LLMRequest) iter.Seq2[providers.Delta, error] {
	return func(func(providers.Delta, error) bool) { panic("broken") }
}

func TestMemberPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text, _, _, err := think(t.Context(), newLLM(t, Options{}, &panics{}, &pt.LLM{Script: []pt.Step{pt.Say("b")}}))
		if text != "b" || err != nil {
			t.Errorf("%q, %v", text, err)
		}
	})
}

func TestChainsPassTheSuites(t *testing.T) {
	pt.TestLLM(t, func(t *testing.T) providers.LLM {
		return newLLM(t, Options{}, &pt.LLM{Script: []pt.Step{pt.Fail(unavailable("x"))}}, &pt.LLM{Script: []pt.Step{pt.Say("a", "b").After(time.Millisecond)}})
	}, providers.LLMRequest{})
	pt.TestTTS(t, func(t *testing.T) providers.TTS {
		return newTTS(t, &pt.TTS{Script: []pt.Speech{{Err: unavailable("x"), Length: 1}}}, &pt.TTS{})
	}, providers.TTSRequest{Text: "hello"})
	pt.TestASR(t, func(t *testing.T) providers.ASR {
		return newASR(t, &pt.ASR{Label: "same", Script: []pt.Hearing{{Err: unavailable("x")}}}, &pt.ASR{Label: "same"})
	}, make([]int16, 16000))
}

func TestNoMembers(t *testing.T) {
	for name, build := range map[string]func() error{
		"asr": func() error { _, err := NewASR(nil, Options{}); return err },
		"llm": func() error { _, err := NewLLM(nil, Options{}); return err },
		"tts": func() error { _, err := NewTTS(nil, Options{}); return err },
	} {
		if build() == nil {
			t.Errorf("%s: a chain without members was made", name)
		}
	}
}
