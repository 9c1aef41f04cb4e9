package agent

import "time"

// MessageKind names what a Message is. Connection turns each into the wire's JSON.
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

// Outbox is where a conversation's words and sound go. Connection implements
// it. No method waits for the device; all may be called at the same time.
type Outbox interface {
	// Send queues a control message. A full queue ends the connection.
	Send(m Message)
	// Audio queues one Opus packet of a turn. The outbox only reads packet, and
	// not any more once PacketsHeld further packets of the turn were taken: it
	// holds fewer than that unwritten. False: it was not taken (the queue is full
	// or the connection is ending).
	Audio(turn uint64, packet []byte) bool
	// HangUp ends the connection in good order: what is queued is written, then
	// a close frame (1000). It returns at once.
	HangUp(cause error)
}

// PacketsHeld bounds how many packets of one turn an Outbox holds at the same
// time, those in its writer's hands included: their buffers are used again.
const PacketsHeld = 32

// Lagging is an Outbox that knows how far its socket is behind. The lead of the
// sound grows with it. It may be called at the same time as all else.
type Lagging interface {
	// Lag is how long the oldest packet that is not written yet has waited; 0
	// when none waits.
	Lag() time.Duration
}

// packetRing keeps the buffers of packets that were handed to an Outbox.
type packetRing struct {
	slots [PacketsHeld][]byte
	next  int
}

// put copies a packet into the buffer that was used longest ago.
func (r *packetRing) put(packet []byte) []byte {
	slot := r.slots[r.next]
	if slot == nil {
		slot = make([]byte, 0, packetBytes)
	}
	slot = append(slot[:0], packet...)
	r.slots[r.next] = slot
	r.next = (r.next + 1) % len(r.slots)
	return slot
}

// packetBytes is what a packet of speech takes, with room to spare.
const packetBytes = 256
