package contact

import (
	"time"
)

// Caller is a device as it introduces itself.
type Caller struct {
	Device   string // its id; "": it says none
	From     string // address, without a port
	Board    string
	Firmware string
	Known    bool // it may use what belongs to a known device
	Page     bool // it is a page in a browser: people close it when they like
}

// Answer says what came of the question where to connect.
type Answer struct {
	Caller
	Host    string // by which it has asked, with a port if there was one
	URL     string // of the socket that it was told
	Request string // as it came, without secrets
	Reply   string // the same of the answer
	Size    int    // of the answer, in bytes
	Signal  int    // of its Wi-Fi, in dBm; 0: it does not tell
	Code    string // that a person must accept; "": none
	Refusal Refusal
}

// Refusal is why a device is not let in.
type Refusal string

// The refusals.
const (
	NotRefused Refusal = ""
	Nameless   Refusal = "nameless"  // it says no Device-Id that can be used
	Often      Refusal = "often"     // it asks too often
	Denied     Refusal = "denied"    // by a person
	Closed     Refusal = "closed"    // no new devices are accepted
	Unpaired   Refusal = "unpaired"  // a person must accept it first
	Stranger   Refusal = "stranger"  // it says the Device-Id of another one
	BadToken   Refusal = "token"     // it has shown its own token before, and does not now
	NoShared   Refusal = "shared"    // it does not show the token that all devices share
	Guessing   Refusal = "guessing"  // too many wrong tokens came from its address
	Taken      Refusal = "taken"     // another connection has proven to be it
	Page       Refusal = "page"      // a web page that is not listed
	Full       Refusal = "full"      // there is no place
	Stopping   Refusal = "stopping"  // the server stops
	Busy       Refusal = "busy"      // the server is too busy
	NoUpgrade  Refusal = "upgrade"   // the request for a socket came without asking for one
	Broken     Refusal = "handshake" // the handshake failed
)

// ofToken reports whether it is the token, and not the place, that is missing.
func (r Refusal) ofToken() bool {
	switch r {
	case Denied, Closed, Unpaired, Stranger, BadToken, NoShared, Guessing, Taken:
		return true
	case NotRefused, Nameless, Often, Page, Full, Stopping, Busy, NoUpgrade, Broken:
	}
	return false
}

// Poll is the question of a device whether it was accepted.
type Poll struct {
	Caller
	Waits bool // it was not
}

// Arrival is the request for a socket.
type Arrival struct {
	Caller
	Serial  uint64 // of the connection; 0: it gets none
	Request string // as it came, without secrets
	Refusal Refusal
	Detail  string // of the refusal, in English; "": none
	Code    string // that a person must accept
	Proven  bool   // it has shown its token
}

// Greeting is the hello.
type Greeting struct {
	Device  string
	Message string   // as it came
	Odd     []string // names of fields that were not as they should be
	HasMCP  bool     // it offers tools
	Busy    bool     // the server is too busy for it
}

// End is the end of a connection.
type End struct {
	Device string
	Serial uint64 // of the connection, as it came
	Why    Why
	NoWord bool // no hello came in time
	Gone   bool // the device has gone, and was not sent away
}

// List tells of the tools that were read so far.
type List struct {
	Device string
	Tools  int
	Pages  int
	Whole  bool
	Err    string        // why a page did not come; "": it did
	Again  time.Duration // until it is asked for again; 0: when the device listens next
}

// Level is the sound of the microphone since the device began to listen.
type Level struct {
	Device string
	Loud   float64 // of the loudest part of it, in dB below full scale
	Length time.Duration
}

// Said tells how much was heard of an utterance, and by whom.
type Said struct {
	Device     string
	Chars      int // signs of it; no words are kept
	Recognizer string
	Rejected   bool   // it was in a language that no recogniser here knows
	Err        string // the recogniser's; "": none
	Typed      bool   // it was typed
	Aloud      bool   // it is answered without being written down
}

// Turn is the end of a turn.
type Turn struct {
	Device    string
	Turn      uint64
	Frames    int
	Underruns int
	Heard     int    // signs of the answer that were
	Cut       bool   // not all of it was heard
	Gone      bool   // the connection has ended
	Cause     Why    // of its end; an empty one: it was played
	Err       string // what failed; "": nothing
	Attempts  []Attempt
}

// Attempt is one service that was asked in a turn.
type Attempt struct {
	Op       string // recognize, think, speak or converse
	Service  string
	Fault    string // "": none
	Answered bool
}
