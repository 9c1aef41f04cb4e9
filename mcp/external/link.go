package external

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/internal/text"
	"xiaozhi/mcp/device"
	"xiaozhi/mcp/rawjson"
)

const (
	maxFrame     = 4 << 20          // bytes of one message of a configured server; pictures are large
	maxDepth     = 128              // nesting of arrays and objects in a message
	maxQueue     = 64               // messages waiting to be written; more: the peer is stuck
	writeLimit   = 10 * time.Second // of one message
	discoverTime = 5 * time.Second  // after which an unanswered server/discover counts as refused
)

// frames carries messages whole: as lines of a pipe, or as WebSocket messages.
type frames interface {
	// read waits for the next message. One goroutine calls it.
	read() ([]byte, error)
	// write sends one message and ends within writeLimit. One goroutine calls it.
	write(frame []byte) error
	// ping asks for a sign of life, where there is such a thing. The writer calls it.
	ping() error
	// close ends it and unblocks the others. It may be called at any time, many times.
	close() error
}

// link is the SDK's transport and connection over frames, for one session. It owns
// the two goroutines that read and write frames, and the queues between them and
// the SDK. What a peer sends wrong is repaired, or dropped and counted, so that no
// message can end the session; only the end of frames does. Writing never waits: a
// peer that leaves maxQueue messages unread is cut off.
//
// Read is called by one goroutine of the SDK, Write and Close by any. The maker of
// a link waits for its goroutines with wait.
type link struct {
	frames frames
	log    *slog.Logger
	pulse  time.Duration // between pings; 0: none
	in     chan []byte   // of the reader; it closes it
	out    chan []byte   // maxQueue; never closed
	closed chan struct{} // closed by Close
	once   sync.Once
	wg     sync.WaitGroup // reader and writer
	patter *time.Timer    // fires when server/discover has waited long enough
	broken atomic.Uint64  // messages that were dropped

	mu      sync.Mutex
	ended   error            // why the frames ended, once they have
	pending map[int64]string // the methods of our requests, by number
}

var _ sdk.Transport = (*link)(nil)

// newLink makes a link that pings each pulse (0: never). log may not be nil.
func newLink(f frames, pulse time.Duration, log *slog.Logger) *link {
	l := &link{
		frames: f, log: log, pulse: pulse,
		in: make(chan []byte), out: make(chan []byte, maxQueue), closed: make(chan struct{}),
		patter: time.NewTimer(time.Hour), pending: make(map[int64]string),
	}
	l.patter.Stop()
	return l
}

// Connect makes link an sdk.Transport: it is its own connection.
func (l *link) Connect(context.Context) (sdk.Connection, error) {
	l.wg.Go(l.readFrames)
	l.wg.Go(l.writeFrames)
	return l, nil
}

// SessionID is always empty: one link is one session.
func (l *link) SessionID() string { return "" }

// Close ends the link. It may be called many times.
func (l *link) Close() error {
	l.once.Do(func() {
		close(l.closed)
		l.patter.Stop()
		_ = l.frames.close()
	})
	return nil
}

// wait returns when the reader and the writer have ended, after Close.
func (l *link) wait() { l.wg.Wait() }

// cause is why the peer's end came, nil if we ended it or it just left.
func (l *link) cause() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if errors.Is(l.ended, io.EOF) {
		return nil
	}
	return l.ended
}

// over reports whether the peer has ended the frames.
func (l *link) over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended != nil
}

