package echo

import "xiaozhi/audio/internal/dsp"

// Shape of the adaptive filter, at 16 kHz.
const (
	hopSize   = 160 // samples worked on at a time, 10 ms
	fftSize   = 512
	binCount  = fftSize/2 + 1
	partSize  = 320 // taps of one partition: two hops
	partCount = 11
	tailSize  = partCount * partSize // 220 ms
	pastCount = 2*partCount - 1      // hops whose spectra are kept
)

// The Kalman filter's model of an echo path, in parts of power.
const (
	pathUnknown   = 0.2   // of a partition of which nothing is known
	pathChange    = 0.005 // part of a path that changes in a hop
	pathFloor     = 1e-8  // least doubt
	noiseMemory   = 0.8   // of the near end's spectrum, per hop
	freshness     = 0.97  // of a filter that begins to learn, per hop: a third of a second
	alwaysUnsure  = 0.15  // what is believed of its doubt when it is no longer fresh
	elsewhere     = 2     // how much louder an echo may be that comes at another time
	noiseFloor    = 2e3   // power of a bin that is nothing: half a step of 16 bits
	hopsPerFFT    = float32(fftSize) / hopSize
	constraintsAt = 3 // partitions brought back to their length in one hop
)

type (
	spectrum [binCount]complex64
	power    [binCount]float32
	block    [hopSize]float32
	window   [fftSize]float32
)

// filter learns the way from the loudspeaker to the microphone as a finite impulse response in
// the frequency domain, in partitions, and predicts the sound that came that way. Its step is a
// Kalman filter's, a scalar for each bin of each partition: it learns fast what it does not
// know, and little while the user speaks over the echo, which is noise to it.
type filter struct {
	fft   *dsp.FFT
	past  [pastCount]spectrum // of the reference; newest at head
	head  int
	loud  [pastCount]float32 // mean power of a sample of the newest hop of each
	taps  [partCount]spectrum
	doubt [partCount]power // variance of taps
	noise power            // the power of what is not understood
	turn  int              // the partition whose constraint is next
	fresh float32          // from 1 to 0: how little it has learned since it was told to

	window  window
	scratch spectrum
	unsure  power // what of the error the doubt explains
}

func (f *filter) reset() {
	f.taps = [partCount]spectrum{}
	f.noise = power{}
	f.forgetDoubt(pathUnknown)
}

// forgetDoubt raises the doubt of every partition to least.
func (f *filter) forgetDoubt(least float32) {
	f.fresh = 1
	for p := range f.doubt {
		for k := range f.doubt[p] {
			f.doubt[p][k] = max(f.doubt[p][k], least)
		}
	}
}

// hear takes the reference's last fftSize samples, of which a hop is new.
func (f *filter) hear(window *window) {
	f.head = (f.head + pastCount - 1) % pastCount
	f.fft.Forward(f.past[f.head][:], window[:])
	sum := float32(0)
	for _, v := range window[fftSize-hopSize:] {
		sum += v * v
	}
	f.loud[f.head] = sum / hopSize
}

// played returns the reference as partition p hears it.
func (f *filter) played(p int) *spectrum { return &f.past[(f.head+2*p)%pastCount] }

// predict writes the echo that the newest hop holds.
func (f *filter) predict(echo *block) {
	f.scratch = spectrum{}
	for p := range f.taps {
		x, w := f.played(p), &f.taps[p]
		for k := range f.scratch {
			a, b := x[k], w[k]
			f.scratch[k] += complex(real(a)*real(b)-imag(a)*imag(b), real(a)*imag(b)+imag(a)*real(b))
		}
	}
	f.fft.Inverse(f.window[:], f.scratch[:])
	copy(echo[:], f.window[fftSize-hopSize:])
}

