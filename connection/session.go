package connection

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"log/slog"
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
	dialogue  *dialogue
	down      *downlink
	tools     *toolset
	noHello   *time.Timer
	counts    *counters
}

// counters count what came and went.
type counters struct {
	textIn, framesIn       atomic.Int64
	textOut, framesOut     atomic.Int64
	early, broken, unknown atomic.Int64 // before the hello, unreadable, of an unknown type
	refused                atomic.Int64 // frames that the audio queue did not take
	excess                 atomic.Int64 // over the device's limits, and dropped
}

func newSession(ctx context.Context, r *Registry, peer Peer, t Transport) *Session {
	s := &Session{
		registry: r, peer: peer, id: rand.Text(), token: "vis_" + rand.Text(), transport: t,
		dialogue: newDialogue(), counts: &counters{},
	}
	s.log = r.log.With("device_id", peer.DeviceID, "session_id", s.id)
	s.life = newLifetime(ctx, s.log)
	s.limits = newLimits(func() { s.counts.excess.Add(1) }, s.life.end)
	s.down = newDownlink(s) //nolint:contextcheck // as in Admit
	s.tools = newToolset(s)
	s.down.registered = s.tools.lightReady
	return s
}

// start begins to serve the device and returns. It runs read, which takes what
// the device sends until the transport is closed.
//
// An idle session costs two goroutines, reader and conversation.
func (s *Session) start(read func(*Session)) {
	s.log.Info("device connected", "client_id", s.peer.ClientID, "remote", s.peer.Remote, "protocol_version", s.peer.Protocol)
	s.noHello = time.AfterFunc(helloTimeout, func() { s.life.end(ErrNoHello) })
	s.life.start("reader", func(context.Context) { read(s) })
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

// MayUpload reports whether token is the one that this session's device was
// given for pictures.
func (s *Session) MayUpload(token string) bool {
	return subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) == 1
}

// report writes the one line about a session that is over.
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
		attrs = append(attrs, slog.String("named", s.peer.DeviceID))
	}
	if reason.Err != nil {
		attrs = append(attrs, slog.Any("err", reason.Err))
	}
	s.log.LogAttrs(s.life.context(), reason.Level, "device left", attrs...)
}
