package gateway

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"xiaozhi/mcp/gateway/catalog"
)

// plainWriter turns the SDK's errors in plain text into JSON-RPC, and bounds the
// time of each write. It owns the head of one answer and the events that it keeps for
// a client that accepts none.
type plainWriter struct {
	http.ResponseWriter
	rc     *http.ResponseController
	caller catalog.Caller
	asked  rpcMessage

	before func(http.Header) // is called before the head is sent; nil: nothing is

	pump *pump // of what lasts; nil: writes go straight out

	mu     sync.Mutex
	status int
	text   bool // the body is an error in plain text
	headed bool // the head of what lasts is on its way

	noEvents bool              // the client does not accept events: it gets the answers alone, as JSON
	keeps    bool              // these are events, and are kept until stop
	kept     []json.RawMessage // the answers among them
}

func plainly(w http.ResponseWriter, c catalog.Caller, asked rpcMessage) *plainWriter {
	return &plainWriter{ResponseWriter: w, rc: http.NewResponseController(w), caller: c, asked: asked}
}

// WriteHeader notes whether an error in plain text follows, or events that are to be kept.
func (p *plainWriter) WriteHeader(status int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.status == 0 {
		p.status = status
		if p.before != nil {
			p.before(p.Header())
		}
	}
	if p.noEvents && status == http.StatusOK && strings.HasPrefix(p.Header().Get("Content-Type"), "text/event-stream") {
		p.keeps = true
		return
	}
	if status >= 400 && strings.HasPrefix(p.Header().Get("Content-Type"), "text/plain") {
		p.text = true
		p.Header().Set("Content-Type", "application/json; charset=utf-8")
	}
	p.ResponseWriter.WriteHeader(status)
}

// Write writes, in time.
func (p *plainWriter) Write(b []byte) (int, error) {
	if p.began() == 0 {
		p.WriteHeader(http.StatusOK)
	}
	p.mu.Lock()
	status, text, keeps := p.status, p.text, p.keeps
	p.mu.Unlock()
	switch {
	case keeps:
		p.keep(b)
		return len(b), nil
	case text:
		code := int64(jsonrpc.CodeInvalidRequest)
		if status == http.StatusNotFound {
			code = codeNoSession
		}
		return len(b), p.put(rpcFailure(p.asked, problemOf(code, strings.TrimSpace(string(b)))))
	case p.pump == nil:
		return len(b), p.put(b)
	}
	return len(b), p.pump.write(bytes.Clone(b))
}

// began returns the status of the answer; 0: there is none yet.
func (p *plainWriter) began() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.status
}

// keep keeps one event, as the SDK writes it, if it is an answer: what a client
// that does not accept events is told besides, it could not read.
func (p *plainWriter) keep(event []byte) {
	_, data, _ := bytes.Cut(event, []byte("data: "))
	data = bytes.TrimSpace(data)
	var m rpcMessage
	if json.Unmarshal(data, &m) != nil || m.Method != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept = append(p.kept, bytes.Clone(data))
}

func (p *plainWriter) put(b []byte) error {
	_ = p.rc.SetWriteDeadline(time.Now().Add(writeTime)) // recorders have none
	_, err := p.ResponseWriter.Write(b)
	return err
}

// codeNoSession is the code that clients know for a session that is not there.
const codeNoSession = -32001

// Flush sends what is written. What lasts is flushed with each write.
func (p *plainWriter) Flush() {
	p.mu.Lock()
	direct, headed, keeps := p.pump == nil || p.text, p.headed, p.keeps
	p.headed = true
	p.mu.Unlock()
	switch {
	case keeps:
	case direct:
		_ = p.rc.Flush()
	case !headed:
		_, _ = p.Write(nil)
	}
}

// lasts makes this a stream that stays open until stop. hangUp ends it when the
// client is too slow.
func (p *plainWriter) lasts(hangUp func()) {
	p.pump = newPump(hangUp, func(part []byte) error {
		if err := p.put(part); err != nil {
			return err
		}
		return p.rc.Flush()
	}, func() bool { return p.began() == http.StatusOK })
}

// stop writes what was kept, and waits until all is written. The handler calls it before it returns.
func (p *plainWriter) stop() {
	if p.pump != nil {
		p.pump.stop()
	}
	p.mu.Lock()
	keeps, kept := p.keeps, p.kept
	p.mu.Unlock()
	switch {
	case keeps && len(kept) == 1:
		replyRaw(p.ResponseWriter, http.StatusOK, kept[0])
		return
	case keeps && len(kept) > 1:
		reply(p.ResponseWriter, http.StatusOK, kept)
		return
	case keeps: // the session has ended, or the client has gone
		replyRaw(p.ResponseWriter, http.StatusOK, rpcFailure(p.asked, problemOf(catalog.CodeRefused, p.caller.Say("gateway/cancelled"))))
		return
	}
	_ = p.rc.SetWriteDeadline(time.Time{}) // the connection may serve further requests
}

// pump writes what goes to a client that may read slowly, so that it keeps no other
// waiting. It owns the queue of parts and the goroutine that writes them. A client
// that does not take them in time is hung up on.
type pump struct {
	parts  chan []byte // size maxNews
	lost   atomic.Bool // the queue was full
	done   chan struct{}
	hangUp func()             // ends the stream or the socket
	out    func([]byte) error // writes a part, in time
	broken bool               // a part could not be written; of the goroutine
	wg     sync.WaitGroup
}

// newPump starts a pump, which must be stopped. It writes a comment of an event stream
// now and then while open is true; nil: never.
func newPump(hangUp func(), out func([]byte) error, open func() bool) *pump {
	p := &pump{parts: make(chan []byte, maxNews), done: make(chan struct{}), hangUp: hangUp, out: out}
	p.wg.Go(func() { p.run(open) })
	return p
}

// write takes a part, which must not change. It never waits.
func (p *pump) write(part []byte) error {
	select {
	case p.parts <- part:
		return nil
	default:
		p.lost.Store(true)
		return errWireClosed
	}
}

func (p *pump) run(open func() bool) {
	ticker := time.NewTicker(pingEvery)
	defer ticker.Stop()
	if open == nil {
		ticker.Stop()
	}
	for {
		select {
		case part := <-p.parts:
			p.pass(part)
		case <-ticker.C:
			if open() {
				p.pass([]byte(": ping\n\n"))
			}
		case <-p.done:
			for len(p.parts) > 0 {
				p.pass(<-p.parts)
			}
			return
		}
	}
}

// pass writes a part, and hangs up if that cannot be done.
func (p *pump) pass(part []byte) {
	if !p.broken && (p.lost.Load() || p.out(part) != nil) {
		p.broken = true
		p.hangUp()
	}
}

// stop writes what is left and waits until all is written.
func (p *pump) stop() {
	close(p.done)
	p.wg.Wait()
}
