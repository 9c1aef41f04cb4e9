package turn

import (
	"slices"
	"time"

	"xiaozhi/internal/text"
	"xiaozhi/internal/timeline"
	"xiaozhi/internal/wire"
)

// State is all that decides who may speak in one conversation. It is a value:
// [Rules.Next] copies what it changes.
type State struct {
	Mic       Mic
	Ear       Ear         // of the listening side, while no reply is committed
	Said      []Utterance // not answered yet, oldest first
	Reply     Reply       // the turn that runs, or is being joined
	Pending   *Request    // begins when Reply has ended; nil: nothing
	Turns     uint64      // turns begun so far
	Greeting  string      // the wake word to be greeted; "": none
	Consent   Consent     // what the user was asked to allow
	Asked     uint64      // the question from outside that takes the next words; 0: none
	Speculate Speculation
	Learned   Learned
	Last      Spoken // the reply before

	LastSpeaker lastSpeaker
	Due         Due
	Farewell    Farewell
	Active      time.Time // when the last thing happened
}

// Mic is the device's microphone.
type Mic struct {
	Mode     wire.Mode
	Open     bool      // the device sends frames
	Deaf     bool      // no listener runs
	Epoch    uint64    // counts the openings of the listener
	Detected time.Time // the last wake word or typed text
	Failures int       // of the listener, in a row
}

// Ear says what the listening side does.
type Ear int

// The states of the listening side.
const (
	Resting Ear = iota // nothing is listened to
	Hearing            // an utterance is awaited, or goes on
	Reading            // the utterance is over, its text is awaited
)

// Utterance describes what the user said once.
type Utterance struct {
	ID      uint64
	Epoch   uint64 // of the opening in which it was said
	Attempt int    // the recogniser whose text counts, from 1
	Role    Role
	Over    Over
	Late    bool // the user was told that its text is late
	Echo    bool // it is the device's own voice
	Sound   bool // its sound can be answered, whatever its text
	Read    bool // its words were asked for beside that
	Long    bool // it is long enough to interrupt a reply
	Text    Text
	Speaker Speaker
	Spoken  time.Time     // the last voiced sample
	Delay   time.Duration // of silence after which it is over; 0: as long as is set
	Ended   time.Time     // when it was taken to be over
}

// Role says what an utterance waits for.
type Role int

// The roles of an utterance.
const (
	Live    Role = iota // the user is still speaking
	Awaited             // it is answered when its text is there
	Overlap             // said over a reply; its words decide
	Overdue             // the user was told that its text takes a while
)

// Over says whether an utterance was said over a reply.
type Over int

// The relations of an utterance to a reply.
const (
	OverNothing Over = iota // there was none
	OverReply               // it was spoken, or held back for the utterance
	AfterReply              // so it was, and the utterance is answered after it
	CutReply                // the utterance has ended it
)

// Text is the transcript of an utterance.
type Text struct {
	Status   Status
	Words    string
	Lang     text.Lang // that the recogniser says it heard; "": it does not say
	Provider string    // the recogniser
	Err      error     // of Failed
	At       time.Time
	Attempts []timeline.Attempt // of recognisers
}

// Status says how far the recognition of an utterance is.
type Status int

// The states of a transcript.
const (
	Pending  Status = iota // not there yet
	Final                  // the recogniser's last word
	Rejected               // the recogniser takes its own result for wrong
	Failed                 // there is an error instead
	Unread                 // there is sound, which is answered as it is
)

// Request describes what a turn is asked to do: answer words, say a phrase, or tell an
// announcement. Its zero value makes an empty reply.
type Request struct {
	Words        string   // the user's words; "": none, or not known
	Sound        bool     // the sound of Heard is answered, by who hears it
	Heard        []uint64 // the utterances that it answers, oldest first
	Typed        bool     // Words were typed, not said
	Shown        string   // sent to the device as the user's words; "": nothing
	Phrase       string   // the phrase said instead of an answer; "": none
	Wording      string   // said in place of Phrase, whose sound is played if there is no voice; "": Phrase itself
	Recorded     bool     // Phrase is the sound that is part of the program: no engine is asked
	Answer       string   // the phrase said as the answer; "": none
	Lang         text.Lang
	Before       text.Lang // the learned language before it, which an undo puts back
	Told         bool      // Words went to whoever had asked for them
	Consent      Consent   // the question that Words answered
	Allow        bool      // Words are a yes to Consent
	Speaker      Speaker   // of Words or of the sound
	Announcement uint64    // to be told; 0: none
	Music        bool      // the announcement is music
	HangUp       bool      // the conversation ends after it
	Err          error     // why Phrase is said
	Cause        error     // how the turn ends if all goes well; nil: [ErrDone]
	Speculative  bool      // it begins before the user has finished
	Times        timeline.Times
}

// Consent is a call that the user was asked to allow.
type Consent struct {
	ID        uint64 // 0: nothing was asked
	Action    string // the call, as words
	Until     time.Time
	Again     bool // it was asked a second time
	Overtaken bool // something else was told after it: a yes may be to that

	By []string // names of the people who may say yes; nil: whoever speaks. Nobody changes it
}

