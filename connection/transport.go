package connection

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"xiaozhi/connection/identity"
)

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

// Reader takes in what a device sends. The stack of an idle device is halved by the next collection of garbage as long as what
// waits in Read for the next message takes less than 1.2 KiB (M12: 4 KiB of each device).
type Reader interface {
	// Read runs on a goroutine of the session. It hands what it reads from the transport to the session, and returns
	// when the transport is closed.
	Read(s *Session)
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

// Peer is the device at the other end of a transport.
type Peer struct {
	identity.Visit                // as it introduces itself; Address is canonical, "" if it will name itself
	Guest          identity.Guest // as the server treats it: of [Options].Identify, by [Registry.Reserve], unless it has an id before

	Serial uint64 // of its connection, by [Registry.Reserve]

	Transport string // as a hello names it, "websocket"
	Protocol  string // Protocol-Version
	BaseURL   string // how the device reaches the server by HTTP, without a last slash
	Remote    string // address, for the log

	Unauthorized error // why it may not come without the token that all devices share; nil: it may
}

// Kind says whose fault the end of a session is, and how a transport tells it.
type Kind int

// The kinds of ends.
const (
	Normal   Kind = iota
	TooBusy       // the device may try again later
	Internal      // the server's own fault
	Policy        // the device does what it must not do
	Protocol      // the device breaks the rules of the transport
	TooBig        // a message of the device is over a limit
)

// Reason is why a session ended, and how. It is the cause of the session's
// context, so a [Conversation] can read it with [context.Cause].
type Reason struct { //nolint:errname // most ends are no errors
	Text  string     // constant, for people and for the log
	Kind  Kind       // of the goodbye
	Gone  bool       // the device hears nothing more: nothing is flushed, no goodbye
	Level slog.Level // of the line in the log
	Err   error      // the error behind it; may be nil
}

// The ends without an error of their own.
var (
	// ErrReplaced ends a session when the same device connects again.
	ErrReplaced error = &Reason{Text: "replaced by a new connection of the same device"}
	// ErrShutdown ends all sessions when the server stops.
	ErrShutdown error = &Reason{Text: "server is stopping"}
	// ErrBusy ends a session for which there is no capacity.
	ErrBusy error = &Reason{Text: "server is too busy", Kind: TooBusy}
	// ErrDisplaced ends a session for which there is no room beside the regulars.
	ErrDisplaced error = &Reason{Text: "server is full, and a regular device needs the place", Kind: TooBusy}
	// ErrChanged ends a session whose device was accepted, refused or forgotten meanwhile.
	ErrChanged error = &Reason{Text: "the device was accepted, refused or forgotten by a person"}
	// ErrLeftPage ends the session of a page whose person has logged out, or may talk no longer.
	ErrLeftPage error = &Reason{Text: "the person of the page has logged out", Kind: Policy}
	// ErrNoHello ends a session that has said no hello in time.
	ErrNoHello error = &Reason{Text: "no hello within 10 s", Level: slog.LevelWarn}
	// ErrNoIdentity ends a session of a device that says hello without an identity.
	ErrNoIdentity error = &Reason{Text: "no Device-Id, and no mcp/registerTools that names the device", Kind: Policy, Level: slog.LevelWarn}
	// ErrStuck ends a session whose control queue is full.
	ErrStuck error = &Reason{Text: "device does not read: control queue is full", Gone: true, Level: slog.LevelWarn}
	// ErrLeft ends a session whose device has closed the connection.
	ErrLeft error = &Reason{Text: "device closed the connection", Gone: true}

	errDone     error = &Reason{Text: "conversation is over"}
	errFlooding error = &Reason{Text: "device floods the connection", Kind: Policy, Level: slog.LevelWarn}
)

// Error is the reason with the error behind it.
func (r *Reason) Error() string {
	if r.Err == nil {
		return r.Text
	}
	return fmt.Sprintf("%s: %v", r.Text, r.Err)
}

// Unwrap gives the error behind it.
func (r *Reason) Unwrap() error { return r.Err }

// gone is a copy for a device that hears nothing more.
func (r *Reason) gone() *Reason {
	g := *r
	g.Gone = true
	return &g
}

// turnedAway is the end of a device that may not talk.
func turnedAway(why *identity.AwayError) error { return &Reason{Text: "device turned away", Err: why} }

// failed is an end by the server's own fault.
func failed(text string, err error) error {
	return &Reason{Text: text, Kind: Internal, Level: slog.LevelError, Err: err}
}

// overrun is the end of a device that sends more events than can be handled.
func overrun(err error) error {
	return &Reason{Text: "device sends events faster than they can mean anything", Kind: Policy, Level: slog.LevelWarn, Err: err}
}

// WriteFailed is the end of a device that does not take what it is sent.
func WriteFailed(err error) error {
	return &Reason{Text: "write to device failed", Gone: true, Level: slog.LevelWarn, Err: err}
}

// reasonOf returns the reason of a context's cause. A bare context error comes
// from the program, which stops.
func reasonOf(ctx context.Context) *Reason {
	if r, ok := errors.AsType[*Reason](context.Cause(ctx)); ok {
		return r
	}
	r, _ := errors.AsType[*Reason](ErrShutdown)
	return r
}
