package devicetest

import (
	"context"
	"fmt"
	"math"
	"time"

	"xiaozhi/audio"
)

const (
	microphoneRate = 16000                  // Hz at which devices record
	dtxAfter       = 200 * time.Millisecond // of silence, after which packets are left out beside a loudspeaker
)

// microphone is the uplink's side of the body: what of the sound around the
// device leaves it as packets. Its owner holds the lock.
type microphone struct {
	open    bool
	frozen  bool          // by a tool: it is deaf
	silence time.Duration // up to now in what it gets
	stamps  stamps        // of packets that were played, not yet echoed
}

// Voice speaks into the device's microphone, in real time. Its methods may be called at the same time as those of the device, but
// only one of them speaks at a time.
type Voice struct {
	link    *link
	body    *body
	journal *Journal
	done    <-chan struct{} // closed at the end of the main task
	sound   Sound
}

// WaitMic returns when the microphone is open.
func (v *Voice) WaitMic(ctx context.Context) error {
	return v.body.until(ctx, func() bool { return v.body.mic.open })
}

// Say speaks 16 kHz sound into the microphone, frame by frame in real time. It first waits until the microphone is
// open; frames during which it is closed again are lost, as they are on a device, and counted as Stats.Unheard. The
// last frame is filled up with silence.
func (v *Voice) Say(ctx context.Context, pcm []int16) error {
	if err := v.WaitMic(ctx); err != nil {
		return err
	}
	enc, err := audio.NewEncoderOf(v.format(), audio.Device())
	if err != nil {
		return fmt.Errorf("say: %w", err)
	}
	size, packet := v.format().Samples(), make([]byte, maxBinary)
	return v.speak(ctx, time.Now(), (len(pcm)+size-1)/size, func(i int, end time.Time) ([]byte, error) {
		chunk := make([]int16, size)
		copy(chunk, pcm[i*size:])
		v.sound.Room.mix(chunk, end.Add(-v.frame()), &v.body.speaker.player)
		if v.sound.PCM {
			return pcmBytes(chunk), nil
		}
		if !v.sound.NoDTX && v.pauses(chunk) {
			return Pause(v.sound.FrameMs), nil
		}
		n, err := enc.Encode(chunk, packet)
		return packet[:n], err
	})
}

// SayPackets speaks Opus packets of the uplink's frame length into the microphone, frame by frame in real time, as
// Say does with sound. The first sample of the first packet is recorded at from, so the packet leaves one frame
// later; what should have left before now leaves at once. It does not wait for the microphone: frames that meet a
// closed one are lost, and counted.
func (v *Voice) SayPackets(ctx context.Context, from time.Time, packets ...[]byte) error {
	return v.speak(ctx, from, len(packets), func(i int, _ time.Time) ([]byte, error) { return packets[i], nil })
}

// recorder makes the packet of frame i, which ends at that time. The caller holds the body's lock.
type recorder func(i int, end time.Time) ([]byte, error)

// Pause returns the packet that a device sends for a frame of silence of 20, 40 or 60 ms (4.1): without content, the first
// byte alone, which says wideband speech, mono, one frame (RFC 6716, 3.1).
func Pause(frameMs int) []byte { return []byte{byte(8+frameMs/20) << 3} }

// speak sends n frames, one at the end of each frame length from a moment on.
func (v *Voice) speak(ctx context.Context, from time.Time, n int, record recorder) error {
	tick := time.NewTimer(0)
	defer tick.Stop()
	<-tick.C
	for i := range n {
		due := from.Add(time.Duration(i+1) * v.frame()) // a frame can leave when its last sample is recorded
		tick.Reset(time.Until(due))
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		case <-v.done:
			return ErrClosed
		}
		packet, timestamp, err := v.recorded(i, record, due)
		if err != nil {
			return fmt.Errorf("say: %w", err)
		}
		if packet == nil {
			continue
		}
		if err := v.link.sendFrame(packet, timestamp); err != nil {
			return err
		}
	}
	return nil
}

// Silence lets the microphone hear nothing for a while.
func (v *Voice) Silence(ctx context.Context, length time.Duration) error {
	return v.Say(ctx, make([]int16, int(length.Seconds()*microphoneRate)))
}

func (v *Voice) format() audio.Format { return audio.Format{Rate: microphoneRate, Frame: v.frame()} }

func (v *Voice) frame() time.Duration { return time.Duration(v.sound.FrameMs) * time.Millisecond }

// recorded returns the packet of the frame that ends at that time, and its timestamp; nil: the microphone is shut.
func (v *Voice) recorded(i int, record recorder, end time.Time) ([]byte, uint32, error) {
	v.body.mu.Lock()
	defer v.body.mu.Unlock()
	timestamp := v.body.mic.stamps.next(end, v.frame(), &v.body.speaker.player)
	if !v.body.mic.open || v.body.mic.frozen {
		v.journal.count(func(s *Stats) { s.Unheard++ })
		return nil, 0, nil
	}
	if !v.sound.AEC {
		timestamp = 0
	}
	packet, err := record(i, end)
	return packet, timestamp, err
}

// pauses reports whether a frame is left out as silence. Beside a loudspeaker
// silence has to last, as it has for the firmware's encoder: what is left out
// right after a sound is made up from it by the decoder. The caller holds the body's lock.
func (v *Voice) pauses(chunk []int16) bool {
	if !isQuiet(chunk) {
		v.body.mic.silence = 0
		return false
	}
	v.body.mic.silence += v.frame()
	return v.sound.Room == nil || v.body.mic.silence > dtxAfter
}

// WakeBurst sends n frames of sound at once, as devices send what they heard of a wake word.
func (v *Voice) WakeBurst(n int) error {
	enc, err := audio.NewEncoderOf(v.format(), audio.Device())
	if err != nil {
		return fmt.Errorf("wake burst: %w", err)
	}
	size, packet := v.format().Samples(), make([]byte, maxBinary)
	for i := range n {
		k, err := enc.Encode(buzz(i*size, size), packet)
		if err != nil {
			return fmt.Errorf("wake burst: %w", err)
		}
		if err := v.link.sendFrame(packet[:k], 0); err != nil {
			return err
		}
	}
	return nil
}

// buzz is a 125 Hz sound that swells and fades five times a second.
func buzz(from, n int) []int16 {
	pcm := make([]int16, n)
	for i := range pcm {
		k := from + i
		swell := min(k%3200, 3200-k%3200)
		pcm[i] = int16((k%128 - 64) * swell / 16)
	}
	return pcm
}

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
	first := s.waiting[0]
	if len(s.waiting) > maxStamps {
		first = 0
	}
	s.waiting = s.waiting[1:]
	return first
}
