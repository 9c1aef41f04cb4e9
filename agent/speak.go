package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync/atomic"
	"time"

	"xiaozhi/audio"
	"xiaozhi/prompts"
	"xiaozhi/providers"
)

const (
	aheadFrames = 32                    // frames synthesised ahead of the one that plays: 1.9 s
	retryFull   = 20 * time.Millisecond // how soon a frame is offered again to a full outbox
)

// speech is one frame of PCM on its way from the synthesiser to the floor.
type speech struct {
	pcm    []int16
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

// errTTS marks a failure of the synthesiser, which has been made heard.
var errTTS = errors.New("speech synthesis failed")

// speaker turns sentences into paced sound: one goroutine synthesises ahead,
// one plays. It belongs to one turn.
type speaker struct {
	o      *Options
	log    *slog.Logger
	floor  *floor
	timing *timing
	voice  string
	began  func() // tts start was sent

	sentences chan utterable // closed by the turn; size: see newSpeaker
	frames    chan speech    // closed by synthesize
	free      chan []int16   // buffers of frames, reused
	resampler map[int]*audio.Resampler
	resampled *audio.Resampler // the one that this sentence goes through, nil for none
	working   atomic.Bool      // a sentence is being synthesised
	acc       []int16          // samples of the sentence that do not fill a frame yet
}

func newSpeaker(o *Options, log *slog.Logger, f *floor, t *timing, voice string, began func()) *speaker {
	return &speaker{
		o: o, log: log, floor: f, timing: t, voice: voice, began: began,
		sentences: make(chan utterable, 64),
		frames:    make(chan speech, aheadFrames),
		free:      make(chan []int16, aheadFrames+2),
		resampler: map[int]*audio.Resampler{},
	}
}

// synthesize makes frames of all sentences until the turn closes the channel.
// A sentence that cannot be spoken is replaced by the embedded sound that says
// so, and ends the speech with errTTS.
func (s *speaker) synthesize(ctx context.Context) error {
	defer close(s.frames)
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case u, ok := <-s.sentences:
			if !ok {
				return nil
			}
			s.working.Store(true)
			if err := s.sentence(ctx, u); err != nil {
				return err
			}
			s.working.Store(false)
		}
	}
}

// quietSince is since when nothing has been heard of the turn, by the device's
// clock; zero if nothing was yet. False: something is being said, or will be
// without being asked.
func (s *speaker) quietSince() (time.Time, bool) {
	if len(s.sentences) > 0 || s.working.Load() || len(s.frames) > 0 {
		return time.Time{}, false
	}
	end := s.floor.playoutEnd()
	return end, !end.After(time.Now())
}

// begin sends tts start, once.
func (s *speaker) begin() {
	if s.floor.start() {
		s.began()
	}
}

func (s *speaker) sentence(ctx context.Context, u utterable) error {
	s.begin()
	if u.emotion != "" {
		s.floor.send(Message{Kind: MessageEmotion, Emotion: u.emotion, Text: u.emoji})
	}
	if u.speech == "" && u.sound == nil {
		return nil
	}
	err := protect(s.log, "speech synthesis", func() error { return s.say(ctx, u) })
	if err == nil || ctx.Err() != nil {
		return err
	}
	id := u.fallback
	if id == "" {
		id = prompts.FailTTS
		u.sentence = sentence{display: s.o.Prompts.Phrase(id, u.language), language: u.language}
	}
	u.length = new(soundLength)
	s.acc, s.resampled = s.acc[:0], nil // what is left of the broken sentence
	clear(s.resampler)
	if err2 := s.sound(ctx, u, id); err2 != nil {
		return errors.Join(errTTS, err, err2)
	}
	return fmt.Errorf("%w: %w", errTTS, err)
}

// say synthesises one sentence.
func (s *speaker) say(ctx context.Context, u utterable) error {
	begins := &u
	sounds := u.sound
	var decoder *audio.Decoder
	soundCtx, patience := newPatience(ctx, s.o.SoundTimeout)
	defer patience.end()
	if sounds == nil {
		s.timing.ttsStart(s.o.TTS.Name())
		sounds = s.o.TTS.Synthesize(soundCtx, providers.TTSRequest{Text: u.speech, Language: u.language, Voice: s.voice})
	}
	for sound, err := range sounds {
		if err != nil {
			if soundCtx.Err() != nil {
				err = context.Cause(soundCtx)
			}
			return fmt.Errorf("synthesise: %w", err)
		}
		patience.pause() // it waits until its sound is needed
		pcm, rate := sound.PCM, sound.Rate
		if len(sound.Packets) > 0 {
			if decoder == nil {
				if decoder, err = audio.NewDecoder(s.o.Reply.Rate); err != nil {
					return err
				}
			}
			if pcm, err = decodeAll(decoder, sound.Packets, s.o.Reply.Rate); err != nil {
				return err
			}
			rate = s.o.Reply.Rate
		}
		if err := s.push(ctx, pcm, rate, &u, &begins); err != nil {
			return err
		}
		patience.resume()
	}
	if soundCtx.Err() != nil {
		return fmt.Errorf("synthesise: %w", context.Cause(soundCtx))
	}
	u.length.whole.Store(true)
	return s.finish(ctx, &begins)
}

