package turn

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"xiaozhi/internal/timeline"
	"xiaozhi/internal/wire"
)

// TestWaits plays turns that wait, tick by tick: a phrase lasts a second.
func TestWaits(t *testing.T) {
	const ms = time.Millisecond
	at := func(d time.Duration) time.Time { return epoch.Add(d) }
	for _, c := range []struct {
		name   string
		what   WaitFor
		stage  Stage
		change func(*State)
		quiet  time.Duration   // when the device has played all; 0: it got nothing
		busy   time.Duration   // something is being said until then
		done   map[int]float64 // what the tool says that it has done, after so many phrases
		want   []string
	}{
		{name: "two fillers for a tool", what: Tool, stage: Committed, want: []string{"1.2s filler", "8.2s filler_long"}},
		{name: "counted from what was said", what: Tool, stage: Speaking, quiet: 3000 * ms, want: []string{"4.2s filler", "11.2s filler_long"}},
		{name: "not while something is made", what: Tool, stage: Speaking, busy: 2 * time.Second, want: []string{"2.4s filler", "9.4s filler_long"}},
		{name: "how far the tool is", what: Tool, stage: Committed, done: map[int]float64{0: 0.1, 1: 0.3, 2: 0.6, 3: 0.95, 4: 1},
			want: []string{"1.2s filler", "8.2s filler_quarter", "15.2s filler_half", "22.2s filler_most"}},
		{name: "how far it is, when it says so late", what: Tool, stage: Committed, done: map[int]float64{2: 0.95, 3: 0.3},
			want: []string{"1.2s filler", "8.2s filler_long", "15.2s filler_most"}},
		{name: "nor while the user speaks", what: Tool, stage: Committed, change: func(s *State) {
			s.Said = []Utterance{{ID: 1, Epoch: 1}}
		}},
		{name: "sooner after a long silence", what: Tool, stage: Committed, change: func(s *State) {
			s.Reply.Request.Times = timeline.Times{EndOfSpeech: at(-2 * time.Second)}
		}, want: []string{"500ms filler", "7.5s filler_long"}},
		{name: "the model once", what: Model, stage: Committed, want: []string{"2.5s slow_llm"}},
		{name: "from the end of speech", what: Model, stage: Committed, change: func(s *State) {
			s.Reply.Request.Times = timeline.Times{EndOfSpeech: at(-time.Second)}
		}, want: []string{"1.5s slow_llm"}},
		{name: "with a grace", what: Voice, stage: Committed, change: func(s *State) {
			s.Reply.Request.Times = timeline.Times{EndOfSpeech: at(-time.Minute)}
		}, want: []string{"400ms slow_tts"}},
		{name: "the voice although it is made", what: Voice, stage: Speaking, quiet: 100 * ms, busy: time.Minute, want: []string{"2.5s slow_tts"}},
		{name: "nobody waits for the server's own words", what: Model, stage: Committed, change: func(s *State) { s.Reply.Request.Words = "" }},
		{name: "nothing of a speculation", what: Model, stage: Speculative},
		{name: "nothing over a pause", what: Tool, stage: Paused},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := in(wire.Realtime, c.stage)
			s.Said, s.Reply.Until = nil, time.Time{}
			if c.change != nil {
				c.change(&s)
			}
			seen := func(now time.Time) Seen {
				seen := Seen{Now: now, Busy: now.Before(at(c.busy))}
				if c.quiet > 0 {
					seen.Quiet = at(c.quiet)
				}
				return seen
			}
			s, _ = rules().Next(s, seen(epoch), Waiting{Turn: 1, For: c.what})
			var said []string
			for range 1000 {
				if done, is := c.done[len(said)]; is {
					delete(c.done, len(said))
					s, _ = rules().Next(s, seen(at(c.quiet)), Advanced{Turn: 1, Done: done})
					s, _ = rules().Next(s, seen(at(c.quiet)), Advanced{Turn: 9, Done: 1}) // of another turn
				}
				now := s.Deadline()
				if now.IsZero() || now.After(at(time.Minute)) {
					break
				}
				var effects []Effect
				s, effects = rules().Next(s, seen(now), Tick{})
				for _, e := range effects {
					if e, ok := e.(Interpose); ok {
						said = append(said, fmt.Sprint(now.Sub(epoch), " ", e.Phrase))
						c.quiet = now.Add(time.Second).Sub(epoch) // it is played
					}
				}
			}
			if !slices.Equal(said, c.want) {
				t.Errorf("said %q, want %q", said, c.want)
			}
			if c.done != nil {
				return
			}
			over, _ := rules().Next(s, seen(epoch), Waited{Turn: 1, For: c.what})
			if w := over.Reply.Waits[c.what]; !w.Since.IsZero() || !w.Due.IsZero() {
				t.Errorf("the wait goes on: %+v", w)
			}
		})
	}
}

// TestWaitBeginsAtCommit: what was waited for in a speculation made nobody wait.
func TestWaitBeginsAtCommit(t *testing.T) {
	s := in(wire.Auto, Speculative)
	s, _ = rules().Next(s, Seen{Now: epoch}, Waiting{Turn: 1, For: Model})
	now := epoch.Add(time.Second)
	s, _ = rules().Next(s, Seen{Now: now}, SpeechEnded{ID: 1, Epoch: 1, Attempt: 1, Spoken: now, Ended: now})
	if got, want := s.Deadline(), now.Add(2500*time.Millisecond); s.Reply.Stage != Committed || !got.Equal(want) {
		t.Errorf("in %s the deadline is %v, want %v", stageNames[s.Reply.Stage], got.Sub(epoch), want.Sub(epoch))
	}
}
