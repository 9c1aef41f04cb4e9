package wire

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
	DeviceID  string // Device-Id in lower case
	ClientID  string
	SessionID string
	Language  string // "zh" or "en": of its settings, the server or the device, in this order
	Name      string // of the device, from the config; may be empty
	Voice     string // from the config; may be empty
	AEC       bool   // its microphone hears what it plays, and its frames carry stamps
}
