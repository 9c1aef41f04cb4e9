package echo

import (
	"math"

	"xiaozhi/audio/internal/dsp"
)

// How the rest of an echo is told from the user's voice.
const (
	crossMemory = 0.85  // of the spectra that are compared, per hop of 10 ms
	decay       = 0.75  // of an echo's power from hop to hop, beyond the filter
	overdrive   = 2     // how much more echo is taken away than was estimated
	leakFall    = 0.04  // how fast the leak follows a better filter, per hop
	leakRise    = 1.005 // and a worse one, per hop: 2 dB in a second
	leakLeast   = 0.003 // no filter is better
	leakFirst   = 1     // nothing is known yet
	gainLeast   = 0.01  // what is let through of an echo, as amplitude: -40 dB
	chance      = 0.35  // how alike two sounds are in spectra of so few hops
	hopLeast    = 0.05  // the part of a hop that must be speech for any of it to pass
	hopWhole    = 0.12  // and how much more for all of it
	comfortRise = 1.002 // of the room's noise, per hop
	comfortMost = 4e6   // power of a bin: soft, whatever the room is like
)

// suppressor takes the rest of an echo away, frequency by frequency: what a linear filter cannot
// predict, as a loudspeaker's rattle and a codec's noise. It puts noise like the room's own in
// its place. Its output is one hop late.
type suppressor struct {
	fft     *dsp.FFT
	slope   [2 * hopSize]float32 // both halves of a window whose squares add to one
	rest    block                // the hop before
	echo    block
	overlap block // what the hop before adds to the next

	leak    leak
	comfort comfort

	window     window
	restFT     spectrum
	echoFT     spectrum
	gain       power
	gainSmooth power
}

// leak estimates the part of the echo that the filter leaves, by frequency.
type leak struct {
	restMean, echoMean power
	cross              [binCount]complex64
	reach              power // the echo with its end
	share              power // the part of it that is left
}

// comfort is noise like the room's own.
type comfort struct {
	power power // of the softest that the room gets
	seed  uint32
}

func newSuppressor(f *dsp.FFT) *suppressor {
	s := &suppressor{fft: f, comfort: comfort{seed: 1}}
	for i := range s.slope {
		s.slope[i] = float32(math.Sin(math.Pi * (float64(i) + 0.5) / (2 * hopSize)))
	}
	for k := range s.leak.share {
		s.leak.share[k], s.comfort.power[k] = leakFirst, math.MaxFloat32
	}
	return s
}

// pass outputs the hop before as it was: it cannot hold an echo.
func (s *suppressor) pass(rest, out *block) {
	*out = s.rest
	s.rest, s.echo = *rest, block{}
	for i, v := range rest {
		w := s.slope[hopSize+i]
		s.overlap[i] = v * w * w
	}
}

// suppress takes in the rest of the microphone's hop, the echo that was taken out
// of it, and the power of echo that may be left besides. It outputs the hop before.
func (s *suppressor) suppress(rest, echo *block, unsure *power, out *block) {
	s.spectrum(&s.restFT, &s.rest, rest)
	s.spectrum(&s.echoFT, &s.echo, echo)
	s.rest, s.echo = *rest, *echo
	for k, e := range s.restFT { // each frequency's gain
		ee := real(e)*real(e) + imag(e)*imag(e)
		left := s.leak.left(k, e, s.echoFT[k], ee) + unsure[k]
		s.gain[k] = max(0, 1-overdrive*left/(ee+1))
		s.comfort.follow(k, ee)
	}
	s.smooth()
	s.shape()
	s.fft.Inverse(s.window[:], s.restFT[:])
	for i := range out {
		out[i] = s.overlap[i] + s.window[i]*s.slope[i]
		s.overlap[i] = s.window[hopSize+i] * s.slope[hopSize+i]
	}
}

func (s *suppressor) spectrum(dst *spectrum, before, now *block) {
	for i := range before {
		s.window[i] = before[i] * s.slope[i]
		s.window[hopSize+i] = now[i] * s.slope[hopSize+i]
	}
	clear(s.window[2*hopSize:])
	s.fft.Forward(dst[:], s.window[:])
}

