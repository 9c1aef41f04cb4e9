package connection

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"xiaozhi/internal/wire"
)

// Time limits of a session.
const (
	helloTimeout = 10 * time.Second       // from the connection to the hello
	lastWords    = 500 * time.Millisecond // from the end to that of the conversation
	flushTimeout = 2 * time.Second        // from there to the goodbye
)

// Session is one device's connection, over whatever transport: its hello, its
// conversation, its tools and its end. It owns the order in which these begin
// and end; each of its parts owns its own state.
//
// # Concurrency
//
// Text, Audio, AudioError, AllowControl and Met may be called by one goroutine at a
// time, the reader; all other methods at any time.
type Session struct {
	registry  *Registry
	peer      Peer  // changed by the registry, on the reader, when the device names itself
	place     place // of the registry
	id        string
	token     string // for uploads of the device's camera; never logged
	met       bool   // the hello, or what stands for it, has come; of the reader
	log       *slog.Logger
	transport Transport
	life      *lifetime
	limits    *limits // of the reader
	held      int64   // bytes of the message that is being read, as far as they count; of the reader
	dialogue  *dialogue
	down      *downlink
	tools     *toolset
	noHello   *time.Timer
	counts    *counters
}

type counters struct {
	textIn, framesIn       atomic.Int64
	textOut, framesOut     atomic.Int64
	early, broken, unknown atomic.Int64 // before the hello, unreadable, of an unknown type
	refused                atomic.Int64 // frames that the audio queue did not take
	excess                 atomic.Int64 // over the device's limits, and dropped
}

func newSession(ctx context.Context, m *Room, t Transport) *Session {
	s := &Session{
		registry: m.registry, peer: m.peer, place: place{visits: m.visits}, id: rand.Text(), token: "vis_" + rand.Text(), transport: t,
		dialogue: newDialogue(), counts: &counters{},
	}
	s.log = m.log.With("device_id", m.peer.Guest.ID, "session_id", s.id)
	s.life = newLifetime(ctx, s.log)
	s.limits = newLimits(func() { s.counts.excess.Add(1) }, s.life.end)
	s.down = newDownlink(s) //nolint:contextcheck // as in Admit
	s.tools = newToolset(s)
	s.down.registered = s.tools.lightReady
	return s
}

// start begins to serve the device and returns. It runs r, which takes what
// the device sends until the transport is closed.
//
// An idle session costs two goroutines, reader and conversation.
func (s *Session) start(r Reader) {
	s.log.Info("device connected", "remote", s.peer.Remote, "protocol_version", s.peer.Protocol)
	s.noHello = time.AfterFunc(helloTimeout, func() { s.life.end(ErrNoHello) })
	s.life.wg.Add(1)
	go func() { // neither by life.start nor as a method, which would make its stack deeper ([Reader])
		defer s.life.wg.Done()
		defer s.life.recover("reader")
		r.Read(s)
	}()
	context.AfterFunc(s.life.context(), s.close)
}

// close is the end of a session: it waits for all that was started, and gives
// the place back. It runs when the context ends.
func (s *Session) close() {
	s.noHello.Stop()
	reason := reasonOf(s.life.context())
	s.life.guard("end", func() { s.finish(reason) })
	s.life.wait()
	s.report(reason)
	s.registry.release(s)
}

// finish lets the conversation end, writes what is queued, and closes the
// transport. A device that is gone, or does not play along, is not waited for.
func (s *Session) finish(reason *Reason) {
	s.dialogue.close()
	defer s.tools.stop()
	if reason.Gone {
		s.down.queue.close()
		s.transport.Close(reason)
		return
	}
	within(lastWords, s.dialogue.over)
	s.down.queue.close()
	if !s.down.writer.flushed(flushTimeout) {
		reason = reason.gone()
	}
	s.transport.Close(reason)
}

// End ends the session with a cause, the first of which counts. It returns at once.
func (s *Session) End(cause error) { s.life.end(cause) }

// Ended reports whether the session is over or about to be.
func (s *Session) Ended() bool { return s.life.cause() != nil }

// Drain ends the session because the server stops. A reply that the device waits
// for is heard to its end, and a user who is listened to is told.
func (s *Session) Drain() {
	if talking, err := s.dialogue.post(wire.Drain{Cause: ErrShutdown}); !talking {
		s.End(ErrShutdown)
	} else if err != nil {
		s.End(overrun(err))
	}
}

// Met reports whether the device has said hello, or what stands for it. Only the
// reader may ask.
func (s *Session) Met() bool { return s.met }

// Log names the device and the session in every line.
func (s *Session) Log() *slog.Logger { return s.log }

// mayUpload reports whether token is the one that this session's device was
// given for pictures.
func (s *Session) mayUpload(token string) bool {
	return subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) == 1
}

func (s *Session) report(reason *Reason) {
	c := s.counts
	attrs := []slog.Attr{
		slog.String("reason", reason.Text),
		slog.Duration("lasted", time.Since(s.life.began).Round(time.Millisecond)),
		slog.Int64("text_in", c.textIn.Load()),
		slog.Int64("frames_in", c.framesIn.Load()),
		slog.Int64("text_out", c.textOut.Load()),
		slog.Int64("frames_out", c.framesOut.Load()),
	}
	for _, odd := range []struct {
		key   string
		count *atomic.Int64
	}{{"early", &c.early}, {"broken", &c.broken}, {"unknown", &c.unknown}, {"refused", &c.refused}, {"excess", &c.excess}} {
		if n := odd.count.Load(); n > 0 {
			attrs = append(attrs, slog.Int64(odd.key, n))
		}
	}
	if s.place.named {
		attrs = append(attrs, slog.String("named", s.peer.Guest.ID))
	}
	if reason.Err != nil {
		attrs = append(attrs, slog.Any("err", reason.Err))
	}
	s.log.LogAttrs(s.life.context(), reason.Level, "device left", attrs...)
	if told := s.registry.opts.Report; told != nil {
		told(Report{DeviceID: s.peer.Guest.ID, Serial: s.peer.Serial, Remote: s.peer.Remote, End: reason})
	}
}

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

// lifetime owns the context of a session and the goroutines that run in it. Its
// methods may be called at the same time.
type lifetime struct {
	began   time.Time
	context func() context.Context
	cancel  context.CancelCauseFunc
	log     *slog.Logger
	wg      sync.WaitGroup
}

func newLifetime(ctx context.Context, log *slog.Logger) *lifetime {
	ctx, cancel := context.WithCancelCause(ctx)
	return &lifetime{began: time.Now(), context: func() context.Context { return ctx }, cancel: cancel, log: log}
}

// end ends the session with a cause, the first of which counts. It returns at once.
func (l *lifetime) end(cause error) { l.cancel(cause) }

func (l *lifetime) cause() error { return context.Cause(l.context()) }

// start runs f on a goroutine that wait joins.
func (l *lifetime) start(name string, f func(ctx context.Context)) {
	l.wg.Go(func() { l.guard(name, func() { f(l.context()) }) })
}

// wait joins all goroutines. Nothing may be started any more.
func (l *lifetime) wait() { l.wg.Wait() }

// guard runs f. A panic in it ends this session and nothing else.
func (l *lifetime) guard(name string, f func()) {
	defer l.recover(name)
	f()
}

// recover ends the session of a goroutine that panics. It must be deferred.
func (l *lifetime) recover(name string) {
	if p := recover(); p != nil {
		l.log.Error("panic in a connection", "goroutine", name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		l.end(failed("panic in "+name, fmt.Errorf("%v", p)))
	}
}

// within waits for done, at most for d, and reports whether it came.
func within(d time.Duration, done <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}
