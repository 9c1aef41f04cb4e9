package doubaodialogue

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"

	"xiaozhi/internal/servicetest"
)

// The types of a frame.
const (
	fullRequest  = 1
	audioRequest = 2
	fullAnswer   = 9
	audioAnswer  = 11
	failure      = 15
)

// The flag of a frame with an event, how payloads are written, and how they are packed.
const (
	evented = 4
	raw     = 0
	inJSON  = 1
	zipped  = 1
)

// frame is a binary message.
type frame struct {
	kind, flags, form, pack byte
	event                   uint32
	id                      string // of the session, or of the connection
	payload                 []byte // unpacked
}

var errFrame = errors.New("unsupported protocol version or torn frame")

// parse reads a frame of a client.
func parse(b []byte) (f frame, err error) {
	if len(b) < 4 || b[0] != 0x11 {
		return f, errFrame
	}
	f = frame{kind: b[1] >> 4, flags: b[1] & 15, form: b[2] >> 4, pack: b[2] & 15}
	b = b[4:]
	number := func() (n uint32) {
		if len(b) < 4 {
			err = errFrame
			return 0
		}
		n, b = binary.BigEndian.Uint32(b), b[4:]
		return n
	}
	text := func() (s []byte) {
		if n := number(); err == nil && uint64(n) <= uint64(len(b)) {
			s, b = b[:n], b[n:]
			return s
		}
		err = errFrame
		return nil
	}
	if f.flags&3 != 0 {
		number()
	}
	if f.flags&evented != 0 {
		if f.event = number(); f.event >= startSession {
			f.id = string(text())
		}
	}
	if f.payload = text(); err == nil && len(b) > 0 {
		err = errFrame
	}
	if err == nil && f.pack == zipped && len(f.payload) > 0 {
		f.payload, err = unzip(f.payload)
	}
	return f, err
}

// message writes a frame of the server.
func (f frame) message() servicetest.Message {
	payload := f.payload
	if f.pack == zipped {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write(payload)
		_ = z.Close()
		payload = b.Bytes()
	}
	out := []byte{0x11, f.kind<<4 | evented, f.form<<4 | f.pack, 0}
	out = binary.BigEndian.AppendUint32(out, f.event)
	out = binary.BigEndian.AppendUint32(out, uint32(len(f.id)))
	out = append(out, f.id...)
	out = binary.BigEndian.AppendUint32(out, uint32(len(payload)))
	return servicetest.Binary(append(out, payload...))
}

// wrong is a frame with an error. It holds no event and is never packed.
func wrong(code uint32, words string) servicetest.Message {
	payload := servicetest.JSON(map[string]any{"error": words}).Data
	out := []byte{0x11, failure << 4, inJSON << 4, 0}
	out = binary.BigEndian.AppendUint32(out, code)
	out = binary.BigEndian.AppendUint32(out, uint32(len(payload)))
	return servicetest.Binary(append(out, payload...))
}

func unzip(b []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}
