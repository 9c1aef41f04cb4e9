package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"xiaozhi/agent/turn"
	"xiaozhi/audio"
	"xiaozhi/audio/file"
	"xiaozhi/internal/wire"
	"xiaozhi/prompts"
	"xiaozhi/providers"
)

// aheadFrames is how many frames are cut ahead of the one that plays: 0.7 s.
// What waits behind them is still in the pieces of its supply.
const aheadFrames = 12

// speech is one frame of sound on its way to the floor: PCM, or a packet that
// was encoded by somebody else.
type speech struct {
	pcm    []int16
	packet []byte
	voice  *voice     // whose pcm it is; nil: it is played as loud as it is
	begins *utterable // set on the first frame of a sentence
}

// utterable is a sentence on its way through the speaker.
type utterable struct {
	sentence
	step   int // of the turn in which it was said
	length *soundLength
	sound  iter.Seq2[providers.Sound, error] // its sound; nil: it is synthesised
}

// soundLength is how much sound of a sentence there is so far. The synthesiser
// writes it, the floor reads it.
type soundLength struct {
	nanos atomic.Int64
	whole atomic.Bool // nothing will be added
}

// add notes that there is more sound.
func (l *soundLength) add(d time.Duration) { l.nanos.Add(int64(d)) }

// errTTS marks a failure of the synthesiser, which has been made heard.
var errTTS = errors.New("speech synthesis failed")

// speaker turns sentences into paced sound. One goroutine opens the supply of
// each sentence, one ahead of the one that is spoken; one cuts what comes into
// frames; one plays them. It belongs to one turn.
type speaker struct {
	o      *Options
	log    *slog.Logger
	floor  *floor
	timing *timing
	voice  string
	ready  func() // asks for tts start

	sentences chan utterable // closed by the turn; size: see newSpeaker
	frames    chan speech    // closed by synthesize
	free      chan []int16   // buffers of frames, reused
	spare     chan []int16   // buffers of pieces, reused
	pending   atomic.Int32   // sentences that were taken and are not cut yet

	cutter  *framer            // of synthesize
	voices  map[voiceID]*voice // of synthesize
	playing *soundLength       // of play: the sentence that plays
	excused bool               // of synthesize: it was said that the voice is slow
}

func newSpeaker(o *Options, log *slog.Logger, f *floor, t *timing, voiceName string, ready func()) *speaker {
	return &speaker{
		o: o, log: log, floor: f, timing: t, voice: voiceName, ready: ready,
		sentences: make(chan utterable, 64),
		frames:    make(chan speech, aheadFrames),
		free:      make(chan []int16, aheadFrames+2),
		spare:     make(chan []int16, 2*supplyPieces),
		cutter:    newFramer(o.Reply),
		voices:    map[voiceID]*voice{},
	}
}

// synthesize makes frames of all sentences until the turn closes the channel.
// A sentence that cannot be spoken is replaced by the embedded sound that says
// so, and ends the speech with errTTS.
func (s *speaker) synthesize(ctx context.Context) error {
	defer close(s.frames)
	ctx, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel(turn.ErrDone)
	supplies := make(chan *supply) // unbuffered: one is open ahead of the one that is spoken
	wg.Go(func() {
		defer close(supplies)
		s.feed(ctx, &wg, supplies)
	})
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case from, ok := <-supplies:
			if !ok {
				return context.Cause(ctx)
			}
			if err := s.sentence(ctx, from); err != nil {
				return err
			}
			s.pending.Add(-1)
		}
	}
}

// quietSince is since when nothing has been heard of the turn, by the device's
// clock; zero if nothing was yet. False: something is being said, or will be
// without being asked.
func (s *speaker) quietSince() (time.Time, bool) {
	if len(s.sentences) > 0 || s.pending.Load() > 0 || len(s.frames) > 0 {
		return time.Time{}, false
	}
	end := s.floor.playoutEnd()
	return end, !end.After(time.Now())
}

// begin asks for tts start, once.
func (s *speaker) begin() {
	if s.floor.announce() {
		s.ready()
	}
}

