package connection

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"xiaozhi/mcp"
)

// Time limits of one connection.
const (
	helloTimeout = 10 * time.Second       // from the upgrade to the hello
	firstPing    = time.Second            // from the hello to the first of our pings
	pingEvery    = 30 * time.Second       // our pings
	deadAfter    = 60 * time.Second       // without data or a pong: two pings missed
	writeTimeout = 5 * time.Second        // of one write
	talkEnd      = 500 * time.Millisecond // how long the last words of a conversation are waited for
	flushTimeout = 2 * time.Second        // from there to our close frame
	closeTimeout = 500 * time.Millisecond // from our close frame to the end of TCP
)

// identity is who is at the other end, from the upgrade request.
type identity struct {
	deviceID string // in lower case; "" until a device without a Device-Id has named itself
	key      string // in the server's set: deviceID, or what stands for it
	clientID string
	protocol string // Protocol-Version
	baseURL  string // how the device reaches us
	remote   string // address, for the log
	proxied  bool   // something that says so has passed the request on
}

// conn is one device's connection.
type conn struct {
	server      *Server
	who         identity
	session     string // id
	visionToken string // for the uploads of this device's camera; never logged
	ws          *websocket.Conn
	log         *slog.Logger
	out         *outbox
	talkOver    chan struct{} // closed when the conversation has ended, or will not begin any more
	counts      counters
	readDone    chan struct{}                   // closed when the reader has ended
	writeDone   chan struct{}                   // closed when the writer has ended
	speak       func(say func(context.Context)) // runs say until the connection ends; the caller holds mu, and ending is false
	pinger      *time.Timer                     // asks for pings
	looker      *time.Timer                     // looks whether the device answers, while it is spoken to
	noHello     *time.Timer                     // ends the connection; stopped by the reader at the hello, or at what stands for it
	returns     bool                            // it has taken the place of an older connection of its device; set by admit
	cancel      context.CancelCauseFunc         // set before any goroutine starts
	wg          sync.WaitGroup                  // reader, writer, conversation and notice

	mu        sync.Mutex
	ending    bool   // no conversation may start any more
	talking   bool   // the conversation has been started
	replying  bool   // the device has been told of a turn that is not over
	owed      bool   // an utterance was ended by the device, and nothing of its turn has come yet
	listening bool   // the device has opened its microphone
	draining  bool   // the connection ends as soon as nothing is owed to the device
	language  string // of the device; "" before hello
	tools     Tools  // nil: none. Written by the reader, so it reads without mu
	things    Things // the same of older firmware
	light     Light  // the same that the device registers itself

	dialect dialect
	door    atomic.Pointer[doorman] // speaks in the place of the conversation; nil: nobody does. Set under mu

	// Of the reader.
	met      bool  // the hello, or what stands for it, has come
	talk     Talk  // nil before hello
	unasked  Tools // the device's MCP client; tools is nil until a hello offers MCP
	in       *frameReader
	scratch  []byte
	dues     dues
	grumbled grumbler

	lastPong atomic.Int64 // ns since began; 0: none has come. Written by the reader
	life     lifeline

	// Of the reader until the hello is answered, of the writer from then on.
	framing int
	stamped bool // timestamps are wanted

	// Of the writer.
	packet []byte // the frame that is being written
	frame  []byte // the same with its header
	began  time.Time
}

// counters count what came and went. Snapshot by Load.
type counters struct {
	textIn, framesIn       atomic.Int64
	textOut, framesOut     atomic.Int64
	early, broken, unknown atomic.Int64 // before hello, unreadable, of an unknown type
	refused                atomic.Int64 // frames that the audio queue did not take
	excess                 atomic.Int64 // sent beyond all measure, and dropped
}

func newConn(s *Server, who identity, session string, ws *websocket.Conn) *conn {
	return &conn{
		server: s, who: who, session: session, visionToken: newVisionToken(), ws: ws,
		log:      s.log.With("device_id", who.deviceID, "session_id", session),
		out:      newOutbox(),
		in:       newFrameReader(ws.NetConn()),
		dues:     newDues(),
		talkOver: make(chan struct{}),
		readDone: make(chan struct{}), writeDone: make(chan struct{}),
		framing: 1,
		began:   time.Now(),
	}
}

