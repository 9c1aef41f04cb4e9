package chain

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/internal/timeline"
	"xiaozhi/providers"
	pt "xiaozhi/providers/providertest"
)

func newDuplex(t *testing.T, o Options, members ...providers.Duplex) *Duplex {
	t.Helper()
	d, err := NewDuplex(members, o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// openTalk opens a talk that ends with the test.
func openTalk(t *testing.T, d providers.Duplex) providers.DuplexSession {
	t.Helper()
	s, err := d.Open(t.Context(), providers.DuplexRequest{History: []providers.Message{{Role: providers.RoleUser, Content: "before"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// talked is what came of an answer.
type talked struct {
	heard, text string
	long, took  time.Duration
	calls       int
	err         error
}

// say speaks a second, and takes the answer; after leave of sound it leaves, unless that is 0.
func say(ctx context.Context, t *testing.T, s providers.DuplexSession, leave time.Duration) talked {
	t.Helper()
	if err := s.Write(make([]int16, micRate)); err != nil {
		t.Fatal(err)
	}
	return takeAnswer(ctx, s, nil, leave)
}

func takeAnswer(ctx context.Context, s providers.DuplexSession, results []providers.ToolResult, leave time.Duration) (out talked) {
	begun := time.Now()
	for d, err := range s.Respond(ctx, results) {
		out.err = err
		if d.Heard != "" {
			out.heard = d.Heard
		}
		out.text, out.long, out.calls = out.text+d.Text, out.long+lengthOf(d.Sound), out.calls+len(d.ToolCalls)
		if leave > 0 && out.long >= leave {
			break
		}
	}
	out.took = time.Since(begun)
	return out
}

// messages are the messages of a request, in short.
func messages(r providers.DuplexRequest) string {
	var out []string
	for _, m := range r.History {
		out = append(out, string(m.Role)+":"+m.Content)
	}
	return strings.Join(out, " ")
}

func TestDuplexFailover(t *testing.T) {
	good := pt.Reply("hello", time.Second, "hi ", "there")
	text := pt.DuplexPart{Delta: providers.DuplexDelta{Heard: "hullo", Text: "void"}}
	tests := []struct {
		name  string
		first []pt.DuplexPart
		want  talked
		fails string
		did   string // by the second
	}{
		{"the first answers", pt.Reply("hello", time.Second, "one"), talked{heard: "hello", text: "one", long: time.Second}, "", ""},
		{"refused", []pt.DuplexPart{{Err: unavailable("first")}}, talked{heard: "hello", text: "hi there", long: 2 * time.Second}, "", "open, respond 1s"},
		{"text alone is no answer", []pt.DuplexPart{text, {Err: unavailable("first")}}, talked{heard: "hello", text: "hi there", long: 2 * time.Second}, "", "open, respond 1s"},
		{"it ends with nothing", []pt.DuplexPart{text}, talked{heard: "hello", text: "hi there", long: 2 * time.Second}, "", "open, respond 1s"},
		{"silent", []pt.DuplexPart{{Hang: true}}, talked{heard: "hello", text: "hi there", long: 2 * time.Second, took: answerWithin}, "", "open, respond 1s"},
		{"it breaks after the first sound", append(pt.Reply("hello", time.Second, "one"), pt.DuplexPart{Err: unavailable("first")}), talked{heard: "hello", text: "one", long: time.Second}, "first is down", ""},
		{"slow after the first sound", append(pt.Reply("hello", time.Second, "one"), pt.DuplexPart{Delay: 6 * time.Second}), talked{heard: "hello", text: "one", long: time.Second, took: 6 * time.Second}, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first, second := &pt.Duplex{Label: "first", Script: [][]pt.DuplexPart{tt.first}}, &pt.Duplex{Label: "second", Script: [][]pt.DuplexPart{good}}
				s := openTalk(t, newDuplex(t, Options{}, first, second))
				got := say(t.Context(), t, s, 0)
				if (got.err != nil) != (tt.fails != "") || got.err != nil && !strings.Contains(got.err.Error(), tt.fails) {
					t.Errorf("error %v, want %q", got.err, tt.fails)
				}
				got.err = nil
				if got != tt.want || second.Did() != tt.did {
					t.Errorf("got %+v, want %+v; the second did %q", got, tt.want, second.Did())
				}
				if tt.did != "" && messages(second.Requests()[0]) != "user:before" {
					t.Errorf("it was told %q", messages(second.Requests()[0]))
				}
				if _ = s.Close(); first.Sessions()+second.Sessions() > 0 {
					t.Error("a session is left open")
				}
			})
		})
	}
}

// TestDuplexRests: one failure leaves a member out for a while; the next is told what was
// said, and so is the first when it is back.
func TestDuplexRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := &pt.Duplex{Label: "first", Script: [][]pt.DuplexPart{
			pt.Reply("one", time.Second, "a"), append(pt.Reply("two", time.Second, "b"), pt.DuplexPart{Err: unavailable("first")}), pt.Reply("four", time.Second, "d"),
		}}
		second := &pt.Duplex{Label: "second", Script: [][]pt.DuplexPart{pt.Reply("three", time.Second, "c")}}
		d := newDuplex(t, Options{}, first, second)
		s := openTalk(t, d)
		for _, want := range []string{"a", "b", "c"} {
			if got := say(t.Context(), t, s, 0); got.text != want || (got.err != nil) != (want == "b") {
				t.Errorf("got %+v, want %s", got, want)
			}
		}
		if got := messages(second.Requests()[0]); got != "user:before user:one assistant:a user:two assistant:b" {
			t.Errorf("the second was told %q", got)
		}
		time.Sleep(rest)
		if got := say(t.Context(), t, s, 0); got.text != "d" || got.err != nil {
			t.Errorf("got %+v", got)
		}
		if got := messages(first.Requests()[1]); !strings.HasSuffix(got, "user:two assistant:b user:three assistant:c") {
			t.Errorf("the first was told %q", got)
		}
		if first.Did() != "open, respond 1s, respond 1s, close, open, respond 1s" || second.Did() != "open, respond 1s, close" || d.Rests() {
			t.Errorf("the first did %q, the second %q", first.Did(), second.Did())
		}
	})
}

// TestDuplexAllFail: the error names all, and the last is tried even while all rest.
func TestDuplexAllFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := &pt.Duplex{Label: "first", Fails: unavailable("first")}, &pt.Duplex{Label: "second", Script: [][]pt.DuplexPart{{{Err: unavailable("second")}}, pt.Reply("x", time.Second, "a")}}
		d := newDuplex(t, Options{}, first, second)
		s := openTalk(t, d)
		got := say(t.Context(), t, s, 0)
		if got.err == nil || !strings.Contains(got.err.Error(), "first is down") || !strings.Contains(got.err.Error(), "second is down") || !d.Rests() {
			t.Errorf("got %v, rests %v", got.err, d.Rests())
		}
		if got := say(t.Context(), t, s, 0); got.text != "a" || got.err != nil || d.Rests() {
			t.Errorf("got %+v, rests %v", got, d.Rests())
		}
	})
}

