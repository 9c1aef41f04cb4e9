// Package sse reads the streams by which services answer over HTTP: server-sent events,
// and lines of JSON. It takes what servers really send: any line end, no space after the
// colon, no blank line at the end, comments to keep the connection alive, and bare JSON
// amid events, by which some tell of an error.
package sse

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Done is the data of the event by which many services end a stream.
const Done = "[DONE]"

// Limits of a stream, unless it has others.
const (
	maxEvent  = 8 << 20  // bytes of one event
	maxStream = 16 << 20 // bytes of a stream
)

// ErrTooLong says that a stream or an event is longer than any answer.
var ErrTooLong = errors.New("the answer is too long")

// Event is one event of a stream.
type Event struct {
	Name string // as the server calls it; "" if it does not
	Data []byte // the lines of its data, joined; it is valid until the next one is read
	Bare bool   // it is a line that stood for itself
}

// Reader reads a stream. It is for one goroutine.
type Reader struct {
	in       *bufio.Reader
	left     int    // bytes of the stream that may still come
	line     []byte // being read
	data     []byte // of the event being read
	filled   bool   // the event has data, if only an empty line
	name     string
	feedNext bool // a line feed that comes next belongs to the line before
	begun    bool
	lines    bool
}

// NewReader reads server-sent events of at most 8 MiB each and 16 MiB together.
func NewReader(r io.Reader) *Reader {
	return &Reader{in: bufio.NewReaderSize(r, 4<<10), left: maxStream}
}

// NewLines reads lines, each of which is an event, within the same limits.
func NewLines(r io.Reader) *Reader {
	s := NewReader(r)
	s.lines = true
	return s
}

// Next waits for the next event that has data; comments and the like pass unseen, so
// that a time limit on Next is one on answers. The error is io.EOF after the last event,
// which need not be complete, [ErrTooLong], or that of the stream.
func (r *Reader) Next() (Event, error) {
	r.name, r.data, r.filled = "", r.data[:0], false
	for {
		line, err := r.readLine()
		if err == io.EOF && r.filled { //nolint:errorlint // readers return io.EOF itself
			return Event{Name: r.name, Data: r.data}, nil
		}
		if err != nil {
			return Event{}, err
		}
		switch {
		case r.lines:
			if len(bytes.TrimSpace(line)) > 0 {
				return Event{Data: line, Bare: true}, nil
			}
		case len(line) == 0:
			if r.filled {
				return Event{Name: r.name, Data: r.data}, nil
			}
			r.name = ""
		case !r.filled && (line[0] == '{' || line[0] == '['):
			return Event{Data: line, Bare: true}, nil
		default:
			r.field(line)
		}
		if len(r.data) > maxEvent {
			return Event{}, fmt.Errorf("%w: an event of more than %d bytes", ErrTooLong, maxEvent)
		}
	}
}

// field takes a line that is part of an event.
func (r *Reader) field(line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "event":
		r.name = string(value)
	case "data":
		if r.filled {
			r.data = append(r.data, '\n')
		}
		r.data, r.filled = append(r.data, value...), true
	}
}

// readLine returns the next line without its end, which is CR, LF or both.
func (r *Reader) readLine() ([]byte, error) {
	r.line = r.line[:0]
	for {
		if r.left < 0 || len(r.line) > maxEvent {
			return nil, fmt.Errorf("%w: more than %d bytes", ErrTooLong, maxStream)
		}
		if _, err := r.in.Peek(1); err != nil {
			if err == io.EOF && len(r.line) > 0 {
				return r.line, nil
			}
			return nil, err
		}
		chunk, _ := r.in.Peek(r.in.Buffered()) // what is buffered can be peeked at
		if r.feedNext {
			if r.feedNext = false; chunk[0] == '\n' {
				r.take(1)
				continue
			}
		}
		end := bytes.IndexAny(chunk, "\r\n")
		if end < 0 {
			end = len(chunk)
		}
		r.line = append(r.line, chunk[:end]...)
		if whole := end < len(chunk); whole {
			r.feedNext = chunk[end] == '\r'
			r.take(end + 1)
			return r.withoutMark(), nil
		}
		r.take(end)
	}
}

// take counts bytes that were read off.
func (r *Reader) take(n int) {
	_, _ = r.in.Discard(n) // they are buffered
	r.left -= n
}

// withoutMark returns the line, the first one of a stream without a byte order mark.
func (r *Reader) withoutMark() []byte {
	if r.begun {
		return r.line
	}
	r.begun = true
	return bytes.TrimPrefix(r.line, []byte("\uFEFF"))
}
