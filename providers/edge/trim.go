package edge

const (
	quiet = 80 // the largest sample that counts as silence
	begin = 20 // ms of silence that stay before the sound
	end   = 80 // ms that stay after it
)

// trimmer takes away the silence at both ends of a sentence: MP3 has a delay of its own,
// and the service ends with up to 0.8 s of nothing. Silence inside a sentence stays. Its
// zero value has no rate and is not ready.
type trimmer struct {
	rate  int
	loud  bool    // sound has begun
	held  []int16 // silence that may be the end
	ready []int16
}

// add takes samples and returns those that belong to the sentence for certain, valid until
// the next call.
func (t *trimmer) add(pcm []int16) []int16 {
	t.ready = t.ready[:0]
	last := -1
	for i, v := range pcm {
		if v > quiet || v < -quiet {
			last = i
		}
	}
	if last < 0 {
		t.hold(pcm)
		return nil
	}
	t.ready = append(append(t.ready, t.held...), pcm[:last+1]...)
	if !t.loud {
		t.loud = true
		t.ready = t.ready[t.start():]
	}
	t.held = t.held[:0]
	return append(t.ready, t.tail(pcm[last+1:])...)
}

// start finds the beginning of the sound in ready, with a little before it.
func (t *trimmer) start() int {
	for i, v := range t.ready {
		if v > quiet || v < -quiet {
			return max(0, i-t.rate*begin/1000)
		}
	}
	return 0
}

// tail keeps silence after sound, and returns the first of it, which stays in any case.
func (t *trimmer) tail(pcm []int16) []int16 {
	n := min(len(pcm), t.rate*end/1000)
	t.hold(pcm[n:])
	return pcm[:n]
}

// hold keeps silence: before the sound only as much as stays of it.
func (t *trimmer) hold(pcm []int16) {
	t.held = append(t.held, pcm...)
	if keep := t.rate * begin / 1000; !t.loud && len(t.held) > keep {
		t.held = append(t.held[:0], t.held[len(t.held)-keep:]...)
	}
}
