package agent

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"xiaozhi/agent/turn"

	"xiaozhi/audio"
	"xiaozhi/audio/echo"
	"xiaozhi/internal/wire"
	"xiaozhi/providers"
)

// listenFailed says that the listener has ended by itself.
type listenFailed struct {
	ears *ears
	err  error
}

const (
	// stalledMic is how long no frame may come within an utterance before the
	// silence counts as the speaker's: some clients stop sending when they think
	// that nobody speaks.
	stalledMic = 1200 * time.Millisecond
	// inFlight is how much of the silence that ends an utterance need not have
	// been heard: so much may still be on its way when its time has come. Voice
	// in it undoes the turn.
	inFlight = 180 * time.Millisecond
)

// ears decode what the microphone sends, find out when somebody speaks, and
// pass it to recognisers (utterance.go). They are one goroutine (run) and one
// for each recogniser.
type ears struct {
	o          *Options
	mode       wire.Mode
	lang       string
	phrases    func() []string
	report     func(any) // to the conversation; gives up when the conversation ends
	log        *slog.Logger
	in         *wire.Queue[turn.Effect]                          // commands and packets
	monitor    *echo.FarEnd                                      // of the conversation; nil: no echo has to be taken out
	loopback   *echo.SelfEcho                                    // of the conversation; nil: words have to tell what is an echo
	child      func() (context.Context, context.CancelCauseFunc) // the context of one utterance
	wg         *sync.WaitGroup                                   // of the conversation
	utterances *utterances                                       // of the conversation

	uplink   audio.Uplink
	decoder  *audio.Decoder
	broken   int             // packets in a row that could not be decoded
	echo     *echo.Canceller // nil: no echo has to be taken out
	pcm      []int16
	detector providers.Detector
	window   []int16 // samples that do not fill a detector's frame yet
	endpoint *audio.Endpointer
	preroll  *audio.PreRoll
	muted    bool
	watching bool // a reply is spoken while the microphone is open
	stretch  uint64
	commits  time.Duration // the silence that ends an utterance
	fed      time.Duration // position on the endpointer's timeline
	voiceAt  time.Time     // the end of the last voice, on the wall clock
	ending   audio.VoiceEnd
	tail     time.Duration // of what the endpointer takes for voice, so much is none
	due      *time.Timer   // the silence has lasted long enough

	current *utterance
	now     *hearing      // who hears it
	said    []int16       // its sound so far, while keeps
	keeps   bool          // it is still short enough
	recent  []int16       // the end of its sound, for loopback
	foreign bool          // it is not what the device plays: that was not heard before either
	quiet   time.Duration // how long nothing was heard before it
	drafts  int           // how often its text was asked for at a pause
	paused  time.Duration // where the last pause began, on the endpointer's timeline
	guesses int
	guessAt time.Duration // the next guess, by how much voice there is
	barged  bool
	failed  error // why it cannot be recognised
}

// mostBroken is how many broken packets in a row are made up for.
const mostBroken = 5

// garbledEvery is how many frames that are not Opus make one line in the log.
const garbledEvery = 1000

