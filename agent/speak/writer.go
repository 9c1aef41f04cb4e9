package speak

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"xiaozhi/audio"
	"xiaozhi/audio/file"
	"xiaozhi/prompts"
)

// mostRecorded is how long a phrase may be that is kept.
const mostRecorded = 10 * time.Second

// segmentWriter is one segment on its way from sound to frames. It belongs to the
// goroutine of Synthesize.
type segmentWriter struct {
	s      *Speaker
	u      Segment
	begins *Segment    // until the first frame
	level  *voiceLevel // of its sound; nil: it is not levelled

	provider string // the voice, where it is not the one asked
	record   bool   // its frames are kept below, for the cache
	taken    []int16
	ready    [][]byte // the same of packets that came encoded
	decoder  *audio.Decoder
}

func (s *Speaker) writer(u Segment) *segmentWriter {
	w := &segmentWriter{s: s, u: u, record: s.o.Cache.fixed(u.Speech) && u.Sound == nil}
	w.begins = &w.u
	return w
}

// sound plays the embedded sound of a phrase, showing u. A phrase without a sound
// is only shown.
func (s *Speaker) sound(ctx context.Context, u Segment, id string) error {
	spoken := string(prompts.SoundLanguage(lang(u.Language)))
	key := s.o.key(embedded, id, spoken, "")
	w := s.writer(u)
	if packets := s.o.Cache.get(key); packets != nil {
		return w.packets(ctx, packets)
	}
	wav := prompts.Sound(id, spoken)
	if len(wav) == 0 {
		if err := w.pcm(ctx, make([]int16, s.o.Reply.Samples()), s.o.Reply.Rate); err != nil {
			return err
		}
		return w.finish(ctx)
	}
	pcm, rate, err := file.ReadWAV(bytes.NewReader(wav))
	if err != nil {
		return fmt.Errorf("embedded sound %s: %w", id, err)
	}
	w.level = s.level(embedded, spoken)
	w.record = s.o.Cache != nil
	u.progress.add(audio.Format{Rate: rate}.Duration(len(pcm)))
	if err := w.pcm(ctx, pcm, rate); err != nil {
		return err
	}
	if err := w.finish(ctx); err != nil {
		return err
	}
	return w.store(key)
}

// play passes on the sound that the segment brings along.
func (w *segmentWriter) play(ctx context.Context) error {
	for sound, err := range w.u.Sound {
		if err != nil {
			return fmt.Errorf("play: %w", err)
		}
		w.u.progress.add(audio.Format{Rate: sound.Rate}.Duration(len(sound.PCM)))
		if err := w.pcm(ctx, sound.PCM, sound.Rate); err != nil {
			return err
		}
	}
	return w.finish(ctx)
}

// chunk passes on one chunk of synthesised sound.
func (w *segmentWriter) chunk(ctx context.Context, c chunk) error {
	if c.err != nil {
		return c.err
	}
	if c.provider != w.provider && w.s.framer.begun { // another goes on within the segment
		if err := w.s.framer.finish(w.emit(ctx)); err != nil {
			return err
		}
	}
	w.provider = c.provider
	w.level = w.s.level(c.provider, lang(w.u.Language))
	if c.packets != nil {
		return w.passthrough(ctx, c.packets)
	}
	err := w.pcm(ctx, c.pcm, c.rate)
	w.s.pool.chunks.put(c.pcm)
	return err
}

// pcm passes PCM on. It waits while enough is ahead. Of nothing it says only whether more is wanted.
func (w *segmentWriter) pcm(ctx context.Context, pcm []int16, rate int) error {
	if len(pcm) == 0 {
		return context.Cause(ctx)
	}
	return w.s.framer.write(pcm, rate, w.emit(ctx))
}

// finish ends a segment of PCM.
func (w *segmentWriter) finish(ctx context.Context) error {
	w.u.progress.whole.Store(true)
	return w.s.framer.finish(w.emit(ctx))
}

