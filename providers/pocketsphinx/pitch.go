package pocketsphinx

import "math"

// A voice's pitch tells roughly how long the speaker's vocal tract is, and so by how much the frequencies of the
// sounds differ from those that the acoustic model knows best.
const (
	// highPitch is the pitch from which a voice counts as high, in Hz: most women's and all children's.
	highPitch = 160.0

	pitchRate   = sampleRate / pitchStep
	pitchStep   = 4               // samples that become one: pitch needs no more than 4 kHz
	pitchWindow = pitchRate / 25  // 40 ms
	pitchHop    = pitchRate / 50  // 20 ms
	pitchMin    = pitchRate / 400 // the period of the highest voice, in samples
	pitchMax    = pitchRate / 70  // and of the lowest
	voicedPart  = 0.6             // of the energy that has to come again after a period
	voicedLevel = 0.1             // of the loudest window's energy
	fewVoiced   = 5               // windows that say nothing about a voice
)

// pitchOf returns the median pitch of the voiced parts of sound, in Hz, or 0 if
// there are too few of them.
func pitchOf(pcm []int16) float64 {
	low := make([]float64, len(pcm)/pitchStep)
	for i := range low {
		for _, v := range pcm[i*pitchStep:][:pitchStep] {
			low[i] += float64(v)
		}
	}
	var loudest float64
	for at := 0; at+pitchWindow <= len(low); at += pitchHop {
		loudest = max(loudest, product(low[at:], low[at:]))
	}
	var periods [pitchMax + 1]int
	voiced := 0
	for at := 0; at+pitchWindow+pitchMax <= len(low); at += pitchHop {
		if product(low[at:], low[at:]) < voicedLevel*loudest {
			continue
		}
		if p := periodOf(low[at:]); p > 0 {
			periods[p]++
			voiced++
		}
	}
	if voiced < fewVoiced {
		return 0
	}
	shorter := 0
	for p, n := range periods {
		if shorter += n; 2*shorter >= voiced {
			return float64(pitchRate) / float64(p)
		}
	}
	return 0
}

// periodOf returns the period of the sound at the beginning of pcm, in samples, or 0 if it has none: the shortest one
// after which the sound comes again nearly as well as after any.
func periodOf(pcm []float64) int {
	var again [pitchMax + 1]float64
	best := 0.0
	here := product(pcm, pcm)
	for p := pitchMin; p <= pitchMax; p++ {
		if there := product(pcm[p:], pcm[p:]); here > 0 && there > 0 {
			again[p] = product(pcm, pcm[p:]) / math.Sqrt(here*there)
		}
		best = max(best, again[p])
	}
	if best < voicedPart {
		return 0
	}
	for p := pitchMin; p < pitchMax; p++ {
		if again[p] > 0.9*best && again[p] >= again[p+1] {
			return p
		}
	}
	return 0
}

// product is the inner product of a window of two sounds.
func product(a, b []float64) (sum float64) {
	for i, v := range a[:pitchWindow] {
		sum += v * b[i]
	}
	return sum
}
