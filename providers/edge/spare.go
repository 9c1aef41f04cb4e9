package edge

import (
	"context"
	"sync"
	"time"

	"xiaozhi/providers/transport"
)

// spareTime is how long a spare socket waits: the service drops idle ones after half a minute.
const spareTime = 20 * time.Second

// spare keeps one open socket for the next sentence: the handshakes cost more than the
// sound. More than one would look like the crowds that the service blocks. Its zero value
// has none. It may be used by any number of goroutines at once.
type spare struct {
	mu     sync.Mutex
	socket *transport.Socket
	expiry *time.Timer
	busy   bool // one is being opened
	over   bool // none is kept any more
}

// want says whether the caller is to open one, and then to call put.
func (s *spare) want() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy || s.over || s.socket != nil {
		return false
	}
	s.busy = true
	return true
}

// put keeps a socket, or nil if none could be opened.
func (s *spare) put(socket *transport.Socket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy = false
	switch {
	case socket == nil:
		return
	case s.over:
		socket.Close()
		return
	}
	s.socket = socket
	s.expiry = time.AfterFunc(spareTime, func() {
		if old := s.takeIf(socket); old != nil {
			old.Close()
		}
	})
}

// take returns the socket, or nil.
func (s *spare) take() *transport.Socket { return s.takeIf(nil) }

// takeIf takes the socket if it is the one given, or any.
func (s *spare) takeIf(which *transport.Socket) *transport.Socket {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.socket == nil || which != nil && which != s.socket {
		return nil
	}
	socket := s.socket
	s.socket = nil
	s.expiry.Stop()
	return socket
}

// retire closes the socket and keeps none from now on.
func (s *spare) retire() {
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	if socket := s.take(); socket != nil {
		socket.Close()
	}
}

// Retire closes the spare socket, and keeps none from now on.
func (t *TTS) Retire() { t.spare.retire() }

// Close is Retire, for the end of the program.
func (t *TTS) Close() error {
	t.Retire()
	return nil
}

// Warm opens a socket for the next sentence, if none waits for it already.
func (t *TTS) Warm(ctx context.Context) error {
	if !t.spare.want() {
		return nil
	}
	socket, err := t.dial(ctx)
	if err != nil {
		t.spare.put(nil)
		return t.account.Wrap(ctx, ctx, "connect", err)
	}
	if !socket.Unbind() { // ctx has ended meanwhile
		t.spare.put(nil)
		socket.Close()
		return ctx.Err()
	}
	t.spare.put(socket)
	return nil
}
