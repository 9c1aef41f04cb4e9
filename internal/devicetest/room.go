package devicetest

import (
	"fmt"
	"math"
	"time"

	"xiaozhi/audio"
)

// Room is the acoustic path from a device's loudspeaker to its microphone: with
// one, Say and Silence send what the device plays along with what is said.
type Room struct {
	// Response is the sound that the microphone gets of a single sample that the
	// loudspeaker plays, at 16 kHz: 1 at its beginning is as loud as the sound.
	Response []float32
	// Delay is the time from the play of a packet to the beginning of the response:
	// the buffers and converters on both ways.
	Delay time.Duration
}

// Timestamps of what was played (4.5).
const (
	maxStamps   = 3                      // may wait for a frame of the microphone; more: the frame gets none
	stampMemory = 180 * time.Millisecond // what was played longer before a frame belonged to frames that were not sent
)

// check reports what is wrong with the room of a device.
func (r *Room) check(o Options) error {
	switch {
	case r == nil:
		return nil
	case o.Sound.NoDecode:
		return fmt.Errorf("room: a device that does not decode hears nothing of itself")
	case r.Delay < 0 || r.Delay > time.Second:
		return fmt.Errorf("room: delay of %s, must be 0 to 1 s", r.Delay)
	case len(r.Response) > microphoneRate:
		return fmt.Errorf("room: response of %d samples, at most %d", len(r.Response), microphoneRate)
	}
	return nil
}

// memory returns the time for which a played packet matters to the microphone.
func (o Options) memory() time.Duration {
	switch r := o.Sound.Room; {
	case r != nil: // a sound can be heard for so long after it was played
		return r.Delay + audio.Recognition.Duration(len(r.Response)) + time.Second
	case o.Sound.AEC:
		return time.Second
	}
	return 0
}

// mix adds what the microphone hears of the loudspeaker from that time on.
func (r *Room) mix(pcm []int16, from time.Time, p *player) {
	if r == nil || len(r.Response) == 0 {
		return
	}
	before := len(r.Response) - 1
	begin := from.Add(-r.Delay - audio.Recognition.Duration(before))
	sound := make([]float32, before+len(pcm))
	heard := false
	for _, q := range p.queue {
		at := int(math.Round(q.from.Sub(begin).Seconds() * microphoneRate))
		for i := max(0, -at); i < len(q.sound) && at+i < len(sound); i++ {
			sound[at+i] = float32(q.sound[i])
			heard = true
		}
	}
	if !heard {
		return
	}
	for i := range pcm {
		sum := float64(pcm[i])
		for k, h := range r.Response {
			sum += float64(h * sound[before+i-k])
		}
		pcm[i] = int16(math.Round(max(math.MinInt16, min(math.MaxInt16, sum))))
	}
}

// stamps are the timestamps of what was played to its end, as they wait for frames of the microphone.
type stamps struct {
	waiting []uint32
	until   time.Time // what ended by then has been looked at
}

// next returns the timestamp of a microphone's frame that ends at that time.
func (s *stamps) next(end time.Time, frame time.Duration, p *player) uint32 {
	since := end.Add(-frame - stampMemory)
	if s.until.Before(since) {
		s.until, s.waiting = since, nil
	}
	for _, q := range p.queue {
		if q.stamp != 0 && q.to.After(s.until) && !q.to.After(end) {
			s.waiting = append(s.waiting, q.stamp)
		}
	}
	s.until = end
	if len(s.waiting) == 0 {
		return 0
	}
	first, full := s.waiting[0], len(s.waiting) > maxStamps
	s.waiting = s.waiting[1:]
	if full {
		return 0
	}
	return first
}

// flush forgets what waits.
func (s *stamps) flush() { s.waiting = nil }
