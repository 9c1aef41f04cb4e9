package external

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"xiaozhi/mcp/rawjson"
)

// events is a stream of server-sent events without those that are no messages:
// the SDK takes every event for one and gives the session up at the first that
// is not. What is left is written anew. It is for one goroutine, apart from Close.
type events struct {
	body  io.ReadCloser
	lines *bufio.Reader
	first bool   // waiting for the event "endpoint"; all before it is left out
	older bool   // it began with "endpoint": the older transport, which goes on nowhere after a break
	rest  []byte // of the event that is being read
	err   error  // for when rest is empty
	ended func() // if not nil, called once when the stream has ended
}

func newEvents(body io.ReadCloser, endpoint bool) *events {
	return &events{body: body, lines: bufio.NewReader(body), first: endpoint, older: endpoint}
}

// Close ends the stream.
func (e *events) Close() error { return e.body.Close() }

// Read gives the bytes of the events that pass.
func (e *events) Read(p []byte) (int, error) {
	for len(e.rest) == 0 && e.err == nil {
		var next event
		if next, e.err = e.event(); e.wanted(next) {
			e.rest = next.bytes()
		}
		if e.err != nil && e.ended != nil {
			e.ended()
		}
	}
	if len(e.rest) == 0 {
		return 0, e.err
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

// event is one server-sent event.
type event struct {
	name, id, retry string
	data            []byte
	hasData         bool
}

// bytes are the event as the SDK reads it.
func (v event) bytes() []byte {
	var b bytes.Buffer
	field := func(name, value string) {
		if value != "" {
			b.WriteString(name + ": " + value + "\n")
		}
	}
	field("event", v.name)
	field("id", v.id)
	field("retry", v.retry)
	if v.hasData {
		for line := range bytes.SplitSeq(v.data, []byte("\n")) {
			b.WriteString("data: ")
			b.Write(line)
			b.WriteByte('\n')
		}
	}
	b.WriteByte('\n')
	return b.Bytes()
}

// wanted reports whether an event goes to the SDK, and notes the first.
func (e *events) wanted(v event) bool {
	if e.first {
		if v.name != "endpoint" || !v.hasData {
			return false
		}
		e.first = false
		return true
	}
	if !v.hasData || len(v.data) == 0 && !e.older {
		return v.id != "" || v.retry != "" // where to go on after a break: an empty line of data comes with it
	}
	if v.name != "" && v.name != "message" {
		return false
	}
	if rawjson.Depth(v.data) > maxDepth {
		return false
	}
	_, err := jsonrpc.DecodeMessage(v.data)
	return err == nil
}

var errLongEvent = errors.New("a server-sent event is too long")

// event reads up to the next empty line. The error comes with the last event.
func (e *events) event() (v event, err error) {
	size := 0
	for {
		line, err := e.line()
		if size += len(line); size > maxFrame {
			return event{}, errLongEvent
		}
		if len(line) == 0 {
			return v, err
		}
		v.field(line)
		if err != nil {
			return v, err
		}
	}
}

// field takes in one line. The SDK wants a colon in each; the standard does not.
func (v *event) field(line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "event":
		v.name = string(value)
	case "id":
		v.id = string(value)
	case "retry":
		v.retry = string(value)
	case "data":
		if v.hasData {
			v.data = append(v.data, '\n')
		}
		v.data, v.hasData = append(v.data, value...), true
	}
}

// line reads one line without its end, which may be CR, LF or both.
func (e *events) line() ([]byte, error) {
	var line []byte
	for {
		part, err := e.lines.ReadSlice('\n')
		line = append(line, part...)
		if errors.Is(err, bufio.ErrBufferFull) && len(line) <= maxFrame {
			continue
		}
		return bytes.TrimRight(line, "\r\n"), err
	}
}
