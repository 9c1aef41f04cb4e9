package providertest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/servicetest"
	"xiaozhi/providers"
)

// TestDuplexContract holds a client of a service that hears and speaks by itself against
// its fake, through every fault that the fake knows.
func TestDuplexContract(t *testing.T, c Case) {
	t.Helper()
	c.each(t, func(tr *trial) {
		s := tr.talk(tr.Context())
		defer tr.end(s)
		for range map[bool]int{false: 1, true: 3}[tr.f == servicetest.Stale || tr.f == servicetest.None] {
			tr.judgeTalk(tr.converse(tr.Context(), s, nil, nil), c.words())
		}
		if tr.f == servicetest.None && tr.fake.Conns() > 1 {
			tr.Errorf("%d connections for three answers of one talk", tr.fake.Conns())
		}
	})
	t.Run("tools", func(t *testing.T) { c.try(t, servicetest.None, (*trial).talkTools) })
	t.Run("cut", func(t *testing.T) { c.try(t, servicetest.None, (*trial).talkCut) })
	t.Run("given up", func(t *testing.T) { c.try(t, servicetest.None, (*trial).talkGivenUp) })
	t.Run("silence", func(t *testing.T) { // a question without words has an answer or an error, in time
		c.try(t, servicetest.None, func(tr *trial) {
			s := tr.talk(tr.Context())
			defer tr.end(s)
			for d, err := range s.Respond(tr.Context(), nil) {
				if err == nil {
					tr.Errorf("nothing was said, and is answered with %+v", d)
				}
			}
		})
	})
	for name, when := range map[string]int{"while nothing comes": 1, "at the first delta": 2, "at the first sound": 3, "before": 4} {
		t.Run("cancelled "+name, func(t *testing.T) {
			f := servicetest.None
			if when == 1 {
				f = servicetest.Silent
			}
			c.try(t, f, func(tr *trial) { tr.cancelTalk(when) })
		})
	}
	t.Run("closed in the middle", func(t *testing.T) {
		c.try(t, servicetest.None, func(tr *trial) {
			s := tr.talk(tr.Context())
			begun := time.Now()
			got := tr.converse(tr.Context(), s, nil, func(providers.DuplexDelta) bool {
				begun = time.Now()
				tr.end(s)
				return false
			})
			if tr.errs = append(tr.errs, got.err); got.err == nil || time.Since(begun) > prompt {
				tr.Errorf("error %v after %v", got.err, time.Since(begun))
			}
		})
	})
	t.Run("many at once", func(t *testing.T) {
		c.try(t, servicetest.None, func(tr *trial) {
			done := make(chan spoken)
			p := tr.duplex()
			for range 3 {
				go func() {
					s, err := p.Open(tr.Context(), providers.DuplexRequest{Language: "zh"})
					if err != nil {
						done <- spoken{err: err}
						return
					}
					defer s.Close()
					done <- tr.converse(tr.Context(), s, nil, nil)
				}()
			}
			for range 3 {
				tr.judgeTalk(<-done, c.words())
			}
		})
	})
}

// spoken sums up an answer.
type spoken struct {
	heard, text string
	long        time.Duration
	pieces      int
	calls       []providers.ToolCall
	err         error
}

func (tr *trial) duplex() providers.Duplex {
	tr.Helper()
	p, err := tr.c.Kind.Realtime(tr.section())
	if err != nil {
		tr.Fatal(err)
	}
	return p
}

// talk opens a session with some history.
func (tr *trial) talk(ctx context.Context, tools ...string) providers.DuplexSession {
	tr.Helper()
	req := providers.DuplexRequest{
		Instructions: "Answer in one sentence.", Language: "zh-CN",
		History: []providers.Message{{Role: providers.RoleUser, Content: "good morning"}, {Role: providers.RoleAssistant, Content: "good morning to you"}},
	}
	for _, name := range tools {
		req.Tools = append(req.Tools, providers.ToolSpec{Name: name, Description: "does it", Parameters: []byte(`{"type":"object","properties":{"state":{"type":"string","enum":["on","off"]}},"required":["state"]}`)})
	}
	s, err := tr.duplex().Open(ctx, req)
	if err != nil {
		tr.Fatal(err)
	}
	if tr.fake.Conns() > 0 {
		tr.Error("it has dialled before there was sound")
	}
	return s
}

// end closes a session, which takes no time.
func (tr *trial) end(s providers.DuplexSession) {
	begun := time.Now()
	if err := s.Close(); err != nil || time.Since(begun) > prompt {
		tr.Errorf("close: %v after %v", err, time.Since(begun))
	}
}

// converse speaks, unless it brings results, and takes the answer, until leave says that the
// loop is to be left.
func (tr *trial) converse(ctx context.Context, s providers.DuplexSession, results []providers.ToolResult, leave func(providers.DuplexDelta) bool) (got spoken) {
	if results == nil {
		pcm := speech(1200 * time.Millisecond)
		for n := 0; n < len(pcm); n += 960 {
			if err := s.Write(pcm[n:min(n+960, len(pcm))]); err != nil {
				return spoken{err: err}
			}
		}
	}
	for d, err := range s.Respond(ctx, results) {
		if got.err != nil {
			tr.Error("something comes after an error")
		}
		if err != nil {
			got.err = err
			continue
		}
		if d.Heard != "" {
			got.heard = d.Heard
		}
		got.text += d.Text
		got.calls = append(got.calls, d.ToolCalls...)
		if n := len(d.Sound.PCM); n > 0 {
			got.pieces++
			got.long += time.Duration(n) * time.Second / time.Duration(d.Sound.Rate)
		}
		if leave != nil && leave(d) {
			break
		}
	}
	return got
}

