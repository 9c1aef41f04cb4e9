package pocketsphinx

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/speechtest"
	"xiaozhi/internal/testall"
	"xiaozhi/providers"
)

// TestQuality prints what is heard in every recording, and how much of it is wrong
// or rejected: the README's tables. POCKETSPHINX_MEASURE adds a folder of WAV files.
// What must hold of it is checked by the other tests.
func TestQuality(t *testing.T) {
	testall.Only(t)
	folder := func() ([]speechtest.Clip, error) { return speechtest.Folder(os.Getenv("POCKETSPHINX_MEASURE")) }
	r, phrases := open(t), phrasesOf(t)
	for _, set := range []struct {
		name    string
		clips   func() ([]speechtest.Clip, error)
		phrases []string
	}{
		{"prompts", speechtest.Prompts, nil},
		{"prompts with phrases", speechtest.Prompts, phrases},
		{"others", speechtest.Others, nil},
		{"commands", speechtest.Commands, phrases},
		{"mandarin", speechtest.Mandarin, nil},
		{"music", speechtest.Music, nil},
		{"noise", speechtest.Noise, nil},
		{"folder", folder, nil},
		{"folder with phrases", folder, phrases},
	} {
		t.Run(set.name, func(t *testing.T) {
			if strings.HasPrefix(set.name, "folder") && os.Getenv("POCKETSPHINX_MEASURE") == "" {
				t.Skip("POCKETSPHINX_MEASURE names no folder")
			}
			measure(t, r, clips(t, set.clips, 1), set.phrases)
		})
	}
}

// measure prints what is heard in a set of clips, and how often it is wrong or
// rejected, without a hint and with that of another language.
func measure(t *testing.T, r *Recognizer, all []speechtest.Clip, phrases []string) {
	t.Helper()
	var wrong, words, exact, rejected, hinted, empty, commands int
	for _, c := range all {
		m := found(t, r, inRoom(c.PCM()), phrases)
		v := m.judge("")
		e, n := speechtest.WER(c.Text, v.text)
		wrong, words = wrong+e, words+n
		switch {
		case v.rejected:
			rejected++
		case v.text == "":
			empty++
		case e == 0:
			exact++
		}
		if m.judge("zh").rejected {
			hinted++
		}
		if v.grammar {
			commands++
		}
		_, spoken := perFrame(m.dictation)
		t.Logf("%-40s rejected %-5v doubt %5.1f, %d frames a word: %q, phrase %q %.1f worse",
			c.Name, v.rejected, v.doubt, spoken/max(v.words, 1), v.text, textOf(m.command), v.margin)
	}
	t.Logf("%d clips, %d of %d words wrong (%.1f %%), %d exact, %d rejected, %d with the hint zh, %d empty, %d taken for phrases",
		len(all), wrong, words, 100*float64(wrong)/float64(max(words, 1)), exact, rejected, hinted, empty, commands)
}

// found returns what the decoder measures in one utterance.
func found(tb testing.TB, r *Recognizer, pcm []int16, phrases []string) measurement {
	tb.Helper()
	lent, err := r.pool.acquire(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	defer r.pool.release(lent)
	never := func() bool { return false }
	if err := lent.begin(phrases, nil); err != nil {
		tb.Fatal(err)
	}
	if err := lent.hear(pcm, never); err != nil {
		tb.Fatal(err)
	}
	m, err := lent.finish(never)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// BenchmarkFinal measures how long a sentence of 2 to 5 s takes from the end of its
// sound to the final transcript, when it is spoken in real time: -benchtime 24x
// hears 24 sentences.
func BenchmarkFinal(b *testing.B) {
	r := open(b)
	if err := r.Warm(b.Context()); err != nil {
		b.Fatal(err)
	}
	all := slices.DeleteFunc(clips(b, speechtest.Prompts, 1), func(c speechtest.Clip) bool {
		return c.Duration() < 2*time.Second || c.Duration() > 5*time.Second
	})
	phrases := phrasesOf(b)
	var took []time.Duration
	for i := range b.N {
		s, err := r.Open(b.Context(), providers.ASRRequest{Rate: sampleRate, Phrases: phrases})
		if err != nil {
			b.Fatal(err)
		}
		beat := time.NewTicker(60 * time.Millisecond)
		for piece := range slices.Chunk(inRoom(all[i%len(all)].PCM()), hearSamples) {
			<-beat.C
			if err := s.Write(piece); err != nil {
				b.Fatal(err)
			}
		}
		beat.Stop()
		end := time.Now()
		if err := s.CloseWrite(); err != nil {
			b.Fatal(err)
		}
		for _, err := range s.Transcripts() {
			if err != nil {
				b.Fatal(err)
			}
		}
		took = append(took, time.Since(end))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-ms")
}
