package echo

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/audio"
)

// noisy is a sound like no other: noise in syllables.
func noisy(seed uint64, rate int, length time.Duration) []int16 {
	random := rand.New(rand.NewPCG(seed, seed))
	pcm := voiced(rate, length, 30000)
	last := 0.0
	for i := range pcm {
		last += 0.3 * (random.NormFloat64() - last)
		pcm[i] = int16(0.2*float64(pcm[i])*last + 3000*last)
	}
	return pcm
}

// voiced is a sound of syllables.
func voiced(rate int, length time.Duration, amplitude float64) []int16 {
	pcm := make([]int16, audio.Format{Rate: rate, Frame: length}.Samples())
	for i := range pcm {
		at := float64(i) / float64(rate)
		v := 0.0
		for k := 1.0; k <= 8; k++ {
			v += math.Sin(2*math.Pi*140*k*at) / k
		}
		pcm[i] = int16(amplitude / 2 * (0.5 - 0.5*math.Cos(2*math.Pi*4*at)) * v)
	}
	return pcm
}

// TestSelfEcho: what a device has played is known to the millisecond, across
// pauses, and where a reply takes the place of one that was not played to its end.
func TestSelfEcho(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &SelfEcho{}
		enc, err := audio.NewEncoderOf(audio.Recognition, audio.Device())
		if err != nil {
			t.Fatal(err)
		}
		dec, err := audio.NewDecoder(16000)
		if err != nil {
			t.Fatal(err)
		}
		packet, frame := make([]byte, audio.MaxPacket), make([]int16, audio.MaxFrameSamples(16000))
		send := func(pcm []int16, first bool) (heard []int16) { // four frames ahead, as a reply is
			for i, n := 0, audio.Recognition.Samples(); (i+1)*n <= len(pcm); i++ {
				if i >= 4 {
					time.Sleep(audio.Recognition.Frame)
				}
				size, err := enc.Encode(pcm[i*n:(i+1)*n], packet)
				if err != nil {
					t.Fatal(err)
				}
				l.Played(packet[:size], first && i == 0, time.Now())
				n, err := dec.Decode(packet[:size], frame)
				if err != nil {
					t.Fatal(err)
				}
				heard = append(heard, frame[:n]...)
			}
			return heard
		}
		own := func(want bool, what string, pcm []int16) {
			t.Helper()
			if got := l.Is(coarse(nil, pcm), time.Now()); got != want {
				t.Errorf("%s: %t", what, got)
			}
		}
		sound, other, next := noisy(1, 16000, 3*time.Second), noisy(2, 16000, 3*time.Second), noisy(4, 16000, 3*time.Second)
		send(sound, true)
		own(false, "before the microphone is open", sound[:32000])
		l.Open(true)
		sound = send(sound, true)
		time.Sleep(4 * 60 * time.Millisecond) // it is played
		own(true, "all of it", sound)
		own(true, "its end", sound[32000:])
		own(false, "somebody else", other)
		own(false, "too little", sound[47000:])
		time.Sleep(time.Second)
		own(true, "a second later", append(sound[16000:len(sound):len(sound)], make([]int16, 16000)...))
		own(false, "and somebody else after it", slices.Concat(sound[8000:], make([]int16, 8000), other[:8000]))
		own(true, "late", sound)
		time.Sleep(time.Second)
		own(false, "too late", sound[:32000])
		for quiet, want := range map[time.Duration]bool{
			5 * time.Second: true, 4 * time.Second: true, 3 * time.Second: false, time.Second: false, 0: false, -time.Second: false,
		} {
			if got := l.Unheard(quiet, 0, time.Now()); got != want { // of three seconds the last was played two seconds ago
				t.Errorf("nothing heard for %v: %t", quiet, got)
			}
			if got := l.Unheard(quiet, time.Hour, time.Now()); got {
				t.Errorf("nothing heard an hour ago for %v", quiet)
			}
		}
		word := noisy(5, 16000, 1500*time.Millisecond)
		twice := send(append(word, word...), true)
		time.Sleep(4*60*time.Millisecond + 1500*time.Millisecond)
		own(false, "the last words again", append(make([]int16, 6000), twice[24000:]...))
		other = send(other[:32000], true)
		next = send(next, true) // four frames of the other were not played
		time.Sleep(4 * 60 * time.Millisecond)
		own(true, "the next reply", next)
		own(true, "both", append(other[16000:32000-4*960:32000-4*960], next...))
		if len(l.Keep(nil, next)) == 0 {
			t.Error("nothing is kept of what is heard")
		}
		time.Sleep(30 * 24 * time.Hour)
		sound = send(sound, true)
		time.Sleep(4 * 60 * time.Millisecond)
		own(true, "a month later", sound)
		l.Open(false)
		own(false, "after it is closed", sound)
		if l.Keep(nil, next) != nil {
			t.Error("something is kept where there is nothing to compare it with")
		}
		var none *SelfEcho
		none.Open(true)
		none.Played(packet, true, time.Now())
		if none.Is(make([]int16, 8000), time.Now()) || none.Keep(nil, sound) != nil || none.Unheard(time.Hour, 0, time.Now()) {
			t.Error("a nil SelfEcho recognises something")
		}
	})
}
