package agent

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"xiaozhi/audio"
	"xiaozhi/providers"
)

// What the conversation tells its ears, in order with the frames.
type (
	earsMute struct{} // throw frames away: the device has closed its microphone
	earsOpen struct { // begin afresh
		stretch uint64
	}
	earsStop struct{} // the button was let go: the utterance is over
)

func (earsMute) event() {}
func (earsOpen) event() {}
func (earsStop) event() {}

// What ears report to the conversation.
type (
	// heardVoice says that an utterance has begun.
	heardVoice struct{ u *utterance }
	// heardBargeIn says that an utterance has become long enough to cut a reply.
	heardBargeIn struct{ u *utterance }
	// heardEnd says that an utterance is over; its text follows.
	heardEnd struct{ u *utterance }
	// heardText is the final text of an utterance, or why there is none.
	heardText struct {
		u          *utterance
		transcript providers.Transcript
		err        error
	}
	// earsFailed says that the ears are gone.
	earsFailed struct {
		ears *ears
		err  error
	}
)

// stalledMic is how long no frame may come within an utterance before the
// silence counts as the speaker's: some clients stop sending when they think
// that nobody speaks.
const stalledMic = 1200 * time.Millisecond

// utterance is what the user said once.
type utterance struct {
	stretch uint64 // of listening, in which it was said
	stream  providers.ASRStream
	cancel  context.CancelCauseFunc

	// Set by ears before heardEnd is reported.
	voiced time.Duration
	spoken time.Time // the last voiced sample, on the wall clock
	ended  time.Time // when it was taken to be over

	// Set by the conversation.
	final bool // text or err is there
	text  providers.Transcript
	err   error
}

// ears decode what the microphone sends, find out when somebody speaks, and
// pass it to a recogniser. They are one goroutine (run) and one for each
// utterance whose text is awaited.
type ears struct {
	o       *Options
	mode    Mode
	lang    string
	phrases func() []string
	report  func(any) // to the conversation; gives up when the conversation ends
	log     *slog.Logger
	in      *inbox
	child   func() (context.Context, context.CancelCauseFunc) // the context of one utterance
	wg      *sync.WaitGroup                                   // of the conversation

	decoder  *audio.Decoder
	pcm      []int16
	detector providers.Detector
	window   []int16 // samples that do not fill a detector's frame yet
	endpoint *audio.Endpointer
	preroll  *audio.PreRoll
	muted    bool
	stretch  uint64
	current  *utterance
	barged   bool
	failed   error         // why the current utterance cannot be recognised
	fed      time.Duration // position on the endpointer's timeline
	garbled  *atomic.Int64 // frames that are not Opus, of all ears of the conversation
}

// garbledEvery is how many frames that are not Opus make one line in the log.
const garbledEvery = 1000

