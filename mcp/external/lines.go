package external

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"sync"
	"time"
)

// lines are frames over a pair of pipes, one message on each line.
type lines struct {
	r    *bufio.Reader
	w    pipeWriter
	once sync.Once
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

func (l *lines) close() error {
	var err error
	l.once.Do(func() { err = l.w.Close() })
	return err
}