// Reply is the turn that has the floor.
type Reply struct {
	Turn    uint64
	Stage   Stage
	Request Request
	Ready   bool      // its first sentence is with the synthesiser
	Asks    bool      // it asks for the leave to run a tool
	Acted   bool      // a tool has run: it can be cut, not undone
	Firm    bool      // voice does not interrupt it
	Pauses  int       // false interruptions so far
	Over    uint64    // the utterance that is said over it; 0: none
	Until   time.Time // the limit of Held and Paused
	Waits   Waits
}

// Stage says how far a reply is.
type Stage int

// The stages of a reply.
const (
	None        Stage = iota
	Speculative       // begun on a guess that the user has finished; nothing of it may be seen or heard
	Committed         // the answer; it can be undone until Acted
	Held              // committed and acted, kept back while the user goes on
	Speaking          // tts start was sent
	Paused            // voice over it; its words decide
	Ending            // cut or undone; its goroutines are being joined
	Discarded         // a speculation that was undone; its goroutines are being joined
)

// Speculation counts the turns that were begun before the user had finished.
type Speculation struct {
	Tries     int // since the last answer
	Discarded int // of them
}

// Learned describes what the conversation has learned of its user and device. It
// outlives the connection.
type Learned struct {
	Lang   text.Lang // of the last turn; "": none yet
	Pause  LearnedPause
	Spoke  bool      // somebody speaks with the device: what is typed is not known to be theirs
	Echoes bool      // the microphone hears what is played
	Hinted time.Time // when a hint about recognition was last spoken
	Empty  int       // empty transcripts in a row
}

// Spoken describes what the device has played last.
type Spoken struct {
	Words string
	At    time.Time
}

// Due are the limits that run; a zero one does not.
type Due struct {
	Greeting time.Time // the wake word is greeted without a listen start
	Text     time.Time // a text is late, or given up
	Announce time.Time // it has been quiet for long enough to announce something
	Idle     time.Time // nothing has happened for long
	Farewell time.Time // a device that is turned away is told, or let go
}

// Phase says what a conversation does, as logs and the console name it.
type Phase int

// The phases of a conversation.
const (
	Idle        Phase = iota // nothing goes on
	Listening                // an utterance is awaited, or goes on
	Recognizing              // its text is awaited
	Thinking                 // a turn works; tts start was not sent
	Talking                  // tts start was sent
	Closed                   // for good
)

// String is the phase's stable name in logs.
func (p Phase) String() string {
	return [...]string{"idle", "listening", "recognizing", "thinking", "speaking", "closed"}[p]
}

// Phase says what the conversation does.
func (s *State) Phase() Phase {
	switch {
	case s.Farewell.Step == Gone:
		return Closed
	case s.Pending != nil && !s.Pending.Speculative:
		return Thinking
	}
	switch s.Reply.Stage {
	case Committed, Held:
		return Thinking
	case Speaking, Paused:
		return Talking
	case None, Speculative, Ending, Discarded:
	}
	switch s.Ear {
	case Hearing:
		return Listening
	case Reading:
		return Recognizing
	case Resting:
	}
	return Idle
}

// Busy reports whether a turn runs or waits to begin.
func (s *State) Busy() bool { return s.Pending != nil || s.Reply.runs() }

// Voiced reports whether the user is speaking.
func (s *State) Voiced() bool {
	return slices.ContainsFunc(s.Said, func(u Utterance) bool { return u.Role == Live && u.Epoch == s.Mic.Epoch })
}

// Runs reports whether a turn has the floor: it was neither cut nor undone.
func (s *State) Runs(turn uint64) bool { return s.Reply.Turn == turn && s.Reply.runs() }

// Speculates reports whether the turn that runs, or waits to begin, is a speculation.
func (s *State) Speculates() bool {
	if s.Pending != nil {
		return s.Pending.Speculative
	}
	return s.Reply.Stage == Speculative
}

// PlaysMusic reports whether the turn that runs plays music.
func (s *State) PlaysMusic() bool { return s.Reply.runs() && s.Reply.Request.Music }

// Deadline is the earliest moment at which a [Tick] is due; zero: none.
func (s *State) Deadline() time.Time {
	var first time.Time
	limit := func(at time.Time) {
		if !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	for _, at := range []time.Time{s.Due.Greeting, s.Due.Text, s.Due.Announce, s.Due.Idle, s.Due.Farewell, s.Reply.Until} {
		limit(at)
	}
	for what := range s.Reply.Waits {
		limit(s.noticeDue(WaitFor(what)))
	}
	return first
}

// runs reports whether the reply has the floor: it was not cut or undone.
func (r *Reply) runs() bool { return r.Stage >= Speculative && r.Stage <= Paused }

// audible reports whether something of the reply may be heard now.
func (r *Reply) audible() bool { return r.Stage == Committed || r.Stage == Speaking }

// started reports whether the device has heard of the reply.
func (r *Reply) started() bool { return r.Stage == Speaking || r.Stage == Paused }

// waits reports whether the reply is kept back or paused for voice over it.
func (r *Reply) waits() bool { return r.Stage == Held || r.Stage == Paused }

func (u *Utterance) final() bool { return u.Text.Status != Pending }
