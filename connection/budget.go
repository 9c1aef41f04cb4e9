package connection

import (
	"log/slog"
	"sync/atomic"
)

// Limits of the messages of all devices that are being assembled or handled. What
// handling one takes is a few times that.
const (
	allMessages   = 64 << 20        // bytes
	visitorsBytes = allMessages / 4 // while more is held, visitors get no more
	ownMessage    = 16 << 10        // of each connection, not counted: what devices say every day always has room
)

// errNoRoom ends a session whose message there is no room for.
var errNoRoom error = &Reason{Text: "too many long messages of devices are being read", Kind: TooBusy, Level: slog.LevelWarn}

// budget counts the bytes that all connections hold. Its methods may be called at the
// same time, and never wait.
type budget struct{ held atomic.Int64 }

// take counts n bytes more, if no more than most are held then.
func (b *budget) take(n, most int64) bool {
	if b.held.Add(n) > most {
		b.held.Add(-n)
		return false
	}
	return true
}

// Hold counts the memory of the message that is being read, which is size bytes now,
// and reports whether there is room; if not, the session ends. Only the reader may
// call it, and calls Release when the message was handled or given up.
func (s *Session) Hold(size int) bool {
	more := int64(size-ownMessage) - s.held
	if more <= 0 {
		return true
	}
	most := int64(allMessages)
	if s.peer.isVisitor() {
		most = visitorsBytes
	}
	if !s.registry.messages.take(more, most) {
		s.End(errNoRoom)
		return false
	}
	s.held += more
	return true
}

// Release gives back all that Hold has counted.
func (s *Session) Release() {
	if s.held > 0 {
		s.registry.messages.held.Add(-s.held)
		s.held = 0
	}
}
