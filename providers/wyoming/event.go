package wyoming

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"

	"xiaozhi/providers/transport"
)

// Limits of an event.
const (
	maxLine    = 1 << 20 // bytes of its first line
	maxData    = 4 << 20 // bytes of its second part
	maxPayload = 8 << 20 // bytes of sound
)

// version is that of the protocol, which servers take note of at most.
const version = "1.5.2"

// errEvent is the error of what is no event.
var errEvent = errors.New("not an event of Wyoming")

// event is a message in either direction: a line of JSON, then data as JSON, then sound.
type event struct {
	Type    string
	Data    map[string]json.RawMessage // of the line and of the block after it; the block wins
	Payload []byte
}

// line is the first line of an event.
type line struct {
	Type          string                     `json:"type"`
	Version       string                     `json:"version,omitempty"`
	Data          map[string]json.RawMessage `json:"data,omitempty"`
	DataLength    int                        `json:"data_length,omitempty"`
	PayloadLength int                        `json:"payload_length,omitempty"`
}

// encode returns an event as it goes over the wire. data is written as a block of its own, as the
// protocol's own programs do; nil is none.
func encode(kind string, data any, payload []byte) ([]byte, error) {
	head := line{Type: kind, Version: version, PayloadLength: len(payload)}
	var block []byte
	if data != nil {
		var err error
		if block, err = json.Marshal(data); err != nil {
			return nil, fmt.Errorf("encode %s: %w", kind, err)
		}
		head.DataLength = len(block)
	}
	out, err := json.Marshal(head)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", kind, err)
	}
	out = append(out, '\n')
	return append(append(out, block...), payload...), nil
}

// decode reads the next event. Blank lines between events are gone over.
func decode(r *bufio.Reader) (event, error) {
	var raw []byte
	for len(raw) == 0 {
		var err error
		if raw, err = readLine(r); err != nil {
			return event{}, err
		}
	}
	var head line
	if err := transport.Decode(raw, &head); err != nil || head.Type == "" {
		return event{}, fmt.Errorf("%w: its first line is not understood", errEvent)
	}
	if head.DataLength < 0 || head.DataLength > maxData || head.PayloadLength < 0 || head.PayloadLength > maxPayload {
		return event{}, fmt.Errorf("%w: an event %s of %d and %d bytes", errEvent, head.Type, head.DataLength, head.PayloadLength)
	}
	e := event{Type: head.Type, Data: head.Data}
	if head.DataLength > 0 {
		block, err := readBlock(r, head.DataLength)
		if err != nil {
			return event{}, err
		}
		var more map[string]json.RawMessage
		if err := json.Unmarshal(block, &more); err != nil {
			return event{}, fmt.Errorf("%w: the data of a %s is not understood", errEvent, head.Type)
		}
		if e.Data == nil {
			e.Data = more
		}
		maps.Copy(e.Data, more)
	}
	if head.PayloadLength > 0 {
		var err error
		if e.Payload, err = readBlock(r, head.PayloadLength); err != nil {
			return event{}, err
		}
	}
	return e, nil
}

// readLine reads a line without its end.
func readLine(r *bufio.Reader) ([]byte, error) {
	var out []byte
	for {
		part, err := r.ReadSlice('\n')
		if out = append(out, part...); len(out) > maxLine {
			return nil, fmt.Errorf("%w: its first line is too long", errEvent)
		}
		switch {
		case err == nil:
			for len(out) > 0 && (out[len(out)-1] == '\n' || out[len(out)-1] == '\r') {
				out = out[:len(out)-1]
			}
			return out, nil
		case errors.Is(err, io.EOF) && len(out) > 0:
			return nil, io.ErrUnexpectedEOF
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// readBlock reads n bytes, and takes memory only for those that come.
func readBlock(r io.Reader, n int) ([]byte, error) {
	out, err := io.ReadAll(io.LimitReader(r, int64(n)))
	if err != nil {
		return nil, err
	}
	if len(out) < n {
		return nil, io.ErrUnexpectedEOF
	}
	return out, nil
}

// text returns a member of the data that is a text, or "".
func (e event) text(name string) string {
	var s string
	_ = json.Unmarshal(e.Data[name], &s) // anything else counts as not there
	return s
}

// number returns a member of the data that is a whole number, or what is meant otherwise.
func (e event) number(name string, otherwise int) int {
	var n *int
	if json.Unmarshal(e.Data[name], &n) != nil || n == nil {
		return otherwise
	}
	return *n
}
