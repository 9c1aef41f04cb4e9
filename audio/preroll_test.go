package audio

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestPreRollKeepsTheEnd(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for _, size := range []int{1, 2, 7, 8000} {
		r := NewPreRoll(16000, time.Duration(size)*time.Second/16000+1)
		var all []int16
		for range 300 {
			pcm := make([]int16, random.IntN(2*size+3))
			for i := range pcm {
				pcm[i] = int16(random.Uint32())
			}
			r.Write(pcm)
			all = append(all, pcm...)
			clear(pcm) // it must have been copied
			if random.IntN(5) == 0 {
				want := all[max(0, len(all)-size):]
				if got := r.Take(); !slices.Equal(got, want) {
					t.Fatalf("size %d: %d samples kept, want %d", size, len(got), len(want))
				}
				all = nil
			}
		}
	}
}

func TestPreRollOfNothing(t *testing.T) {
	for _, r := range []*PreRoll{NewPreRoll(16000, 0), NewPreRoll(16000, -time.Second), NewPreRoll(0, time.Second), NewPreRoll(-1, time.Second)} {
		r.Write([]int16{1, 2, 3})
		r.Write(nil)
		if got := r.Take(); len(got) != 0 {
			t.Errorf("kept %v", got)
		}
	}
}

func TestPreRollIsEmptyAfterTake(t *testing.T) {
	r := NewPreRoll(1000, 5*time.Millisecond)
	r.Write([]int16{1, 2, 3, 4, 5, 6})
	first := r.Take()
	if got := r.Take(); len(got) != 0 {
		t.Errorf("taken twice: %v", got)
	}
	r.Write([]int16{7, 8})
	if got := r.Take(); !slices.Equal(got, []int16{7, 8}) {
		t.Errorf("got %v", got)
	}
	if !slices.Equal(first, []int16{2, 3, 4, 5, 6}) {
		t.Errorf("what was taken first has become %v", first)
	}
}
