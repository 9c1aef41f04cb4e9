package timeline

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

// played is play-out that began at a time.
type played struct{ first time.Time }

func (p *played) Counters() (frames, underruns int, minLead time.Duration) { return 0, 0, 0 }
func (p *played) Sent() Sent                                               { return Sent{First: p.first} }

func attrs(tm *Turn, p Playback) []any {
	f := tm.Figures(p)
	return f.Attrs()
}

// figures are the durations of a turn's log line.
func figures(tm *Turn, p Playback) map[string]time.Duration {
	out := map[string]time.Duration{}
	for _, a := range attrs(tm, p) {
		if a := a.(slog.Attr); a.Value.Kind() == slog.KindDuration {
			out[a.Key] = a.Value.Duration()
		}
	}
	return out
}

// The stages of a turn add up to the time that the user feels (docs/behaviours.md 44), whatever is missing.
func TestTimingAddsUp(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name string
		turn func(tm *Turn)
		want map[string]time.Duration
	}{
		{"spoken", func(tm *Turn) {
			tm.of.EndOfSpeech = time.Now()
			time.Sleep(700 * ms)
			tm.of.Endpoint = time.Now()
			time.Sleep(150 * ms)
			tm.of.Transcript = time.Now()
			time.Sleep(2 * ms)
			tm.ModelAsked()
			time.Sleep(400 * ms)
			tm.Token("x")
			time.Sleep(90 * ms)
			tm.Token("x")
			tm.VoiceAsked("y")
			time.Sleep(200 * ms)
			tm.VoiceHeard()
			time.Sleep(5 * ms)
			tm.VoiceHeard()
		}, map[string]time.Duration{
			"eou_delay": 700 * ms, "asr_delay": 150 * ms, "llm_ttft": 400 * ms, "llm_ttfs": 490 * ms, "tts_ttfb": 200 * ms,
			"server_added": 7 * ms, "e2e": 1547 * ms,
		}},
		{"instant providers", func(tm *Turn) {
			tm.of.EndOfSpeech, tm.of.Endpoint, tm.of.Transcript = time.Now(), time.Now(), time.Now()
			tm.ModelAsked()
			tm.Token("x")
			tm.VoiceAsked("y")
			tm.VoiceHeard()
			time.Sleep(105 * ms)
			tm.Token("x")
			tm.VoiceHeard()
		}, map[string]time.Duration{"llm_ttft": 0, "llm_ttfs": 0, "tts_ttfb": 0, "server_added": 105 * ms, "e2e": 105 * ms}},
		{"a guess before the words", func(tm *Turn) {
			tm.of.EndOfSpeech = time.Now()
			time.Sleep(300 * ms)
			tm.ModelAsked()
			time.Sleep(400 * ms)
			tm.of.Endpoint = time.Now()
			time.Sleep(100 * ms)
			tm.VoiceAsked("y")
			time.Sleep(100 * ms)
			tm.VoiceHeard()
			time.Sleep(50 * ms)
			tm.of.Transcript = time.Now()
			time.Sleep(5 * ms)
		}, map[string]time.Duration{"eou_delay": 700 * ms, "asr_delay": 250 * ms, "llm_ttfs": 0, "tts_ttfb": 0, "server_added": 5 * ms, "e2e": 955 * ms}},
		{"a phrase", func(tm *Turn) {
			tm.of.EndOfSpeech = time.Now()
			time.Sleep(300 * ms)
			tm.VoiceAsked("y")
			time.Sleep(20 * ms)
			tm.VoiceHeard()
		}, map[string]time.Duration{"eou_delay": 0, "llm_ttfs": 0, "tts_ttfb": 20 * ms, "server_added": 300 * ms, "e2e": 320 * ms}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tm, f := New(Times{}), &played{}
				c.turn(tm)
				f.first = time.Now()
				got := figures(tm, f)
				for key, want := range c.want {
					if got[key] != want {
						t.Errorf("%s is %v, want %v", key, got[key], want)
					}
				}
				if sum := got["eou_delay"] + got["asr_delay"] + got["llm_ttfs"] + got["tts_ttfb"] + got["server_added"]; sum != got["e2e"] {
					t.Errorf("the stages add up to %v, e2e is %v", sum, got["e2e"])
				}
			})
		})
	}
}

