package speak

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/audio"
	"xiaozhi/internal/scene"
	"xiaozhi/internal/text"
	"xiaozhi/prompts"
	"xiaozhi/providers"
)

// phraseTTS speaks everything for one second, after a while.
func phraseTTS(delay time.Duration) *scene.TTS {
	return &scene.TTS{Label: "slow", Delay: delay, Sound: func(string) []providers.Sound {
		return []providers.Sound{{Rate: 24000, PCM: scene.Voiced(24000, time.Second, 9000)}}
	}}
}

// reply is what a device gets of some sentences.
func spokenWords(t *testing.T, o *Options, texts ...string) *device {
	t.Helper()
	dev := newDevice()
	r := speakTo(t, o, dev)
	r.say(texts...)
	r.speaker.Close()
	r.over.Wait()
	r.cancel()
	return dev
}

// TestPhrasesAreSynthesisedOnce: the second time a phrase needs no synthesis,
// begins as soon as the guard allows, and sounds the same (behaviour 13).
func TestPhrasesAreSynthesisedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tts := phraseTTS(2 * time.Second)
		o := soundOptions(t, tts)
		o.Cache, o.Levels = NewCache(o.Prompts), audio.NewLevels()
		greeting := o.Prompts.Phrase(prompts.Greeting, "en")
		first := spokenWords(t, &o, greeting)
		second := spokenWords(t, &o, greeting)
		if len(tts.Asked) != 1 {
			t.Errorf("%d requests", len(tts.Asked))
		}
		if first.at[0] != 2*time.Second || second.at[0] < 100*time.Millisecond || second.at[0] > 120*time.Millisecond {
			t.Errorf("first frames at %v and %v", first.at[0], second.at[0])
		}
		if len(first.packets) != 17 || len(second.packets) != 17 || len(second.lines) != 1 || second.silence > 0 || second.most > 360*time.Millisecond {
			t.Errorf("%d and %d frames, %q, silence %v, lead %v", len(first.packets), len(second.packets), second.lines, second.silence, second.most)
		}
		a, b := first.hear(t), second.hear(t)
		if la, lb := loudness(a), loudness(b); math.Abs(la-lb) > 1.5 || math.Abs(lb+20) > 1.5 {
			t.Errorf("%.1f and %.1f dBFS", la, lb)
		}
		if like := correlation(a, b); like < 0.95 {
			t.Errorf("the kept sound is another: likeness %.2f", like)
		}
		again := spokenWords(t, &o, greeting)
		for i := range again.packets {
			if string(again.packets[i]) != string(second.packets[i]) {
				t.Fatalf("packet %d of the kept sound has changed", i)
			}
		}
	})
}

// correlation is how much alike two sounds are, 1 for the same but for loudness.
func correlation(a, b []int16) float64 {
	ab, aa, bb := 0.0, 1.0, 1.0
	for i := range min(len(a), len(b)) {
		x, y := float64(a[i]), float64(b[i])
		ab, aa, bb = ab+x*y, aa+x*x, bb+y*y
	}
	return ab / math.Sqrt(aa*bb)
}

// TestKeptPhrasesAmongOthers: a reply of kept and fresh sentences has no gap and
// no click where the encoders take turns.
func TestKeptPhrasesAmongOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tts := phraseTTS(200 * time.Millisecond)
		o := soundOptions(t, tts)
		o.Cache = NewCache(o.Prompts)
		greeting := o.Prompts.Phrase(prompts.Greeting, "en")
		spokenWords(t, &o, greeting)
		dev := spokenWords(t, &o, "This is new.", greeting, "And so is this.", greeting)
		if dev.silence != 0 || len(dev.packets) != 4*17 || len(dev.lines) != 4 {
			t.Errorf("silence %v, %d frames, %q", dev.silence, len(dev.packets), dev.lines)
		}
		pcm := dev.hear(t)
		inside := worstStep(pcm[2400 : 17*1440-2400])
		for i := range 5 {
			edge := pcm[max(0, i*17*1440-960):min(len(pcm), i*17*1440+960)]
			if got := worstStep(edge); got > inside {
				t.Errorf("sentence %d: a step of %d at its edge, inside %d", i, got, inside)
			}
		}
	})
}

