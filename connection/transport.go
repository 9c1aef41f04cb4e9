package connection

import "encoding/json"

// Transport carries what one device is sent. What the transport reads from the
// device goes to [Session.Text] and [Session.Audio]. WriteText and WriteAudio are
// called by one goroutine at a time.
type Transport interface {
	// WriteText writes one text message. It returns within a time limit of the
	// transport's own; an error ends the session.
	WriteText(text []byte) error
	// WriteAudio writes one Opus packet with its timestamp in ms, under the same
	// conditions. The memory of packet may be used again when it returns.
	WriteAudio(packet []byte, stamp uint32) error
	// Close says goodbye, unless reason is Gone, and closes the transport: all
	// that waits in it returns. It is called once everything was written, or when
	// a write hangs, and may be called again with a reason that is Gone to cut it
	// short.
	Close(reason *Reason)
}

// Greeter is a [Transport] that takes part in the hello.
type Greeter interface {
	// Greet is told what the device offers before the answer is queued, and may
	// complete the answer. It reports whether packets from the device will carry
	// the stamps of what it played meanwhile (docs/protocol.md 4.5).
	Greet(h Hello, answer *HelloAnswer) (stamps bool)
}

// HelloAnswer is the server's hello (docs/protocol.md 2.3). Firmware reboots if
// Transport is missing.
type HelloAnswer struct {
	Type        string          `json:"type"`
	Transport   string          `json:"transport"`
	SessionID   string          `json:"session_id"`
	UDP         json.RawMessage `json:"udp,omitempty"` // of MQTT with UDP
	AudioParams audioParams     `json:"audio_params"`
}

// Peer is the device at the other end of a transport, as it introduced itself.
type Peer struct {
	DeviceID  string // in lower case; "" for a device that will name itself
	ClientID  string
	Transport string // as a hello names it, "websocket"
	Protocol  string // Protocol-Version
	BaseURL   string // how the device reaches the server by HTTP, without a last slash
	Remote    string // address, for the log
}