func (w *segmentWriter) emit(ctx context.Context) func([]int16) error {
	return func(pcm []int16) error { return w.frame(ctx, pcm) }
}

// frame passes on one frame, of which it makes a copy.
func (w *segmentWriter) frame(ctx context.Context, pcm []int16) error {
	if w.level != nil {
		w.level.hear(pcm)
	}
	if w.record {
		w.taken = append(w.taken, pcm...)
		w.record = len(w.ready) == 0 && w.s.o.Reply.Duration(len(w.taken)) <= mostRecorded
	}
	return w.queue(ctx, frame{pcm: w.s.pool.frames.copyOf(pcm), level: w.level})
}

// queue puts a frame before the player.
func (w *segmentWriter) queue(ctx context.Context, f frame) error {
	f.begins = w.begins
	select {
	case w.s.frames <- f:
		w.begins = nil
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// passthrough passes on packets that a provider has encoded: as they are, if a
// device plays them so, else decoded. They are as loud as they are.
func (w *segmentWriter) passthrough(ctx context.Context, packets [][]byte) error {
	for _, p := range packets {
		if w.decoder == nil && len(w.s.framer.acc) == 0 && w.s.plays(p) {
			w.s.framer.begun = true
			if w.record = w.record && len(w.taken) == 0; w.record {
				w.ready = append(w.ready, p)
			}
			if err := w.queue(ctx, frame{packet: p}); err != nil {
				return err
			}
			continue
		}
		if err := w.decode(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// plays says whether devices play a packet as it is.
func (s *Speaker) plays(packet []byte) bool {
	d, err := audio.PacketDuration(packet)
	return err == nil && d == s.o.Reply.Frame && len(packet) <= audio.MaxPacket
}

// decode passes on a packet as PCM.
func (w *segmentWriter) decode(ctx context.Context, packet []byte) error {
	rate := w.s.o.Reply.Rate
	if w.decoder == nil {
		var err error
		if w.decoder, err = audio.NewDecoder(rate); err != nil {
			return fmt.Errorf("decode synthesised packet: %w", err)
		}
	}
	pcm := make([]int16, audio.MaxFrameSamples(rate))
	n, err := w.decoder.Decode(packet, pcm)
	if err != nil {
		return fmt.Errorf("decode synthesised packet: %w", err)
	}
	return w.pcm(ctx, pcm[:n], rate)
}

// packets passes on a whole segment that was encoded before.
func (w *segmentWriter) packets(ctx context.Context, packets [][]byte) error {
	w.u.progress.add(time.Duration(len(packets)) * w.s.o.Reply.Frame)
	w.u.progress.whole.Store(true)
	for _, p := range packets {
		if err := w.queue(ctx, frame{packet: p}); err != nil {
			return err
		}
	}
	return nil
}

// store keeps the segment, which has been passed on whole, in the cache.
func (w *segmentWriter) store(key cacheKey) error {
	packets := w.ready
	if len(w.taken) > 0 {
		var err error
		if packets, err = encodeAll(w.s.o, w.taken, w.level); err != nil {
			return err
		}
	}
	w.s.o.Cache.put(key, packets)
	return nil
}

// encodeAll encodes whole frames as a stream of their own, at the loudness that
// is known of their voice by now.
func encodeAll(o *Options, pcm []int16, v *voiceLevel) ([][]byte, error) {
	format := o.Reply
	enc, err := audio.NewEncoderOf(format, o.Coding)
	if err != nil {
		return nil, fmt.Errorf("make an encoder: %w", err)
	}
	leveller, buf, n := audio.NewLeveller(format.Rate), make([]byte, audio.MaxPacket), format.Samples()
	var packets [][]byte
	for ; len(pcm) >= n; pcm = pcm[n:] {
		if v != nil {
			leveller.Apply(pcm[:n], v.gain())
		}
		size, err := enc.Encode(pcm[:n], buf)
		if err != nil {
			return nil, fmt.Errorf("encode a frame: %w", err)
		}
		packets = append(packets, append([]byte(nil), buf[:size]...))
	}
	return packets, nil
}
