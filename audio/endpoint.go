package audio

import (
	"cmp"
	"time"
)

const (
	// candidateGap is the longest silence inside the beginning of an utterance;
	// a longer one throws away what was counted towards MinSpeech.
	candidateGap = 100 * time.Millisecond
	// clickLength: voice that ends sooner, or after a single window, is a click
	// and does not count towards MinSpeech.
	clickLength = 40 * time.Millisecond
)

// EndpointOptions says when an utterance begins and ends. A zero member takes its default.
type EndpointOptions struct {
	Start float32 // probability at which voice begins; 0.5
	End   float32 // probability below which it ends; 0.35, never above Start
	// PreRoll is the length of the sound before the voice that belongs to the utterance;
	// 500 ms. The Endpointer does not use it, the owner of a PreRoll does.
	PreRoll   time.Duration
	MinSpeech time.Duration // voice that opens an utterance; 150 ms
	Trigger   time.Duration // silence after which work may begin on trial; 200 ms
	Commit    time.Duration // silence that ends the utterance; 700 ms
	MaxSpeech time.Duration // length at which it is ended anyway; 60 s
}

// WithDefaults fills in the defaults.
func (o EndpointOptions) WithDefaults() EndpointOptions {
	o.Start = cmp.Or(max(0, o.Start), 0.5)
	o.End = min(cmp.Or(max(0, o.End), 0.35), o.Start)
	o.PreRoll = cmp.Or(max(0, o.PreRoll), 500*time.Millisecond)
	o.MinSpeech = cmp.Or(max(0, o.MinSpeech), 150*time.Millisecond)
	o.Trigger = cmp.Or(max(0, o.Trigger), 200*time.Millisecond)
	o.Commit = cmp.Or(max(0, o.Commit), 700*time.Millisecond)
	o.MaxSpeech = cmp.Or(max(0, o.MaxSpeech), 60*time.Second)
	return o
}

// Endpoint is the effect of a piece of sound on the utterance.
type Endpoint int

// The endpoints. Commit and Overlong end the utterance; the next one can begin with the next piece.
const (
	EndpointNone        Endpoint = iota
	EndpointSpeechStart          // MinSpeech of voice was heard; once per utterance
	EndpointTrigger              // Trigger of silence since the last voice
	EndpointResume               // voice after Trigger and before Commit
	EndpointCommit               // Commit of silence since the last voice
	EndpointOverlong             // MaxSpeech since the first voice
)

// String returns the endpoint's stable name in logs.
func (e Endpoint) String() string {
	names := [...]string{"none", "speech_start", "trigger", "resume", "commit", "overlong"}
	if e < 0 || int(e) >= len(names) {
		return names[EndpointNone]
	}
	return names[e]
}

// Endpointer finds where utterances begin and end in a stream of speech probabilities. It owns
// the state of one utterance: its voice, its pauses and whether it is over. Time is the length
// of the sound it was fed; delays count from the end of the last piece that held voice. It is
// for one goroutine.
type Endpointer struct {
	o   EndpointOptions
	now time.Duration // sound fed since the last Reset

	voice       bool          // the last piece held voice
	speaking    bool          // an utterance is open
	ended       bool          // it was closed, and no voice came since
	triggered   bool          // Trigger was reported and neither Resume nor Commit since
	onset       time.Duration // where the utterance, or what may become one, begins
	lastVoice   time.Duration // end of the last piece with voice
	voiced      time.Duration // voice in the utterance, or in what may become one
	sated       bool          // nothing begins before a pause: see AwaitPause
	commitAfter time.Duration // commits this pause instead of Commit; 0: Commit does

	voiceRun time.Duration // length of the voice without a pause, before SpeechStart
	pieces   int           // and the number of its pieces
}

// NewEndpointer makes an endpointer that has heard nothing.
func NewEndpointer(o EndpointOptions) *Endpointer {
	return &Endpointer{o: o.WithDefaults()}
}

