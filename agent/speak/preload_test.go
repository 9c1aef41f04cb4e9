package speak

import (
	"bytes"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/audio"
	"xiaozhi/audio/file"
	"xiaozhi/internal/text"
	"xiaozhi/prompts"
)

// TestPreloadAudible decodes what is kept as a device would: it is the phrase,
// audible, whole, and short enough for the end of the server.
func TestPreloadAudible(t *testing.T) {
	set, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	o := &Options{Prompts: set, Cache: NewCache(set), Reply: audio.Reply, Coding: audio.Usual()}
	ids := []string{prompts.Overload, prompts.ShuttingDown}
	if err := Preload(o, ids...); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		for _, l := range []text.Lang{text.Chinese, text.English} {
			packets := o.Cache.get(o.key(embedded, id, lang(l), ""))
			wav, rate, err := file.ReadWAV(bytes.NewReader(prompts.Sound(id, lang(l))))
			if err != nil {
				t.Fatalf("%s of %s: %v", id, l, err)
			}
			want := audio.Format{Rate: rate}.Duration(len(wav))
			length := time.Duration(len(packets)) * audio.Reply.Frame
			if length < want || length > want+audio.Reply.Frame || length > 6*time.Second {
				t.Errorf("%s of %s lasts %v, its sound %v", id, l, length, want)
			}
			if loud := packetLoudness(t, packets); loud < 500 {
				t.Errorf("%s of %s cannot be heard: level %.0f", id, l, loud)
			}
		}
	}
}

// packetLoudness is the mean level of packets of the length that devices play.
func packetLoudness(t *testing.T, packets [][]byte) float64 {
	t.Helper()
	dec, err := audio.NewDecoder(audio.Reply.Rate)
	if err != nil {
		t.Fatal(err)
	}
	pcm := make([]int16, audio.MaxFrameSamples(audio.Reply.Rate))
	sum, samples := 0.0, 0
	for _, p := range packets {
		n, err := dec.Decode(p, pcm)
		if err != nil || n != audio.Reply.Samples() || len(p) > 1500 {
			t.Fatalf("a packet of %d bytes holds %d samples: %v", len(p), n, err)
		}
		for _, s := range pcm[:n] {
			sum += max(float64(s), -float64(s))
		}
		samples += n
	}
	return sum / float64(samples)
}

func TestPreloadWithoutSound(t *testing.T) {
	set, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	if err := Preload(&Options{Reply: audio.Reply, Coding: audio.Usual(), Cache: NewCache(set)}, "nothing"); err == nil {
		t.Error("taken")
	}
}

// TestRecordedPhrase: a recorded phrase is played as it was preloaded, without
// any voice, and a cut ends it in silence.
func TestRecordedPhrase(t *testing.T) {
	set, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	o := &Options{Prompts: set, Cache: NewCache(set), Levels: audio.NewLevels(), Reply: audio.Reply, Coding: audio.Usual(), Lead: 4}
	if err := Preload(o, prompts.Overload); err != nil {
		t.Fatal(err)
	}
	want := o.Cache.get(o.key(embedded, prompts.Overload, "en", ""))
	for _, cut := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			dev := newDevice()
			r := speakTo(t, o, dev)
			words := set.Phrase(prompts.Overload, "en")
			if err := r.speaker.Say(t.Context(), NewRecorded(prompts.Overload, words, text.English)); err != nil {
				t.Fatal(err)
			}
			r.speaker.Close()
			if cut {
				time.Sleep(time.Second)
				r.player.Cut()
				r.cancel()
			}
			r.over.Wait()
			if !slices.Equal(dev.messages, []string{"tts start", "sentence " + words, "tts stop"}) {
				t.Errorf("the device was told %q", dev.messages)
			}
			if n := len(dev.packets); !slices.EqualFunc(dev.packets, want[:n], bytes.Equal) || cut == (n == len(want)) {
				t.Errorf("%d packets of %d", n, len(want))
			}
			if cut && packetLoudness(t, [][]byte{dev.closing}) > 10 {
				t.Error("the closing frame is loud")
			}
		})
	}
}
