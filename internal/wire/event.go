// Package wire is what passes between a device's connection and its conversation:
// events and microphone packets one way, messages and sound the other. Neither
// side imports the other.
package wire

import "time"

// Mode is a listen mode (docs/protocol.md 3.2).
type Mode string

// The listen modes.
const (
	Auto     Mode = "auto"     // we find the end of the utterance
	Manual   Mode = "manual"   // the device says when it is over
	Realtime Mode = "realtime" // the microphone stays open while we speak
)

// Event stands for one act of a device, or of the server that serves it. The types
// below are all there are.
type Event interface{ event() }

// ListenStart says that microphone frames follow.
type ListenStart struct{ Mode Mode }

// ListenStop says that the button was let go (manual mode).
type ListenStop struct{}

// Detect carries a wake word, or text that was typed (docs/protocol.md 3.2).
type Detect struct{ Text string }

// Abort says that the reply must stop at once. Reason may be empty.
type Abort struct{ Reason string }

// Drain asks the conversation to end because the server stops. A reply that the
// device waits for is heard to its end, a user who is listened to is told, and in
// any other state nothing is said; then the conversation hangs up with Cause
// ([Outbox].HangUp). It comes once.
type Drain struct{ Cause error }

func (ListenStart) event() {}
func (ListenStop) event()  {}
func (Detect) event()      {}
func (Abort) event()       {}
func (Drain) event()       {}

// Session describes the connection of a conversation.
type Session struct {
	DeviceID  string // what the server calls the device: its Device-Id in one spelling, or the id of a stranger
	Unknown   bool   // it may not use what belongs to a known device
	Private   bool   // nothing of what is said is kept
	SessionID string
	Language  string // a tag of BCP 47: of its settings, the server or the device, in this order
	Name      string // of the device, from the config or given by a person; may be empty
	Voice     string // from the config; may be empty
	AEC       bool   // its microphone hears what it plays, and its frames carry stamps
}

// MessageKind names the kind of a [Message]. The session turns each into JSON.
type MessageKind int

// The kinds of messages to a device.
const (
	MessageSTT           MessageKind = iota // Text: what the user said
	MessageTTSStart                         // the reply begins; commits the turn
	MessageSentenceStart                    // Text: the sentence whose first frame follows
	MessageTTSStop                          // the reply is over
	MessageEmotion                          // Emotion and Text (the emoji)
	MessageChunk                            // Text: one sentence of the answer, as the model wrote it
	MessageFinal                            // Text: the whole reply, or what was heard of it; one for each reply
	MessageThought                          // Text: reasoning
	MessageKeepAlive                        // a harmless data message (llm neutral, empty text)
)

// Message is one control message to a device. Control messages overtake audio
// and are never dropped.
type Message struct {
	Kind    MessageKind
	Turn    uint64 // the turn it belongs to; 0 for none
	Text    string
	Emotion string
	// Closing, on a MessageTTSStop that cuts a reply, is one silent Opus frame
	// to be written right before the stop, as one entry of the queue.
	Closing []byte
	// Cut, on a MessageTTSStop, says that frames of Turn which are still queued
	// must not be written any more.
	Cut bool
}

// Outbox takes a conversation's words and sound. The device's session implements
// it. No method waits for the device.
//
// # Concurrency
//
// All methods may be called at the same time.
type Outbox interface {
	// Send queues a control message. A full queue ends the connection.
	Send(m Message)
	// Audio queues a copy of one Opus packet of a turn, so the memory of packet
	// may be used again at once. stamp is its timestamp, which a device with
	// [Session].AEC sends back with what its microphone hears meanwhile; 0 if the
	// outbox gives none. ok is false if the packet was not taken: the queue is
	// full or the connection is ending.
	Audio(turn uint64, packet []byte) (stamp uint32, ok bool)
	// Lag is how long the oldest packet that is not written yet has waited; 0
	// when none waits. The lead of the sound grows with it.
	Lag() time.Duration
	// HangUp ends the connection in good order: what is queued is written, then
	// a close frame (1000). It returns at once.
	HangUp(cause error)
}
