package speak

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"xiaozhi/agent/turn"
	"xiaozhi/audio"
	"xiaozhi/internal/text"
	"xiaozhi/internal/timeline"
	"xiaozhi/internal/wire"
	"xiaozhi/prompts"
	"xiaozhi/providers"
)

const (
	mostSegments = 64 // wait to be spoken; then Say waits
	aheadFrames  = 12 // are cut ahead of the one that plays: 0.7 s
	// embedded is the provider of the sounds that are part of the program.
	embedded = "embedded"
)

// ErrVoice marks a failure of the synthesiser, which has been made heard.
var ErrVoice = errors.New("speech synthesis failed")

// Options hold what the speakers of all replies share. TTS, Prompts and Reply must
// be set.
type Options struct {
	TTS          providers.TTS
	Prompts      *prompts.Set
	Cache        *Cache        // of the sound of fixed phrases; nil: they are synthesised each time
	Levels       *audio.Levels // how loud voices are, to bring them to one loudness; nil: they are as loud as they are
	Reply        audio.Format
	Coding       audio.Coding  // of Reply
	Home         text.Lang     // of the device: what cannot be spoken in another is told in Chinese where this is Chinese, else in English
	Lead         int           // frames sent ahead
	Guard        time.Duration // from tts start to the first frame
	StopAfter    time.Duration // from the end of play-out to the end of the reply
	SlowAfter    time.Duration // until a phrase that gives no sound is played from an embedded one; less than 0: never
	SoundTimeout time.Duration // until it has failed
}

// Speaker makes frames of segments for one reply. One goroutine opens the stream
// of each segment, one ahead of the one that is spoken; one, in Synthesize, cuts
// what comes into frames; one, in Play, hands them to the player.
type Speaker struct {
	o      *Options
	log    *slog.Logger
	player *Player
	times  *timeline.Turn
	voice  string
	post   func(turn.Event)

	queue      queue
	interposed chan Segment // taken by Synthesize while it waits for a sound; size 0
	frames     chan frame   // closed by Synthesize
	pool       pool

	framer *framer                 // of Synthesize
	mute   bool                    // of Synthesize: it was said that there is no voice for a language
	levels map[levelID]*voiceLevel // of Synthesize
}

// frame is one frame of sound on its way to the player: PCM, or a packet that was
// encoded elsewhere.
type frame struct {
	pcm    []int16
	packet []byte
	level  *voiceLevel // of pcm; nil: it is played as loud as it is
	begins *Segment    // set on the first frame of a segment
}

// NewSpeaker makes a speaker with a voice. It posts that there is something to be
// heard, once, and when it waits for a sound.
func NewSpeaker(o *Options, log *slog.Logger, p *Player, t *timeline.Turn, voice string, post func(turn.Event)) *Speaker {
	return &Speaker{
		o: o, log: log, player: p, times: t, voice: voice, post: post,
		queue: newQueue(), interposed: make(chan Segment), frames: make(chan frame, aheadFrames), pool: newPool(),
		framer: newFramer(o.Reply), levels: map[levelID]*voiceLevel{},
	}
}

// Announce asks for tts start, once, if the turn may be seen by now: something will be said. So the pause between it and
// the first frame passes while the words and their sound are still made.
func (s *Speaker) Announce() { s.announce(true) }

func (s *Speaker) announce(seen bool) {
	if s.player.Announce(seen) {
		s.post(turn.Ready{Turn: s.player.turn})
	}
}

// Say gives a segment to the speaker; it waits while many are waiting. The first announces itself.
func (s *Speaker) Say(ctx context.Context, u Segment) error {
	u.progress = new(progress)
	s.announce(false)
	return s.queue.put(ctx, u)
}

// Interpose says a phrase in front of a segment whose sound is awaited, or while
// there is nothing to say; else it is too late for it. It neither waits nor asks
// for tts start.
func (s *Speaker) Interpose(id string, l text.Lang) {
	u := NewPhrase(id, s.o.Prompts.Phrase(id, lang(l)), l)
	u.progress = new(progress)
	if s.queue.putAlone(u) {
		return
	}
	select {
	case s.interposed <- u:
	default:
	}
}

// Close says that there are no more segments.
func (s *Speaker) Close() { s.queue.close() }

// Quiet returns whether something waits to be played, or is being made, and when
// the device will have played what it was given; zero: it got nothing.
func (s *Speaker) Quiet() (busy bool, end time.Time) {
	return !s.queue.empty() || len(s.frames) > 0, s.player.playoutEnd()
}

// Synthesize makes frames of all segments until Close. A segment that cannot be
// spoken is replaced by the embedded sound that says so, and ends the speech with
// [ErrVoice].
func (s *Speaker) Synthesize(ctx context.Context) error {
	defer close(s.frames)
	ctx, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel(turn.ErrDone)
	streams := make(chan *stream) // unbuffered: one is open ahead of the one that is spoken
	wg.Go(func() {
		defer close(streams)
		s.prefetch(ctx, &wg, streams)
	})
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case from, ok := <-streams:
			if !ok {
				return context.Cause(ctx)
			}
			if err := s.segment(ctx, from); err != nil {
				return err
			}
			s.queue.count(-1)
		}
	}
}