func (s *speaker) sentence(ctx context.Context, from *supply) error {
	defer from.stop(turn.ErrDone)
	u := from.utterable
	s.begin()
	if u.emotion != "" {
		s.floor.send(wire.Message{Kind: wire.MessageEmotion, Emotion: u.emotion, Text: u.emoji})
	}
	if u.speech == "" && u.sound == nil {
		return nil
	}
	err := protect(s.log, "speech synthesis", func() error { return s.say(ctx, from) })
	if err == nil || ctx.Err() != nil {
		return err
	}
	id := u.fallback
	if id == "" {
		id = prompts.FailTTS
		u.sentence = sentence{display: s.o.Prompts.Phrase(id, u.language), language: u.language}
	}
	u.length = new(soundLength)
	s.cutter.reset() // what is left of the broken sentence
	if err2 := s.sound(ctx, u, id); err2 != nil {
		return errors.Join(errTTS, err, err2)
	}
	return fmt.Errorf("%w: %w", errTTS, err)
}

// say passes the sound of one sentence on as frames.
func (s *speaker) say(ctx context.Context, from *supply) error {
	if instead, err := s.awaitSound(ctx, from); instead || err != nil {
		return err
	}
	c := s.cut(from.utterable)
	if from.packets != nil {
		return c.packets(ctx, from.packets)
	}
	if from.sound != nil {
		for sound, err := range from.sound {
			if err != nil {
				return fmt.Errorf("play: %w", err)
			}
			from.length.add(audio.Format{Rate: sound.Rate}.Duration(len(sound.PCM)))
			if err := c.pcm(ctx, sound.PCM, sound.Rate); err != nil {
				return err
			}
		}
		return c.finish(ctx)
	}
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case p, ok := <-from.pieces:
			if !ok {
				return s.keep(from, c, c.finish(ctx))
			}
			if err := s.piece(ctx, c, from, p); err != nil {
				return err
			}
		}
	}
}

// piece passes on one piece of synthesised sound.
func (s *speaker) piece(ctx context.Context, c *cut, from *supply, p piece) error {
	if p.err != nil {
		return p.err
	}
	if p.provider != c.provider && s.cutter.begun { // another goes on within the sentence
		if err := s.cutter.finish(func(frame []int16) error { return c.frame(ctx, frame) }); err != nil {
			return err
		}
	}
	c.provider = p.provider
	c.voice = s.voiceOf(p.provider, from.language)
	if p.packets != nil {
		return c.foreign(ctx, p.packets)
	}
	err := c.pcm(ctx, p.pcm, p.rate)
	select {
	case s.spare <- p.pcm:
	default:
	}
	return err
}

// sound plays the embedded sound of phrase id, showing u. A phrase without a
// sound is only shown.
func (s *speaker) sound(ctx context.Context, u utterable, id string) error {
	key := s.o.Sounds.key(s, embedded, id, u.language, "")
	c := s.cut(u)
	if packets := s.o.Sounds.get(key); packets != nil {
		return c.packets(ctx, packets)
	}
	wav := prompts.Sound(id, u.language)
	if len(wav) == 0 {
		if err := c.pcm(ctx, make([]int16, s.o.Reply.Samples()), s.o.Reply.Rate); err != nil {
			return err
		}
		return c.finish(ctx)
	}
	pcm, rate, err := file.ReadWAV(bytes.NewReader(wav))
	if err != nil {
		return fmt.Errorf("embedded sound %s: %w", id, err)
	}
	c.voice = s.voiceOf(embedded, u.language)
	c.record = s.o.Sounds != nil
	u.length.add(audio.Format{Rate: rate}.Duration(len(pcm)))
	if err := c.pcm(ctx, pcm, rate); err != nil {
		return err
	}
	if err := c.finish(ctx); err != nil {
		return err
	}
	return c.store(key)
}

// keep stores a fixed phrase that was spoken whole. err is how its end went.
func (s *speaker) keep(from *supply, c *cut, err error) error {
	if c.voice != nil {
		s.o.Levels.Keep(c.voice.key, c.voice.meter)
	}
	if err != nil || !c.record || (c.provider != "" && c.provider != s.o.TTS.Name()) {
		return err // somebody stands in for the voice: the next time it may be itself
	}
	if err := c.store(from.key); err != nil {
		s.log.Warn("phrase not kept", "err", err) // it was spoken all the same
	}
	return nil
}
