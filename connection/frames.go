package connection

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/gorilla/websocket"
)

// What a device sends is read here, and not by the WebSocket library that has
// upgraded the connection and that writes: it allocates for each message, holds
// 4 KiB for each connection, and reads a message of endless empty pieces without
// ever coming back. RFC 6455, section 5.2:
//
//	0      FIN, 3 reserved bits, 4 bits of opcode
//	1      MASK, 7 bits of length: up to 125, or 126: 2 bytes follow, 127: 8 bytes
//	then   4 bytes of key, since clients mask; then the payload
//
// Nothing is trusted: memory grows with what comes, not with what is promised.

// opContinuation is the opcode of the further pieces of a message.
const opContinuation = 0

// maxControl is the longest payload of a ping, pong or close frame, in bytes.
const maxControl = 125

// errWire is under every error of a peer whose frames are wrong.
var errWire = errors.New("bad websocket frame")

// frameHead is the header of one frame.
type frameHead struct {
	op     int
	final  bool
	length uint64
	key    [4]byte
}

// isControl reports whether it is a ping, a pong or a close frame.
func (h frameHead) isControl() bool { return h.op >= websocket.CloseMessage }

// frameReader takes frames from a stream. It is for one goroutine.
type frameReader struct {
	src  io.Reader
	buf  []byte // of readBuffer bytes; buf[from:to] was read and not taken yet
	from int
	to   int
	skip uint64 // of the last frame's payload, not taken and not wanted
}

func newFrameReader(src io.Reader) *frameReader {
	return &frameReader{src: src, buf: make([]byte, readBuffer)}
}

// take gives the next n bytes, at most as many as buf holds. They are valid until
// the next call. The end of the stream before them is io.EOF, inside them
// io.ErrUnexpectedEOF.
func (f *frameReader) take(n int) ([]byte, error) {
	for f.to-f.from < n {
		if f.from > 0 {
			f.from, f.to = 0, copy(f.buf, f.buf[f.from:f.to])
		}
		k, err := f.src.Read(f.buf[f.to:])
		f.to += k
		if err != nil && f.to < n {
			if f.to > 0 {
				err = cutShort(err)
			}
			return nil, err
		}
	}
	f.from += n
	return f.buf[f.from-n : f.from], nil
}

// read gives some of what is buffered, else of what the stream has.
func (f *frameReader) read(p []byte) (int, error) {
	if f.from == f.to {
		return f.src.Read(p)
	}
	n := copy(p, f.buf[f.from:f.to])
	f.from += n
	return n, nil
}

// next reads the header of the next frame, after the rest of the last one.
func (f *frameReader) next() (frameHead, error) {
	for f.skip > 0 {
		n := int(min(f.skip, uint64(len(f.buf))))
		if _, err := f.take(n); err != nil {
			return frameHead{}, cutShort(err)
		}
		f.skip -= uint64(n)
	}
	raw, err := f.take(2)
	if err != nil {
		return frameHead{}, err
	}
	h := frameHead{op: int(raw[0] & 0x0f), final: raw[0]&0x80 != 0, length: uint64(raw[1] & 0x7f)}
	if err := h.check(raw[0], raw[1]); err != nil {
		return h, err
	}
	switch h.length {
	case 126:
		if raw, err = f.take(2); err == nil {
			h.length = uint64(binary.BigEndian.Uint16(raw))
		}
	case 127:
		if raw, err = f.take(8); err == nil {
			h.length = binary.BigEndian.Uint64(raw)
		}
	}
	if err == nil {
		if raw, err = f.take(len(h.key)); err == nil {
			copy(h.key[:], raw)
		}
	}
	if err != nil {
		return h, cutShort(err)
	}
	if h.length>>63 != 0 {
		return h, fmt.Errorf("%w: a length below zero", errWire)
	}
	return h, nil
}

// check judges the first two bytes of a header.
func (h frameHead) check(first, second byte) error {
	switch {
	case first&0x70 != 0:
		return fmt.Errorf("%w: reserved bits are set", errWire)
	case second&0x80 == 0:
		return fmt.Errorf("%w: not masked", errWire)
	}
	switch h.op {
	case opContinuation, websocket.TextMessage, websocket.BinaryMessage:
		return nil
	case websocket.CloseMessage, websocket.PingMessage, websocket.PongMessage:
		if !h.final || h.length > maxControl {
			return fmt.Errorf("%w: a control frame in pieces, or of more than %d bytes", errWire, maxControl)
		}
		return nil
	}
	return fmt.Errorf("%w: opcode %d", errWire, h.op)
}

// payload appends the payload of a frame to dst, unmasked.
func (f *frameReader) payload(dst []byte, h frameHead) ([]byte, error) {
	for done := uint64(0); done < h.length; {
		left := h.length - done
		if len(dst) == cap(dst) {
			more := min(left, uint64(max(readBuffer, len(dst))))
			dst = append(dst, make([]byte, more)...)[:len(dst)]
		}
		room := dst[len(dst):min(uint64(cap(dst)), uint64(len(dst))+left)]
		n, err := f.read(room)
		unmask(room[:n], h.key, int(done&3))
		dst = dst[:len(dst)+n]
		if done += uint64(n); done < h.length && err != nil {
			return dst, cutShort(err)
		}
	}
	return dst, nil
}

// unmask takes the mask off data, which begins at this place of the key.
func unmask(data []byte, mask [4]byte, at int) {
	var key [4]byte
	for i := range key {
		key[i] = mask[(at+i)&3]
	}
	word := binary.LittleEndian.Uint32(key[:])
	wide := uint64(word)<<32 | uint64(word)
	for len(data) >= 8 {
		binary.LittleEndian.PutUint64(data, binary.LittleEndian.Uint64(data)^wide)
		data = data[8:]
	}
	for i := range data {
		data[i] ^= key[i&3]
	}
}

// cutShort is the error of a stream that ends inside a frame.
func cutShort(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// closing reads the payload of a close frame: it comes back as an error, for
// nothing follows it.
func closing(payload []byte) error {
	if len(payload) == 0 {
		return &websocket.CloseError{Code: websocket.CloseNoStatusReceived}
	}
	if len(payload) == 1 {
		return fmt.Errorf("%w: half a close code", errWire)
	}
	code := int(binary.BigEndian.Uint16(payload))
	switch {
	case code >= 1000 && code <= 1003, code >= 1007 && code <= 1014, code >= 3000 && code <= 4999:
	default:
		return fmt.Errorf("%w: close code %d", errWire, code)
	}
	if !utf8.Valid(payload[2:]) {
		return fmt.Errorf("%w: a close reason that is not UTF-8", errWire)
	}
	return &websocket.CloseError{Code: code, Text: string(payload[2:])}
}
