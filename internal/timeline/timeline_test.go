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
func (p *played) FirstFrame() time.Time                                    { return p.first }

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
