package agent

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"xiaozhi/audio"
)

// cut is one sentence on its way from sound to the frames that play. It is of
// the goroutine of synthesize.
type cut struct {
	s      *speaker
	u      utterable
	begins *utterable // until the first frame
	voice  *voice     // whose sound it is; nil: it is not levelled

	provider string // who spoke, where that is not the one asked
	record   bool   // its frames are kept below, for the cache
	taken    []int16
	ready    [][]byte // the same of packets that came encoded
	decoder  *audio.Decoder
}

// mostRecorded is how long a phrase may be that is kept.
const mostRecorded = 10 * time.Second

func (s *speaker) cut(u utterable) *cut {
	c := &cut{s: s, u: u, record: s.o.Sounds.fixed(u.speech) && u.sound == nil}
	c.begins = &c.u
	return c
}

// pcm passes PCM on. It waits while enough is ahead.
func (c *cut) pcm(ctx context.Context, pcm []int16, rate int) error {
	if len(pcm) == 0 {
		return nil
	}
	return c.s.cutter.write(pcm, rate, func(frame []int16) error { return c.frame(ctx, frame) })
}

// finish ends a sentence of PCM.
func (c *cut) finish(ctx context.Context) error {
	c.u.length.whole.Store(true)
	return c.s.cutter.finish(func(frame []int16) error { return c.frame(ctx, frame) })
}

// frame passes on one frame, of which it makes a copy.
func (c *cut) frame(ctx context.Context, frame []int16) error {
	if c.voice != nil {
		c.voice.hear(frame)
	}
	if c.record {
		c.taken = append(c.taken, frame...)
		c.record = len(c.ready) == 0 && c.s.o.Reply.Duration(len(c.taken)) <= mostRecorded
	}
	var buf []int16
	select {
	case buf = <-c.s.free:
	default:
	}
	return c.queue(ctx, speech{pcm: append(buf[:0], frame...), voice: c.voice})
}

// queue puts a frame before the player.
func (c *cut) queue(ctx context.Context, f speech) error {
	f.begins = c.begins
	select {
	case c.s.frames <- f:
		c.begins = nil
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// foreign passes on packets that a provider has encoded: as they are, if a
// device plays them so, else decoded. They are as loud as they are.
func (c *cut) foreign(ctx context.Context, packets [][]byte) error {
	for _, p := range packets {
		if c.decoder == nil && len(c.s.cutter.acc) == 0 && c.s.plays(p) {
			c.s.cutter.begun = true
			if c.record = c.record && len(c.taken) == 0; c.record {
				c.ready = append(c.ready, p)
			}
			if err := c.queue(ctx, speech{packet: p}); err != nil {
				return err
			}
			continue
		}
		if err := c.decode(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// plays says whether devices play a packet as it is.
func (s *speaker) plays(packet []byte) bool {
	d, err := audio.PacketDuration(packet)
	return err == nil && d == s.o.Reply.Frame && len(packet) <= audio.MaxPacket
}

// decode passes on a packet as PCM.
func (c *cut) decode(ctx context.Context, packet []byte) error {
	rate := c.s.o.Reply.Rate
	if c.decoder == nil {
		var err error
		if c.decoder, err = audio.NewDecoder(rate); err != nil {
			return fmt.Errorf("decode synthesised packet: %w", err)
		}
	}
	pcm := make([]int16, audio.MaxFrameSamples(rate))
	n, err := c.decoder.Decode(packet, pcm)
	if err != nil {
		return fmt.Errorf("decode synthesised packet: %w", err)
	}
	return c.pcm(ctx, pcm[:n], rate)
}

// packets passes on a whole sentence that was encoded before.
func (c *cut) packets(ctx context.Context, packets [][]byte) error {
	c.u.length.add(time.Duration(len(packets)) * c.s.o.Reply.Frame)
	c.u.length.whole.Store(true)
	for _, p := range packets {
		if err := c.queue(ctx, speech{packet: p}); err != nil {
			return err
		}
	}
	return nil
}

// store keeps the sentence, which has been passed on whole, in the cache.
func (c *cut) store(key soundKey) error {
	packets := c.ready
	if len(c.taken) > 0 {
		var err error
		if packets, err = encodeAll(c.s.o.Reply, c.taken, c.voice); err != nil {
			return err
		}
	}
	c.s.o.Sounds.put(key, packets)
	return nil
}

// encodeAll encodes whole frames as a stream of their own, at the loudness that
// is known of their voice by now.
func encodeAll(format audio.Format, pcm []int16, v *voice) ([][]byte, error) {
	enc, err := audio.NewEncoder(format)
	if err != nil {
		return nil, fmt.Errorf("make an encoder: %w", err)
	}
	level, buf, n := audio.NewLeveller(format.Rate), make([]byte, audio.MaxPacket), format.Samples()
	var packets [][]byte
	for ; len(pcm) >= n; pcm = pcm[n:] {
		if v != nil {
			level.Apply(pcm[:n], v.gain())
		}
		size, err := enc.Encode(pcm[:n], buf)
		if err != nil {
			return nil, fmt.Errorf("encode a frame: %w", err)
		}
		packets = append(packets, append([]byte(nil), buf[:size]...))
	}
	return packets, nil
}

// voice is one of the voices of a turn. Its loudness is measured where its sound
// is made and set where it is played, so that what is measured is some way ahead.
type voice struct {
	key      string
	meter    audio.Meter   // of synthesize
	wanted   atomic.Uint64 // the gain in dB as bits: what the meter says
	leveller *audio.Leveller
}

// embedded is the provider of the sounds that are part of the program.
const embedded = "embedded"

// voiceOf is the voice in which a provider speaks a language; nil when voices
// are not levelled. provider is "" for the one asked.
func (s *speaker) voiceOf(provider, language string) *voice {
	if s.o.Levels == nil {
		return nil
	}
	if provider == "" {
		provider = s.o.TTS.Name()
	}
	id := voiceID{provider, language}
	if v, ok := s.voices[id]; ok {
		return v
	}
	name := s.voice
	if provider == embedded {
		name = ""
	}
	key := provider + "\x00" + language + "\x00" + name
	v := &voice{key: key, meter: s.o.Levels.Meter(key, s.o.Reply.Rate), leveller: audio.NewLeveller(s.o.Reply.Rate)}
	v.wanted.Store(math.Float64bits(v.meter.Gain()))
	s.voices[id] = v
	return v
}

// voiceID names a voice within a turn.
type voiceID struct{ provider, language string }

// hear measures a frame that will be played.
func (v *voice) hear(frame []int16) {
	v.meter.Add(frame)
	v.wanted.Store(math.Float64bits(v.meter.Gain()))
}

// gain is what brings the voice to the loudness of all, in dB.
func (v *voice) gain() float64 { return math.Float64frombits(v.wanted.Load()) }
