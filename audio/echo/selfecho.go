package echo

import (
	"math"
	"slices"
	"sync"
	"time"

	"xiaozhi/audio"
	"xiaozhi/audio/internal/dsp"
)

// Limits of a [SelfEcho], in samples at [Rate] where they have no unit.
const (
	selfKept  = 5 * Rate      // of what was played
	selfHeard = Rate * 5 / 2  // the end of an utterance that is compared
	selfLeast = Rate * 3 / 10 // a shorter utterance is not judged
	// An echo comes back within this delay. With a longer one, a user who repeats
	// the last words in the same voice would be taken for an echo.
	selfDelay = Rate * 6 / 5
	// An echo begins with the reply. So if this much was played before an
	// utterance and not heard, the utterance is not an echo.
	selfUnheard = selfDelay + Rate/10
	// A block is sound if its samples are louder than this on average.
	selfBlock, selfSoft = Rate / 50, 200

	// selfShare is the similarity from which on an utterance is the reply itself.
	// Other voices reach 0.56 in 0.4 s and 0.22 in a second.
	selfShare = 0.75
	// The last word has to be similar, too: the user may have said it right after an echo.
	selfWord      = Rate / 2
	selfWordShare = 0.65
)

// SelfEcho tells a device's own voice in its microphone from the user's, by the sound alone, for
// devices whose echo nobody takes out. It remembers the last 5 s of what was played while it is
// open. A nil SelfEcho recognises nothing. Its methods may be called at the same time.
type SelfEcho struct {
	mu      sync.Mutex
	open    bool
	decoder *audio.Decoder
	scratch []int16
	sound   []int16   // at Rate
	ends    time.Time // when the device has played sound
}

// Open sets whether the microphone is open while the device plays. If it is not,
// the sound that was played is forgotten.
func (s *SelfEcho) Open(open bool) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open = open; !open {
		s.decoder, s.scratch, s.sound = nil, nil, nil
	}
}

// Played takes in a packet that was sent to the device now. first says that a
// reply begins with it: the device then drops what it has not played yet.
func (s *SelfEcho) Played(packet []byte, first bool, now time.Time) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.open {
		return
	}
	if s.decoder == nil {
		d, err := audio.NewDecoder(audio.Recognition.Rate)
		if err != nil {
			return // nothing is recognised
		}
		s.decoder, s.scratch = d, make([]int16, audio.MaxFrameSamples(audio.Recognition.Rate))
		s.sound = make([]int16, 0, 2*selfKept)
	}
	if first && s.ends.After(now) {
		s.sound = s.sound[:max(0, len(s.sound)-coarseSamples(s.ends.Sub(now)))]
		s.ends = now
	}
	if gap := now.Sub(s.ends); gap > 0 {
		silence := coarseSamples(min(gap, selfKept*time.Second/Rate))
		s.makeRoom(silence)
		s.sound = s.sound[:len(s.sound)+silence]
		clear(s.sound[len(s.sound)-silence:])
		s.ends = now
	}
	n, err := s.decoder.Receive(packet, s.scratch)
	if err != nil {
		return
	}
	s.makeRoom(n / 4)
	s.sound = coarse(s.sound, s.scratch[:n])
	s.ends = s.ends.Add(audio.Recognition.Duration(n))
}

// Keep appends what the microphone heard (16 kHz) to heard, at [Rate], and drops
// what [SelfEcho.Is] does not need any more. It returns nil while s is closed.
func (s *SelfEcho) Keep(heard, pcm []int16) []int16 {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	open := s.open
	s.mu.Unlock()
	if !open {
		return nil
	}
	if len(heard) > 2*selfHeard {
		heard = append(heard[:0], heard[len(heard)-selfHeard:]...)
	}
	return coarse(heard, pcm)
}

// Is reports whether heard, sampled at [Rate] and ending now, is what the device
// played in the last 5 s.
func (s *SelfEcho) Is(heard []int16, now time.Time) bool {
	if s == nil || len(heard) < selfLeast {
		return false
	}
	heard = heard[max(0, len(heard)-selfHeard):]
	played := s.played(len(heard)+selfDelay, now)
	if played == nil || similarity(heard, played) < selfShare {
		return false
	}
	end := wordEnd(heard)
	if end < selfWord {
		return true
	}
	played = played[:len(played)-len(heard)+end]
	return similarity(heard[end-selfWord:end], played[len(played)-selfWord-selfDelay:]) >= selfWordShare
}