// left takes in the rest e of a hop, of power ee, and its echo y at frequency k,
// and returns the power of the echo in the rest.
func (l *leak) left(k int, e, y complex64, ee float32) float32 {
	yy := real(y)*real(y) + imag(y)*imag(y)
	l.restMean[k] = crossMemory*l.restMean[k] + (1-crossMemory)*ee
	l.echoMean[k] = crossMemory*l.echoMean[k] + (1-crossMemory)*yy
	l.cross[k] = complex(
		crossMemory*real(l.cross[k])+(1-crossMemory)*(real(e)*real(y)+imag(e)*imag(y)),
		crossMemory*imag(l.cross[k])+(1-crossMemory)*(imag(e)*real(y)-real(e)*imag(y)))
	l.reach[k] = max(yy, decay*l.reach[k])
	c := l.cross[k]
	alike := (real(c)*real(c) + imag(c)*imag(c)) / (l.restMean[k]*l.echoMean[k] + 1)
	l.follow(k)
	return max(l.share[k]*l.reach[k], (alike-chance)*ee)
}

// follow moves the share: down where less is left than was thought, up slowly,
// for the user may be speaking.
func (l *leak) follow(k int) {
	if l.echoMean[k] < noiseFloor {
		return
	}
	ratio := l.restMean[k] / l.echoMean[k]
	if ratio < l.share[k] {
		l.share[k] += leakFall * (ratio - l.share[k])
	} else {
		l.share[k] = min(ratio, l.share[k]*leakRise)
	}
	l.share[k] = max(l.share[k], leakLeast)
}

// follow follows the softest power of the room at frequency k.
func (c *comfort) follow(k int, power float32) {
	if power < c.power[k] {
		c.power[k] = min(power, comfortMost)
		return
	}
	if c.power[k] <= comfortMost { // else nothing is known of it
		c.power[k] = min(c.power[k]*comfortRise, comfortMost)
	}
}

// smooth takes the edges off the gains, and makes them small where the whole
// hop says that the user is silent.
func (s *suppressor) smooth() {
	var speech, all float32
	for k := 3; k < binCount; k++ { // from 100 Hz on
		all += s.leak.restMean[k]
		speech += s.gain[k] * s.leak.restMean[k]
	}
	share := float32(1)
	if all > 0 {
		share = speech / all
	}
	limit := min(1, max(0, (share-hopLeast)/hopWhole))
	for k := range s.gain {
		sum, n := float32(0), float32(0)
		for j := max(0, k-2); j <= min(binCount-1, k+2); j++ {
			sum += s.gain[j]
			n++
		}
		g := max(gainLeast, min(1, sum/n*limit))
		if g > s.gainSmooth[k] { // speech begins gently, echoes end at once
			g = 0.5*g + 0.5*s.gainSmooth[k]
		}
		s.gainSmooth[k] = g
	}
}

// shape applies the gains and fills up with comfort noise.
func (s *suppressor) shape() {
	for k := range s.restFT {
		g := s.gainSmooth[k]
		v := s.restFT[k]
		v = complex(real(v)*g, imag(v)*g)
		if missing := s.comfort.power[k] * (1 - g*g); missing > 0 && s.comfort.power[k] <= comfortMost {
			amplitude := float32(math.Sqrt(float64(missing)))
			v += complex(amplitude*s.comfort.random(), amplitude*s.comfort.random())
		}
		s.restFT[k] = v
	}
	s.restFT[0] = complex(real(s.restFT[0]), 0)
	s.restFT[binCount-1] = complex(real(s.restFT[binCount-1]), 0)
}

// random returns a number from -1 to 1, from a generator of its own.
func (c *comfort) random() float32 {
	c.seed ^= c.seed << 13
	c.seed ^= c.seed >> 17
	c.seed ^= c.seed << 5
	return float32(int32(c.seed)) * (1.0 / (1 << 31))
}
