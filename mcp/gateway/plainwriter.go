package gateway

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// plainWriter turns the SDK's errors in plain text into JSON-RPC, has each write
// end in time, and keeps streams open by comments.
type plainWriter struct {
	http.ResponseWriter
	rc     *http.ResponseController
	asked  rpcMessage
	status int

	mu      sync.Mutex
	text    bool // the body is an error in plain text
	stopped bool
	ticker  *time.Ticker
	done    chan struct{}
	wg      sync.WaitGroup
}

func plainly(w http.ResponseWriter, asked rpcMessage) *plainWriter {
	return &plainWriter{ResponseWriter: w, rc: http.NewResponseController(w), asked: asked, done: make(chan struct{})}
}

// WriteHeader notes whether an error in plain text follows.
func (p *plainWriter) WriteHeader(status int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.status == 0 {
		p.status = status
	}
	if status >= 400 && strings.HasPrefix(p.Header().Get("Content-Type"), "text/plain") {
		p.text = true
		p.Header().Set("Content-Type", "application/json; charset=utf-8")
	}
	p.ResponseWriter.WriteHeader(status)
}

// Write writes, in time.
func (p *plainWriter) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.status == 0 {
		p.status = http.StatusOK
	}
	_ = p.rc.SetWriteDeadline(time.Now().Add(writeTime)) // recorders have none
	if p.text {
		code := jsonrpc.CodeInvalidRequest
		if p.status == http.StatusNotFound {
			code = codeNoSession
		}
		data, err := json.Marshal(rpcError{"2.0", idOf(p.asked), rpcProblem{code, strings.TrimSpace(string(b))}})
		if err != nil {
			return 0, err
		}
		if _, err := p.ResponseWriter.Write(data); err != nil {
			return 0, err
		}
		return len(b), nil
	}
	return p.ResponseWriter.Write(b)
}

// codeNoSession is the code that clients know for a session that is not there.
const codeNoSession = -32001

// Flush sends what is written.
func (p *plainWriter) Flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.rc.Flush()
}

// pings writes a comment now and then, once a stream has begun, until stop.
func (p *plainWriter) pings() {
	p.ticker = time.NewTicker(pingEvery)
	p.wg.Go(func() {
		for {
			select {
			case <-p.done:
				return
			case <-p.ticker.C:
				p.ping()
			}
		}
	})
}

func (p *plainWriter) ping() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped || p.status != http.StatusOK {
		return
	}
	_ = p.rc.SetWriteDeadline(time.Now().Add(writeTime))
	_, _ = p.ResponseWriter.Write([]byte(": ping\n\n")) // the next write of the SDK tells of it
	_ = p.rc.Flush()
}

// stop ends the comments. The handler calls it before it returns.
func (p *plainWriter) stop() {
	p.mu.Lock()
	p.stopped = true
	p.mu.Unlock()
	if p.ticker != nil {
		p.ticker.Stop()
		close(p.done)
		p.wg.Wait()
	}
	_ = p.rc.SetWriteDeadline(time.Time{}) // the connection may serve further requests
}
