package app

import (
	"bytes"
	"testing"
	"time"

	"xiaozhi/audio"
	"xiaozhi/audio/file"
	"xiaozhi/connection"
	"xiaozhi/prompts"
)

// TestNoticesAudible decodes every notice as a device would: it is the phrase,
// audible, whole, and short enough for the end of the server.
func TestNoticesAudible(t *testing.T) {
	set, err := prompts.Load(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	say, err := notices(set)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for kind, id := range map[connection.NoticeKind]string{
		connection.NoticeBusy: prompts.Overload, connection.NoticeStopping: prompts.ShuttingDown,
	} {
		for _, lang := range []string{"zh", "en"} {
			n := say(kind, lang)
			if n.Text != set.Phrase(id, lang) || n.Text == "" || seen[n.Text] {
				t.Errorf("%s of %s reads %q", id, lang, n.Text)
			}
			seen[n.Text] = true
			wav, rate, err := file.ReadWAV(bytes.NewReader(prompts.Sound(id, lang)))
			if err != nil {
				t.Fatalf("%s of %s: %v", id, lang, err)
			}
			want := audio.Format{Rate: rate}.Duration(len(wav))
			length := time.Duration(len(n.Packets)) * audio.Reply.Frame
			if length < want || length > want+audio.Reply.Frame || length > 6*time.Second {
				t.Errorf("%s of %s lasts %v, its sound %v", id, lang, length, want)
			}
			if loud := loudness(t, n.Packets); loud < 500 {
				t.Errorf("%s of %s cannot be heard: level %.0f", id, lang, loud)
			}
			if loud := loudness(t, [][]byte{n.Closing}); loud > 10 {
				t.Errorf("the closing frame of %s of %s has level %.0f", id, lang, loud)
			}
		}
	}
	if say(connection.NoticeBusy, "").Text != set.Phrase(prompts.Overload, "zh") {
		t.Error("an unknown language is not Chinese")
	}
}

// loudness is the mean level of packets of the length that devices play.
func loudness(t *testing.T, packets [][]byte) float64 {
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

func TestNoticeWithoutSound(t *testing.T) {
	if _, err := newNotice(nil); err == nil {
		t.Error("taken")
	}
}