func decodeAll(d *audio.Decoder, packets [][]byte, rate int) ([]int16, error) {
	var pcm []int16
	buf := make([]int16, audio.MaxFrameSamples(rate))
	for _, p := range packets {
		n, err := d.Decode(p, buf)
		if err != nil {
			return nil, fmt.Errorf("decode synthesised packet: %w", err)
		}
		pcm = append(pcm, buf[:n]...)
	}
	return pcm, nil
}

// sound plays the embedded sound of phrase id, showing u. A phrase without a
// sound is only shown.
func (s *speaker) sound(ctx context.Context, u utterable, id string) error {
	begins := &u
	pcm, rate := make([]int16, s.o.Reply.Samples()), s.o.Reply.Rate // silence
	if wav := prompts.Sound(id, u.language); len(wav) > 0 {
		var err error
		if pcm, rate, err = audio.ReadWAV(bytes.NewReader(wav)); err != nil {
			return fmt.Errorf("embedded sound %s: %w", id, err)
		}
	}
	if err := s.push(ctx, pcm, rate, &u, &begins); err != nil {
		return err
	}
	u.length.whole.Store(true)
	return s.finish(ctx, &begins)
}

// push resamples PCM and cuts it into frames. It waits while enough is ahead.
func (s *speaker) push(ctx context.Context, pcm []int16, rate int, u *utterable, begins **utterable) error {
	if len(pcm) == 0 {
		return nil
	}
	s.timing.ttsSound()
	u.length.nanos.Add(int64(audio.Format{Rate: rate}.Duration(len(pcm))))
	if rate == s.o.Reply.Rate {
		s.acc = append(s.acc, pcm...)
		return s.emit(ctx, begins)
	}
	r, err := s.from(rate)
	if err != nil {
		return err
	}
	s.resampled = r
	for len(pcm) > 0 { // in pieces, so that the buffer stays small
		n := min(len(pcm), rate/10)
		s.acc = r.Write(s.acc, pcm[:n])
		pcm = pcm[n:]
		if err := s.emit(ctx, begins); err != nil {
			return err
		}
	}
	return nil
}

func (s *speaker) from(rate int) (*audio.Resampler, error) {
	if r, ok := s.resampler[rate]; ok {
		return r, nil
	}
	r, err := audio.NewResampler(rate, s.o.Reply.Rate)
	if err != nil {
		return nil, fmt.Errorf("resample speech: %w", err)
	}
	s.resampler[rate] = r
	return r, nil
}

// finish ends a sentence: the last frame is padded with silence.
func (s *speaker) finish(ctx context.Context, begins **utterable) error {
	if s.resampled != nil {
		s.acc = s.resampled.Flush(s.acc)
		s.resampled = nil
	}
	n := s.o.Reply.Samples()
	if rest := len(s.acc) % n; rest != 0 {
		s.acc = append(s.acc, make([]int16, n-rest)...)
	}
	return s.emit(ctx, begins)
}

// emit passes on the whole frames of the accumulator.
func (s *speaker) emit(ctx context.Context, begins **utterable) error {
	n := s.o.Reply.Samples()
	used := 0
	for ; len(s.acc)-used >= n; used += n {
		var buf []int16
		select {
		case buf = <-s.free:
		default:
			buf = make([]int16, n)
		}
		copy(buf, s.acc[used:used+n])
		select {
		case s.frames <- speech{pcm: buf, begins: *begins}:
			*begins = nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	s.acc = append(s.acc[:0], s.acc[used:]...)
	return nil
}

// play hands frames to the floor when they are due, and after the last waits
// until the device has played them.
func (s *speaker) play(ctx context.Context) error {
	if err := s.floor.await(ctx); err != nil {
		return err
	}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case f, ok := <-s.frames:
			if !ok {
				return s.playout(ctx, timer)
			}
			if err := s.playFrame(ctx, timer, f); err != nil {
				return err
			}
		}
	}
}

func (s *speaker) playFrame(ctx context.Context, timer *time.Timer, f speech) error {
	due := s.floor.due(time.Now())
	if guard := s.floor.startedAt().Add(s.o.Guard); due.Before(guard) {
		due = guard
	}
	if err := wait(ctx, timer, time.Until(due)); err != nil {
		return err
	}
	if f.begins != nil {
		s.floor.sentenceStart(*f.begins)
	}
	// Not before it is due: a frame that is encoded and then not sent would
	// leave the encoder ahead of the device's decoder.
	packet, err := s.floor.encode(f.pcm)
	if err != nil {
		return err
	}
	select {
	case s.free <- f.pcm:
	default:
	}
	for packet != nil && !s.floor.frame(packet) {
		if err := wait(ctx, timer, retryFull); err != nil {
			return err
		}
	}
	return nil
}

// playout waits until what was sent has been played.
func (s *speaker) playout(ctx context.Context, timer *time.Timer) error {
	end := s.floor.playoutEnd()
	if end.IsZero() {
		return nil
	}
	return wait(ctx, timer, time.Until(end.Add(s.o.StopAfter)))
}

// wait sleeps for d on the timer, or until ctx ends.
func wait(ctx context.Context, timer *time.Timer, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer.Reset(d)
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