// The voice of a turn is the one that answered, not the first one of the chain that was asked.
func TestVoiceThatAnswered(t *testing.T) {
	tm := New(Times{})
	note := tm.Of(tm.VoiceAsked("first"))
	if f := tm.Figures(&played{}); f.TTSName != "first" {
		t.Error(f.TTSName)
	}
	note(Attempt{Op: "speak", Provider: "first", Outcome: Lost})
	note(Attempt{Op: "speak", Provider: "second", Outcome: Answered})
	tm.VoiceAsked("first")
	if f := tm.Figures(&played{}); f.TTSName != "second" {
		t.Error(f.TTSName)
	}
}

// A turn without a frame has no end-to-end time, and nothing of ours in it.
func TestTimingWithoutSound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, f := New(Times{EndOfSpeech: time.Now()}), &played{}
		time.Sleep(time.Second)
		tm.ModelAsked()
		if got := figures(tm, f); got["e2e"] != 0 || got["server_added"] != 0 {
			t.Errorf("%v", got)
		}
	})
}

// TestSpans: what is kept of a turn says what it did when, can be read again, and takes 8 KiB at most.
func TestSpans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ms = time.Millisecond
		zero := time.Now()
		time.Sleep(700 * ms)
		tm := New(Times{EndOfSpeech: zero, End: EndVoice, Delay: 600 * ms, Endpoint: time.Now(), Attempts: []Attempt{{Op: "recognize", Asked: zero.Add(-time.Second)}}})
		note := tm.Of(tm.ModelAsked())
		note(Attempt{Op: "think", Provider: "x", Asked: time.Now(), Took: ms, Outcome: Answered, Tokens: Tokens{5, 6}})
		tm.Call(Called{ID: "a", Name: "weather", Way: Awaited})
		tm.Call(Called{ID: "b", Name: "door", Way: Assumed})
		time.Sleep(80 * ms)
		tm.Result("a", true)
		tm.Result("b", true) // nobody waits for that
		f := tm.Figures(&played{time.Now()})
		s := f.Spans()
		s.Tools[0].Ran(zero.Add(720*ms), 60*ms, "query", false, zero)
		got, err := ReadSpans(s.String())
		if err != nil || got.Zero != zero.UnixMilli() || got.End != EndVoice || got.Delay != 600 || got.Marks[MarkEndpoint] != 700 || got.Marks[MarkFrame] != 780 {
			t.Errorf("%+v, %v", got, err)
		}
		if _, there := got.Marks[MarkToken]; there {
			t.Error("there was no token")
		}
		if a := got.Attempts; len(a) != 2 || a[0].At != -1000 || a[1].At != 700 || a[1].Part != 1 || a[1].In != 5 || a[1].Out != 6 {
			t.Errorf("%+v", a)
		}
		if c := got.Tools; len(c) != 2 || c[0].At != 700 || *c[0].Sent != 720 || c[0].Took != 60 || !c[0].Failed || c[1].Sent != nil || c[1].Failed {
			t.Errorf("%+v", c)
		}
		for range 300 {
			f.Attempts = append(f.Attempts, Attempt{Op: "speak", Provider: "a voice", Asked: zero})
		}
		if many := f.Spans().String(); many == "" || len(many) > 8<<10 {
			t.Errorf("%d bytes", len(many))
		} else if got, err := ReadSpans(many); err != nil || len(got.Attempts)+got.Dropped != 302 {
			t.Errorf("%d and %d, %v", len(got.Attempts), got.Dropped, err)
		}
	})
}
