package servicetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// Message is a message on a WebSocket.
type Message struct {
	Type int // websocket.TextMessage or websocket.BinaryMessage
	Data []byte
}

// Text is a text message.
func Text(s string) Message { return Message{websocket.TextMessage, []byte(s)} }

// Binary is a binary message.
func Binary(b []byte) Message { return Message{websocket.BinaryMessage, b} }

// JSON is a text message of a value.
func JSON(v any) Message {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // a fake's own value
	}
	return Message{websocket.TextMessage, b}
}

// Errors of [Line.Next].
var (
	ErrIdle = errors.New("nothing came in time")
	ErrLeft = errors.New("the client has gone")
)

// lineQueue is the number of messages that a client may send ahead. It waits when they
// are not taken.
const lineQueue = 256

// Line is a WebSocket of a fake: it notes what the client says and lets it down as the
// fault of its server says. What it reads is handed out by [Line.Next]; one goroutine
// answers.
type Line struct {
	conn    *websocket.Conn
	s       *Server
	fault   Fault
	in      chan Message
	left    chan struct{} // closed when the client has gone
	reading sync.WaitGroup
	noted   int  // of the request among those of the server
	began   bool // a result was sent
}

// Line takes a WebSocket with the fault that the server has now. It reports false when
// there is nothing more to do: the request is no upgrade, or the server is [Silent] and
// the client has gone at last. A server that is [Slow] takes its time before. The caller
// closes the line before its handler returns.
func (s *Server) Line(w http.ResponseWriter, r *http.Request, header http.Header) (*Line, bool) {
	f := s.Fault()
	noted := s.note(Request{Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header.Clone()})
	if f == Slow && !s.pause(r.Context().Done()) {
		return nil, false
	}
	c, ok := s.Socket(w, r, header)
	if !ok {
		return nil, false
	}
	l := &Line{conn: c, s: s, fault: f, in: make(chan Message, lineQueue), left: make(chan struct{}), noted: noted}
	l.reading.Go(l.read)
	if f == Silent {
		l.Hold()
		l.Close()
		return nil, false
	}
	return l, true
}

// read hands on what comes until the client has gone or the line is closed.
func (l *Line) read() {
	defer close(l.left)
	for {
		kind, data, err := l.conn.ReadMessage()
		if err != nil {
			return
		}
		if kind == websocket.TextMessage {
			l.s.noteMore(l.noted, data)
		}
		select {
		case l.in <- Message{kind, data}:
		case <-l.s.ctx.Done():
			return
		}
	}
}

// Fault is the fault of the server when the line was opened.
func (l *Line) Fault() Fault { return l.fault }

// Next waits for a message for as long as is given, or for ever if that is 0.
func (l *Line) Next(idle time.Duration) (Message, error) {
	var end <-chan time.Time
	if idle > 0 {
		timer := time.NewTimer(idle)
		defer timer.Stop()
		end = timer.C
	}
	select {
	case m := <-l.in:
		return m, nil
	default:
	}
	select {
	case m := <-l.in:
		return m, nil
	case <-end:
		return Message{}, ErrIdle
	case <-l.left:
		select {
		case m := <-l.in:
			return m, nil
		default:
			return Message{}, ErrLeft
		}
	case <-l.s.ctx.Done():
		return Message{}, ErrLeft
	}
}

// Pause waits for a time and takes no message. It reports false if the client has gone
// or the server has ended before.
func (l *Line) Pause(d time.Duration) bool { return l.s.waits(d, l.left) }

// Say sends messages that are no result: greetings, acknowledgements, errors. It reports
// false when the client has gone.
func (l *Line) Say(messages ...Message) bool {
	for _, m := range messages {
		if l.conn.WriteMessage(m.Type, m.Data) != nil {
			return false
		}
	}
	return true
}

// Result sends a message that holds words or sound. The first one comes late, is
// followed by the end of the line, or is lost in nonsense, as the fault has it; broken is
// what is no message of the protocol. It reports false when nothing more is to be said.
func (l *Line) Result(m, broken Message) bool {
	first := !l.began
	l.began = true
	if l.fault == Odd && l.conn.WriteControl(websocket.PingMessage, []byte("odd"), time.Now().Add(time.Second)) != nil {
		return false
	}
	if !first {
		return l.Say(m)
	}
	switch l.fault {
	case Slow:
		return l.s.pause(l.left) && l.Say(m)
	case Broken:
		if l.Say(broken) {
			l.Hold()
		}
		return false
	case Huge:
		if l.Say(m) {
			l.flood(m)
		}
		return false
	case Cut:
		if l.Say(m) {
			Drop(l.conn.NetConn())
		}
		return false
	case Closed:
		if l.Say(m) {
			l.End(websocket.CloseInternalServerErr, "internal error")
		}
		return false
	default:
		return l.Say(m)
	}
}

// flood sends a message like m that does not end.
func (l *Line) flood(m Message) {
	w, err := l.conn.NextWriter(m.Type)
	if err != nil {
		return
	}
	if _, err = w.Write(m.Data[:len(m.Data)/2]); err != nil {
		return
	}
	block := bytes.Repeat([]byte("A"), 64<<10)
	for sent := 0; sent < endless && err == nil; sent += len(block) {
		_, err = w.Write(block)
	}
	_ = w.Close()
}

// endless is the length of an answer that does not end, for clients that take all of it.
const endless = 80 << 20

// Hold says nothing until the client has gone or the server ends.
func (l *Line) Hold() {
	for {
		if _, err := l.Next(0); err != nil {
			return
		}
	}
}

// End closes the line with a code and a reason, and waits a moment for the client to
// do so too.
func (l *Line) End(code int, reason string) {
	_ = l.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, reason), time.Now().Add(time.Second))
	for {
		if _, err := l.Next(slowness); err != nil {
			return
		}
	}
}

// Close ends the line.
func (l *Line) Close() {
	_ = l.conn.Close()
	for {
		select {
		case <-l.in:
		case <-l.left:
			l.reading.Wait()
			return
		}
	}
}

// slowness is how late a server that is [Slow] is.
const slowness = 300 * time.Millisecond

// pause waits as long as a slow server lets its client wait. It reports false if the
// client has left or the server has ended before.
func (s *Server) pause(left <-chan struct{}) bool {
	return s.waits(slowness, left)
}

// waits waits for a time. It reports false if the client has left or the server has
// ended before.
func (s *Server) waits(d time.Duration, left <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-left:
	case <-s.ctx.Done():
	}
	return false
}

// note keeps a request and returns its place.
func (s *Server) note(r Request) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
	return len(s.requests) - 1
}

// noteMore adds a text message to a request.
func (s *Server) noteMore(i int, text []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &s.requests[i]
	r.Body = append(append(r.Body, text...), '\n')
}