// start begins to talk and returns. What it starts is waited for by windDown,
// which the end of ctx brings about, and which the server waits for. ctx and
// cancel were made by the server, so that it can end the connection from the
// first moment on.
//
// A connection that is idle costs two goroutines, reader and conversation; a
// writer comes when there is something to write. The handler of the upgrade is
// none of them, since net/http keeps 12 KiB of buffers and a grown stack for as
// long as a handler runs.
func (c *conn) start(ctx context.Context) {
	c.log.Info("device connected", "client_id", c.who.clientID, "remote", c.who.remote, "protocol_version", c.who.protocol)
	c.speak = func(say func(context.Context)) { c.wg.Go(func() { c.guard("notice", func() { say(ctx) }) }) }
	c.noHello = time.AfterFunc(helloTimeout, func() { c.end(ErrNoHello) })
	c.out.work = func() { c.work(ctx) }
	c.pinger = time.AfterFunc(time.Hour, c.ping)
	c.pinger.Reset(pingEvery)
	c.looker = time.AfterFunc(time.Hour, c.look)
	c.looker.Stop()
	c.wg.Go(func() {
		defer close(c.readDone)
		c.guard("reader", func() { c.readLoop(ctx) })
	})
	context.AfterFunc(ctx, func() { c.windDown(ctx) })
}

// windDown is the end of a connection. It closes the socket, waits for
// everything that start and the reader have started, and gives the place back.
func (c *conn) windDown(ctx context.Context) {
	c.noHello.Stop()
	c.pinger.Stop()
	c.looker.Stop()
	end := endingOf(context.Cause(ctx))
	c.guard("end", func() { c.finish(end) })
	c.wg.Wait()
	c.report(ctx, end)
	c.server.release(c)
}

// finish ends the conversation, lets the writer flush and say goodbye, and
// closes the socket. A peer that is gone, or does not play along, is not waited for.
func (c *conn) finish(end *ending) {
	c.mu.Lock()
	c.ending = true
	if !c.talking {
		close(c.talkOver)
	}
	c.mu.Unlock()
	defer c.stopTools()
	if end.gone {
		c.out.close()
		c.ws.Close()
		return
	}
	within(talkEnd, c.talkOver)
	if d := c.door.Load(); d != nil {
		within(talkEnd, d.over)
	}
	c.out.close()
	if within(flushTimeout, c.writeDone) {
		within(closeTimeout, c.readDone)
	}
	c.ws.Close()
}

// within waits for done, at most for d, and says whether it came.
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

// stopTools fails the calls that wait for a device that will not answer.
func (c *conn) stopTools() {
	c.mu.Lock()
	tools, things, light := c.tools, c.things, c.light
	c.mu.Unlock()
	if tools != nil {
		c.stopSource(tools)
	}
	if things != nil {
		c.stopSource(things)
	}
	if light != nil {
		c.stopSource(light)
	}
}

// stopSource stops one source of tools.
func (c *conn) stopSource(s mcp.Source) {
	c.guard("tools", func() {
		if err := s.Stop(); err != nil {
			c.log.Debug("device tools did not stop cleanly", "err", err)
		}
	})
}

// end ends the connection with a cause, the first of which counts. It returns
// at once and may be called by anybody.
func (c *conn) end(cause error) { c.cancel(cause) }

// guard runs f; a panic in it ends this connection and nothing else.
func (c *conn) guard(name string, f func()) {
	defer func() {
		if p := recover(); p != nil {
			c.log.Error("panic in a connection", "goroutine", name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			c.end(failed("panic in "+name, fmt.Errorf("%v", p)))
		}
	}()
	f()
}

// report writes the one line about a connection that is over.
func (c *conn) report(ctx context.Context, end *ending) {
	attrs := []slog.Attr{
		slog.String("reason", end.reason),
		slog.Duration("lasted", time.Since(c.began).Round(time.Millisecond)),
		slog.Int64("text_in", c.counts.textIn.Load()),
		slog.Int64("frames_in", c.counts.framesIn.Load()),
		slog.Int64("text_out", c.counts.textOut.Load()),
		slog.Int64("frames_out", c.counts.framesOut.Load()),
	}
	for _, odd := range []struct {
		key   string
		count *atomic.Int64
	}{{"early", &c.counts.early}, {"broken", &c.counts.broken}, {"unknown", &c.counts.unknown}, {"refused", &c.counts.refused}, {"excess", &c.counts.excess}} {
		if n := odd.count.Load(); n > 0 {
			attrs = append(attrs, slog.Int64(odd.key, n))
		}
	}
	if c.dialect.named {
		attrs = append(attrs, slog.String("named", c.who.deviceID))
	}
	if end.err != nil {
		attrs = append(attrs, slog.Any("err", end.err))
	}
	c.log.LogAttrs(ctx, end.level, "device left", attrs...)
}