// run takes frames until ctx ends.
func (e *ears) run(ctx context.Context) {
	defer func() {
		if p := recover(); p != nil {
			e.log.Error("panic in ears", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			e.drop(turn.ErrFailed)
			e.report(listenFailed{e, fmt.Errorf("%w: panic in ears: %v", turn.ErrFailed, p)})
		}
	}()
	if err := e.prepare(); err != nil {
		e.report(listenFailed{e, err})
		return
	}
	defer e.detector.Close()
	stalled := time.NewTimer(time.Hour)
	defer stalled.Stop()
	e.due = time.NewTimer(time.Hour)
	defer e.due.Stop()
	e.due.Stop()
	var items []wire.Item[turn.Effect]
	for {
		select {
		case <-ctx.Done():
			e.drop(context.Cause(ctx))
			return
		case <-stalled.C:
			e.stalled()
		case <-e.due.C:
			e.silenceOver()
		case <-e.in.Ready():
			var lost int
			if items, lost = e.in.Take(items); lost > 0 {
				e.log.Warn("audio frames dropped", "frames", lost)
			}
			for _, it := range items {
				e.take(it)
			}
			stalled.Reset(stalledMic)
			e.schedule()
		}
	}
}

func (e *ears) prepare() error {
	var err error
	if e.decoder, err = audio.NewDecoder(audio.Recognition.Rate); err != nil {
		return fmt.Errorf("make a decoder: %w", err)
	}
	if e.detector, err = e.o.VAD.NewDetector(); err != nil {
		return fmt.Errorf("make a voice detector: %w", err)
	}
	e.pcm = make([]int16, audio.MaxFrameSamples(audio.Recognition.Rate))
	e.window = make([]int16, 0, e.o.VAD.FrameSamples())
	e.endpoint = audio.NewEndpointer(e.o.Endpoint)
	e.endpoint.SetCommit(e.commits)
	e.preroll = audio.NewPreRoll(audio.Recognition.Rate, e.preRoll())
	if e.monitor != nil && e.mode == wire.Realtime {
		e.echo = echo.NewCanceller()
	}
	return nil
}

// preRoll is how much sound is kept until voice is noticed: what comes before
// it, and the voice that has to be there before it counts.
func (e *ears) preRoll() time.Duration {
	o := e.o.Endpoint.WithDefaults()
	return o.PreRoll + o.MinSpeech + 100*time.Millisecond
}

func (e *ears) take(it wire.Item[turn.Effect]) {
	if it.IsPacket {
		if !e.muted {
			e.frame(it.Packet)
		}
		return
	}
	switch ev := it.Event.(type) {
	case turn.Mute:
		e.muted = true
		e.drop(turn.ErrReplaced)
	case turn.Listen:
		e.muted, e.watching, e.stretch = false, false, ev.Epoch
		e.drop(turn.ErrReplaced)
		e.reset()
		e.endpoint.SetCommit(ev.Silence)
	case turn.EndUtterance:
		e.muted = true
		e.commit(0)
	case turn.Watch:
		e.watching = ev.On
	case turn.AwaitSilence:
		if e.current != nil && ev.ID == e.current.id {
			e.endpoint.Await(ev.Silence)
		}
	}
}

// reset begins a new stretch of listening.
func (e *ears) reset() {
	e.window = e.window[:0]
	e.uplink.Reset()
	e.ending.Reset()
	e.broken = 0
	if e.echo != nil {
		e.echo.Reset()
	}
	e.detector.Reset()
	e.endpoint.Reset()
	e.preroll.Take()
	e.fed, e.barged, e.quiet = 0, false, 0
}

// frame hears one Opus packet. One that came twice is heard once; one that never
// came, or came broken, takes its time all the same.
func (e *ears) frame(f wire.Packet) {
	if len(f.Data) == 0 {
		return
	}
	arrival := e.uplink.Arrived(f.Data, f.At)
	if arrival.Twin {
		return
	}
	for range arrival.Lost {
		e.conceal(nil, f.At)
	}
	n, err := e.decode(f)
	if err != nil {
		if n := e.utterances.isGarbled(); n%garbledEvery == 1 {
			e.log.Warn("frame is not Opus", "err", err, "bytes", len(f.Data), "so_far", n)
		}
		return
	}
	e.hearPCM(e.pcm[:n], f.Stamp, f.At)
}

// decode decodes a packet into pcm. One that is broken is made up for when the
// next is there, which may hold a copy of its sound.
func (e *ears) decode(f wire.Packet) (int, error) {
	if e.broken > 0 && e.broken <= mostBroken {
		e.conceal(f.Data, f.At)
	}
	n, err := e.decoder.Decode(f.Data, e.pcm)
	if err != nil {
		e.broken++
		return 0, err
	}
	e.broken = 0
	return n, nil
}

// conceal hears what stands for a lost packet.
func (e *ears) conceal(next []byte, at time.Time) {
	if n, err := e.decoder.Lost(next, e.pcm); err == nil {
		e.hearPCM(e.pcm[:n], 0, at)
	}
}

// hearPCM hears sound that was there at a time, while the device played the
// packet of that stamp.
func (e *ears) hearPCM(pcm []int16, stamp uint32, arrived time.Time) {
	if e.echo != nil {
		e.monitor.Take(e.echo.Played)
		e.echo.Cancel(stamp, pcm)
	}
	if e.mode == wire.Manual {
		if e.current == nil {
			e.open(nil)
		}
		e.write(pcm)
		return
	}
	for len(pcm) > 0 {
		k := min(cap(e.window)-len(e.window), len(pcm))
		e.window = append(e.window, pcm[:k]...)
		pcm = pcm[k:]
		if len(e.window) == cap(e.window) {
			e.judge(e.window, arrived.Add(-audio.Recognition.Duration(len(pcm))))
			e.window = e.window[:0]
		}
	}
}

// judge feeds one detector frame, which ended at that time, to endpointing and
// acts on what it says.
func (e *ears) judge(pcm []int16, at time.Time) {
	p, err := e.detector.Probability(pcm)
	if err != nil {
		e.log.Warn("voice detector failed", "err", err)
		return
	}
	d := audio.Recognition.Duration(len(pcm))
	e.fed += d
	verdict := e.endpoint.Feed(p, d)
	voiced := e.endpoint.LastVoice() == e.fed
	if tail := e.ending.Window(pcm, voiced); voiced {
		e.tail, e.voiceAt = tail, at.Add(-tail)
	}
	if e.current == nil {
		e.quiet += d
		e.preroll.Write(pcm)
	} else {
		e.write(pcm)
	}
	switch verdict {
	case audio.EndpointSpeechStart:
		e.open(e.preroll.Take())
		e.report(turn.SpeechStarted{ID: e.current.id, Epoch: e.stretch})
	case audio.EndpointTrigger:
		e.pause()
	case audio.EndpointResume:
		e.resume(d)
	case audio.EndpointCommit:
		e.commit(e.fed - e.endpoint.LastVoice() + e.tail)
	case audio.EndpointOverlong:
		e.commit(e.fed - e.endpoint.LastVoice() + e.tail)
		e.endpoint.AwaitPause() // else the voice that goes on would undo the turn
	case audio.EndpointNone:
	}
	if e.current == nil {
		return
	}
	length := e.endpoint.Voiced()
	if !e.barged && length >= e.o.BargeIn {
		e.barged = true
		e.report(turn.SpeechLong{ID: e.current.id, Echo: e.own()})
	}
	if e.watching && length >= e.guessAt {
		e.guess()
	}
}

// schedule sets the timer by which a pause begins to count, and by which the
// utterance ends. It counts from the last voice on the wall clock: the frame in
// which the silence gets long enough would be there up to a frame later, and
// never if it was lost.
func (e *ears) schedule() {
	e.due.Stop()
	if e.current == nil || e.mode == wire.Manual {
		return
	}
	silence := e.fed - e.endpoint.LastVoice()
	if silence <= 0 {
		return
	}
	wanted, missing := e.endpoint.CommitAfter(), inFlight
	if !e.endpoint.Paused() {
		wanted, missing = e.endpoint.TriggerAfter(), inFlight/2
	}
	if silence+e.tail+missing >= wanted {
		e.due.Reset(time.Until(e.voiceAt.Add(wanted)))
	}
}

// silenceOver acts on that timer, unless there is something to be heard first.
func (e *ears) silenceOver() {
	switch {
	case e.current == nil || !e.in.Empty():
	case e.endpoint.Pause():
		e.pause()
		e.schedule()
	case e.endpoint.Paused():
		e.commit(time.Since(e.voiceAt))
	}
}

// stalled ends an utterance whose frames have stopped coming.
func (e *ears) stalled() {
	if e.current != nil && e.mode != wire.Manual {
		e.commit(stalledMic)
	}
}
