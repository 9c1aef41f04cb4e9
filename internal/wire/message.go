package wire

import "time"

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