// segment speaks one segment.
func (s *Speaker) segment(ctx context.Context, from *stream) error {
	defer from.stop(turn.ErrDone)
	u := from.Segment
	s.face(u)
	if u.Speech == "" && u.Sound == nil && u.spoken == nil {
		return nil
	}
	err := Protect(s.log, "speech synthesis", func() error { return s.speak(ctx, from) })
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case providers.LacksLanguage(err):
		return s.voiceless(ctx, u, err)
	}
	id := u.Fallback
	if id == "" {
		id = prompts.FailTTS
		u = s.shown(id, u)
	}
	u.progress = new(progress)
	s.framer.reset() // what is left of the broken segment
	if err2 := s.sound(ctx, u, id); err2 != nil {
		return errors.Join(ErrVoice, err, err2)
	}
	return fmt.Errorf("%w: %w", ErrVoice, err)
}

// face sends the face of a segment, if it has one.
func (s *Speaker) face(u Segment) {
	if u.Emotion != "" {
		s.player.Send(wire.Message{Kind: wire.MessageEmotion, Emotion: u.Emotion, Text: u.Emoji})
	}
}

// voiceless shows a segment in whose language nobody can speak. What is wrong is said, once in a reply,
// in a language that the program has sounds of.
func (s *Speaker) voiceless(ctx context.Context, u Segment, err error) error {
	id := prompts.NoVoice
	switch {
	case len(prompts.Sound(u.Fallback, lang(u.Language))) > 0:
		id = u.Fallback // the phrase itself
	case s.mute:
		id = ""
	default:
		s.mute = true
		s.log.Warn("no voice for the language", "tts", s.o.TTS.Name(), "language", u.Language, "err", err)
	}
	u.Language, u.progress = s.o.Home, new(progress)
	s.framer.reset()
	return s.sound(ctx, u, id)
}

// shown is a phrase in the place of a segment.
func (s *Speaker) shown(id string, instead Segment) Segment {
	u := Segment{Step: instead.Step, Fallback: id, Sound: instead.Sound}
	u.Display, u.Language = s.o.Prompts.Phrase(id, string(instead.Language)), instead.Language
	return u
}

// speak passes the sound of one segment on as frames.
func (s *Speaker) speak(ctx context.Context, from *stream) error {
	if instead, err := s.awaitSound(ctx, from); instead || err != nil {
		return err
	}
	if from.Recorded {
		return s.sound(ctx, from.Segment, from.Fallback)
	}
	w := s.writer(from.Segment)
	switch {
	case from.packets != nil:
		return w.packets(ctx, from.packets)
	case from.Sound != nil:
		return w.play(ctx)
	case from.spoken != nil:
		return w.spoken(ctx, from.spoken)
	}
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case c, ok := <-from.chunks:
			if !ok {
				return s.keep(from, w, w.finish(ctx))
			}
			if err := w.chunk(ctx, c); err != nil {
				return err
			}
		}
	}
}

// keep stores a fixed phrase that was spoken whole. err is how its end went.
func (s *Speaker) keep(from *stream, w *segmentWriter, err error) error {
	if w.level != nil {
		s.o.Levels.Keep(w.level.key, w.level.meter)
	}
	if err != nil || !w.record || (w.provider != "" && w.provider != s.o.TTS.Name()) {
		return err // another stands in for the voice: the next time it may be itself
	}
	if err := w.store(from.key); err != nil {
		s.log.Warn("phrase not kept", "err", err) // it was spoken all the same
	}
	return nil
}

// How long the synthesiser may take for a phrase that is there as a sound, and
// for one that says that something is slow.
const (
	phraseWithin  = 1500 * time.Millisecond
	passingWithin = 300 * time.Millisecond
)

// awaitSound waits for the first sound of a segment. A phrase that does not come
// in time is played from its embedded sound instead; in front of any other
// segment a phrase may be interposed.
func (s *Speaker) awaitSound(ctx context.Context, from *stream) (instead bool, err error) {
	if from.chunks == nil {
		return false, nil
	}
	if err := s.player.AwaitOpen(ctx); err != nil {
		return false, err
	}
	var late <-chan time.Time
	if from.Fallback != "" && s.o.SlowAfter >= 0 && len(prompts.Sound(from.Fallback, lang(from.Language))) > 0 {
		within := min(s.o.SlowAfter, phraseWithin)
		if passing(from.Fallback) {
			within = passingWithin
		}
		timer := time.NewTimer(within)
		defer timer.Stop()
		late = timer.C
	} else {
		select {
		case <-from.begun:
			return false, nil
		default:
		}
		s.post(turn.Waiting{Turn: s.player.turn, For: turn.Voice})
		defer s.post(turn.Waited{Turn: s.player.turn, For: turn.Voice})
	}
	u := from.Segment
	select {
	case <-from.begun:
		return false, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case <-late:
		instead, u.progress = true, new(progress)
	case u = <-s.interposed:
	}
	s.log.Warn("speech synthesis is slow", "tts", s.o.TTS.Name(), "phrase", u.Fallback)
	return instead, s.sound(ctx, u, u.Fallback)
}

// lang is a language as providers and prompts name it.
func lang(l text.Lang) string { return string(l) }

// Protect turns a panic in f into an error that is [turn.ErrFailed], so that it costs
// no more than what f does.
func Protect(log *slog.Logger, what string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			log.Error("panic", "where", what, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = fmt.Errorf("%w: panic in %s: %v", turn.ErrFailed, what, p)
		}
	}()
	return f()
}