// TestDuplexTools: results go to the member that called, and to no other.
func TestDuplexTools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		call := pt.DuplexPart{Delta: providers.DuplexDelta{Heard: "lamp on", ToolCalls: []providers.ToolCall{{ID: "1", Name: "lamp"}}}}
		results := []providers.ToolResult{{ID: "1", Name: "lamp", Output: "done"}}
		first := &pt.Duplex{Label: "first", Script: [][]pt.DuplexPart{{call}, pt.Reply("", time.Second, "it is on"), {call}, {{Err: unavailable("first")}}}}
		s := openTalk(t, newDuplex(t, Options{}, first, &pt.Duplex{Label: "second"}))
		if got := say(t.Context(), t, s, 0); got.calls != 1 || got.err != nil {
			t.Errorf("got %+v", got)
		}
		if got := takeAnswer(t.Context(), s, results, 0); got.text != "it is on" || got.err != nil {
			t.Errorf("got %+v", got)
		}
		_ = say(t.Context(), t, s, 0)
		if got := takeAnswer(t.Context(), s, results, 0); got.err == nil {
			t.Error("an answer in spite of the failure")
		}
		if got := takeAnswer(t.Context(), s, results, 0); !errors.Is(got.err, errNoMember) {
			t.Errorf("got %v", got.err)
		}
		if got := first.Did(); got != "open, respond 1s, respond lamp=done, respond 1s, respond lamp=done, close" {
			t.Errorf("it did %q", got)
		}
	})
}