// learn takes what was left of the microphone's hop without predict's echo.
func (f *filter) learn(rest *block) {
	f.window = window{}
	copy(f.window[fftSize-hopSize:], rest[:])
	f.fft.Forward(f.scratch[:], f.window[:])
	f.unsure = power{}
	f.fresh *= freshness
	for p := range f.doubt {
		x, doubt := f.played(p), &f.doubt[p]
		for k, v := range x {
			f.unsure[k] += (real(v)*real(v) + imag(v)*imag(v)) * doubt[k]
		}
	}
	var step spectrum // the error over the innovation's variance
	var share power
	for k, e := range f.scratch {
		f.noise[k] = noiseMemory*f.noise[k] + (1-noiseMemory)*(real(e)*real(e)+imag(e)*imag(e))
		share[k] = 1 / (f.unsure[k] + hopsPerFFT*(f.noise[k]+noiseFloor))
		step[k] = complex(real(e)*share[k], imag(e)*share[k])
	}
	for p := range f.taps {
		f.update(p, &step, &share)
	}
	for range constraintsAt {
		f.constrain(f.turn)
		f.turn = (f.turn + 1) % partCount
	}
}

// update moves one partition and what is known of it.
func (f *filter) update(p int, step *spectrum, share *power) {
	x, w, doubt := f.played(p), &f.taps[p], &f.doubt[p]
	for k := range w {
		a, e, d := x[k], step[k], doubt[k]
		re, im := real(a), imag(a)
		w[k] += complex(d*(re*real(e)+im*imag(e)), d*(re*imag(e)-im*real(e)))
		known := d * (re*re + im*im) * share[k] * (1 / hopsPerFFT)
		size := real(w[k])*real(w[k]) + imag(w[k])*imag(w[k])
		doubt[k] = (1-pathChange)*d*(1-known) + pathChange*size + pathFloor
	}
}

// constrain cuts a partition to its taps: what a block transform puts beyond them is an artefact.
func (f *filter) constrain(p int) {
	f.scratch = f.taps[p]
	f.fft.Inverse(f.window[:], f.scratch[:])
	clear(f.window[partSize:])
	f.fft.Forward(f.taps[p][:], f.window[:])
}

// refill reads the reference's past anew, for a new alignment: place is that of the next hop.
func (f *filter) refill(t *reference, place int64) {
	for i := pastCount; i > 0; i-- {
		t.read(f.window[:], place-int64(i-1)*hopSize-fftSize)
		f.hear(&f.window)
	}
}

// trial returns the mean power of a hop of the microphone's frame, and the power
// that would be left of it if its first sample were at that place. It looks at every other hop.
func (f *filter) trial(t *reference, place int64, mic []int16) (before, after float32) {
	var sum, x spectrum
	hops := float32(0)
	for ; len(mic) >= hopSize; hops++ {
		sum = spectrum{}
		for p := range f.taps {
			t.read(f.window[:], place+hopSize-fftSize-int64(p)*partSize)
			f.fft.Forward(x[:], f.window[:])
			for k, w := range f.taps[p] {
				sum[k] += x[k] * w
			}
		}
		f.fft.Inverse(f.window[:], sum[:])
		for i, y := range f.window[fftSize-hopSize:] {
			v := float32(mic[i])
			before += v * v
			after += (v - y) * (v - y)
		}
		step := min(2*hopSize, len(mic))
		mic, place = mic[step:], place+2*hopSize
	}
	return before / max(hops, 1), after / max(hops, 1)
}

// doubted writes the power of the echo that may be left in a hop because the
// filter is unsure: by its doubt if it is settled, else by the room's gain.
func (f *filter) doubted(dst *power, settled bool) {
	if settled {
		for k := range dst {
			dst[k] = f.unsure[k] * max(f.fresh, alwaysUnsure) / hopsPerFFT
		}
		return
	}
	*dst = power{}
	for p := range f.taps {
		x := f.played(p)
		for k, w := range f.taps[p] {
			dst[k] += (real(w)*real(w) + imag(w)*imag(w)) * (real(x[k])*real(x[k]) + imag(x[k])*imag(x[k])) * (elsewhere / hopsPerFFT)
		}
	}
}
