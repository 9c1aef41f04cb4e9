package gateway

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"xiaozhi/mcp/gateway/catalog"
)

// plainWriter turns the SDK's errors in plain text into JSON-RPC, and bounds the
// time of each write. A stream that lasts is kept open by comments, and writing to
// it never waits.
type plainWriter struct {
	http.ResponseWriter
	rc     *http.ResponseController
	caller catalog.Caller
	asked  rpcMessage

	before func(http.Header) // is called before the head is sent; nil: nothing is

	events chan []byte // size maxNews: what lasts has to write; nil: writes go straight out
	hangUp func()      // ends the stream of a client that reads too slowly
	done   chan struct{}
	broken bool // a part could not be written; of the goroutine of lasts
	wg     sync.WaitGroup

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
		code := jsonrpc.CodeInvalidRequest
		if status == http.StatusNotFound {
			code = codeNoSession
		}
		data, err := json.Marshal(rpcError{"2.0", idOf(p.asked), rpcProblem{code, strings.TrimSpace(string(b))}})
		if err != nil {
			return 0, err
		}
		if _, err := p.put(data); err != nil {
			return 0, err
		}
		return len(b), nil
	case p.events == nil:
		return p.put(b)
	}
	select {
	case p.events <- bytes.Clone(b):
		return len(b), nil
	default:
		p.hangUp()
		return 0, errWireClosed
	}
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

// put writes straight out.
func (p *plainWriter) put(b []byte) (int, error) {
	_ = p.rc.SetWriteDeadline(time.Now().Add(writeTime)) // recorders have none
	return p.ResponseWriter.Write(b)
}

// codeNoSession is the code that clients know for a session that is not there.
const codeNoSession = -32001

// Flush sends what is written. What lasts is flushed with each write.
func (p *plainWriter) Flush() {
	p.mu.Lock()
	direct, headed, keeps := p.events == nil || p.text, p.headed, p.keeps
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

// lasts makes this a stream that stays open until stop: what is written to it goes
// out by itself, so that a client that reads slowly keeps no other waiting, and a
// comment now and then. hangUp ends it when the client is too slow.
func (p *plainWriter) lasts(hangUp func()) {
	p.events, p.hangUp, p.done = make(chan []byte, maxNews), hangUp, make(chan struct{})
	p.wg.Go(func() {
		ticker := time.NewTicker(pingEvery)
		defer ticker.Stop()
		for {
			select {
			case event := <-p.events:
				p.pass(event)
			case <-ticker.C:
				if p.began() == http.StatusOK {
					p.pass([]byte(": ping\n\n"))
				}
			case <-p.done:
				for len(p.events) > 0 {
					p.pass(<-p.events)
				}
				return
			}
		}
	})
}

// pass writes a part of what lasts, and hangs up if that cannot be done.
func (p *plainWriter) pass(part []byte) {
	if p.broken {
		return
	}
	if _, err := p.put(part); err != nil || p.rc.Flush() != nil {
		p.broken = true
		p.hangUp()
	}
}

// stop writes what was kept, and waits until all is written. The handler calls it before it returns.
func (p *plainWriter) stop() {
	if p.events != nil {
		close(p.done)
		p.wg.Wait()
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
		replyRaw(p.ResponseWriter, http.StatusOK, rpcFailure(p.asked, catalog.CodeRefused, p.caller.Say("gateway/cancelled")))
		return
	}
	_ = p.rc.SetWriteDeadline(time.Time{}) // the connection may serve further requests
}
