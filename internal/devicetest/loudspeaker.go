package devicetest

import (
	"errors"
	"slices"
	"time"

	"xiaozhi/audio"
)

// loudspeaker decodes the packets of a connection and plays them on the clock of
// its player. Its owner holds the lock.
type loudspeaker struct {
	player    player
	pcm       bool          // what comes is sound already
	mute      bool          // sound is not decoded
	keeps     bool          // the decoder goes on after a flush
	overheard bool          // the microphone hears what is played
	memory    time.Duration // for which what was played matters to the microphone

	rate     int // Hz; 0 before the hello
	decoder  *audio.Decoder
	outlived *audio.Decoder // that of a reply which was cut: its end is judged though it is not played
	ear      *audio.Decoder // decoder's twin at the microphone's rate
	scratch  []int16        // what the decoders write into
}

// open makes the decoders for the rate of the server's hello.
func (s *loudspeaker) open(rate int) (err error) {
	s.rate = rate
	if s.decoder, err = audio.NewDecoder(rate); err != nil {
		return err
	}
	if s.mute {
		s.decoder = nil // it was made only to see that one can be
	}
	if s.overheard {
		s.ear, err = audio.NewDecoder(microphoneRate)
	}
	return err
}

// flush empties the queue and starts with a fresh decoder, unless it keeps its
// own. It returns how many packets were thrown away.
func (s *loudspeaker) flush(now time.Time, speaking bool) int {
	flushed := s.player.flush(now)
	if s.keeps || s.rate == 0 || s.mute {
		return flushed
	}
	if speaking {
		s.outlived = nil
	} else if s.outlived == nil {
		s.outlived = s.decoder
	}
	if fresh, err := audio.NewDecoder(s.rate); err == nil { // the same rate has worked at the hello
		s.decoder = fresh
	}
	if fresh, err := audio.NewDecoder(microphoneRate); err == nil && s.ear != nil {
		s.ear = fresh
	}
	return flushed
}

type sample struct {
	pcm    []int16 // nil: none
	atMic  []int16 // the same at the microphone's rate; nil unless it is overheard
	silent bool    // it ends in silence
	err    error   // why there is none
}

func (s *loudspeaker) decode(packet []byte) sample {
	out := s.decodeWith(s.decoder, packet)
	if s.ear != nil && out.pcm != nil {
		if n, err := s.ear.Decode(packet, s.scratch); err == nil { // else the first decoder has told
			out.atMic = slices.Clone(s.scratch[:n])
		}
	}
	return out
}

// decodeWith gives it with a decoder of choice.
func (s *loudspeaker) decodeWith(decoder *audio.Decoder, packet []byte) sample {
	if s.mute {
		return sample{silent: true}
	}
	if s.scratch == nil {
		s.scratch = make([]int16, audio.MaxFrameSamples(48000))
	}
	if s.pcm {
		pcm := slices.Clone(pcmSamples(packet, s.scratch))
		return sample{pcm: pcm, silent: isQuiet(pcm[len(pcm)/2:])}
	}
	n, err := decoder.Decode(packet, s.scratch)
	if err == nil && n == 0 {
		err = errors.New("it has no samples")
	}
	if err != nil {
		return sample{err: err}
	}
	pcm := slices.Clone(s.scratch[:n])
	// The first half may still hold the end of the sound before it.
	return sample{pcm: pcm, silent: isQuiet(pcm[n/2:])}
}

// accept puts a packet into the queue. It returns when the packet will begin to
// play, zero for never, when the one before it ends, and whether none was lost.
func (s *loudspeaker) accept(now time.Time, length time.Duration, sound sample, reply *Reply, timestamp uint32) (from, before time.Time, kept bool) {
	before = s.player.ends
	if reply == nil {
		sound.pcm = nil // no reply will ask for it
	}
	s.player.trim(now.Add(-s.memory))
	from, kept = s.player.accept(now, length, sound.pcm, reply)
	if !from.IsZero() {
		s.player.label(timestamp, sound.atMic)
	}
	return from, before, kept
}

func isQuiet(pcm []int16) bool {
	const quiet = 64 // mean size of a sample (of 32768) under which sound counts as silence
	sum := 0
	for _, s := range pcm {
		sum += max(int(s), -int(s))
	}
	return sum <= quiet*len(pcm)
}

type played struct {
	from, to time.Time
	pcm      []int16
	reply    *Reply
	stamp    uint32  // of the packet
	sound    []int16 // as the microphone may hear it, at 16 kHz
}

// player models the device's playback: a bounded queue of packets and a speaker that plays each one as soon as the
// one before it has ended, at its real length (4.3, 4.4). It looks at no clock; the caller says what time it is.
type player struct {
	limit      int  // packets that may wait
	dropOldest bool // full: the oldest waiting packet goes, not the new one
	queue      []played
	ends       time.Time // when all that was taken has been played
}

// waiting returns the number of packets that have not begun to play.
func (p *player) waiting(now time.Time) int {
	n := 0
	for i := len(p.queue) - 1; i >= 0 && p.queue[i].from.After(now); i-- {
		n++
	}
	return n
}

// accept takes a packet. It reports when it will begin to play, and false when
// a packet was lost because the queue was full.
func (p *player) accept(now time.Time, length time.Duration, pcm []int16, reply *Reply) (time.Time, bool) {
	kept := true
	if n := p.waiting(now); n >= p.limit {
		if !p.dropOldest {
			return time.Time{}, false
		}
		kept = false
		oldest := len(p.queue) - n
		gone := p.queue[oldest].to.Sub(p.queue[oldest].from)
		p.queue = slices.Delete(p.queue, oldest, oldest+1)
		for i := range p.queue[oldest:] { // those behind it move forward
			q := &p.queue[oldest+i]
			q.from, q.to = q.from.Add(-gone), q.to.Add(-gone)
		}
		p.ends = p.ends.Add(-gone)
	}
	from := now
	if p.ends.After(now) {
		from = p.ends
	}
	p.ends = from.Add(length)
	p.queue = append(p.queue, played{from: from, to: p.ends, pcm: pcm, reply: reply})
	return from, kept
}

// flush throws away what has not begun to play; it returns how many packets that were.
func (p *player) flush(now time.Time) int {
	n := p.waiting(now)
	p.queue = p.queue[:len(p.queue)-n]
	p.ends = now
	if len(p.queue) > 0 {
		p.ends = p.queue[len(p.queue)-1].to
	}
	return n
}

// take hands over the sound of a reply, in order, and forgets it. What is still
// to be played keeps its place on the clock.
func (p *player) take(reply *Reply) []int16 {
	var pcm []int16
	for i := range p.queue {
		if p.queue[i].reply == reply {
			pcm = append(pcm, p.queue[i].pcm...)
			p.queue[i].pcm = nil
		}
	}
	return pcm
}

// label says what the microphone gets of the packet that was accepted last.
func (p *player) label(stamp uint32, sound []int16) {
	q := &p.queue[len(p.queue)-1]
	q.stamp, q.sound = stamp, sound
}

// trim forgets packets that were played long before now and were taken.
func (p *player) trim(now time.Time) {
	p.queue = slices.DeleteFunc(p.queue, func(q played) bool { return q.pcm == nil && !q.to.After(now) })
}
