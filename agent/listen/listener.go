package listen

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"xiaozhi/agent/turn"
	"xiaozhi/audio"
	"xiaozhi/audio/echo"
	"xiaozhi/internal/wire"
	"xiaozhi/providers"
)

// stalledMic is how long no packet may come within an utterance before the
// silence counts as the user's: some clients stop sending when they think that
// nobody speaks.
const stalledMic = 1200 * time.Millisecond

// Sounds takes the sound of utterances that are answered by it. Write and Release never wait; all are
// called by the listener's goroutine.
type Sounds interface {
	// Begin says that an utterance begins. False: it is to be recognised.
	Begin(id uint64) bool
	// Write takes a copy of its sound. False: it takes no more.
	Write(id uint64, pcm []int16) bool
	// Release lets go of an utterance that is not reported any more.
	Release(id uint64)
}

// Tap listens in on an utterance. Its methods never wait for what comes of it; all are called by the listener's goroutine.
type Tap interface {
	// Write takes a copy of its sound, as the recogniser hears it.
	Write(pcm []int16)
	// Pause says that what was said so far may be all.
	Pause()
	// End says that it is over. echo: it was the device's own sound. It is the last call, as Drop is.
	End(echo bool)
	// Drop says that it is not reported any more.
	Drop(cause error)
}

// Options hold what the listeners of a conversation share. Every field must be set
// but Phrases, Sounds, Tap, FarEnd, SelfEcho, Record, Meter and Heard.
type Options struct {
	VAD     providers.VAD
	ASR     providers.ASR
	Warm    []any           // those of them that are [providers.Warmer] are warmed when somebody speaks
	Phrases func() []string // what is likely to be said; nil: nothing is known
	Sounds  Sounds          // nil: all is recognised
	// Tap begins to listen in on an utterance, whose context ends with what is done for it. It returns nil if nobody wants to. nil: nobody does.
	Tap      func(ctx context.Context, id uint64) Tap
	Endpoint audio.EndpointOptions
	BargeIn  time.Duration // of voice, after which SpeechLong is reported
	Attempts int           // how often the text of an utterance is asked for before its end; 0: never
	FarEnd   *echo.FarEnd  // what the device plays, to be taken out of the microphone; nil: there is nothing to take out
	SelfEcho *echo.SelfEcho
	Record   func() bool                             // whether the packets of the next utterance are wanted; nil: never
	Meter    func(pcm []int16)                       // sees all sound as it is decoded; must not wait or keep it; nil: nobody does
	Heard    func(id uint64, packets *audio.Packets) // takes those of an utterance before its end is reported; may wait
	Book     *Book
	Report   func(turn.Event)                                  // may wait; called by all goroutines of a listener
	Child    func() (context.Context, context.CancelCauseFunc) // a context that ends with the conversation
	Go       func(func())                                      // starts a goroutine that the conversation joins
	Log      *slog.Logger
}

// Listener listens in one mode. It is one goroutine, Run, and one for each
// recogniser at work.
//
// # Concurrency
//
// Put and Tell may be called at any time.
type Listener struct {
	o     *Options
	mode  wire.Mode
	lang  string
	epoch uint64
	in    *wire.Queue[turn.Effect]

	silence time.Duration // that ends the first utterance

	decoder  *decoder
	detector *detector
	preroll  *audio.PreRoll
	quiet    time.Duration // how long nothing was heard before the next utterance
	muted    bool
	watching bool        // a reply is spoken: interim texts are wanted
	due      *time.Timer // the silence has lasted long enough
	speech   *speech     // the utterance that goes on; nil: none
	next     *Options    // of the utterances after it; nil: as they are
	tape     *tape       // of it; nil: its packets are not wanted
}

// New makes a listener in the mode and with the language of l.
func New(o *Options, l turn.Listen) *Listener {
	return &Listener{o: o, mode: l.Mode, lang: string(l.Lang), epoch: l.Epoch, silence: l.Silence, in: wire.NewQueue[turn.Effect]()}
}

// Mode is the mode in which the listener listens.
func (l *Listener) Mode() wire.Mode { return l.mode }

// Put hands over a copy of a microphone packet. It never waits.
func (l *Listener) Put(p wire.Packet) { l.in.Put(p) }

// Renewal is a command: the utterances to come are heard with other options, and the first ends with that silence.
type Renewal struct {
	Options *Options
	Silence time.Duration
}