// Unheard reports whether the device played so much during a time in which the microphone heard
// nothing (quiet long, it ended ago before now) that its sound does not come back.
func (s *SelfEcho) Unheard(quiet, ago time.Duration, now time.Time) bool {
	if s == nil || quiet < selfUnheard*time.Second/Rate {
		return false
	}
	quiet = min(quiet, selfKept*time.Second/Rate)
	window, after := coarseSamples(quiet), coarseSamples(ago)
	played := s.played(window+after, now)
	sound := 0
	for block := range slices.Chunk(played[:max(0, len(played)-after)], selfBlock) {
		if amount(block) > selfSoft*len(block) {
			sound += len(block)
		}
	}
	return sound >= selfUnheard
}

// makeRoom drops the oldest sound if there is no room for n samples more, at
// most selfKept. The caller holds mu.
func (s *SelfEcho) makeRoom(n int) {
	if len(s.sound)+n > cap(s.sound) {
		s.sound = append(s.sound[:0], s.sound[max(0, len(s.sound)-selfKept):]...)
	}
}

// played returns the last samples of what the device has played until now, at
// [Rate], with silence where there was nothing. It returns nil if all is silence.
func (s *SelfEcho) played(samples int, now time.Time) []int16 {
	s.mu.Lock()
	defer s.mu.Unlock()
	since := now.Sub(s.ends)
	if len(s.sound) == 0 || since > time.Duration(samples)*time.Second/Rate {
		return nil
	}
	out := make([]int16, samples)
	end := len(s.sound) + coarseSamples(since) // of out, in sound
	from := end - samples
	for i := max(0, -from); i < samples && from+i < len(s.sound); i++ {
		out[i] = s.sound[from+i]
	}
	return out
}

// wordEnd returns where the last block of heard ends that is not soft beside the rest.
func wordEnd(heard []int16) int {
	most, end := 0, 0
	for block := range slices.Chunk(heard[:len(heard)-len(heard)%selfBlock], selfBlock) {
		most = max(most, amount(block))
	}
	for at := 0; at+selfBlock <= len(heard); at += selfBlock {
		if amount(heard[at:at+selfBlock]) > most/8 {
			end = at + selfBlock
		}
	}
	return end
}

// amount returns the sum of the magnitudes of a block.
func amount(block []int16) (sum int) {
	for _, s := range block {
		sum += max(int(s), -int(s))
	}
	return sum
}

// coarseSamples returns the samples of a time at [Rate].
func coarseSamples(d time.Duration) int { return int(d * Rate / time.Second) }

// Rate is the rate in Hz of the sound that a [SelfEcho] compares. What a voice is
// known by lies below 2 kHz.
const Rate = 4000

// coarse appends pcm (16 kHz, a multiple of four samples) at [Rate] to dst.
func coarse(dst, pcm []int16) []int16 {
	for ; len(pcm) >= 4; pcm = pcm[4:] {
		dst = append(dst, int16((int(pcm[0])+int(pcm[1])+int(pcm[2])+int(pcm[3]))/4))
	}
	return dst
}

// similarity returns how much of heard is a sound of played that came back, 0 to 1: the largest
// normalized cross-correlation. Both are at [Rate] and end at the same time; played begins
// earlier by the longest delay to be tried. It is 0 if that is not so, or if one is silent.
func similarity(heard, played []int16) float64 {
	delays := len(played) - len(heard)
	if delays < 0 || len(heard) == 0 {
		return 0
	}
	size := 8
	for size < len(played)+len(heard) {
		size *= 2
	}
	f := dsp.NewFFT(min(size, 1<<16))
	if f.Size() < size {
		return 0
	}
	h, p := emphasized(heard, size), emphasized(played, size)
	spectrum, other := make([]complex64, f.Bins()), make([]complex64, f.Bins())
	energy := 0.0
	for _, v := range h[:len(heard)] {
		energy += float64(v) * float64(v)
	}
	under := 0.0 // energy of what was played in the time that is compared
	for _, v := range p[:len(heard)] {
		under += float64(v) * float64(v)
	}
	f.Forward(spectrum, h)
	f.Forward(other, p)
	for k, v := range spectrum {
		other[k] *= complex(real(v), -imag(v))
	}
	match := h
	f.Inverse(match, other)
	most := 0.0
	for d := range delays + 1 {
		if energy > 0 && under > 0 {
			most = max(most, math.Abs(float64(match[d]))/math.Sqrt(energy*under))
		}
		if d < delays {
			under += float64(p[d+len(heard)])*float64(p[d+len(heard)]) - float64(p[d])*float64(p[d])
		}
	}
	return min(most, 1)
}

// emphasized returns pcm with its low tones softened, which are alike in all
// voices, and silence up to size.
func emphasized(pcm []int16, size int) []float32 {
	out := make([]float32, size)
	last := float32(0)
	for i, s := range pcm {
		out[i] = float32(s) - 0.7*last
		last = float32(s)
	}
	return out
}