// Feed takes the speech probability of the next piece of sound, which lasts d if that is more
// than zero, and reports the last thing in the order of the constants that comes due in it.
func (e *Endpointer) Feed(p float32, d time.Duration) Endpoint {
	if d <= 0 {
		return EndpointNone
	}
	from := e.now
	e.now += d
	e.voice = p >= e.o.Start || (e.voice && p >= e.o.End)
	if e.sated {
		if e.voice {
			e.lastVoice = e.now
		}
		e.sated = e.now-e.lastVoice < e.o.Commit
		return EndpointNone
	}
	if e.ended && e.voice {
		e.ended, e.voiced = false, 0
	}
	if !e.speaking {
		return e.wait(from, d)
	}
	return e.follow(d)
}

// AwaitPause lets no utterance begin before Commit of silence: the rest of an
// utterance that MaxSpeech has cut off is not a new one.
func (e *Endpointer) AwaitPause() { e.sated, e.lastVoice = true, e.now }

// wait handles a piece before SpeechStart.
func (e *Endpointer) wait(from, d time.Duration) Endpoint {
	if e.ended {
		return EndpointNone // Voiced still tells about the utterance before
	}
	if !e.voice {
		if e.pieces == 1 || e.voiceRun < clickLength {
			e.voiced -= e.voiceRun // it was a click
		}
		e.voiceRun, e.pieces = 0, 0
		if e.now-e.lastVoice > candidateGap {
			e.voiced = 0
		}
		return EndpointNone
	}
	if e.voiced == 0 {
		e.onset = from
	}
	e.lastVoice = e.now
	e.voiced += d
	e.voiceRun += d
	e.pieces++
	if e.voiced < e.o.MinSpeech {
		return EndpointNone
	}
	e.speaking = true
	return EndpointSpeechStart
}

// follow handles a piece inside an utterance.
func (e *Endpointer) follow(d time.Duration) Endpoint {
	resumed := false
	if e.voice {
		e.lastVoice = e.now
		e.voiced += d
		e.commitAfter = 0
		resumed, e.triggered = e.triggered, false
	}
	silence := e.now - e.lastVoice
	switch {
	case e.now-e.onset >= e.o.MaxSpeech:
		return e.end(EndpointOverlong)
	case silence >= e.CommitAfter():
		return e.end(EndpointCommit)
	case resumed:
		return EndpointResume
	case silence >= e.o.Trigger && !e.triggered:
		e.triggered = true
		return EndpointTrigger
	}
	return EndpointNone
}

// end closes the utterance. Voiced, Onset and LastVoice tell about it until the next voice.
func (e *Endpointer) end(why Endpoint) Endpoint {
	e.speaking, e.triggered, e.ended = false, false, true
	e.voiceRun, e.pieces = 0, 0
	return why
}

// Await makes the present pause commit after that silence instead of Commit: the
// words may tell that the user has finished. Voice ends its effect.
func (e *Endpointer) Await(silence time.Duration) { e.commitAfter = max(silence, e.o.Trigger) }

// CommitAfter returns the silence that ends the utterance if no voice comes.
func (e *Endpointer) CommitAfter() time.Duration {
	if e.commitAfter > 0 {
		return e.commitAfter
	}
	return e.o.Commit
}

// Pause says that Trigger of silence has passed by another clock: Feed does not report it
// again, and Resume can follow. It returns false if no utterance is in its first pause.
func (e *Endpointer) Pause() bool {
	if !e.speaking || e.triggered || e.voice {
		return false
	}
	e.triggered = true
	return true
}

// Paused reports whether Trigger of silence was reported, and no voice since.
func (e *Endpointer) Paused() bool { return e.triggered }

// TriggerAfter returns the silence that is a pause.
func (e *Endpointer) TriggerAfter() time.Duration { return e.o.Trigger }

// SetCommit changes Commit from now on.
func (e *Endpointer) SetCommit(silence time.Duration) { e.o.Commit = max(silence, e.o.Trigger) }

// Voiced returns the length of the voice in the utterance so far.
func (e *Endpointer) Voiced() time.Duration { return e.voiced }

// LastVoice returns the time at which the last voice ended, counted in what was fed.
func (e *Endpointer) LastVoice() time.Duration { return e.lastVoice }

