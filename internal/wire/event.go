package wire

// Mode is a listen mode (device-protocol 3.2.1).
type Mode string

// The listen modes.
const (
	Auto     Mode = "auto"     // we find the end of the utterance
	Manual   Mode = "manual"   // the device says when it is over
	Realtime Mode = "realtime" // the microphone stays open while we speak
)

// Event is what a device does. The types below are all there are.
type Event interface{ event() }

// ListenStart says that microphone frames follow.
type ListenStart struct{ Mode Mode }

// ListenStop says that the button was let go (manual mode).
type ListenStop struct{}

// Detect carries a wake word, or text that was typed (device-protocol 3.2.3).
type Detect struct{ Text string }

// Abort says that the reply must stop at once. Reason may be empty.
type Abort struct{ Reason string }

func (ListenStart) event() {}
func (ListenStop) event()  {}
func (Detect) event()      {}
func (Abort) event()       {}

// Session is what a conversation knows of the connection it is held over.
type Session struct {
	DeviceID  string // Device-Id in lower case
	ClientID  string
	SessionID string
	Language  string // "zh" or "en": the device's language, already resolved by design.md section 10
	Name      string // of the device, from the config; may be empty
	Voice     string // from the config; may be empty
	AEC       bool   // its microphone hears what it plays, and its frames carry stamps
}
