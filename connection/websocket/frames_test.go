package websocket

import (
	"encoding/binary"
	"io"
)

// frameUp is one frame as a client sends it. first is the first byte of its header.
func frameUp(first byte, payload []byte) []byte {
	key := [4]byte{0xa1, 0x0b, 0xff, 0x37}
	frame := []byte{first}
	switch n := len(payload); {
	case n <= 125:
		frame = append(frame, 0x80|byte(n))
	case n <= 65535:
		frame = binary.BigEndian.AppendUint16(append(frame, 0x80|126), uint16(n))
	default:
		frame = binary.BigEndian.AppendUint64(append(frame, 0x80|127), uint64(n))
	}
	frame = append(frame, key[:]...)
	for i, b := range payload {
		frame = append(frame, b^key[i&3])
	}
	return frame
}

// endless gives one frame again and again, after another one.
type endless struct {
	first, frame []byte
	at           int // in first, then in frame
	read, most   int // bytes; most 0: without end
}

func (e *endless) Read(p []byte) (int, error) {
	if e.most > 0 && e.read >= e.most {
		return 0, io.EOF
	}
	n := copy(p, e.first)
	if e.first = e.first[n:]; n == 0 {
		n = copy(p, e.frame[e.at:])
		e.at = (e.at + n) % len(e.frame)
	}
	e.read += n
	return n, nil
}
