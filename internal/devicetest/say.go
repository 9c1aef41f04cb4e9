package devicetest

import (
	"context"
	"fmt"
	"iter"
	"time"

	"xiaozhi/audio"
)

// dtxAfter is how long silence lasts before packets are left out beside a loudspeaker.
const dtxAfter = 200 * time.Millisecond

// microphoneRate is what devices record at, in Hz.
const microphoneRate = 16000

// Say speaks 16 kHz sound into the microphone, frame by frame in real time. It
// first waits until the microphone is open; frames during which it is closed
// again are lost, as they are on a device, and counted as Stats.Unheard. The
// last frame is filled up with silence.
func (d *Device) Say(ctx context.Context, pcm []int16) error {
	if err := d.WaitMic(ctx); err != nil {
		return err
	}
	enc, err := audio.NewEncoder(audio.Format{Rate: microphoneRate, Frame: d.frame()})
	if err != nil {
		return fmt.Errorf("say: %w", err)
	}
	size := microphoneRate / 1000 * d.opt.FrameMs
	packet := make([]byte, maxBinary)
	return d.speak(ctx, time.Now(), func(yield func(recorder) bool) {
		for len(pcm) > 0 {
			chunk := make([]int16, size)
			pcm = pcm[copy(chunk, pcm):]
			record := func(end time.Time) ([]byte, error) {
				d.opt.Room.mix(chunk, end.Add(-d.frame()), &d.player)
				if !d.opt.NoDTX && d.pauses(chunk) {
					return []byte{dtxByte(d.opt.FrameMs)}, nil
				}
				n, err := enc.Encode(chunk, packet)
				return packet[:n], err
			}
			if !yield(record) {
				return
			}
		}
	})
}

// recorder makes the packet of a frame that ends at that time. The caller holds mu.
type recorder func(end time.Time) ([]byte, error)

// SayPackets speaks Opus packets of the uplink's frame length into the
// microphone, frame by frame in real time, as Say does with sound. The first
// sample of the first packet is recorded at from, so the packet leaves one frame
// later; what should have left before now leaves at once. It does not wait for
// the microphone: frames that meet a closed one are lost, and counted.
func (d *Device) SayPackets(ctx context.Context, from time.Time, packets ...[]byte) error {
	return d.speak(ctx, from, func(yield func(recorder) bool) {
		for _, p := range packets {
			if !yield(func(time.Time) ([]byte, error) { return p, nil }) {
				return
			}
		}
	})
}

// Pause is the packet that a device sends for a frame of silence.
func Pause(frameMs int) []byte { return []byte{dtxByte(frameMs)} }

// speak sends a frame at the end of each frame length from a moment on.
func (d *Device) speak(ctx context.Context, from time.Time, frames iter.Seq[recorder]) error {
	tick := time.NewTimer(0)
	defer tick.Stop()
	<-tick.C
	due := from
	for record := range frames {
		due = due.Add(d.frame()) // a frame can leave when its last sample is recorded
		tick.Reset(time.Until(due))
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		case <-d.done:
			return ErrClosed
		}
		if err := d.sayFrame(record, due); err != nil {
			return err
		}
	}
	return nil
}

// Silence lets the microphone hear nothing for a while.
func (d *Device) Silence(ctx context.Context, length time.Duration) error {
	return d.Say(ctx, make([]int16, int(length.Seconds()*microphoneRate)))
}

func (d *Device) frame() time.Duration { return time.Duration(d.opt.FrameMs) * time.Millisecond }

// sayFrame sends one frame, which ends at that time, if the microphone is open.
// With a Room it holds what is heard of the loudspeaker as well.
func (d *Device) sayFrame(record recorder, end time.Time) error {
	packet, timestamp, err := d.recorded(record, end)
	if err != nil {
		return fmt.Errorf("say: %w", err)
	}
	if packet == nil {
		return nil
	}
	return d.sendFrame(packet, timestamp)
}

// recorded is the packet of one frame and its timestamp; nil: the microphone is shut.
func (d *Device) recorded(record recorder, end time.Time) ([]byte, uint32, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	timestamp := d.stamps.next(end, d.frame(), &d.player)
	if !d.mic || d.frozen {
		d.stats.Unheard++
		return nil, 0, nil
	}
	if !d.opt.AEC {
		timestamp = 0
	}
	packet, err := record(end)
	return packet, timestamp, err
}

// pauses reports whether a frame is left out as silence. Beside a loudspeaker
// silence has to last, as it has for the firmware's encoder: what is left out
// right after a sound is made up from it by the decoder. The caller holds mu.
func (d *Device) pauses(chunk []int16) bool {
	if !isQuiet(chunk) {
		d.hushed = 0
		return false
	}
	d.hushed += d.frame()
	return d.opt.Room == nil || d.hushed > dtxAfter
}

// dtxByte is a packet without content: the first byte alone, which says wideband
// speech, mono, one frame (RFC 6716, 3.1). Devices send it for silence (4.1).
func dtxByte(frameMs int) byte {
	const config20, config40, config60 = 9 << 3, 10 << 3, 11 << 3
	switch frameMs {
	case 20:
		return config20
	case 40:
		return config40
	default:
		return config60
	}
}

// WakeBurst sends n frames of sound at once, as devices send what they heard of a wake word.
func (d *Device) WakeBurst(n int) error { return d.wakeBurst(n) }

func (d *Device) wakeBurst(n int) error {
	enc, err := audio.NewEncoder(audio.Format{Rate: microphoneRate, Frame: d.frame()})
	if err != nil {
		return fmt.Errorf("wake burst: %w", err)
	}
	size := microphoneRate / 1000 * d.opt.FrameMs
	for i := range n {
		packet := make([]byte, maxBinary)
		k, err := enc.Encode(hum(i*size, size), packet)
		if err != nil {
			return fmt.Errorf("wake burst: %w", err)
		}
		if err := d.sendFrame(packet[:k], 0); err != nil {
			return err
		}
	}
	return nil
}

// hum is a buzzing 125 Hz sound that swells and fades five times a second.
func hum(from, n int) []int16 {
	pcm := make([]int16, n)
	for i := range pcm {
		k := from + i
		swell := k % 3200
		swell = min(swell, 3200-swell)
		pcm[i] = int16((k%128 - 64) * swell / 16)
	}
	return pcm
}
