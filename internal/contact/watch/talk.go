package watch

import (
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"xiaozhi/agent"
	"xiaozhi/agent/turn"
	"xiaozhi/audio"
	"xiaozhi/connection"
	"xiaozhi/internal/contact"
	"xiaozhi/internal/contact/excerpt"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp/device"
)

// Talk watches the conversation of one device. Its methods may be called at the same time.
type Talk struct {
	log    *contact.Log
	sound  *excerpt.Excerpts // nil: nothing may be kept of it
	device string
	kept   func() bool // reports whether the sound of its turns is kept

	sounds  atomic.Bool   // its microphone was heard since it listens
	manual  atomic.Bool   // it says itself when its user has finished
	speaks  atomic.Bool   // a voice was found since it listens
	playing atomic.Uint64 // the turn whose frames go to it
	listens atomic.Uint64 // how often it has begun to listen
	anyway  atomic.Bool   // its sound is kept until a voice is found in it: then it is that of a turn

	mu    sync.Mutex // while the device changes its mode, two listeners run for a moment
	level level
}

// level measures the sound of a microphone.
type level struct {
	listen  uint64        // of Talk.listens, that it is of
	loudest float64       // of its parts, as a mean square
	length  time.Duration // since the device listens
	told    time.Duration // of length, when it was told
}

// Talk returns what watches a new conversation. kept reports whether the sound of its turns is kept.
func (d *Devices) Talk(deviceID string, kept func() bool) *Talk {
	return &Talk{log: d.Log, sound: d.Sound, device: deviceID, kept: kept}
}

// PrivateTalk returns what watches a new conversation of which no sound may be kept, whoever asks for it.
func (d *Devices) PrivateTalk(deviceID string) *Talk { return &Talk{log: d.Log, device: deviceID} }

// Options returns the options with the reports of the conversation.
func (t *Talk) Options(o agent.Options) agent.Options {
	o.Report, o.Meter = t.report, t.meter
	return o
}

// Lists takes how far the list of the device's tools is read.
func Lists(log *contact.Log, deviceID string) func(device.Progress) {
	return func(p device.Progress) {
		l := contact.List{Device: deviceID, Tools: p.Tools, Pages: p.Pages, Whole: p.Whole, Again: p.Again}
		if p.Err != nil {
			l.Err = p.Err.Error()
		}
		log.Lists(l)
	}
}

// Post sees what the device does.
func (t *Talk) Post(ev wire.Event) {
	if start, ok := ev.(wire.ListenStart); ok {
		t.sounds.Store(false)
		t.speaks.Store(false)
		t.manual.Store(start.Mode == wire.Manual)
		t.listens.Add(1)
		t.anyway.Store(t.sound != nil && t.kept())
		t.log.Listens(t.device)
	}
}

// Hear sees that there is a packet of the microphone.
func (t *Talk) Hear() {
	if !t.sounds.Load() && t.sounds.CompareAndSwap(false, true) {
		t.log.Hears(t.device)
	}
}

// tellEach is how much sound comes between two notes of its level.
const tellEach = time.Second

// button is the level from which on the sound of a device that says itself when its user speaks is taken for a voice, in dB
// below full scale.
const button = -42

// meter measures sound. Several goroutines may call it at the same time.
func (t *Talk) meter(pcm []int16) {
	if t.sound != nil {
		t.sound.Add(t.device, pcm, t.anyway.Load() && !t.speaks.Load())
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	l := &t.level
	if now := t.listens.Load(); l.listen != now {
		*l = level{listen: now}
	}
	l.length += audio.Recognition.Duration(len(pcm))
	sum := 0.0
	for _, s := range pcm {
		sum += float64(s) * float64(s)
	}
	if len(pcm) > 0 {
		l.loudest = max(l.loudest, sum/float64(len(pcm)))
	}
	if t.speaks.Load() || l.told > 0 && l.length-l.told < tellEach {
		return
	}
	l.told = l.length
	loud := decibels(l.loudest)
	t.log.Sounds(contact.Level{Device: t.device, Loud: loud, Length: l.length})
	if t.manual.Load() && loud >= button {
		t.spoken()
	}
}

// decibels of a mean square of samples, below full scale.
func decibels(square float64) float64 {
	return 10 * math.Log10(max(square, 1)/(math.MaxInt16*math.MaxInt16))
}

func (t *Talk) spoken() {
	t.speaks.Store(true)
	t.log.Speaks(t.device)
}

// report takes what comes of hearing and answering.
func (t *Talk) report(r agent.Report) {
	switch r.Stage {
	case agent.StageVoice:
		t.spoken()
	case agent.StageWords:
		t.log.Says(contact.Said{
			Device: t.device, Chars: r.Chars, Recognizer: r.Recognizer, Rejected: r.Rejected, Err: errorText(r.Err),
			Typed: r.Kind == agent.TurnTyped, Aloud: r.Aloud,
		})
	case agent.StageEnd:
		end := contact.Turn{
			Device: t.device, Turn: r.Turn, Frames: r.Figures.Frames, Underruns: r.Figures.Underruns, Heard: r.Heard, Cut: r.Cut, Err: errorText(r.Err),
		}
		if r.Cause != nil && !errors.Is(r.Cause, turn.ErrDone) {
			end.Cause = cause(r.Cause)
		}
		if _, ok := errors.AsType[*connection.Reason](r.Cause); ok {
			end.Gone = r.Cut
		}
		for _, a := range r.Figures.Attempts {
			end.Attempts = append(end.Attempts, contact.Attempt{Op: a.Op, Service: a.Provider, Fault: a.Fault, Answered: a.Outcome == "answered"})
		}
		t.log.Ends(end)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Outbox returns an outbox that sees the first frame of each reply.
func (t *Talk) Outbox(out wire.Outbox) wire.Outbox { return outbox{out, t} }

type outbox struct {
	wire.Outbox
	talk *Talk
}

// Audio passes a packet on.
func (o outbox) Audio(turn uint64, packet []byte) (stamp uint32, ok bool) {
	stamp, ok = o.Outbox.Audio(turn, packet)
	if ok && o.talk.playing.Load() != turn {
		o.talk.playing.Store(turn)
		o.talk.log.Replies(o.talk.device, turn)
	}
	return stamp, ok
}
