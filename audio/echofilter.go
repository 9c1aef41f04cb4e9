package audio

import "math"

// Shape of the adaptive filter, at 16 kHz.
const (
	echoHop   = 160 // samples worked on at a time, 10 ms
	echoFFT   = 512
	echoBins  = echoFFT/2 + 1
	echoPart  = 320 // taps of one partition: two hops
	echoParts = 11
	echoTail  = echoParts * echoPart // 220 ms
	echoPast  = 2*echoParts - 1      // hops whose spectra are kept
)

// The Kalman filter's model of an echo path, in parts of power.
const (
	pathUnknown   = 0.2   // what a partition may amount to of which nothing is known
	pathChange    = 0.005 // how much of a path is another one after a hop
	pathFloor     = 1e-8  // what is never known better
	noiseMemory   = 0.8   // of the near end's spectrum, per hop
	freshness     = 0.97  // of a filter that begins to learn, per hop: a third of a second
	alwaysUnsure  = 0.15  // what is believed of its doubt when it is no longer fresh
	elsewhere     = 2     // how much louder an echo may be that comes at another time
	noiseFloor    = 2e3   // power of a bin that is nothing: half a step of 16 bits
	hopsPerFFT    = float32(echoFFT) / echoHop
	constraintsAt = 3 // partitions brought back to their length in one hop
)

type (
	echoSpectrum [echoBins]complex64
	echoPower    [echoBins]float32
	echoBlock    [echoHop]float32
	echoWindow   [echoFFT]float32
)

// echoFilter learns the way from the loudspeaker to the microphone as a finite
// impulse response in the frequency domain, in partitions, and says what of the
// microphone's sound came that way. Its step is a Kalman filter's, one scalar
// for each bin of each partition: it learns fast what it does not know, and
// hardly while somebody speaks over the echo, as that is noise to it.
type echoFilter struct {
	fft   *fft
	past  [echoPast]echoSpectrum // of the reference; newest at head
	head  int
	loud  [echoPast]float32 // mean power of a sample of the newest hop of each
	taps  [echoParts]echoSpectrum
	doubt [echoParts]echoPower // variance of taps
	noise echoPower            // the power of what is not understood
	turn  int                  // the partition whose constraint is next
	fresh float32              // from 1 to 0: how little it has learned since it was told to

	window  echoWindow
	scratch echoSpectrum
	unsure  echoPower // what of the error the doubt explains
}

func (f *echoFilter) reset() {
	f.taps = [echoParts]echoSpectrum{}
	f.noise = echoPower{}
	f.forgetDoubt(pathUnknown)
}

// forgetDoubt makes every partition at least that uncertain.
func (f *echoFilter) forgetDoubt(least float32) {
	f.fresh = 1
	for p := range f.doubt {
		for k := range f.doubt[p] {
			f.doubt[p][k] = max(f.doubt[p][k], least)
		}
	}
}

// hear takes the reference's last echoFFT samples, of which a hop is new.
func (f *echoFilter) hear(window *echoWindow) {
	f.head = (f.head + echoPast - 1) % echoPast
	f.fft.forward(f.past[f.head][:], window[:])
	sum := float32(0)
	for _, v := range window[echoFFT-echoHop:] {
		sum += v * v
	}
	f.loud[f.head] = sum / echoHop
}

// loudest is the mean power of the loudest hop that is still heard.
func (f *echoFilter) loudest() float32 {
	most := float32(0)
	for _, v := range f.loud {
		most = max(most, v)
	}
	return most
}

// played is the reference as partition p hears it.
func (f *echoFilter) played(p int) *echoSpectrum { return &f.past[(f.head+2*p)%echoPast] }

// predict writes the echo that the newest hop holds.
func (f *echoFilter) predict(echo *echoBlock) {
	f.scratch = echoSpectrum{}
	for p := range f.taps {
		x, w := f.played(p), &f.taps[p]
		for k := range f.scratch {
			a, b := x[k], w[k]
			f.scratch[k] += complex(real(a)*real(b)-imag(a)*imag(b), real(a)*imag(b)+imag(a)*real(b))
		}
	}
	f.fft.inverse(f.window[:], f.scratch[:])
	copy(echo[:], f.window[echoFFT-echoHop:])
}

// learn takes what was left of the microphone's hop without predict's echo.
func (f *echoFilter) learn(rest *echoBlock) {
	f.window = echoWindow{}
	copy(f.window[echoFFT-echoHop:], rest[:])
	f.fft.forward(f.scratch[:], f.window[:])
	f.unsure = echoPower{}
	f.fresh *= freshness
	for p := range f.doubt {
		x, doubt := f.played(p), &f.doubt[p]
		for k, v := range x {
			f.unsure[k] += (real(v)*real(v) + imag(v)*imag(v)) * doubt[k]
		}
	}
	var step echoSpectrum // the error over the innovation's variance
	var share echoPower
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
		f.turn = (f.turn + 1) % echoParts
	}
}

// update moves one partition and what is known of it.
func (f *echoFilter) update(p int, step *echoSpectrum, share *echoPower) {
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

// constrain cuts a partition to its taps: what a block transform makes of it
// beyond them is not of this world.
func (f *echoFilter) constrain(p int) {
	f.scratch = f.taps[p]
	f.fft.inverse(f.window[:], f.scratch[:])
	clear(f.window[echoPart:])
	f.fft.forward(f.taps[p][:], f.window[:])
}

// refill reads the reference's past anew, for a new alignment: place is that of
// the next hop.
func (f *echoFilter) refill(t *echoTrack, place int64) {
	for i := echoPast; i > 0; i-- {
		t.read(f.window[:], place-int64(i-1)*echoHop-echoFFT)
		f.hear(&f.window)
	}
}

// trial says what power a hop of the microphone's frame has, and what would be
// left of it if its first sample were at that place. It looks at every other hop.
func (f *echoFilter) trial(t *echoTrack, place int64, mic []int16) (before, after float32) {
	var sum, x echoSpectrum
	hops := float32(0)
	for ; len(mic) >= echoHop; hops++ {
		sum = echoSpectrum{}
		for p := range f.taps {
			t.read(f.window[:], place+echoHop-echoFFT-int64(p)*echoPart)
			f.fft.forward(x[:], f.window[:])
			for k, w := range f.taps[p] {
				sum[k] += x[k] * w
			}
		}
		f.fft.inverse(f.window[:], sum[:])
		for i, y := range f.window[echoFFT-echoHop:] {
			v := float32(mic[i])
			before += v * v
			after += (v - y) * (v - y)
		}
		step := min(2*echoHop, len(mic))
		mic, place = mic[step:], place+2*echoHop
	}
	return before / max(hops, 1), after / max(hops, 1)
}

// doubted writes how much echo may be left in a hop, of which the filter knows
// nothing: everything, before it knows the room at all; what the room makes of
// such a sound, while it does not know where it is.
func (f *echoFilter) doubted(dst *echoPower, settled, located bool) {
	switch {
	case settled:
		for k := range dst {
			dst[k] = f.unsure[k] * max(f.fresh, alwaysUnsure) / hopsPerFFT
		}
	case !located:
		for k := range dst {
			dst[k] = math.MaxFloat32 / 4
		}
	default:
		*dst = echoPower{}
		for p := range f.taps {
			x := f.played(p)
			for k, w := range f.taps[p] {
				dst[k] += (real(w)*real(w) + imag(w)*imag(w)) * (real(x[k])*real(x[k]) + imag(x[k])*imag(x[k])) * (elsewhere / hopsPerFFT)
			}
		}
	}
}
