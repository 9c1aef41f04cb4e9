// Package volcframe holds the binary frames that services of Volcengine (Doubao) speak on
// their WebSockets, and the refusals in them.
package volcframe

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Types of messages: the upper half of the second byte.
const (
	TypeRequest  = 1  // ours, with JSON
	TypeAudio    = 2  // ours, with sound
	TypeAnswer   = 9  // theirs, with JSON
	TypeSound    = 11 // theirs, with sound
	TypeRefusal  = 15 // theirs, an error
	maxFrame     = 16 << 20
	frameHeader  = 4
	versionBytes = 0x11 // version 1, a header of one word
)

// Flags: the lower half of the second byte.
const (
	FlagSequence = 1 // a number follows
	FlagLast     = 2 // it is the last one
	FlagEvent    = 4 // an event follows
)

// Events of a connection: of the client, and of the server, which names the connection.
const (
	EventStartConnection    = 1
	EventFinishConnection   = 2
	EventConnectionStarted  = 50
	EventConnectionFailed   = 51
	EventConnectionFinished = 52
)

// Events of a session.
const (
	EventStartSession    = 100
	EventCancelSession   = 101
	EventFinishSession   = 102
	EventSessionStarted  = 150
	EventSessionCanceled = 151
	EventSessionFinished = 152
	EventSessionFailed   = 153
	EventTaskRequest     = 200
	EventTTSResponse     = 352
)

// Frame is one binary message. All numbers are big-endian:
//
//	0     version, length of the header in words of 4 bytes
//	1     type, flags
//	2     serialization (1: JSON), compression (1: gzip)
//	3     0
//	      [sequence, int32]  flagSequence
//	      [event, int32]     flagEvent
//	      [length, uint32, and id]  an event, but for those of ours that concern the connection
//	      [code, uint32]     typeRefusal
//	      length, uint32, and payload
type Frame struct {
	Kind     byte
	Flags    byte
	JSON     bool
	Sequence int32
	Event    int32
	ID       string // of the session, or of the connection
	Code     uint32
	Payload  []byte
}

// Bytes makes the message of a frame of ours. Nothing is compressed: it need not be.
func (f Frame) Bytes() []byte {
	serialization := byte(0)
	if f.JSON {
		serialization = 1 << 4
	}
	b := make([]byte, 0, frameHeader+16+len(f.ID)+len(f.Payload))
	b = append(b, versionBytes, f.Kind<<4|f.Flags, serialization, 0)
	if f.Flags&FlagSequence != 0 {
		b = binary.BigEndian.AppendUint32(b, uint32(f.Sequence))
	}
	if f.Flags&FlagEvent != 0 {
		b = binary.BigEndian.AppendUint32(b, uint32(f.Event))
		if f.Event != EventStartConnection && f.Event != EventFinishConnection {
			b = binary.BigEndian.AppendUint32(b, uint32(len(f.ID)))
			b = append(b, f.ID...)
		}
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(f.Payload)))
	return append(b, f.Payload...)
}

// Parse reads a message of the service. The payload may be a part of b. Of a type that is not
// known, only the type counts.
func Parse(b []byte) (Frame, error) {
	r := &reader{b: b}
	head := r.take(frameHeader)
	if r.err != nil {
		return Frame{}, r.err
	}
	if head[0]>>4 != 1 || head[0]&15 == 0 {
		return Frame{}, fmt.Errorf("a message begins with %#02x, which is no version of the protocol", head[0])
	}
	r.take((int(head[0]&15) - 1) * 4)
	f := Frame{Kind: head[1] >> 4, Flags: head[1] & 15, JSON: head[2]>>4 == 1}
	if f.Kind == TypeRefusal {
		f.Code = r.number()
		if f.Flags&FlagEvent != 0 { // of a dialogue
			f.Event, f.ID = int32(r.number()), string(r.block())
		}
		f.Payload = r.block()
	} else {
		r.body(&f)
	}
	known := f.Kind == TypeAnswer || f.Kind == TypeSound || f.Kind == TypeRefusal
	if r.err != nil && known {
		return Frame{}, r.err
	}
	if head[2]&15 == 1 {
		plain, err := unzip(f.Payload)
		switch {
		case err == nil:
			f.Payload = plain
		case f.Kind == TypeAnswer || f.Kind == TypeSound: // a refusal may say so, and be plain all the same
			return Frame{}, err
		}
	}
	return f, nil
}

// Last says whether nothing follows in this session.
func (f Frame) Last() bool { return f.Flags&FlagEvent == 0 && f.Flags&FlagLast != 0 }

// reader reads parts of a message; its error stays.
type reader struct {
	b   []byte
	err error
}

var errTorn = errors.New("a message ends too early")

func (r *reader) take(n int) []byte {
	if r.err == nil && n > len(r.b) {
		r.err = errTorn
	}
	if r.err != nil {
		return nil
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) number() uint32 {
	b := r.take(4)
	if b == nil {
		return 0
	}
	return binary.BigEndian.Uint32(b)
}

// block reads a length, and as many bytes.
func (r *reader) block() []byte {
	n := r.number()
	if n > maxFrame {
		r.err = fmt.Errorf("a message claims a part of %d bytes", n)
		return nil
	}
	return r.take(int(n))
}

// body reads what follows the header of all but refusals.
func (r *reader) body(f *Frame) {
	if f.Flags&FlagEvent == 0 {
		if f.Flags&FlagSequence != 0 {
			f.Sequence = int32(r.number())
		}
		f.Payload = r.block()
		return
	}
	f.Event = int32(r.number())
	f.ID = string(r.block())
	if f.Payload = r.block(); errors.Is(r.err, errTorn) && len(r.b) == 0 {
		f.Payload, r.err = nil, nil // some events end after the id
	}
}

// unzip unpacks a payload.
func unzip(b []byte) ([]byte, error) {
	if len(b) == 0 {
		return nil, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("unpack a message: %w", err)
	}
	plain, err := io.ReadAll(io.LimitReader(z, maxFrame))
	if err != nil {
		return nil, fmt.Errorf("unpack a message: %w", err)
	}
	return plain, nil
}