// run takes frames until ctx ends.
func (e *ears) run(ctx context.Context) {
	defer func() {
		if p := recover(); p != nil {
			e.log.Error("panic in ears", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			e.drop(ErrFailed)
			e.report(earsFailed{e, fmt.Errorf("%w: panic in ears: %v", ErrFailed, p)})
		}
	}()
	if err := e.prepare(); err != nil {
		e.report(earsFailed{e, err})
		return
	}
	defer e.detector.Close()
	stalled := time.NewTimer(time.Hour)
	defer stalled.Stop()
	var events []Event
	for {
		select {
		case <-ctx.Done():
			e.drop(context.Cause(ctx))
			return
		case <-stalled.C:
			e.stalled()
		case <-e.in.notify:
			var lost int
			if events, lost = e.in.take(events); lost > 0 {
				e.log.Warn("audio frames dropped", "frames", lost)
			}
			for _, ev := range events {
				e.take(ev)
			}
			stalled.Reset(stalledMic)
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
	e.preroll = audio.NewPreRoll(audio.Recognition.Rate, e.preRoll())
	return nil
}

// preRoll is how much sound is kept until voice is noticed: what comes before
// it, and the voice that has to be there before it counts.
func (e *ears) preRoll() time.Duration {
	o := e.o.Endpoint.WithDefaults()
	return o.PreRoll + o.MinSpeech + 100*time.Millisecond
}

func (e *ears) take(ev Event) {
	switch ev := ev.(type) {
	case Frame:
		if !e.muted {
			e.frame(ev.Packet)
		}
	case earsMute:
		e.muted = true
		e.drop(ErrReplaced)
	case earsOpen:
		e.muted, e.stretch = false, ev.stretch
		e.drop(ErrReplaced)
		e.reset()
	case earsStop:
		e.muted = true
		e.commit(0)
	}
}

// reset begins a new stretch of listening.
func (e *ears) reset() {
	e.window = e.window[:0]
	e.detector.Reset()
	e.endpoint.Reset()
	e.preroll.Take()
	e.fed, e.barged = 0, false
}

// drop forgets the utterance that is going on.
func (e *ears) drop(cause error) {
	if e.current != nil {
		e.current.cancel(cause)
		e.current = nil
	}
}

// frame hears one Opus packet.
func (e *ears) frame(packet []byte) {
	if len(packet) == 0 {
		return
	}
	n, err := e.decoder.Decode(packet, e.pcm)
	if err != nil {
		if n := e.garbled.Add(1); n%garbledEvery == 1 {
			e.log.Warn("frame is not Opus", "err", err, "bytes", len(packet), "so_far", n)
		}
		return
	}
	pcm := e.pcm[:n]
	if e.mode == Manual {
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
			e.judge(e.window)
			e.window = e.window[:0]
		}
	}
}

// judge feeds one detector frame to endpointing and acts on what it says.
func (e *ears) judge(pcm []int16) {
	p, err := e.detector.Probability(pcm)
	if err != nil {
		e.log.Warn("voice detector failed", "err", err)
		return
	}
	d := audio.Recognition.Duration(len(pcm))
	e.fed += d
	verdict := e.endpoint.Feed(p, d)
	if e.current == nil {
		e.preroll.Write(pcm)
	} else {
		e.write(pcm)
	}
	switch verdict {
	case audio.EndpointSpeechStart:
		e.open(e.preroll.Take())
		e.report(heardVoice{e.current})
	case audio.EndpointCommit:
		e.commit(e.fed - e.endpoint.LastVoice())
	case audio.EndpointOverlong:
		e.commit(e.fed - e.endpoint.LastVoice())
		e.endpoint.AwaitPause() // else the voice that goes on would undo the turn
	case audio.EndpointNone, audio.EndpointTrigger, audio.EndpointResume:
	}
	if e.current != nil && !e.barged && e.endpoint.Voiced() >= e.o.BargeIn {
		e.barged = true
		e.report(heardBargeIn{e.current})
	}
}

// open begins an utterance with the sound that came before it was noticed.
func (e *ears) open(before []int16) {
	ctx, cancel := e.child()
	u := &utterance{stretch: e.stretch, cancel: cancel}
	e.current, e.failed = u, nil
	stream, err := e.o.ASR.Open(ctx, providers.ASRRequest{
		Rate: audio.Recognition.Rate, Language: e.lang, Phrases: e.phrases(),
	})
	if err != nil {
		e.failed = err
		return
	}
	u.stream = stream
	e.wg.Go(func() { e.read(u) })
	if len(before) > 0 {
		e.write(before)
	}
}

// write passes sound to the recogniser.
func (e *ears) write(pcm []int16) {
	u := e.current
	if u.stream == nil || e.failed != nil {
		return
	}
	if err := u.stream.Write(pcm); err != nil {
		e.failed = err
		if e.mode == Manual { // pressed for longer than anybody buffers: take what there is
			e.muted = true
			e.commit(0)
		}
	}
}

// commit ends the utterance; silence is how long nobody has spoken.
func (e *ears) commit(silence time.Duration) {
	u := e.current
	if u == nil {
		if e.mode != Manual {
			return
		}
		u = &utterance{stretch: e.stretch, cancel: func(error) {}} // pressed and let go without a sound
		e.failed = nil
	}
	e.current, e.barged = nil, false
	u.voiced = e.endpoint.Voiced()
	u.ended = time.Now()
	u.spoken = u.ended.Add(-silence)
	e.endpoint.Reset()
	e.fed = 0
	e.report(heardEnd{u})
	if u.stream == nil {
		e.report(heardText{u: u, transcript: providers.Transcript{Final: true}, err: e.failed})
		return
	}
	if err := u.stream.CloseWrite(); err != nil {
		e.report(heardText{u: u, err: fmt.Errorf("end the utterance: %w", err)})
	}
}

// stalled ends an utterance whose frames have stopped coming.
func (e *ears) stalled() {
	if e.current != nil && e.mode != Manual {
		e.commit(stalledMic)
	}
}

// read waits for the text of an utterance.
func (e *ears) read(u *utterance) {
	got := heardText{u: u}
	defer func() {
		if p := recover(); p != nil {
			e.log.Error("panic in recogniser", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			got.err = fmt.Errorf("%w: panic in recogniser: %v", ErrFailed, p)
		}
		e.report(got)
	}()
	for t, err := range u.stream.Transcripts() {
		if err != nil {
			got.err = err
			return
		}
		if t.Final {
			got.transcript = t
			return
		}
		e.log.Debug("partial transcript", "chars", len([]rune(t.Text)))
	}
	got.err = fmt.Errorf("%w: the recogniser gave no final transcript", ErrFailed)
}
