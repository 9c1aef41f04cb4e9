package timeline

import (
	"encoding/json"
	"time"

	"xiaozhi/internal/text"
)

// Limits of what is kept of a turn.
const (
	maxSpans = 8 << 10 // bytes
	maxFault = 160     // bytes of why an attempt failed
)

// Mark names a moment of a turn.
type Mark string

// The moments, in the order in which a turn without surprises comes to them.
const (
	MarkEndpoint   Mark = "endpoint"   // the utterance was taken to be over
	MarkTranscript Mark = "transcript" // its words were there
	MarkModel      Mark = "model"      // was asked first
	MarkToken      Mark = "token"      // the first one
	MarkVoice      Mark = "voice"      // was asked first
	MarkSound      Mark = "sound"      // the first one
	MarkStart      Mark = "start"      // tts start
	MarkFrame      Mark = "frame"      // the first one left
	MarkStop       Mark = "stop"       // tts stop
)

// Spans hold what a turn did when, as it is kept: all times are milliseconds from Zero on, negative ones before it. In
// what was kept by earlier versions Zero is 0, and the times count from the first attempt on.
type Spans struct {
	Zero     int64          `json:"zero,omitempty"` // when the wait began, in milliseconds since 1970
	End      End            `json:"end,omitempty"`
	Delay    int64          `json:"delay,omitempty"` // how long it had to be silent
	Marks    map[Mark]int64 `json:"marks,omitempty"`
	Cut      bool           `json:"cut,omitempty"`  // tts stop came before all was played
	Gaps     []SpanGap      `json:"gaps,omitempty"` // in the sound, the first ones
	Attempts []SpanAttempt  `json:"attempts,omitempty"`
	Tools    []SpanTool     `json:"tools,omitempty"`
	Dropped  int            `json:"dropped,omitempty"` // attempts for which there was no room
}

// SpanGap is a silence in what was sent.
type SpanGap struct {
	Until  int64 `json:"until"`
	Played int64 `json:"played"` // the sound that came before
	Paused bool  `json:"paused,omitempty"`
}

// SpanAttempt is an attempt in the record of a turn.
type SpanAttempt struct {
	Op       string  `json:"op"`
	Part     int     `json:"part,omitempty"`
	Provider string  `json:"provider"`
	At       int64   `json:"at"`
	First    int64   `json:"first,omitempty"` // from At on
	Took     int64   `json:"took"`
	Outcome  Outcome `json:"outcome"`
	Fault    string  `json:"fault,omitempty"`
	Void     bool    `json:"void,omitempty"` // of an answer that was begun too early
	In       int     `json:"in,omitempty"`   // tokens
	Out      int     `json:"out,omitempty"`  // tokens
	Chars    int     `json:"chars,omitempty"`
	Cost     float64 `json:"cost,omitempty"`
}

// SpanTool is a call of a tool in the record of a turn.
type SpanTool struct {
	ID     string `json:"-"`
	Name   string `json:"name"`
	Kind   string `json:"kind,omitempty"`
	Way    Way    `json:"way"`
	At     int64  `json:"at"`             // the model wanted it
	Sent   *int64 `json:"sent,omitempty"` // it was handed to who runs it; nil: it was not, or not in this turn
	Took   int64  `json:"took,omitempty"` // from Sent on, or else from At, until its result; 0: there was none
	Failed bool   `json:"failed,omitempty"`
}

// Ran adds what is known of the call from where it was run.
func (s *SpanTool) Ran(sent time.Time, took time.Duration, kind string, failed bool, zero time.Time) {
	s.Kind, s.Failed = kind, s.Failed || failed
	if !sent.IsZero() {
		at := sent.Sub(zero).Milliseconds()
		s.Sent, s.Took = &at, UpMS(took)
	}
}

// Spans returns what is kept of the turn's figures. Costs, and where tools were run, are not known to it.
func (f *Figures) Spans() (s Spans) {
	m := &f.Marks
	zero := m.Zero
	switch {
	case !zero.IsZero():
		s = Spans{Zero: zero.UnixMilli(), End: m.End, Delay: m.Delay.Milliseconds(), Cut: m.Sent.Cut, Marks: map[Mark]int64{}}
	case len(f.Attempts) > 0:
		zero = f.Attempts[0].Asked
	}
	for name, at := range map[Mark]time.Time{
		MarkEndpoint: m.Endpoint, MarkTranscript: m.Transcript, MarkModel: m.Model, MarkToken: m.Token, MarkVoice: m.Voice, MarkSound: m.Sound,
		MarkStart: m.Sent.Start, MarkFrame: m.Sent.First, MarkStop: m.Sent.Stop,
	} {
		if !at.IsZero() && s.Marks != nil {
			s.Marks[name] = at.Sub(zero).Milliseconds()
		}
	}
	for _, g := range m.Sent.Gaps {
		s.Gaps = append(s.Gaps, SpanGap{g.Until.Sub(zero).Milliseconds(), g.Played.Milliseconds(), g.Paused})
	}
	for i := range f.Attempts {
		a := &f.Attempts[i]
		s.Attempts = append(s.Attempts, SpanAttempt{
			Op: a.Op, Part: a.Part, Provider: a.Provider, At: a.Asked.Sub(zero).Milliseconds(), First: UpMS(a.First), Took: UpMS(a.Took), Outcome: a.Outcome,
			Fault: text.Cut(a.Fault, maxFault), Void: a.Void, In: a.Tokens.Prompt, Out: a.Tokens.Completion, Chars: a.Characters,
		})
	}
	for i := range f.Tools {
		c := &f.Tools[i]
		s.Tools = append(s.Tools, SpanTool{ID: c.ID, Name: text.Cut(c.Name, maxFault), Way: c.Way, At: c.At.Sub(zero).Milliseconds(), Took: UpMS(c.Took), Failed: c.Failed})
	}
	return s
}

// String is the JSON form, of 8 KiB at most: the last attempts are dropped, and counted. "": there is nothing to keep.
func (s Spans) String() string {
	if s.Zero == 0 && len(s.Attempts) == 0 {
		return ""
	}
	for {
		doc, err := json.Marshal(s)
		switch {
		case err != nil:
			return "" // numbers and strings always have a form
		case len(doc) <= maxSpans:
			return string(doc)
		case len(s.Attempts) > 0:
			s.Attempts = s.Attempts[:len(s.Attempts)-1]
			s.Dropped++
		case len(s.Tools) > 0:
			s.Tools = s.Tools[:len(s.Tools)-1]
		default:
			return ""
		}
	}
}

// ReadSpans undoes [Spans.String].
func ReadSpans(doc string) (s Spans, err error) {
	if doc != "" {
		err = json.Unmarshal([]byte(doc), &s)
	}
	return s, err
}

// UpMS is a time in whole milliseconds, at least one if there is any.
func UpMS(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return max(d.Milliseconds(), 1)
}
