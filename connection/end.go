package connection

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/gorilla/websocket"
)

// ending is why a connection ended, and how. It is the cause of the
// connection's context, so a Talk can read it with context.Cause.
type ending struct {
	reason string     // constant text, for people and for the log
	code   int        // of our close frame
	gone   bool       // the peer hears nothing more: no flush, no close frame
	level  slog.Level // of the line in the log
	err    error      // what lies behind it; may be nil
}

// The endings without a cause of their own.
var (
	// ErrReplaced ends a connection when the same device connects again.
	ErrReplaced error = &ending{reason: "replaced by a new connection of the same device", code: websocket.CloseNormalClosure, level: slog.LevelInfo}
	// ErrShutdown ends all connections when the server stops.
	ErrShutdown error = &ending{reason: "server is stopping", code: websocket.CloseNormalClosure, level: slog.LevelInfo}
	// ErrBusy ends a connection for which there is no capacity.
	ErrBusy error = &ending{reason: "server is too busy", code: websocket.CloseTryAgainLater, level: slog.LevelInfo}
	// ErrNoHello ends a connection that has said no hello in time.
	ErrNoHello error = &ending{reason: "no hello within 10 s", code: websocket.CloseNormalClosure, level: slog.LevelWarn}
	// ErrStuck ends a connection whose control queue is full.
	ErrStuck error = &ending{reason: "device does not read: control queue is full", code: websocket.CloseNormalClosure, gone: true, level: slog.LevelWarn}
	// ErrSilent ends a connection that has given neither data nor a pong for 60 s.
	ErrSilent error = &ending{reason: "no data and no pong for 60 s", code: websocket.CloseNormalClosure, gone: true, level: slog.LevelInfo}
	// ErrStalled ends a connection to a device that is spoken to and reads no more.
	ErrStalled error = &ending{reason: "device does not read: no pong while it is spoken to", code: websocket.CloseNormalClosure, gone: true, level: slog.LevelWarn}

	errClosed error = &ending{reason: "server was closed", code: websocket.CloseNormalClosure, gone: true, level: slog.LevelInfo}
	errLeft   error = &ending{reason: "device closed the connection", code: websocket.CloseNormalClosure, gone: true, level: slog.LevelInfo}
	errDone   error = &ending{reason: "conversation is over", code: websocket.CloseNormalClosure, level: slog.LevelInfo}
)

// Error says the reason, and what lies behind it.
func (e *ending) Error() string {
	if e.err == nil {
		return e.reason
	}
	return fmt.Sprintf("%s: %v", e.reason, e.err)
}

// Unwrap gives what lies behind it.
func (e *ending) Unwrap() error { return e.err }

// hungUp is the end that the conversation asked for.
func hungUp(cause error) error {
	return &ending{reason: "conversation hung up", code: websocket.CloseNormalClosure, level: slog.LevelInfo, err: cause}
}

// failed is an end by our own fault.
func failed(reason string, err error) error {
	return &ending{reason: reason, code: websocket.CloseInternalServerErr, level: slog.LevelError, err: err}
}

// overrun is the end of a device that does more than a conversation can follow.
func overrun(err error) error {
	return &ending{reason: "device sends events faster than they can mean anything", code: websocket.ClosePolicyViolation, level: slog.LevelWarn, err: err}
}

// writeFailed is the end of a device that does not take what we send.
func writeFailed(err error) error {
	return &ending{reason: "write to device failed", code: websocket.CloseNormalClosure, gone: true, level: slog.LevelWarn, err: err}
}

// brokenWire is the end of a peer whose WebSocket frames are wrong.
func brokenWire(err error) error {
	return &ending{reason: "device broke the WebSocket protocol", code: websocket.CloseProtocolError, level: slog.LevelWarn, err: err}
}

// tooBig is the end of a peer whose message is over a limit.
func tooBig(kind string, limit int) error {
	return &ending{
		reason: "message too big", code: websocket.CloseMessageTooBig, level: slog.LevelWarn,
		err: fmt.Errorf("%s message over the limit of %d bytes", kind, limit),
	}
}

// endingOf makes an ending of any cause of the connection's context. A bare
// context error comes from the server above us.
func endingOf(cause error) *ending {
	if e, ok := errors.AsType[*ending](cause); ok {
		return e
	}
	e, _ := errors.AsType[*ending](ErrShutdown)
	return e
}
