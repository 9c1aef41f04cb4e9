package echo

import (
	"math"

	"xiaozhi/audio/internal/dsp"
)

// The delay is searched for at 4 kHz, where speech and small loudspeakers are
// strong and a search is cheap.
const (
	delayStep   = 4    // samples at 16 kHz for one here
	delayFFT    = 2048 // covers a frame of 60 ms and all delays
	delayFrame  = frameSize / delayStep
	delaySpan   = delayFFT - delayFrame // delays that are told apart
	latestEcho  = 4800                  // samples at 16 kHz: 300 ms after what the timestamp says
	delayMemory = 0.85                  // of what was heard, per frame
	delayTaps   = 32                    // of the filter before every fourth sample
	delayLoud   = 30 * 30               // mean power from which sound is worth a look
)

// delayFinder finds the delay from the reference to the microphone, by
// cross-correlation over about the last half second.
type delayFinder struct {
	fft    *dsp.FFT
	low    [delayTaps]float32 // the filter
	tail   [delayTaps]float32 // the microphone's last samples
	cross  [delayFFT/2 + 1]complex64
	power  [delayFFT/2 + 1]float32
	x, m   [delayFFT/2 + 1]complex64
	buffer [delayFFT]float32
}

func newDelayFinder() *delayFinder {
	d := &delayFinder{fft: dsp.NewFFT(delayFFT)}
	sum := float32(0)
	for i := range d.low {
		x := float64(i) - (delayTaps-1)/2.0
		hann := 0.5 - 0.5*math.Cos(2*math.Pi*(float64(i)+0.5)/delayTaps)
		d.low[i] = float32(dsp.Sinc(0.85*x/delayStep) * hann)
		sum += d.low[i]
	}
	for i := range d.low {
		d.low[i] /= sum
	}
	return d
}

func (d *delayFinder) reset() {
	clear(d.cross[:])
	clear(d.power[:])
}

// fade halves, about, the weight of the past.
func (d *delayFinder) fade() {
	for k := range d.cross {
		d.cross[k] *= 0.7
		d.power[k] *= 0.7
	}
}

// hear takes in a frame of the microphone, at most 960 samples, which the running alignment
// puts at that place of the track. It returns false if nothing is played.
func (d *delayFinder) hear(t *reference, at int64, mic []int16, scratch []float32) bool {
	if !d.reference(t, at, scratch) {
		return false
	}
	d.fft.Forward(d.x[:], d.buffer[:])
	d.microphone(mic, scratch)
	d.fft.Forward(d.m[:], d.buffer[:])
	for k, x := range d.x {
		m := d.m[k]
		d.cross[k] = complex(
			delayMemory*real(d.cross[k])+real(x)*real(m)+imag(x)*imag(m),
			delayMemory*imag(d.cross[k])+imag(x)*real(m)-real(x)*imag(m))
		d.power[k] = delayMemory*d.power[k] + real(x)*real(x) + imag(x)*imag(x)
	}
	return true
}

// reference fills the buffer with the sound that may be heard. It returns false if that is silence.
func (d *delayFinder) reference(t *reference, at int64, scratch []float32) bool {
	const piece = 512 // outputs at a time
	sum := float32(0)
	for from := 0; from < delayFFT; from += piece {
		in := scratch[:piece*delayStep+delayTaps]
		t.read(in, at-latestEcho+int64(from*delayStep)-delayTaps)
		for i := range piece {
			v := dsp.Dot(in[i*delayStep:][:delayTaps], d.low[:])
			d.buffer[from+i] = v
			sum += v * v
		}
	}
	return sum > delayLoud*delayFFT/8
}

// microphone fills the buffer with the frame and silence.
func (d *delayFinder) microphone(mic []int16, scratch []float32) {
	mic = mic[:min(len(mic), frameSize)]
	in := scratch[:delayTaps+len(mic)]
	copy(in, d.tail[:])
	for i, v := range mic {
		in[delayTaps+i] = float32(v)
	}
	copy(d.tail[:], in[len(mic):])
	clear(d.buffer[:])
	for i := range len(mic) / delayStep {
		d.buffer[i] = dsp.Dot(in[i*delayStep:][:delayTaps], d.low[:])
	}
}

// find returns the delay of the echo after the reference in samples at 16 kHz
// (negative: it comes before), and how clear it is.
func (d *delayFinder) find() (lag int64, prominence float32) {
	mean := float32(0)
	for _, p := range d.power {
		mean += p / float32(len(d.power))
	}
	if mean == 0 {
		return 0, 0
	}
	for k, p := range d.power { // as if the reference were white
		scale := 1 / (p + mean/20)
		d.x[k] = complex(real(d.cross[k])*scale, imag(d.cross[k])*scale)
	}
	d.fft.Inverse(d.buffer[:], d.x[:])
	best, sum := 0, float32(0)
	for i, v := range d.buffer[:delaySpan] {
		sum += v * v
		if v*v > d.buffer[best]*d.buffer[best] {
			best = i
		}
	}
	if sum == 0 || best == 0 || best == delaySpan-1 {
		return 0, 0 // nothing, or the slope of something beyond
	}
	peak := d.buffer[best]
	prominence = float32(math.Sqrt(float64(peak * peak * delaySpan / sum)))
	return latestEcho - int64(math.Round(delayStep*(float64(best)+d.between(best)))), prominence
}

// between returns the offset of the true peak from best, -0.5 to 0.5, by the
// parabola through it and its neighbours.
func (d *delayFinder) between(best int) float64 {
	l, m, r := d.buffer[best-1], d.buffer[best], d.buffer[best+1]
	bend := 2*m - l - r
	if bend == 0 {
		return 0
	}
	return float64(max(-0.5, min(0.5, (r-l)/(2*bend))))
}