// TestDuplexCut: what was heard of a cut answer goes to the member, and is what the next one is told.
func TestDuplexCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := &pt.Duplex{Label: "first", Script: [][]pt.DuplexPart{pt.Reply("one", 2*time.Second, "abcdefghij"), {{Err: unavailable("first")}}}}
		second := &pt.Duplex{Label: "second", Script: [][]pt.DuplexPart{pt.Reply("two", time.Second, "b")}}
		d := newDuplex(t, Options{}, first, second)
		s := openTalk(t, d)
		if got := say(t.Context(), t, s, 2*time.Second); got.err != nil {
			t.Error(got.err)
		}
		if err := s.Truncate(time.Second); err != nil {
			t.Error(err)
		}
		_ = s.Write(make([]int16, micRate/2))
		_ = s.Discard()
		_ = s.Discard() // nothing was said
		if got := say(t.Context(), t, s, 0); got.text != "b" || got.err != nil {
			t.Errorf("got %+v", got)
		}
		if got := messages(second.Requests()[0]); got != "user:before user:one assistant:abcde" {
			t.Errorf("the second was told %q", got)
		}
		if got := first.Did(); got != "open, respond 1s, truncate 1s, discard 500ms, respond 1s, close" {
			t.Errorf("it did %q", got)
		}
	})
}

// TestDuplexWritesWhileItAnswers: what is said over an answer belongs to the next utterance.
func TestDuplexWritesWhileItAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := &pt.Duplex{Label: "first", Script: [][]pt.DuplexPart{pt.Reply("one", time.Second, "a")}}
		s := openTalk(t, newDuplex(t, Options{}, first))
		_ = s.Write(make([]int16, micRate))
		for _, err := range s.Respond(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			_ = s.Write(make([]int16, micRate/20))
			break
		}
		_ = say(t.Context(), t, s, 0)
		if got := first.Did(); got != "open, respond 1s, respond 1.05s" {
			t.Errorf("it did %q", got)
		}
	})
}

func TestDuplexEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, end := range map[string]func(cancel func(), s providers.DuplexSession){
			"its context ends": func(cancel func(), _ providers.DuplexSession) { cancel() },
			"it is closed":     func(_ func(), s providers.DuplexSession) { _ = s.Close() },
		} {
			first := &pt.Duplex{Label: "first", Script: [][]pt.DuplexPart{{{Hang: true}}}}
			d := newDuplex(t, Options{}, first, &pt.Duplex{Label: "second"})
			ctx, cancel := context.WithCancel(t.Context())
			s, err := d.Open(ctx, providers.DuplexRequest{})
			if err != nil {
				t.Fatal(err)
			}
			_ = s.Write(make([]int16, micRate))
			time.AfterFunc(time.Second, func() { end(cancel, s) })
			got := takeAnswer(t.Context(), s, nil, 0)
			if got.err == nil || got.took != time.Second || d.breakers[0].fails > 0 {
				t.Errorf("%s: %+v, %d failures", name, got, d.breakers[0].fails)
			}
			if name == "its context ends" && got.err != context.Canceled { //nolint:errorlint // unchanged
				t.Errorf("got %v", got.err)
			}
			if s.Write(make([]int16, 1)) == nil {
				t.Errorf("%s: it takes sound", name)
			}
			_ = s.Close()
			cancel()
		}
	})
	synctest.Test(t, func(t *testing.T) { // the caller's own context
		first := &pt.Duplex{Label: "first", Script: [][]pt.DuplexPart{{{Hang: true}}}}
		s := openTalk(t, newDuplex(t, Options{}, first, &pt.Duplex{Label: "second"}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if got := say(ctx, t, s, 0); got.err != context.DeadlineExceeded { //nolint:errorlint // unchanged
			t.Errorf("got %v", got.err)
		}
	})
}

// TestAttemptsOfADuplex: each member that was asked is noted with what came of it.
func TestAttemptsOfADuplex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := pt.Reply("x", time.Second, "a")
		slow[0].Delay = 300 * time.Millisecond
		d := newDuplex(t, Options{HedgeAfter: map[string]time.Duration{"silent": time.Second}},
			&pt.Duplex{Label: "silent", Script: [][]pt.DuplexPart{{{Hang: true}}}}, &pt.Duplex{Label: "good", Script: [][]pt.DuplexPart{slow}})
		var noted []timeline.Attempt
		ctx := timeline.WithAttempts(t.Context(), func(a timeline.Attempt) { noted = append(noted, a) })
		_ = say(ctx, t, openTalk(t, d), 0)
		if len(noted) != 2 || noted[0].Outcome != timeline.Failed || noted[0].Took != time.Second || noted[0].Fault == "" || noted[0].Sound != time.Second ||
			noted[1].Outcome != timeline.Answered || noted[1].First != 300*time.Millisecond || noted[1].Op != "converse" || noted[1].Provider != "good" {
			t.Errorf("%+v", noted)
		}
	})
}
