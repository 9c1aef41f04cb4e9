package agent

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/tools/txtar"

	"xiaozhi/audio"
)

// figures are the durations of a turn's log line.
func figures(tm *timing, f *floor) map[string]time.Duration {
	out := map[string]time.Duration{}
	for _, a := range tm.attrs(f) {
		if a := a.(slog.Attr); a.Value.Kind() == slog.KindDuration {
			out[a.Key] = a.Value.Duration()
		}
	}
	return out
}

// The stages of a turn add up to the time that the user feels (voice.md,
// behaviour 44), whatever is missing.
func TestTimingAddsUp(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name string
		turn func(tm *timing)
		want map[string]time.Duration
	}{
		{"spoken", func(tm *timing) {
			tm.endOfSpeech = time.Now()
			time.Sleep(700 * ms)
			tm.endpoint = time.Now()
			time.Sleep(150 * ms)
			tm.transcript = time.Now()
			time.Sleep(2 * ms)
			tm.llmStart()
			time.Sleep(400 * ms)
			tm.llmToken("x")
			time.Sleep(90 * ms)
			tm.llmToken("x")
			tm.ttsStart("y")
			time.Sleep(200 * ms)
			tm.ttsSound()
			time.Sleep(5 * ms)
			tm.ttsSound()
		}, map[string]time.Duration{
			"eou_delay": 700 * ms, "asr_delay": 150 * ms, "llm_ttft": 400 * ms, "llm_ttfs": 490 * ms, "tts_ttfb": 200 * ms,
			"server_added": 7 * ms, "e2e": 1547 * ms,
		}},
		{"instant providers", func(tm *timing) {
			tm.endOfSpeech, tm.endpoint, tm.transcript = time.Now(), time.Now(), time.Now()
			tm.llmStart()
			tm.llmToken("x")
			tm.ttsStart("y")
			tm.ttsSound()
			time.Sleep(105 * ms)
			tm.llmToken("x")
			tm.ttsSound()
		}, map[string]time.Duration{"llm_ttft": 0, "llm_ttfs": 0, "tts_ttfb": 0, "server_added": 105 * ms, "e2e": 105 * ms}},
		{"a phrase", func(tm *timing) {
			tm.endOfSpeech = time.Now()
			time.Sleep(300 * ms)
			tm.ttsStart("y")
			time.Sleep(20 * ms)
			tm.ttsSound()
		}, map[string]time.Duration{"eou_delay": 0, "llm_ttfs": 0, "tts_ttfb": 20 * ms, "server_added": 300 * ms, "e2e": 320 * ms}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tm, f := &timing{}, newFloor(newBox(), 1, audio.Reply, 4)
				c.turn(tm)
				packet, err := f.encode(make([]int16, audio.Reply.Samples()))
				if err != nil || !f.frame(packet) {
					t.Fatal("no frame", err)
				}
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
		tm, f := &timing{endOfSpeech: time.Now()}, newFloor(newBox(), 1, audio.Reply, 4)
		time.Sleep(time.Second)
		tm.llmStart()
		if got := figures(tm, f); got["e2e"] != 0 || got["server_added"] != 0 {
			t.Errorf("%v", got)
		}
	})
}

// The one line of a turn names who did the work.
func TestTurnLineNamesProviders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := readScene(txtar.Parse([]byte("-- asr --\nhello\n-- llm --\ntext Hi.\nend\n-- script --\nlisten manual\nvoice 300ms\nstop\nuntil tts stop\n")))
		s.run(t)
		for _, want := range []string{"asr=script-asr", "llm=script-llm", "tts=tone-tts", "cause=done", "heard_chars=3", "steps=1", "underruns=0"} {
			if n := countLines(s.log.String(), "msg=turn", want); n != 1 {
				t.Errorf("%d lines about the turn say %q:\n%s", n, want, &s.log)
			}
		}
	})
}

// countLines is how many lines of text hold both words.
func countLines(text, a, b string) int {
	n := 0
	for line := range strings.Lines(text) {
		if strings.Contains(line, a+" ") && strings.Contains(line, b) {
			n++
		}
	}
	return n
}
