package connection

import (
	"sync"

	"xiaozhi/internal/wire"
)

// dialogue owns the conversation of a session: it is made at the hello, run once,
// and waited for at the end.
type dialogue struct {
	talk Conversation // nil before the hello; set by the reader under mu, who alone reads it without

	mu     sync.Mutex
	closed bool          // none may begin any more
	begun  bool          // run was called
	over   chan struct{} // closed when the conversation has ended, or will not begin any more
}

func newDialogue() *dialogue { return &dialogue{over: make(chan struct{})} }

// begin calls start, which must call ended when the conversation is over, unless
// the session ends already.
func (d *dialogue) begin(talk Conversation, start func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.talk = talk
	if d.closed {
		return
	}
	d.begun = true
	start()
}

// post hands an event to the conversation, from any goroutine, and reports whether
// there is one.
func (d *dialogue) post(ev wire.Event) (talking bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.talk == nil {
		return false, nil
	}
	return true, d.talk.Post(ev)
}

// ended says that the conversation is over.
func (d *dialogue) ended() { close(d.over) }

// close lets no conversation begin any more.
func (d *dialogue) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	if !d.begun {
		close(d.over)
	}
}
