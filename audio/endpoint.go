package audio

import "time"

const (
	// candidateGap is the longest silence inside the beginning of an utterance;
	// a longer one throws away what was counted towards MinSpeech.
	candidateGap = 100 * time.Millisecond
	// clickLength: voice that ends sooner, or after a single window, is a click
	// and does not count towards MinSpeech.
	clickLength = 40 * time.Millisecond
)

// EndpointOptions says when an utterance begins and ends. A zero member takes
// its default.
type EndpointOptions struct {
	Start float32 // probability at which voice begins; 0.5
	End   float32 // probability below which it ends; 0.35, never above Start
	// PreRoll is how much sound from before the voice belongs to the utterance;
	// 500 ms. The Endpointer does not use it, the owner of a PreRoll does.
	PreRoll   time.Duration
	MinSpeech time.Duration // voice that opens an utterance; 150 ms
	Trigger   time.Duration // silence after which work may begin on trial; 200 ms
	Commit    time.Duration // silence that ends the utterance; 700 ms
	MaxSpeech time.Duration // length at which it is ended anyway; 60 s
}

// WithDefaults fills in the defaults.
func (o EndpointOptions) WithDefaults() EndpointOptions {
	if o.Start <= 0 {
		o.Start = 0.5
	}
	if o.End <= 0 {
		o.End = 0.35
	}
	o.End = min(o.End, o.Start)
	o.PreRoll = positiveOr(o.PreRoll, 500*time.Millisecond)
	o.MinSpeech = positiveOr(o.MinSpeech, 150*time.Millisecond)
	o.Trigger = positiveOr(o.Trigger, 200*time.Millisecond)
	o.Commit = positiveOr(o.Commit, 700*time.Millisecond)
	o.MaxSpeech = positiveOr(o.MaxSpeech, 60*time.Second)
	return o
}

func positiveOr(d, fallback time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return fallback
}

// Endpoint is what a piece of sound did to the utterance.
type Endpoint int

// The endpoints. Commit and Overlong end the utterance; the next one can begin
// with the next piece.
const (
	EndpointNone        Endpoint = iota
	EndpointSpeechStart          // MinSpeech of voice was heard; once per utterance
	EndpointTrigger              // Trigger of silence since the last voice
	EndpointResume               // voice after Trigger and before Commit
	EndpointCommit               // Commit of silence since the last voice
	EndpointOverlong             // MaxSpeech since the first voice
)

// String is the endpoint's stable name in logs.
func (e Endpoint) String() string {
	switch e {
	case EndpointSpeechStart:
		return "speech_start"
	case EndpointTrigger:
		return "trigger"
	case EndpointResume:
		return "resume"
	case EndpointCommit:
		return "commit"
	case EndpointOverlong:
		return "overlong"
	case EndpointNone:
		return "none"
	}
	return "none"
}

// Endpointer finds where utterances begin and end in a stream of speech
// probabilities. It knows no clock: time is the length of the sound it was fed,
// and every delay counts from the end of the last piece that held voice.
// It is for one goroutine.
type Endpointer struct {
	o   EndpointOptions
	now time.Duration // sound fed since the last Reset

	voice     bool          // the last piece held voice
	speaking  bool          // an utterance is open
	ended     bool          // it was closed, and no voice came since
	triggered bool          // Trigger was reported and neither Resume nor Commit since
	onset     time.Duration // where the utterance, or what may become one, begins
	lastVoice time.Duration // end of the last piece with voice
	voiced    time.Duration // voice in the utterance, or in what may become one
	sated     bool          // nothing begins before a pause: see AwaitPause
	patience  time.Duration // commits this pause instead of Commit; 0: Commit does

	stretch time.Duration // length of the voice without a pause, before SpeechStart
	pieces  int           // and the number of its pieces
}

// NewEndpointer makes an endpointer that has heard nothing.
func NewEndpointer(o EndpointOptions) *Endpointer {
	return &Endpointer{o: o.WithDefaults()}
}

// Feed takes the speech probability of the next piece of sound, which lasts d,
// and reports at most one thing: of several that come due in one piece, the
// last in the order of the constants. A d of zero or less is no piece.
func (e *Endpointer) Feed(p float32, d time.Duration) Endpoint {
	if d <= 0 {
		return EndpointNone
	}
	from := e.now
	e.now += d
	e.voice = p >= e.o.Start || (e.voice && p >= e.o.End)
	if e.sated {
		e.pause()
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

// AwaitPause lets no utterance begin before Commit of silence: who was cut off
// by MaxSpeech is not heard as somebody who speaks anew.
func (e *Endpointer) AwaitPause() { e.sated, e.lastVoice = true, e.now }

// pause handles a piece while a pause is awaited.
func (e *Endpointer) pause() {
	if e.voice {
		e.lastVoice = e.now
	}
	e.sated = e.now-e.lastVoice < e.o.Commit
}

// wait handles a piece before SpeechStart.
func (e *Endpointer) wait(from, d time.Duration) Endpoint {
	if e.ended {
		return EndpointNone // Voiced still tells about the utterance before
	}
	if !e.voice {
		if e.pieces == 1 || e.stretch < clickLength {
			e.voiced -= e.stretch // it was a click
		}
		e.stretch, e.pieces = 0, 0
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
	e.stretch += d
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
		e.patience = 0
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

// end closes the utterance. Voiced, Onset and LastVoice tell about it until the
// next voice.
func (e *Endpointer) end(why Endpoint) Endpoint {
	e.speaking, e.triggered, e.ended = false, false, true
	e.stretch, e.pieces = 0, 0
	return why
}

// Await makes the present pause commit after so much silence, instead of
// Commit: whoever has read what was said knows better. Voice ends its effect.
func (e *Endpointer) Await(silence time.Duration) { e.patience = max(silence, e.o.Trigger) }

// CommitAfter is the silence that ends the utterance if no voice comes.
func (e *Endpointer) CommitAfter() time.Duration {
	if e.patience > 0 {
		return e.patience
	}
	return e.o.Commit
}

// SetCommit changes Commit from now on.
func (e *Endpointer) SetCommit(silence time.Duration) { e.o.Commit = max(silence, e.o.Trigger) }

// Voiced is how much voice the utterance holds so far.
func (e *Endpointer) Voiced() time.Duration { return e.voiced }

// Onset is where on the fed timeline the utterance's first voice begins.
func (e *Endpointer) Onset() time.Duration { return e.onset }

// LastVoice is where on the fed timeline the last voice ended.
func (e *Endpointer) LastVoice() time.Duration { return e.lastVoice }

// Speaking says whether an utterance is open: after SpeechStart and before
// Commit or Overlong.
func (e *Endpointer) Speaking() bool { return e.speaking }

// Reset forgets everything; the fed timeline begins again at zero.
func (e *Endpointer) Reset() { *e = Endpointer{o: e.o} }
