package volcengine

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
	typeRequest  = 1  // ours, with JSON
	typeAudio    = 2  // ours, with sound
	typeAnswer   = 9  // theirs, with JSON
	typeSound    = 11 // theirs, with sound
	typeRefusal  = 15 // theirs, an error
	maxFrame     = 16 << 20
	frameHeader  = 4
	versionBytes = 0x11 // version 1, a header of one word
)

// Flags: the lower half of the second byte.
const (
	flagSequence = 1 // a number follows
	flagLast     = 2 // it is the last one
	flagEvent    = 4 // an event follows
)

// Events of a connection: of the client, and of the server, which names the connection.
const (
	eventStartConnection    = 1
	eventFinishConnection   = 2
	eventConnectionStarted  = 50
	eventConnectionFailed   = 51
	eventConnectionFinished = 52
)

// Events of a session.
const (
	eventStartSession    = 100
	eventCancelSession   = 101
	eventFinishSession   = 102
	eventSessionStarted  = 150
	eventSessionCanceled = 151
	eventSessionFinished = 152
	eventSessionFailed   = 153
	eventTaskRequest     = 200
	eventTTSResponse     = 352
)

// frame is one binary message. All numbers are big-endian:
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
type frame struct {
	kind     byte
	flags    byte
	json     bool
	sequence int32
	event    int32
	id       string // of the session, or of the connection
	code     uint32
	payload  []byte
}

// bytes makes the message of a frame of ours. Nothing is compressed: it need not be.
func (f frame) bytes() []byte {
	serialization := byte(0)
	if f.json {
		serialization = 1 << 4
	}
	b := make([]byte, 0, frameHeader+16+len(f.id)+len(f.payload))
	b = append(b, versionBytes, f.kind<<4|f.flags, serialization, 0)
	if f.flags&flagSequence != 0 {
		b = binary.BigEndian.AppendUint32(b, uint32(f.sequence))
	}
	if f.flags&flagEvent != 0 {
		b = binary.BigEndian.AppendUint32(b, uint32(f.event))
		if f.event != eventStartConnection && f.event != eventFinishConnection {
			b = binary.BigEndian.AppendUint32(b, uint32(len(f.id)))
			b = append(b, f.id...)
		}
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(f.payload)))
	return append(b, f.payload...)
}

// parseFrame reads a message of the service. The payload may be a part of b.
func parseFrame(b []byte) (frame, error) {
	r := &reader{b: b}
	head := r.take(frameHeader)
	if r.err != nil {
		return frame{}, r.err
	}
	if head[0]>>4 != 1 || head[0]&15 == 0 {
		return frame{}, fmt.Errorf("a message begins with %#02x, which is no version of the protocol", head[0])
	}
	r.take((int(head[0]&15) - 1) * 4)
	f := frame{kind: head[1] >> 4, flags: head[1] & 15, json: head[2]>>4 == 1}
	if f.kind == typeRefusal {
		f.code = r.number()
		f.payload = r.block()
	} else {
		r.body(&f)
	}
	if r.err != nil {
		return frame{}, r.err
	}
	if head[2]&15 == 1 {
		plain, err := unzip(f.payload)
		if err != nil {
			return frame{}, err
		}
		f.payload = plain
	}
	return f, nil
}

// last says whether nothing follows in this session.
func (f frame) last() bool { return f.flags&flagEvent == 0 && f.flags&flagLast != 0 }

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
func (r *reader) body(f *frame) {
	if f.flags&flagEvent == 0 {
		if f.flags&flagSequence != 0 {
			f.sequence = int32(r.number())
		}
		f.payload = r.block()
		return
	}
	f.event = int32(r.number())
	f.id = string(r.block())
	if f.payload = r.block(); errors.Is(r.err, errTorn) && len(r.b) == 0 {
		f.payload, r.err = nil, nil // some events end after the id
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
