package listen

import (
	"fmt"
	"time"

	"xiaozhi/audio"
	"xiaozhi/providers"
)

// inFlight is how much of the silence that ends an utterance need not have been
// heard: so much may still be on its way when its time has come. Voice in it
// undoes the turn.
const inFlight = 180 * time.Millisecond

// detector cuts sound into windows and finds where somebody begins and ends to
// speak, on the timeline of the sound and on the wall clock. It is for one
// goroutine.
type detector struct {
	vad      providers.Detector
	window   []int16 // samples that do not fill a window yet
	endpoint *audio.Endpointer
	ending   audio.VoiceEnd
	fed      time.Duration // position on the endpointer's timeline
	tail     time.Duration // of what the endpointer takes for voice, so much is none
	voiceAt  time.Time     // the end of the last voice, on the wall clock
}

func newDetector(vad providers.VAD, o audio.EndpointOptions) (*detector, error) {
	d, err := vad.NewDetector()
	if err != nil {
		return nil, fmt.Errorf("make a voice detector: %w", err)
	}
	return &detector{vad: d, window: make([]int16, 0, vad.FrameSamples()), endpoint: audio.NewEndpointer(o)}, nil
}

func (d *detector) close() { _ = d.vad.Close() }

// reset begins afresh; silence is what ends an utterance from now on.
func (d *detector) reset(silence time.Duration) {
	d.window = d.window[:0]
	d.ending.Reset()
	d.vad.Reset()
	d.restart()
	d.endpoint.SetCommit(silence)
}

// restart begins to look for the next utterance.
func (d *detector) restart() {
	d.endpoint.Reset()
	d.fed = 0
}

// write judges sound whose last sample came at a time, window by window. next
// must not keep the window.
func (d *detector) write(pcm []int16, at time.Time, next func(window []int16, verdict audio.Endpoint, err error)) {
	for len(pcm) > 0 {
		k := min(cap(d.window)-len(d.window), len(pcm))
		d.window = append(d.window, pcm[:k]...)
		pcm = pcm[k:]
		if len(d.window) == cap(d.window) {
			verdict, err := d.judge(at.Add(-audio.Recognition.Duration(len(pcm))))
			next(d.window, verdict, err)
			d.window = d.window[:0]
		}
	}
}

// judge judges a whole window, which ended at that time.
func (d *detector) judge(at time.Time) (audio.Endpoint, error) {
	p, err := d.vad.Probability(d.window)
	if err != nil {
		return audio.EndpointNone, fmt.Errorf("detect voice: %w", err)
	}
	length := audio.Recognition.Duration(len(d.window))
	d.fed += length
	verdict := d.endpoint.Feed(p, length)
	voiced := d.endpoint.LastVoice() == d.fed
	if tail := d.ending.Window(d.window, voiced); voiced {
		d.tail, d.voiceAt = tail, at.Add(-tail)
	}
	return verdict, nil
}

// silence returns how long nobody has spoken, by the sound that was heard.
func (d *detector) silence() time.Duration { return d.fed - d.endpoint.LastVoice() + d.tail }

// due returns when the silence will have lasted for long enough, zero while there is
// none, or not enough of it was heard. It counts from the last voice on the wall
// clock: the packet in which the silence gets long enough would be there up to a
// packet later, and never if it was lost.
func (d *detector) due() time.Time {
	if d.fed <= d.endpoint.LastVoice() {
		return time.Time{}
	}
	wanted, missing := d.endpoint.CommitAfter(), inFlight
	if !d.endpoint.Paused() {
		wanted, missing = d.endpoint.TriggerAfter(), inFlight/2
	}
	if d.silence()+missing < wanted {
		return time.Time{}
	}
	return d.voiceAt.Add(wanted)
}