// Tell hands over a command: [turn.Listen], [turn.Mute], [turn.EndUtterance],
// [turn.Watch], [turn.Expect], [turn.AwaitSilence] or [Renewal], in order with the packets. The error is
// [wire.ErrOverrun] if the listener hangs.
func (l *Listener) Tell(e turn.Effect) error { return l.in.Post(e) }

// Run listens until ctx ends, and then drops the utterance that goes on. The
// error is why it ended by itself, else nil.
func (l *Listener) Run(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			l.o.Log.Error("panic in the listener", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			l.drop(turn.ErrFailed)
			err = fmt.Errorf("%w: panic in the listener: %v", turn.ErrFailed, p)
		}
	}()
	if err := l.prepare(); err != nil {
		return err
	}
	defer func() { l.detector.close() }()
	stalled := time.NewTimer(time.Hour)
	defer stalled.Stop()
	l.due = time.NewTimer(time.Hour)
	defer l.due.Stop()
	l.due.Stop()
	var items []wire.Item[turn.Effect]
	for {
		select {
		case <-ctx.Done():
			l.drop(context.Cause(ctx))
			return nil
		case <-stalled.C:
			if l.speech != nil && l.mode != wire.Manual {
				l.commit(stalledMic)
			}
		case <-l.due.C:
			l.silenceOver()
		case <-l.in.Ready():
			var lost int
			if items, lost = l.in.Take(items); lost > 0 {
				l.o.Log.Warn("audio frames dropped", "frames", lost)
			}
			for _, it := range items {
				l.take(it)
			}
			stalled.Reset(stalledMic)
			l.schedule()
		}
	}
}

func (l *Listener) prepare() (err error) {
	if l.decoder, err = newDecoder(l.far(), l.o.Book, l.o.Log); err != nil {
		return err
	}
	if l.detector, err = newDetector(l.o.VAD, l.o.Endpoint); err != nil {
		return err
	}
	l.detector.endpoint.SetCommit(l.silence)
	l.preroll = audio.NewPreRoll(audio.Recognition.Rate, l.ahead())
	l.record()
	return nil
}

// far returns what is to be taken out of the microphone.
func (l *Listener) far() *echo.FarEnd {
	if l.mode != wire.Realtime {
		return nil // the microphone is closed while the device plays
	}
	return l.o.FarEnd
}

// renew takes the options of the utterances to come, once none goes on.
func (l *Listener) renew() {
	if l.next == nil || l.speech != nil {
		return
	}
	before := l.o
	l.o, l.next = l.next, nil
	if l.o.FarEnd != before.FarEnd {
		if decoder, err := newDecoder(l.far(), l.o.Book, l.o.Log); err == nil {
			l.decoder = decoder
		} else {
			l.o.Log.Warn("the sound is decoded as before", "err", err)
		}
	}
	if l.o.Endpoint != before.Endpoint {
		detector, err := newDetector(l.o.VAD, l.o.Endpoint)
		if err != nil {
			l.o.Log.Warn("the end of speech is found as before", "err", err)
			return
		}
		l.detector.close()
		l.detector = detector
		l.detector.endpoint.SetCommit(l.silence)
		l.preroll = audio.NewPreRoll(audio.Recognition.Rate, l.ahead())
	}
	l.record()
}

// ahead returns the length of the sound from before an utterance was noticed that belongs to it: what comes before voice, and the voice that
// has to be there before it counts.
func (l *Listener) ahead() time.Duration {
	end := l.o.Endpoint.WithDefaults()
	return end.PreRoll + end.MinSpeech + 100*time.Millisecond
}

// record begins a tape, if one is wanted.
func (l *Listener) record() {
	l.tape = nil
	if l.o.Record != nil && l.o.Record() {
		l.tape = &tape{ahead: l.ahead(), whole: l.mode == wire.Manual}
	}
}

func (l *Listener) take(it wire.Item[turn.Effect]) {
	if it.IsPacket {
		if !l.muted {
			l.decoder.write(it.Packet, l.tape, l.hear)
		}
		return
	}
	switch e := it.Event.(type) {
	case Renewal:
		l.next, l.silence = e.Options, e.Silence
	case turn.Mute:
		l.muted = true
		l.drop(turn.ErrReplaced)
	case turn.Listen:
		l.muted, l.watching, l.epoch, l.quiet, l.silence = false, false, e.Epoch, 0, e.Silence
		l.drop(turn.ErrReplaced)
		l.decoder.reset()
		l.preroll.Take()
		l.detector.reset(e.Silence)
		l.record()
	case turn.EndUtterance:
		l.muted = true
		l.commit(0)
	case turn.Expect:
		l.lang = string(e.Lang)
	case turn.Watch:
		l.watching = e.On
	case turn.AwaitSilence:
		if l.speech != nil && e.ID == l.speech.id {
			l.detector.endpoint.Await(e.Silence)
		}
	}
	l.renew()
}

