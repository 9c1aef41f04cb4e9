package sherpa_test

import (
	"context"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
	"xiaozhi/providers/sherpa"
	"xiaozhi/providers/sherpa/modelfile"
	"xiaozhi/providers/sherpa/sherpatest"
)

// voice makes a voice of a kind with a library of its own. It is closed, and what it held is freed, at the end.
func voice(t *testing.T, kind modelfile.Kind, change func(*sherpa.Options)) (*sherpa.Voice, *sherpatest.Library) {
	t.Helper()
	lib := sherpatest.NewLibrary(t)
	o := sherpa.Options{Model: sherpatest.Model(t, kind), Library: lib.File}
	if change != nil {
		change(&o)
	}
	v, err := sherpa.NewVoice(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
		if live := lib.Get("live"); live != 0 {
			t.Errorf("%d objects of the library are not freed", live)
		}
	})
	return v, lib
}

func TestSuites(t *testing.T) {
	t.Parallel()
	t.Run("streaming", func(t *testing.T) {
		providertest.TestASR(t, func(t *testing.T) providers.ASR { r, _ := recognizer(t, modelfile.Transducer, nil); return r }, loud(time.Second))
	})
	t.Run("whole", func(t *testing.T) {
		providertest.TestASR(t, func(t *testing.T) providers.ASR { r, _ := recognizer(t, modelfile.SenseVoice, nil); return r }, loud(time.Second))
	})
	t.Run("voice", func(t *testing.T) {
		providertest.TestTTS(t, func(t *testing.T) providers.TTS { v, _ := voice(t, modelfile.VITS, nil); return v },
			providers.TTSRequest{Text: "今天的天气很好，明天的天气也不错，后天会下雨。", Language: "zh"})
	})
}

// speech collects the sound of a sentence.
func speech(seq iter.Seq2[providers.Sound, error]) (pieces []int, loudness int16, err error) {
	for s, e := range seq {
		if e != nil {
			return pieces, loudness, e
		}
		pieces = append(pieces, len(s.PCM))
		loudness = s.PCM[0]
	}
	return pieces, loudness, nil
}

func TestVoices(t *testing.T) {
	t.Parallel()
	for _, kind := range []modelfile.Kind{modelfile.VITS, modelfile.Matcha, modelfile.Kokoro} {
		v, lib := voice(t, kind, func(o *sherpa.Options) { o.Speed = 2 })
		pieces, _, err := speech(v.Synthesize(t.Context(), providers.TTSRequest{Text: "今天的天气很好，明天也一样。"}))
		if err != nil || len(pieces) != 2 || pieces[0] != 8*2205/2 || pieces[1] != 6*2205/2 {
			t.Errorf("%s: pieces %v, %v", kind, pieces, err)
		}
		for _, empty := range []string{"", "。！", " \n"} {
			if pieces, _, err := speech(v.Synthesize(t.Context(), providers.TTSRequest{Text: empty})); err != nil || len(pieces) != 0 {
				t.Errorf("%s: %q sounds as %v, %v", kind, empty, pieces, err)
			}
		}
		if _, _, err := speech(v.Synthesize(t.Context(), providers.TTSRequest{Text: strings.Repeat("字", sherpa.MaxChars+1)})); kindOf(err) != providers.BadRequest {
			t.Errorf("%s: long text: %v", kind, err)
		}
		lib.Set("mute", 1)
		if _, _, err := speech(v.Synthesize(t.Context(), providers.TTSRequest{Text: "今天"})); kindOf(err) != providers.Unavailable {
			t.Errorf("%s: silent: %v", kind, err)
		}
	}
}

// TestLanguageThatAModelLacks is left to other voices, where the model says what it speaks.
func TestLanguageThatAModelLacks(t *testing.T) {
	t.Parallel()
	chinese, _ := voice(t, modelfile.VITS, nil)
	unknown, _ := voice(t, modelfile.Matcha, nil)
	for language, lacks := range map[string]bool{"": false, "zh": false, "zh-TW": false, "yue": false, "en": true, "de-AT": true} {
		if _, _, err := speech(chinese.Synthesize(t.Context(), providers.TTSRequest{Text: "好", Language: language})); providers.LacksLanguage(err) != lacks || lacks && kindOf(err) != providers.BadRequest {
			t.Errorf("%q: %v", language, err)
		}
		if _, _, err := speech(unknown.Synthesize(t.Context(), providers.TTSRequest{Text: "好", Language: language})); err != nil {
			t.Errorf("%q of a model that does not say: %v", language, err)
		}
	}
}