// judgeTalk looks at what came of a question under a fault.
func (tr *trial) judgeTalk(got spoken, words string) {
	tr.Helper()
	want := servicetest.Answer(words)
	long := time.Duration(len([]rune(want))) * servicetest.PerRune
	switch _, fails := usual(tr.f); {
	case fails:
		tr.wantKind(got.err)
	case tr.f == servicetest.Late:
		tr.f = servicetest.Silent // as if it had said nothing: of the same kind
		tr.wantKind(got.err)
	case tr.f == servicetest.Ends && got.err != nil:
		tr.f = servicetest.Closed
		tr.wantKind(got.err)
	case got.err != nil:
		tr.errs = append(tr.errs, got.err)
		tr.Error(got.err)
	case !same(got.heard, words) || !same(got.text, want):
		tr.Errorf("heard %q and answered %q, want %q and %q", got.heard, got.text, words, want)
	case got.pieces < 2 || got.long < long-5*time.Millisecond || got.long > long+5*time.Millisecond:
		tr.Errorf("%v of sound in %d pieces, want %v", got.long, got.pieces, long)
	}
}

// talkTools has tools called, two of them in one answer, and their results answered.
func (tr *trial) talkTools() {
	if providers.CapabilitiesOf(tr.duplex()).OwnTools {
		tr.Skip("it takes no tools of ours")
	}
	s := tr.talk(tr.Context(), "lamp", "and", "nobody")
	defer tr.end(s)
	for range 2 {
		got := tr.converse(tr.Context(), s, nil, nil)
		if got.err != nil {
			tr.Error(got.err)
			return
		}
		var names []string
		var results []providers.ToolResult
		for _, call := range got.calls {
			names = append(names, call.Name)
			results = append(results, providers.ToolResult{ID: call.ID, Name: call.Name, Output: "it is done"})
			if !strings.Contains(call.Arguments, `"on"`) {
				tr.Errorf("%s is called with %s", call.Name, call.Arguments)
			}
		}
		slices.Sort(names)
		if !slices.Equal(names, []string{"and", "lamp"}) || got.heard == "" {
			tr.Errorf("tools %q were called after %q", names, got.heard)
			return
		}
		got = tr.converse(tr.Context(), s, results, nil)
		if got.err != nil || !strings.Contains(got.text, "it is done") || got.pieces == 0 {
			tr.Errorf("after the results: %+v", got)
		}
	}
}

// talkCut cuts an answer at its first sound, and asks again.
func (tr *trial) talkCut() {
	s := tr.talk(tr.Context())
	defer tr.end(s)
	got := tr.converse(tr.Context(), s, nil, func(d providers.DuplexDelta) bool { return len(d.Sound.PCM) > 0 })
	if got.err != nil || got.pieces != 1 {
		tr.Errorf("got %+v", got)
	}
	if err := s.Truncate(20 * time.Millisecond); err != nil {
		tr.Error(err)
	}
	tr.judgeTalk(tr.converse(tr.Context(), s, nil, nil), tr.c.words())
	told := false
	for _, r := range tr.fake.Requests() {
		told = told || tr.c.Truncates != "" && strings.Contains(string(r.Body), tr.c.Truncates)
	}
	if !told && tr.fake.Conns() < 2 {
		tr.Error("the service was not told what was heard, and remembers more")
	}
	if tr.c.Truncates != "" && !told {
		tr.Errorf("no %q was sent", tr.c.Truncates)
	}
}

// talkGivenUp takes back what was said, and asks again.
func (tr *trial) talkGivenUp() {
	s := tr.talk(tr.Context())
	defer tr.end(s)
	if err := s.Write(speech(time.Second)); err != nil {
		tr.Error(err)
	}
	if err := s.Discard(); err != nil {
		tr.Error(err)
	}
	tr.judgeTalk(tr.converse(tr.Context(), s, nil, nil), tr.c.words())
}

// cancelTalk ends the context of an answer while nothing comes (1), at its first delta (2),
// at its first sound (3) or before it (4), and asks again on the same session.
func (tr *trial) cancelTalk(when int) {
	s := tr.talk(tr.Context())
	defer tr.end(s)
	ctx, cancel := context.WithCancel(tr.Context())
	defer cancel()
	begun := time.Now()
	end := func() { begun = time.Now(); cancel() }
	switch when {
	case 1:
		timer := time.AfterFunc(soon/6, cancel)
		defer timer.Stop()
		begun = begun.Add(soon / 6)
	case 4:
		cancel()
	}
	got := tr.converse(ctx, s, nil, func(d providers.DuplexDelta) bool {
		if when == 2 || when == 3 && len(d.Sound.PCM) > 0 {
			end()
		}
		return false
	})
	tr.errs = append(tr.errs, got.err)
	tr.cancelled(got.err, time.Since(begun))
	if tr.f == servicetest.None {
		tr.judgeTalk(tr.converse(tr.Context(), s, nil, nil), tr.c.words())
	}
}
