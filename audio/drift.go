package audio

import (
	"math"

	"xiaozhi/audio/internal/dsp"
)

// drift follows the filter with which libopus takes what is below 3 Hz out of the sound before it encodes it (dc_reject).
// Where sound is cut off, that filter goes on for 100 ms with what it has gathered, as a step that ends in a click.
type drift struct {
	rate  int
	value float64 // what it has gathered, on the scale of the samples
}

// add passes samples on to the filter, a millisecond at a time.
func (d *drift) add(pcm []int16) {
	part := 6.3 * 3 / float64(d.rate) // of a sample
	step := d.rate / 1000
	kept := math.Pow(1-part, float64(step))
	for len(pcm) > 0 {
		n, sum := min(step, len(pcm)), 0
		for _, v := range pcm[:n] {
			sum += int(v)
		}
		if n < step {
			kept = math.Pow(1-part, float64(n))
		}
		d.value = d.value*kept + part*float64(sum)
		pcm = pcm[n:]
	}
}

// settle writes a swing of 10 ms into the silence after sound, of which the filter is still to hear head, such that
// nothing is left in the filter: like a last half wave of the voice, the other way. Without room for it, it writes nothing.
func (d *drift) settle(head, silence []int16) {
	n := 2 * FadeSamples(d.rate)
	if len(silence) < n {
		return
	}
	const unit = 1000
	swing := silence[:n]
	size := func(size float64) {
		for i := range swing {
			swing[i] = dsp.Round(float32(size * (0.5 - 0.5*math.Cos(2*math.Pi*(float64(i)+0.5)/float64(n)))))
		}
	}
	shape, left := drift{rate: d.rate}, *d
	size(unit)
	shape.add(swing)
	size(0)
	left.add(head)
	left.add(swing)
	size(-left.value / shape.value * unit)
}