// end notes the first reason.
func (l *link) end(err error) {
	select {
	case <-l.closed: // what comes after Close is no reason
		return
	default:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended == nil {
		l.ended = err
	}
}

func (l *link) readFrames() {
	defer close(l.in)
	for {
		frame, err := l.frames.read()
		if err != nil {
			l.end(err)
			return
		}
		select {
		case l.in <- frame:
		case <-l.closed: // the frame is not needed; the frames end soon
		}
	}
}

func (l *link) writeFrames() {
	var tick <-chan time.Time
	if l.pulse > 0 {
		ticker := time.NewTicker(l.pulse)
		defer ticker.Stop()
		tick = ticker.C
	}
	for {
		var err error
		select {
		case <-l.closed:
			return
		case frame := <-l.out:
			err = l.frames.write(frame)
		case <-tick:
			err = l.frames.ping()
		}
		if err != nil {
			l.end(fmt.Errorf("write: %w", err))
			_ = l.Close()
			return
		}
	}
}

// Read waits for the next message that is of use.
func (l *link) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		select {
		case <-l.closed:
			return nil, io.EOF
		case <-ctx.Done():
			return nil, io.EOF
		case <-l.patter.C:
			if r := l.refuseProbe(); r != nil {
				return r, nil
			}
		case frame, ok := <-l.in:
			if !ok {
				return nil, io.EOF
			}
			if m := l.decode(frame); m != nil {
				return m, nil
			}
		}
	}
}

// decode makes a message of a frame; nil: it is dropped.
func (l *link) decode(frame []byte) jsonrpc.Message {
	if rawjson.Depth(frame) > maxDepth {
		l.drop(frame, errors.New("nested too deeply"))
		return nil
	}
	if m, err := jsonrpc.DecodeMessage(frame); err == nil {
		if r, ok := m.(*jsonrpc.Request); ok {
			return r
		}
	}
	r, fixes, err := device.RepairResponse(frame, l.method)
	switch {
	case err != nil:
		l.drop(frame, err)
		return nil
	case r == nil || !l.answered(r.ID):
		l.log.Debug("answer to no request of ours")
		return nil
	case len(fixes) > 0:
		l.log.Debug("mcp message repaired", "fixes", fixes)
	}
	return r
}

// drop counts a frame that cannot be understood. One line for the first, the
// second, the fourth … so that a flood of them is no flood of lines.
func (l *link) drop(frame []byte, err error) {
	if n := l.broken.Add(1); bits.OnesCount64(n) == 1 {
		l.log.Warn("mcp message dropped", "count", n, "size", len(frame), "err", text.Cut(err.Error(), 200))
	}
}

func (l *link) method(id int64) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pending[id]
}

// answered takes a request out of the table; false: it was not there any more.
func (l *link) answered(id jsonrpc.ID) bool {
	n, _ := id.Raw().(int64)
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.pending[n]
	delete(l.pending, n)
	return ok
}

// refuseProbe answers server/discover in the place of a peer that is silent on
// methods it does not know: the SDK then goes on with initialize, on the same
// link, so that a program that is slow to start need not be started twice.
func (l *link) refuseProbe() *jsonrpc.Response {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n, method := range l.pending {
		if id, err := jsonrpc.MakeID(float64(n)); err == nil && method == "server/discover" {
			delete(l.pending, n)
			return &jsonrpc.Response{ID: id, Error: &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "no answer to server/discover"}}
		}
	}
	return nil
}

var errStuck = errors.New("the peer does not read what it is sent")

// Write queues a message. It never waits.
func (l *link) Write(_ context.Context, m jsonrpc.Message) error {
	frame, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	if r, ok := m.(*jsonrpc.Request); ok {
		l.note(r)
	}
	select {
	case <-l.closed:
		return io.EOF
	case l.out <- frame:
		return nil
	default:
		l.end(errStuck)
		_ = l.Close()
		return errStuck
	}
}

// note remembers a request until its answer, or until it is given up.
func (l *link) note(r *jsonrpc.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var cancelled struct {
		RequestID int64 `json:"requestId"`
	}
	switch n, ok := r.ID.Raw().(int64); {
	case ok:
		l.pending[n] = r.Method
		if r.Method == "server/discover" {
			l.patter.Reset(discoverTime)
		}
	case r.Method == "notifications/cancelled" && json.Unmarshal(r.Params, &cancelled) == nil:
		delete(l.pending, cancelled.RequestID)
	}
}