// hear takes in sound that has come at a time. In manual mode all of it is the
// utterance.
func (l *Listener) hear(pcm []int16, at time.Time) {
	if l.o.Meter != nil {
		l.o.Meter(pcm)
	}
	if l.mode != wire.Manual {
		l.detector.write(pcm, at, l.window)
		return
	}
	if l.speech == nil {
		l.open(nil)
	}
	l.write(pcm)
}

// window acts on one window of the detector.
func (l *Listener) window(pcm []int16, verdict audio.Endpoint, err error) {
	if err != nil {
		l.o.Log.Warn("voice detector failed", "err", err)
		return
	}
	length := audio.Recognition.Duration(len(pcm))
	if l.speech == nil {
		l.quiet += length
		l.preroll.Write(pcm)
	} else {
		l.write(pcm)
	}
	switch verdict {
	case audio.EndpointSpeechStart:
		l.open(l.preroll.Take())
		l.o.Report(turn.SpeechStarted{ID: l.speech.id, Epoch: l.epoch})
	case audio.EndpointTrigger:
		l.pause()
	case audio.EndpointResume:
		l.speech.resume(l.detector.fed - length)
	case audio.EndpointCommit:
		l.commit(l.detector.silence())
	case audio.EndpointOverlong:
		l.commit(l.detector.silence())
		l.detector.endpoint.AwaitPause() // else the voice that goes on would undo the turn
	case audio.EndpointNone:
	}
	if l.speech != nil {
		l.speech.voiced(l.detector.endpoint.Voiced(), l.watching)
	}
}

// open begins an utterance with the sound that came before it was noticed.
func (l *Listener) open(before []int16) {
	minSpeech := l.o.Endpoint.WithDefaults().MinSpeech
	unheard := l.o.SelfEcho.Unheard(l.quiet-minSpeech, minSpeech, time.Now())
	l.quiet = 0
	l.tape.begin()
	l.speech = newSpeech(l.o, l.lang, l.mode != wire.Manual, unheard)
	l.write(before)
}

// write gives sound to the utterance. One whose recogniser takes no more ends in
// manual mode: it was held for longer than any recogniser buffers.
func (l *Listener) write(pcm []int16) {
	if l.speech.tap != nil {
		l.speech.tap.Write(pcm)
	}
	if !l.speech.write(pcm) && l.mode == wire.Manual {
		l.muted = true
		l.commit(0)
	}
}

// pause asks for the text of what was said so far: it may be all.
func (l *Listener) pause() { l.speech.pause(l.detector.endpoint.LastVoice()) }

// commit ends the utterance; silence is how long nobody has spoken. A button that
// was pressed without a sound is an utterance too.
func (l *Listener) commit(silence time.Duration) {
	s := l.speech
	switch {
	case s != nil:
	case l.mode == wire.Manual:
		s = &speech{o: l.o, id: l.o.Book.add(nil), attempt: &attempt{n: 1}}
	default:
		return
	}
	l.speech = nil
	l.detector.restart()
	if l.tape != nil {
		l.o.Heard(s.id, l.tape.packets)
	}
	l.record()
	s.end(l.epoch, silence)
	l.renew()
}

// drop forgets the utterance that goes on.
func (l *Listener) drop(cause error) {
	if l.speech != nil {
		l.o.Book.Release(l.speech.id, cause)
		l.speech.release(cause)
		l.speech = nil
		l.record()
	}
}

// schedule sets the timer by which a pause begins to count, and by which the
// utterance ends.
func (l *Listener) schedule() {
	l.due.Stop()
	if l.speech == nil || l.mode == wire.Manual {
		return
	}
	if at := l.detector.due(); !at.IsZero() {
		l.due.Reset(time.Until(at))
	}
}

// silenceOver acts on that timer, unless there is something to be heard first.
func (l *Listener) silenceOver() {
	switch {
	case l.speech == nil || !l.in.Empty():
	case l.detector.endpoint.Pause():
		l.pause()
		l.schedule()
	case l.detector.endpoint.Paused():
		l.commit(time.Since(l.detector.voiceAt))
	}
}