// Speaking reports whether an utterance is open: after SpeechStart and before Commit or Overlong.
func (e *Endpointer) Speaking() bool { return e.speaking }

// Reset forgets everything; the fed timeline begins again at zero.
func (e *Endpointer) Reset() { *e = Endpointer{o: e.o} }

// PreRoll keeps the last stretch of sound, so that an utterance can begin
// before it was recognised as one. It is for one goroutine.
type PreRoll struct {
	ring []int16
	next int  // where the next sample goes
	full bool // the ring has been filled once
}

// NewPreRoll makes a pre-roll of the last d of sound at rate Hz. With a d or a
// rate of zero or less it keeps nothing.
func NewPreRoll(rate int, d time.Duration) *PreRoll {
	return &PreRoll{ring: make([]int16, max(0, Format{Rate: rate, Frame: d}.Samples()))}
}

// Write adds sound and drops what is too old. It copies pcm.
func (r *PreRoll) Write(pcm []int16) {
	if extra := len(pcm) - len(r.ring); extra > 0 {
		pcm = pcm[extra:]
		r.full = true // all of the ring is about to be written
	}
	for len(pcm) > 0 {
		n := copy(r.ring[r.next:], pcm)
		pcm = pcm[n:]
		r.next += n
		if r.next == len(r.ring) {
			r.next, r.full = 0, true
		}
	}
}

// Take returns what was kept, oldest first, in a slice of its own, and empties the pre-roll.
func (r *PreRoll) Take() []int16 {
	var out []int16
	if r.full {
		out = append(out, r.ring[r.next:]...)
	}
	out = append(out, r.ring[:r.next]...)
	r.next, r.full = 0, false
	return out
}

const (
	voiceBlock   = 128  // samples that are judged together: 8 ms at 16 kHz
	voiceFaint   = 300  // factor of power by which voice varies at most (25 dB)
	voiceClear   = 20   // nor is anything louder than a 20th of it taken for noise
	voiceNoise   = 3    // times the room's noise: below it, sound is not voice
	voiceMemory  = 0.1  // of the voice's loudness, per block
	roomMemory   = 0.05 // of the room's noise, per block
	mostVoiceEnd = 64 * time.Millisecond
)

// VoiceEnd finds where voice ended within the last windows of a detector, which judges a whole
// window at once and goes on for one more, by how loud the sound is beside the voice before
// and the room. It is for one goroutine; its zero value has heard nothing.
type VoiceEnd struct {
	voice, room float64 // mean squares
	tail        time.Duration
}

// Window takes the next window of 16 kHz sound and whether the detector found voice in it. It
// returns how much of the sound up to its end comes after the voice: 0 to 64 ms.
func (v *VoiceEnd) Window(pcm []int16, voiced bool) time.Duration {
	length := Recognition.Duration(len(pcm))
	if !voiced {
		v.tail = 0
		for from := 0; from+voiceBlock <= len(pcm); from += voiceBlock {
			v.room += roomMemory * (meanSquare(pcm[from:from+voiceBlock]) - v.room)
		}
		return 0
	}
	last := -1
	for from := 0; from+voiceBlock <= len(pcm); from += voiceBlock {
		power := meanSquare(pcm[from : from+voiceBlock])
		if power < min(max(v.voice/voiceFaint, v.room*voiceNoise), v.voice/voiceClear) {
			continue
		}
		last = from + voiceBlock
		if v.voice == 0 {
			v.voice = power
		}
		v.voice += voiceMemory * (power - v.voice)
	}
	if last < 0 {
		v.tail = min(v.tail+length, mostVoiceEnd)
	} else {
		v.tail = length - Recognition.Duration(last)
	}
	return v.tail
}

// Reset forgets what was heard.
func (v *VoiceEnd) Reset() { *v = VoiceEnd{} }

func meanSquare(pcm []int16) float64 {
	sum := int64(0)
	for _, s := range pcm {
		sum += int64(s) * int64(s)
	}
	return float64(sum) / float64(len(pcm))
}