func TestWhatIsNotKept(t *testing.T) {
	greeting := "I'm here."
	for name, c := range map[string]struct {
		text    string
		change  func(*scene.TTS, *Options)
		between func(*scene.TTS, *Options)
		asked   int
	}{
		"the phrase":        {text: greeting, asked: 1},
		"a phrase in parts": {text: "OK.", asked: 1},
		"any sentence":      {text: "The weather is fine.", asked: 2},
		"no cache":          {text: greeting, change: func(_ *scene.TTS, o *Options) { o.Cache = nil }, asked: 2},
		"broken off":        {text: greeting, change: func(s *scene.TTS, _ *Options) { s.Err = errors.New("gone") }, asked: 2},
		"silent":            {text: greeting, change: func(s *scene.TTS, _ *Options) { s.Sound = func(string) []providers.Sound { return nil } }, asked: 2},
		"another speaks": {text: greeting, change: func(s *scene.TTS, _ *Options) {
			s.Sound = func(string) []providers.Sound {
				return []providers.Sound{{Rate: 24000, PCM: scene.Voiced(24000, time.Second, 9000), Provider: "stand-in"}}
			}
		}, asked: 2},
		"another provider": {text: greeting, between: func(s *scene.TTS, _ *Options) { s.Label = "other" }, asked: 2},
		"another format": {text: greeting, between: func(_ *scene.TTS, o *Options) {
			o.Reply = audio.Format{Rate: 16000, Frame: 60 * time.Millisecond}
		}, asked: 2},
		"levelling switched": {text: greeting, between: func(_ *scene.TTS, o *Options) { o.Levels = audio.NewLevels() }, asked: 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tts := phraseTTS(0)
				o := soundOptions(t, tts)
				o.Cache = NewCache(o.Prompts)
				if c.change != nil {
					c.change(tts, &o)
				}
				spokenWords(t, &o, c.text)
				if c.between != nil {
					c.between(tts, &o)
				}
				spokenWords(t, &o, c.text)
				if len(tts.Asked) != c.asked {
					t.Errorf("%d requests, want %d", len(tts.Asked), c.asked)
				}
			})
		})
	}
}

// TestCutPhraseIsNotKept: what was not spoken whole is no phrase.
func TestCutPhraseIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tts := phraseTTS(0)
		tts.Sound = func(string) []providers.Sound {
			return []providers.Sound{{Rate: 24000, PCM: scene.Voiced(24000, 5*time.Second, 9000)}}
		}
		o := soundOptions(t, tts)
		o.Cache = NewCache(o.Prompts)
		r := speakTo(t, &o, newDevice())
		r.say("I'm here.")
		time.Sleep(500 * time.Millisecond)
		r.player.Cut()
		r.cancel()
		r.over.Wait()
		if o.Cache.sounds.Len() != 0 {
			t.Error("it was kept")
		}
	})
}

// TestFailurePhrasesAreEncodedOnce: the embedded sound comes from the cache, too.
func TestFailurePhrasesAreEncodedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tts := phraseTTS(0)
		tts.Sound, tts.Err = func(string) []providers.Sound { return nil }, errors.New("no voice")
		o := soundOptions(t, tts)
		o.Cache = NewCache(o.Prompts)
		first := spokenWords(t, &o, "Hello.")
		second := spokenWords(t, &o, "Hello again.")
		if o.Cache.sounds.Len() != 1 || len(first.packets) < 20 || len(first.packets) != len(second.packets) {
			t.Fatalf("%d kept, %d and %d frames", o.Cache.sounds.Len(), len(first.packets), len(second.packets))
		}
		if like := correlation(first.hear(t), second.hear(t)); like < 0.95 {
			t.Errorf("the kept sound is another: likeness %.2f", like)
		}
	})
}

func TestSoundCacheIsBounded(t *testing.T) {
	set, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	c := NewCache(set)
	packet := make([]byte, 200)
	key := func(i int) cacheKey { return cacheKey{text: fmt.Sprint(i)} }
	for i := range 1000 {
		c.put(key(i), [][]byte{packet})
		c.get(key(0)) // used all the time
	}
	if n := c.sounds.Len(); n != cacheEntries {
		t.Errorf("%d sounds", n)
	}
	if c.get(key(0)) == nil || c.get(key(999)) == nil || c.get(key(500)) != nil {
		t.Error("which sounds are kept")
	}
	long := [][]byte{make([]byte, cacheBytes/5)}
	for i := range 20 {
		c.put(key(2000+i), long)
		c.put(key(2000+i), long) // in place of itself
	}
	if c.sounds.Len() > 5 || c.get(key(2019)) == nil {
		t.Errorf("%d long sounds", c.sounds.Len())
	}
	c.put(key(3000), [][]byte{make([]byte, cacheBytes)})
	if c.put(key(3001), nil); c.get(key(3000)) != nil || c.get(key(3001)) != nil {
		t.Error("too much or nothing was kept")
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for k := range 200 {
				c.put(key(i*k), [][]byte{packet})
				c.get(key(k))
			}
		})
	}
	all.Wait()
	for _, id := range []string{prompts.Greeting, prompts.OK, prompts.Filler, prompts.FillerLong, prompts.Goodbye, prompts.Pardon, prompts.FailLLM} {
		for _, l := range []text.Lang{text.Chinese, text.English} {
			if s := NewSegment(set.Phrase(id, lang(l)), l, 0); !c.fixed(s.Speech) {
				t.Errorf("%s in %s is not kept: %q", id, l, s.Speech)
			}
		}
	}
	if c.fixed("") || c.fixed("hello") || (*Cache)(nil).fixed("I'm here.") {
		t.Error("what is no phrase")
	}
}