// TestSpeakers chooses speakers by number and by name, by the settings and by the request.
func TestSpeakers(t *testing.T) {
	t.Parallel()
	v, _ := voice(t, modelfile.Kokoro, func(o *sherpa.Options) { o.Speaker = "zf_001" })
	for name, want := range map[string]int16{"": 6553, "zm_010": 9830, "0": 3276, "another vendor's": 6553, "-1": 6553, "99": 6553} {
		if _, loud, err := speech(v.Synthesize(t.Context(), providers.TTSRequest{Text: "好", Voice: name})); err != nil || loud != want {
			t.Errorf("voice %q: loudness %d, %v, want %d", name, loud, err, want)
		}
	}
	if got := strings.Join(v.Speakers(), " "); got != "af_maple zf_001 zm_010" {
		t.Errorf("speakers %s", got)
	}
}

// TestFirstSound wants the first clause before the second is made.
func TestFirstSound(t *testing.T) {
	t.Parallel()
	v, lib := voice(t, modelfile.VITS, nil)
	if err := v.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	lib.Set("delay", 60)
	next, stop := iter.Pull2(v.Synthesize(t.Context(), providers.TTSRequest{Text: "今天的天气很好，明天的天气也一样，后天会下雨。"}))
	defer stop()
	if s, err, ok := next(); !ok || err != nil || len(s.PCM) != 8*2205 || s.Rate != 22050 {
		t.Fatalf("first piece: %d samples, %v", len(s.PCM), err)
	}
	if steps := lib.Get("steps"); steps != 1 {
		t.Errorf("%d clauses were made before the first was heard", steps)
	}
	stop() // leaves the loop: the clause that is being made is the last
	if err := v.Close(); err != nil {
		t.Error(err)
	}
	if steps := lib.Get("steps"); steps > 2 {
		t.Errorf("%d clauses were made although nobody listens", steps)
	}
}

// TestVoiceCancel ends the context, and closes the voice, while the library computes.
func TestVoiceCancel(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"cancel", "close", "load"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			v, lib := voice(t, modelfile.VITS, nil)
			busy := "delay"
			if how == "load" {
				busy = "load"
			}
			lib.Set(busy, 250)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var ended time.Time
			time.AfterFunc(50*time.Millisecond, func() {
				for how != "load" && lib.Get("live") == 0 { // a busy machine has not loaded the model yet
					time.Sleep(time.Millisecond)
				}
				ended = time.Now()
				if how == "close" {
					go v.Close()
					return
				}
				cancel()
			})
			pieces, _, err := speech(v.Synthesize(ctx, providers.TTSRequest{Text: "今天的天气很好，明天的天气也一样。"}))
			if took := time.Since(ended); ended.IsZero() || took > 100*time.Millisecond {
				t.Errorf("returned after %v", took)
			}
			if len(pieces) != 0 || how == "close" && kindOf(err) != providers.Unavailable || how != "close" && err != context.Canceled { //nolint:errorlint // unchanged
				t.Errorf("pieces %v, %v", pieces, err)
			}
			if err := v.Close(); err != nil { // it waits for the library
				t.Error(err)
			}
			if how == "cancel" && lib.Get("stopped") != lib.Get("steps") {
				t.Errorf("%d texts were stopped of %d that were begun", lib.Get("stopped"), lib.Get("steps"))
			}
		})
	}
}

// TestVoicePlaces speaks several sentences at once, each with a model of its own.
func TestVoicePlaces(t *testing.T) {
	t.Parallel()
	v, lib := voice(t, modelfile.Matcha, func(o *sherpa.Options) { o.Decoders = 2 })
	lib.Set("delay", 5)
	var work sync.WaitGroup
	for i := range 8 {
		work.Go(func() {
			for s, err := range v.Synthesize(t.Context(), providers.TTSRequest{Text: "今天的天气很好，明天的天气也一样。"}) {
				if err != nil || len(s.PCM) == 0 {
					t.Errorf("%d samples, %v", len(s.PCM), err)
				}
				if i%2 == 0 {
					break
				}
			}
		})
	}
	work.Wait()
	v.Retire()
	wait(t, "all models are freed", func() bool { return lib.Get("live") == 0 })
}
