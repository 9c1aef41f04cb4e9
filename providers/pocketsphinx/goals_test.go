package pocketsphinx

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"xiaozhi/internal/speechtest"
	"xiaozhi/internal/testall"
	"xiaozhi/providers"
)

// TestGoals prints what a conversation in which Chinese is expected has of the
// recogniser: its text is asked for at each pause of 200 ms, and when the speaker goes on,
// another stream begins with all of the sound. A rejected clip counts as wrong in all its
// words. Other programs do not count in processor time.
func TestGoals(t *testing.T) {
	testall.Only(t)
	r := open(t)
	for name, set := range map[string]func() ([]speechtest.Clip, error){
		"seen": speechtest.Prompts, "unseen": speechtest.Unseen, "others": speechtest.Others,
	} {
		t.Run(name, func(t *testing.T) {
			var wrong, words, rejected int
			var sound, used time.Duration
			var finals, walls []time.Duration
			all := clips(t, set, 1)
			for _, c := range all {
				final, took, after, waited := converse(t, r, inRoom(c.PCM()))
				e, n := speechtest.WER(c.Text, final.Text)
				if final.Rejected {
					e = n
					rejected++
				}
				wrong, words = wrong+e, words+n
				sound, used, finals = sound+c.Duration(), used+took, append(finals, after...)
				walls = append(walls, waited...)
				t.Logf("%-30s %2d of %2d wrong, rejected %v: %s", c.Name, e, n, final.Rejected, final.Text)
			}
			slices.Sort(finals)
			slices.Sort(walls)
			t.Logf("%s: %d clips, %.1f %% of %d words wrong, %d rejected, %.2f s a second of speech, %d pauses: text after p50 %v, p95 %v of processor time, p50 %v, p95 %v by the clock",
				name, len(all), 100*float64(wrong)/float64(words), words, rejected, used.Seconds()/sound.Seconds(),
				len(finals), finals[len(finals)/2].Round(time.Millisecond), finals[len(finals)*95/100].Round(time.Millisecond),
				walls[len(walls)/2].Round(time.Millisecond), walls[len(walls)*95/100].Round(time.Millisecond))
		})
	}
}

// converse says a clip and asks for the text at each of its pauses. It gives the last text, the
// processor time of all, and that between each pause and its text, in the end by the clock.
func converse(t *testing.T, r *Recognizer, pcm []int16) (final providers.Transcript, used time.Duration, finals, walls []time.Duration) {
	t.Helper()
	began := processorTime(t)
	for _, end := range pausesIn(pcm) {
		s, err := r.Open(t.Context(), providers.ASRRequest{Rate: sampleRate, Language: "zh"})
		if err != nil {
			t.Fatal(err)
		}
		_, known := r.past.find(t.Context(), pcm[:end])
		if err := s.Write(pcm[:max(known, hearSamples)]); err != nil { // what was said before the pause comes at once
			t.Fatal(err)
		}
		for piece := range slices.Chunk(pcm[max(known, hearSamples):end], hearSamples) {
			if err := s.Write(piece); err != nil {
				t.Fatal(err)
			}
			for { // in real time it is searched before the next piece comes
				s := s.(*stream)
				s.mu.Lock()
				left := len(s.waiting)
				s.mu.Unlock()
				if left == 0 {
					break
				}
				time.Sleep(time.Millisecond)
			}
		}
		time.Sleep(20 * time.Millisecond)
		paused, since := processorTime(t), time.Now()
		s.CloseWrite()
		for got, err := range s.Transcripts() {
			if err != nil {
				t.Fatal(err)
			}
			final = got
		}
		finals, walls = append(finals, processorTime(t)-paused), append(walls, time.Since(since))
	}
	return final, processorTime(t) - began, finals, walls
}

// pausesIn lists where 200 ms of quiet after voice are over; the last is the end.
func pausesIn(pcm []int16) (ends []int) {
	const quiet, frame = 200 * sampleRate / 1000, sampleRate / 100
	var loudest, since int
	for _, v := range pcm {
		loudest = max(loudest, int(v), -int(v))
	}
	voiced := false
	for at := 0; at+frame <= len(pcm); at += frame {
		if peak := slices.Max(pcm[at : at+frame]); int(peak) > loudest/25 {
			voiced, since = true, 0
		} else if since += frame; voiced && since == quiet {
			ends, voiced = append(ends, at+frame), false
		}
	}
	if len(ends) == 0 {
		return []int{len(pcm)}
	}
	return ends
}

// processorTime is what the whole program has used.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
