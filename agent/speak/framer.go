package speak

import (
	"fmt"

	"xiaozhi/audio"
)

// tailSamples is how much of what was passed on shows how it ended.
const tailSamples = 8

// framer cuts the sound of a sentence into frames of the reply's format:
// resampled, without a click at its edges, the last frame filled up with
// silence. It is for one goroutine and is used for one sentence after the other.
type framer struct {
	reply     audio.Format
	resampler map[int]*audio.Resampler
	resampled *audio.Resampler // the one that this sentence goes through, nil for none
	acc       []int16          // samples of the sentence that do not fill a frame yet
	begun     bool             // something of the sentence was passed on
	tail      []int16          // the last samples that were passed on
}

func newFramer(reply audio.Format) *framer {
	return &framer{reply: reply, resampler: map[int]*audio.Resampler{}}
}

// reset forgets a sentence that was not finished.
func (f *framer) reset() {
	f.acc, f.resampled, f.begun, f.tail = f.acc[:0], nil, false, f.tail[:0]
	clear(f.resampler) // the broken sentence is still in it
}

// write takes PCM in and gives whole frames to emit, which copies them.
func (f *framer) write(pcm []int16, rate int, emit func(frame []int16) error) error {
	r, err := f.from(rate)
	if err != nil {
		return err
	}
	if f.resampled != nil && f.resampled != r { // the rate changes within the sentence
		f.acc = f.resampled.Flush(f.acc)
	}
	f.resampled = r
	if r == nil {
		f.acc = append(f.acc, pcm...)
		return f.emit(emit)
	}
	for len(pcm) > 0 { // in pieces, so that the buffer stays small
		n := min(len(pcm), max(1, rate/10))
		f.acc = r.Write(f.acc, pcm[:n])
		pcm = pcm[n:]
		if err := f.emit(emit); err != nil {
			return err
		}
	}
	return nil
}

// from is the resampler for sound of that rate; nil: it needs none.
func (f *framer) from(rate int) (*audio.Resampler, error) {
	if rate == f.reply.Rate {
		return nil, nil
	}
	if r, ok := f.resampler[rate]; ok {
		return r, nil
	}
	r, err := audio.NewResampler(rate, f.reply.Rate)
	if err != nil {
		return nil, fmt.Errorf("resample speech: %w", err)
	}
	f.resampler[rate] = r
	return r, nil
}

// finish ends the sentence.
func (f *framer) finish(emit func(frame []int16) error) error {
	if f.resampled != nil {
		f.acc = f.resampled.Flush(f.acc)
	}
	if end := append(f.tail, f.acc...); audio.EndsAbruptly(end) {
		n := len(f.acc)
		f.acc = f.pad(audio.FadeSamples(f.reply.Rate))
		audio.RampOut(f.acc[n:], end[len(end)-1])
	}
	n := f.reply.Samples()
	if rest := len(f.acc) % n; rest != 0 {
		f.acc = f.pad(n - rest)
	}
	err := f.emit(emit)
	f.resampled, f.begun, f.tail = nil, false, f.tail[:0]
	return err
}

// pad is the accumulator with n samples of silence behind it.
func (f *framer) pad(n int) []int16 {
	for range n {
		f.acc = append(f.acc, 0)
	}
	return f.acc
}

// emit passes on the whole frames of the accumulator.
func (f *framer) emit(emit func(frame []int16) error) error {
	n := f.reply.Samples()
	used := 0
	for ; len(f.acc)-used >= n; used += n {
		frame := f.acc[used : used+n]
		if !f.begun {
			f.begun = true
			audio.FadeIn(frame, f.reply.Rate)
		}
		f.tail = append(f.tail[:0], frame[max(0, n-tailSamples):]...)
		if err := emit(frame); err != nil {
			return err
		}
	}
	f.acc = append(f.acc[:0], f.acc[used:]...)
	return nil
}
