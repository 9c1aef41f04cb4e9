package connection

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"xiaozhi/internal/wire"
)

// farewell decides how a device learns that it must go: because the server stops,
// or because it is too busy for one device more. It follows where in a turn the
// device is, from what passes, and says its notices without a conversation or an
// engine. Its methods may be called at the same time.
//
// It is all that connection knows of turns, and stands until the conversation
// itself handles [wire.Drain] and can begin with a farewell.
type farewell struct {
	down *downlink
	text func(NoticeKind, string) (Notice, bool)
	run  func(func(context.Context)) // runs a notice until the session ends

	mu        sync.Mutex
	ending    bool   // no notice may begin any more
	replying  bool   // the device has been told of a turn that is not over
	expected  bool   // the device has ended an utterance, and nothing of its turn has come yet
	listening bool   // the device has opened its microphone
	draining  bool   // the session ends as soon as the device waits for nothing
	language  string // of the device; "" before the hello

	notice atomic.Pointer[speech] // said in the place of the conversation; nil: none. Set under mu
}

func newFarewell(down *downlink, text func(NoticeKind, string) (Notice, bool), run func(func(context.Context))) *farewell {
	return &farewell{down: down, text: text, run: run}
}

// speak sets the language of notices.
func (f *farewell) speak(language string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.language = language
}

// speaks reports whether a notice is said in the place of the conversation, which
// is then neither heard nor told anything.
func (f *farewell) speaks() bool { return f.notice.Load() != nil }

// turnAway tells a device aloud that there is no capacity for it, instead of
// starting its conversation.
func (f *farewell) turnAway() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begin(NoticeBusy, ErrBusy, (*speech).turnAway)
}

// drain ends the session because the server stops. A reply that the device waits
// for is heard to its end. A device that listens, so that a new turn may be on its
// way, is told aloud. Any other session ends at once.
func (f *farewell) drain() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.draining = true
	switch {
	case f.replying || f.expected || f.speaks():
	case f.listening:
		f.begin(NoticeStopping, ErrShutdown, (*speech).say)
	default:
		f.down.end(ErrShutdown)
	}
}

// begin says a notice and ends the session with cause. The caller holds mu.
func (f *farewell) begin(kind NoticeKind, cause error, say func(*speech, context.Context)) {
	n, ok := f.text(kind, f.language)
	if !ok || f.ending {
		f.down.end(cause)
		return
	}
	s := &speech{farewell: f, notice: n, cause: cause, events: make(chan wire.Event, 8), over: make(chan struct{})}
	f.notice.Store(s)
	f.run(func(ctx context.Context) { say(s, ctx) })
}

// relay passes a message of the conversation on, unless it is muted or a notice
// is said in the conversation's place.
func (f *farewell) relay(m wire.Message, muted bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if muted || !f.speaks() && f.down.write(m) {
		f.follow(m)
	}
}

// follow notes where in a turn the device is, from what it is sent. The caller
// holds mu.
func (f *farewell) follow(m wire.Message) {
	switch m.Kind {
	case wire.MessageSTT, wire.MessageTTSStart:
		f.replying, f.expected = true, false
	case wire.MessageTTSStop:
		f.replying, f.expected = false, false
	default:
		return
	}
	switch {
	case !f.draining || f.replying:
	case m.Cut && f.listening: // the user wants something new
		f.begin(NoticeStopping, ErrShutdown, (*speech).say)
	default:
		f.down.end(ErrShutdown)
	}
}

// event notes what the device wants, from what it does, and reports whether a
// notice has taken the event.
func (f *farewell) event(ev wire.Event) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch ev.(type) {
	case wire.ListenStart:
		f.listening, f.expected = true, false
	case wire.ListenStop: // an utterance is over, and will be answered
		f.expected, f.listening = f.listening, false
	case wire.Detect: // a greeting or an answer will come
		f.expected = true
	case wire.Abort:
		f.expected = false
	}
	s := f.notice.Load()
	if s != nil {
		s.note(ev)
	}
	return s != nil
}

// close lets no notice begin any more.
func (f *farewell) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ending = true
}

// wait waits for the last words of a notice, if there is one.
func (f *farewell) wait(limit time.Duration) {
	if s := f.notice.Load(); s != nil {
		within(limit, s.over)
	}
}
