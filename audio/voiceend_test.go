package audio

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// voiceThenRoom is 500 ms of a voice that swells, up to at, and then the room
// alone, for the length of a whole number of windows.
func voiceThenRoom(at int, voice, room float64) []int16 {
	rnd := rand.New(rand.NewPCG(1, 2))
	pcm := make([]int16, 20*512)
	for i := range pcm {
		v := room * rnd.NormFloat64()
		if i < at {
			v += voice * (1 + 0.8*math.Sin(float64(i)/800)) * math.Sin(float64(i)/9)
		}
		pcm[i] = int16(max(-32768, min(32767, v)))
	}
	return pcm
}

// TestVoiceEnd: wherever within a window the voice ends, in whatever room, and
// although the detector holds on for a window, its end is found within a block.
func TestVoiceEnd(t *testing.T) {
	for _, room := range []float64{0, 20, 150} {
		for at := 15 * 512; at < 16*512; at += 37 {
			pcm := voiceThenRoom(at, 4000, room)
			var v VoiceEnd
			v.Window(voiceThenRoom(0, 0, room)[:512], false)
			for w := range 20 {
				voiced := w*512 < at+512
				tail := v.Window(pcm[w*512:(w+1)*512], voiced)
				if !voiced || (w+1)*512 <= at {
					if tail > 8*time.Millisecond {
						t.Fatalf("room %v: within the voice, window %d: tail %v", room, w, tail)
					}
					continue
				}
				want := Recognition.Duration((w+1)*512 - at)
				if got := tail; got > want || got < want-9*time.Millisecond {
					t.Errorf("room %v, end at %d: window %d: tail %v, want %v", room, at, w, got, want)
				}
			}
		}
	}
}

// What is never clear, as a voice no louder than the room, moves nothing far.
func TestVoiceEndInNoise(t *testing.T) {
	var v VoiceEnd
	noise := voiceThenRoom(0, 0, 2000)
	for w := range 5 {
		v.Window(noise[w*512:(w+1)*512], false)
	}
	for w := 5; w < 20; w++ {
		if tail := v.Window(noise[w*512:(w+1)*512], true); tail > mostVoiceEnd {
			t.Errorf("window %d: tail %v", w, tail)
		}
	}
	v.Reset()
	if tail := v.Window(make([]int16, 512), true); tail != 0 {
		t.Errorf("after Reset: tail %v of silence that is said to be voice", tail)
	}
}
