package agent

import (
	"slices"
	"sync"
	"time"

	"xiaozhi/audio"
	"xiaozhi/audio/echo"
)

// The figures of the loopback.
const (
	// In samples at EchoRate: what was played that is kept; the end of an
	// utterance that is compared, and how short it may be; how late it may come back.
	loopbackKept  = 5 * echo.Rate
	loopbackHeard = echo.Rate * 5 / 2
	loopbackLeast = echo.Rate * 3 / 10
	// With a longer delay, who repeats the last words in the same voice is an echo.
	loopbackDelay = echo.Rate * 6 / 5
	// When so much of what was played was not heard at all before an utterance,
	// that is no echo either: an echo begins with the reply.
	loopbackUnheard = loopbackDelay + echo.Rate/10
	// What is softer on the average of 20 ms is no sound.
	loopbackBlock, loopbackSoft = echo.Rate / 50, 200

	// loopbackOwn is the share of an utterance (echo.Similarity) from which on it is
	// the reply itself. Other voices reach 0.56 in 0.4 s and 0.22 in a second.
	loopbackOwn = 0.75
	// Its last word has to be, too: the user may have said it right behind an echo.
	loopbackWord    = echo.Rate / 2
	loopbackWordOwn = 0.65
)

// loopback is what a device plays while its microphone is open, to tell its own
// voice in there from the user's, whatever a recogniser makes of it. It is for
// devices that take no echo out, nor have us do it. Its methods may be called at
// the same time; a nil one hears nothing.
type loopback struct {
	mu      sync.Mutex
	open    bool
	decoder *audio.Decoder
	scratch []int16
	sound   []int16   // at EchoRate
	ends    time.Time // when the device has played sound
}

// listen says whether the microphone is open while we speak.
func (l *loopback) listen(open bool) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open = open; !open {
		l.decoder, l.scratch, l.sound = nil, nil, nil
	}
}

func (l *loopback) listens() bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open
}

// sent takes in a packet that was just handed to the outbox; first says that a
// reply begins with it, before which the device forgets what it has not played.
func (l *loopback) sent(packet []byte, first bool) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.open {
		return
	}
	if l.decoder == nil {
		d, err := audio.NewDecoder(audio.Recognition.Rate)
		if err != nil {
			return // words have to tell
		}
		l.decoder, l.scratch = d, make([]int16, audio.MaxFrameSamples(audio.Recognition.Rate))
		l.sound = make([]int16, 0, 2*loopbackKept)
	}
	now := time.Now()
	if first && l.ends.After(now) {
		l.sound = l.sound[:max(0, len(l.sound)-coarseSamples(l.ends.Sub(now)))]
		l.ends = now
	}
	if gap := now.Sub(l.ends); gap > 0 {
		silence := coarseSamples(min(gap, loopbackKept*time.Second/echo.Rate))
		l.makeRoom(silence)
		l.sound = l.sound[:len(l.sound)+silence]
		clear(l.sound[len(l.sound)-silence:])
		l.ends = now
	}
	n, err := l.decoder.Receive(packet, l.scratch)
	if err != nil {
		return
	}
	l.makeRoom(n / 4)
	l.sound = echo.Coarse(l.sound, l.scratch[:n])
	l.ends = l.ends.Add(audio.Recognition.Duration(n))
}

// makeRoom lets the oldest sound go when there is no room for n samples more, at
// most loopbackKept. The caller holds mu.
func (l *loopback) makeRoom(n int) {
	if len(l.sound)+n > cap(l.sound) {
		l.sound = append(l.sound[:0], l.sound[max(0, len(l.sound)-loopbackKept):]...)
	}
}

// played is what the device has played until now, so many samples at EchoRate,
// with silence where there was nothing; nil: nothing at all.
func (l *loopback) played(samples int) []int16 {
	l.mu.Lock()
	defer l.mu.Unlock()
	since := time.Since(l.ends)
	if len(l.sound) == 0 || since > time.Duration(samples)*time.Second/echo.Rate {
		return nil
	}
	out := make([]int16, samples)
	end := len(l.sound) + coarseSamples(since) // of out, in sound
	from := end - samples
	for i := max(0, -from); i < samples && from+i < len(l.sound); i++ {
		out[i] = l.sound[from+i]
	}
	return out
}

// recent adds what was heard (16 kHz) to what own will be asked about, and lets
// the oldest of that go. Nothing is kept while the microphone is closed to it.
func (l *loopback) recent(heard, pcm []int16) []int16 {
	if !l.listens() {
		return nil
	}
	if len(heard) > 2*loopbackHeard {
		heard = append(heard[:0], heard[len(heard)-loopbackHeard:]...)
	}
	return echo.Coarse(heard, pcm)
}

// own reports whether what was heard until now, at EchoRate, is what the device plays.
func (l *loopback) own(heard []int16) bool {
	if l == nil || len(heard) < loopbackLeast {
		return false
	}
	heard = heard[max(0, len(heard)-loopbackHeard):]
	played := l.played(len(heard) + loopbackDelay)
	if played == nil || echo.Similarity(heard, played) < loopbackOwn {
		return false
	}
	end := wordEnd(heard)
	if end < loopbackWord {
		return true
	}
	played = played[:len(played)-len(heard)+end]
	return echo.Similarity(heard[end-loopbackWord:end], played[len(played)-loopbackWord-loopbackDelay:]) >= loopbackWordOwn
}

// wordEnd is where the last sound in what was heard ends that is not soft beside
// the rest.
func wordEnd(heard []int16) int {
	most, end := 0, 0
	for pass := range 2 {
		for at := 0; at+loopbackBlock <= len(heard); at += loopbackBlock {
			switch sum := amount(heard[at : at+loopbackBlock]); {
			case pass == 0:
				most = max(most, sum)
			case sum > most/8:
				end = at + loopbackBlock
			}
		}
	}
	return end
}

// amount is the sum of what is heard.
func amount(block []int16) (sum int) {
	for _, s := range block {
		sum += max(int(s), -int(s))
	}
	return sum
}

// unheard reports whether so much was played while nothing was heard, in the
// quiet time that ended so long ago, that the device's sound does not come back.
func (l *loopback) unheard(quiet, ago time.Duration) bool {
	if l == nil || quiet < loopbackUnheard*time.Second/echo.Rate {
		return false
	}
	quiet = min(quiet, loopbackKept*time.Second/echo.Rate)
	window, after := coarseSamples(quiet), coarseSamples(ago)
	played := l.played(window + after)
	sound := 0
	for block := range slices.Chunk(played[:max(0, len(played)-after)], loopbackBlock) {
		if amount(block) > loopbackSoft*len(block) {
			sound += len(block)
		}
	}
	return sound >= loopbackUnheard
}

func coarseSamples(d time.Duration) int { return int(d * echo.Rate / time.Second) }
