package external

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/gorilla/websocket"
)

const (
	pingEvery = 20 * time.Second // to a WebSocket peer
	pongLimit = 50 * time.Second // of silence after which it is gone: two pings and a half
	closeTime = time.Second      // for the last frame
)

// socket is frames over a WebSocket: one message in each text or binary
// message, or several on lines of their own.
type socket struct {
	conn *websocket.Conn
	rest [][]byte // lines of the last message; the reader's
}

// newSocket takes over conn and refuses messages over limit bytes.
func newSocket(conn *websocket.Conn, limit int64) *socket {
	s := &socket{conn: conn}
	conn.SetReadLimit(limit)
	alive := func() error { return conn.SetReadDeadline(time.Now().Add(pongLimit)) }
	_ = alive()
	conn.SetPongHandler(func(string) error { return alive() })
	answer := conn.PingHandler()
	conn.SetPingHandler(func(text string) error {
		_ = alive()
		return answer(text)
	})
	return s
}

func (s *socket) read() ([]byte, error) {
	for len(s.rest) == 0 {
		_, message, err := s.conn.ReadMessage()
		switch {
		case websocket.IsCloseError(err, websocket.CloseNormalClosure, websocket.CloseGoingAway, websocket.CloseNoStatusReceived):
			return nil, io.EOF
		case errors.Is(err, websocket.ErrReadLimit):
			return nil, fmt.Errorf("a message is too long: %w", err)
		case err != nil:
			return nil, err
		}
		_ = s.conn.SetReadDeadline(time.Now().Add(pongLimit))
		message = bytes.TrimSpace(message)
		if !bytes.ContainsRune(message, '\n') || json.Valid(message) {
			s.rest = [][]byte{message}
			continue
		}
		for line := range bytes.Lines(message) {
			if line = bytes.TrimSpace(line); len(line) > 0 {
				s.rest = append(s.rest, line)
			}
		}
	}
	frame := s.rest[0]
	s.rest = s.rest[1:]
	return frame, nil
}

func (s *socket) write(frame []byte) error {
	if err := s.conn.SetWriteDeadline(time.Now().Add(writeLimit)); err != nil {
		return err
	}
	return s.conn.WriteMessage(websocket.TextMessage, frame)
}

func (s *socket) ping() error {
	return s.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeLimit))
}

// close says goodbye, if the peer takes it soon, and hangs up.
func (s *socket) close() error {
	bye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	_ = s.conn.WriteControl(websocket.CloseMessage, bye, time.Now().Add(closeTime))
	return s.conn.Close()
}

// lines are frames over a pair of pipes, one message on each line.
type lines struct {
	r *bufio.Reader
	w pipeWriter
}

// pipeWriter is the writing end of a pipe.
type pipeWriter interface {
	io.WriteCloser
	SetWriteDeadline(t time.Time) error
}

// newLines reads from r and writes to w. Closing the lines closes w alone, as
// the protocol wants; the owner of the pipes closes r when the program is gone.
func newLines(r io.Reader, w pipeWriter) *lines {
	return &lines{r: bufio.NewReaderSize(r, 64<<10), w: w}
}

// read skips empty lines and those longer than maxFrame.
func (l *lines) read() ([]byte, error) {
	for {
		line, whole, err := l.line()
		if line = bytes.TrimSpace(line); whole && len(line) > 0 {
			return line, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// line reads up to the next end of line; whole is false for one that is too long.
func (l *lines) line() (line []byte, whole bool, err error) {
	whole = true
	for {
		part, err := l.r.ReadSlice('\n')
		if whole = whole && len(line)+len(part) <= maxFrame; whole {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, whole, err
		}
	}
}

func (l *lines) write(frame []byte) error {
	if err := l.w.SetWriteDeadline(time.Now().Add(writeLimit)); err != nil {
		return err
	}
	_, err := l.w.Write(append(frame, '\n'))
	return err
}

// ping does nothing: the end of a program is seen at once.
func (l *lines) ping() error { return nil }

func (l *lines) close() error { return l.w.Close() }
