package devicetest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
)

// link is the device's end of the WebSocket. It writes whole messages, notes them in the journal and knows what the
// server's hello agreed on. All methods may be called at the same time; only the receiver reads from ws.
type link struct {
	ws       *websocket.Conn
	journal  *Journal
	protocol int  // binary framing version
	unnamed  bool // messages carry an empty session_id

	writing chan struct{} // holds one token: the right to write to ws
	gone    chan struct{} // closed by the receiver: nothing more comes in
	closed  atomic.Bool   // by the device itself
	hello   atomic.Pointer[serverHello]
}

func newLink(ws *websocket.Conn, j *Journal, protocol int, unnamed bool) *link {
	l := &link{ws: ws, journal: j, protocol: protocol, unnamed: unnamed, writing: make(chan struct{}, 1), gone: make(chan struct{})}
	ws.SetReadLimit(readLimit)
	ws.SetCloseHandler(func(int, string) error { return nil }) // the firmware does not answer a Close (2.5)
	ws.SetPingHandler(l.pong)
	return l
}

// close drops TCP. What comes to an end after it was ended by the device.
func (l *link) close() {
	l.closed.Store(true)
	l.ws.Close() // what is to be closed is gone either way
}

// agreed returns the server's hello; the zero value before it.
func (l *link) agreed() serverHello {
	if h := l.hello.Load(); h != nil {
		return *h
	}
	return serverHello{}
}

// ownSession returns the session id that the device's messages carry.
func (l *link) ownSession() string {
	if l.unnamed {
		return ""
	}
	return l.agreed().session
}

func (l *link) sendControl(c control) error {
	c.SessionID = l.ownSession()
	raw, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return l.sendText(raw)
}

func (l *link) sendText(raw []byte) error {
	e := Event{At: time.Now(), Kind: KindSent, Size: len(raw), Raw: raw}
	var c control
	if err := json.Unmarshal(raw, &c); err == nil { // broken on purpose: the event has the bytes only
		e.Type, e.State, e.Text = c.Type, c.State, c.Text
	}
	l.journal.add(e)
	l.journal.count(func(s *Stats) { s.TextOut++ })
	return l.write(websocket.TextMessage, raw)
}

func (l *link) sendFrame(packet []byte, timestamp uint32) error {
	l.journal.count(func(s *Stats) { s.FramesOut++ })
	return l.write(websocket.BinaryMessage, frameUp(l.protocol, timestamp, packet))
}

// write sends one message; it waits for its turn and for the socket, at most writeLimit.
func (l *link) write(kind int, data []byte) error {
	select {
	case l.writing <- struct{}{}:
	case <-l.gone:
		return ErrClosed
	}
	defer func() { <-l.writing }()
	if err := cmp.Or(l.ws.SetWriteDeadline(time.Now().Add(writeLimit)), l.ws.WriteMessage(kind, data)); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	return nil
}

// pong answers a ping; a server that does not read gets none.
func (l *link) pong(payload string) error {
	l.journal.count(func(s *Stats) { s.Pings++ })
	err := l.ws.WriteControl(websocket.PongMessage, []byte(payload), time.Now().Add(pongLimit))
	if errors.Is(err, websocket.ErrCloseSent) || err == nil {
		return nil
	}
	return fmt.Errorf("answer ping: %w", err)
}
