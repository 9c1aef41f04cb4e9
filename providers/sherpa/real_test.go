package sherpa_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
	"xiaozhi/providers/service"
	"xiaozhi/providers/sherpa"
)

// realOptions are settings with the real library and a tiny model of testdata/tiny, which testdata/tiny.py makes.
func realOptions(t *testing.T, model string) sherpa.Options {
	t.Helper()
	file := os.Getenv("SHERPA_ONNX_LIBRARY")
	if file == "" {
		t.Skip("SHERPA_ONNX_LIBRARY names no library of sherpa-onnx")
	}
	return sherpa.Options{Model: filepath.Join("testdata", "tiny", model), Library: file}
}

// noise is loud sound of a length.
func noise(d time.Duration) []int16 {
	pcm, seed := make([]int16, int(d.Milliseconds())*16), uint32(1)
	for i := range pcm {
		seed = seed*1664525 + 1013904223
		pcm[i] = int16(seed >> 16)
	}
	return pcm
}

// TestRealRecognizers loads tiny models into the real library. They recognise that it is loud.
func TestRealRecognizers(t *testing.T) {
	for model, begins := range map[string]string{
		"zipformer": "今天天气", "paraformer-streaming": "今天天气", "sensevoice": "天气怎么样", "paraformer": "今天天气", "whisper": "今天天气",
	} {
		t.Run(model, func(t *testing.T) {
			r, err := sherpa.New(realOptions(t, model))
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			s := begin(t.Context(), t, r)
			var partial []string
			done := make(chan struct{})
			var final providers.Transcript
			go func() {
				defer close(done)
				final, partial, err = last(s.Transcripts())
			}()
			for range 20 {
				if err := s.Write(noise(100 * time.Millisecond)); err != nil {
					t.Fatal(err)
				}
				time.Sleep(5 * time.Millisecond)
			}
			if err := s.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			<-done
			if err != nil || !strings.HasPrefix(final.Text, begins) || final.Language != "zh" {
				t.Errorf("%s: %+v, %v", r.Kind(), final, err)
			}
			if r.Kind().Streams() && len(partial) < 2 || !slices.IsSorted(partial) {
				t.Errorf("%s: partial transcripts %q", r.Kind(), partial)
			}
			t.Logf("%s: %q, then %+v", r.Kind(), partial, final)
			silent := begin(t.Context(), t, r)
			if err := errors.Join(silent.Write(make([]int16, 8000)), silent.CloseWrite()); err != nil {
				t.Fatal(err)
			}
			if final, _, err := last(silent.Transcripts()); err != nil || !final.Final || r.Kind() == "transducer" && final.Text != "" {
				t.Errorf("silence: %+v, %v", final, err)
			}
		})
	}
}

// TestRealVoices speaks with tiny models, which make a tone of each character.
func TestRealVoices(t *testing.T) {
	for _, model := range []string{"vits", "matcha"} {
		t.Run(model, func(t *testing.T) {
			v, err := sherpa.NewVoice(realOptions(t, model))
			if err != nil {
				t.Fatal(err)
			}
			defer v.Close()
			pieces, _, err := speech(v.Synthesize(t.Context(), providers.TTSRequest{Text: "今天的天气怎么样，明天的天气呢。"}))
			if err != nil || len(pieces) != 2 || pieces[0] < 8*400 {
				t.Errorf("pieces %v, %v", pieces, err)
			}
			t.Logf("%s: pieces of %v samples", v.Kind(), pieces)
			for range v.Synthesize(t.Context(), providers.TTSRequest{Text: "今天的天气怎么样，明天的天气呢。"}) {
				break
			}
		})
	}
}

// TestRealVoiceprint tells tones apart with a tiny model, which looks at the colour of a voice only.
func TestRealVoiceprint(t *testing.T) {
	v, err := sherpa.NewVoiceprint(realOptions(t, "speaker"))
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if v.Scale().Model != "tiny/80" {
		t.Errorf("model %s", v.Scale().Model)
	}
	providertest.KnowsVoices(t.Context(), t, v)
}

// TestRealMany hears many utterances at once with one model, some of which are given up, and loads and frees models
// over and over: the memory of the process stays.
func TestRealMany(t *testing.T) {
	o := realOptions(t, "zipformer")
	o.Decoders = 4
	r, err := sherpa.New(o)
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	for i := range 16 {
		work.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s := begin(ctx, t, r)
			for range 10 {
				s.Write(noise(100 * time.Millisecond))
			}
			s.CloseWrite()
			if i%4 == 0 {
				time.AfterFunc(3*time.Millisecond, cancel)
			}
			if final, _, err := last(s.Transcripts()); err != nil && err != context.Canceled || err == nil && !strings.HasPrefix(final.Text, "今天天气怎么样") { //nolint:errorlint // unchanged
				t.Errorf("%+v, %v", final, err)
			}
		})
	}
	work.Wait()
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	var before int
	for i := range 60 {
		for model, role := range map[string]service.Role{"sensevoice": service.ASR, "zipformer": service.ASR, "matcha": service.TTS, "speaker": service.Voiceprint} {
			if err := sherpa.Try(t.Context(), realOptions(t, model), role); err != nil {
				t.Fatal(err)
			}
		}
		if i == 20 {
			before = resident(t)
		}
	}
	if after := resident(t); after > before+8<<20 {
		t.Errorf("the process grew from %d to %d bytes by 40 times loading and freeing", before, after)
	} else {
		t.Logf("memory after 20 rounds %d MB, after 60 rounds %d MB", before>>20, after>>20)
	}
}

// resident is the memory of this process, in bytes.
func resident(t *testing.T) int {
	t.Helper()
	runtime.GC()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}
