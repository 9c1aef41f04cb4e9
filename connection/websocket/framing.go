package websocket

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Binary framing of audio, docs/protocol.md 2.4. All integers are big-endian.
//
//	1: the bare Opus packet
//	2: u16 version, u16 type, u32 reserved, u32 timestamp in ms, u32 payload size, payload
//	3: u8 type, u8 reserved, u16 payload size, payload
const (
	header2 = 16
	header3 = 4
)

// errFrame is under every error of parseFrame.
var errFrame = errors.New("bad audio frame")

// parseFrame gives the Opus packet in one binary message, which shares message's
// memory, and the timestamp of framing 2. An empty packet (nil, nil) is legal
// and means nothing.
func parseFrame(framing int, message []byte) (packet []byte, stamp uint32, err error) {
	if len(message) == 0 {
		return nil, 0, nil
	}
	switch framing {
	case 2:
		if len(message) < header2 {
			return nil, 0, fmt.Errorf("%w: %d bytes are no version 2 header", errFrame, len(message))
		}
		kind := binary.BigEndian.Uint16(message[2:])
		size := binary.BigEndian.Uint32(message[12:])
		packet, err = payload(uint32(kind), size, message[header2:])
		return packet, binary.BigEndian.Uint32(message[8:]), err
	case 3:
		if len(message) < header3 {
			return nil, 0, fmt.Errorf("%w: %d bytes are no version 3 header", errFrame, len(message))
		}
		size := binary.BigEndian.Uint16(message[2:])
		packet, err = payload(uint32(message[0]), uint32(size), message[header3:])
		return packet, 0, err
	default:
		return message, 0, nil
	}
}

// payload checks what a header says against what is there. The version field
// of framing 2 is not judged: the agreed framing is what counts.
func payload(kind, size uint32, rest []byte) ([]byte, error) {
	if kind != 0 {
		return nil, fmt.Errorf("%w: type %d is not audio", errFrame, kind)
	}
	if uint64(size) != uint64(len(rest)) {
		return nil, fmt.Errorf("%w: header says %d bytes, %d are there", errFrame, size, len(rest))
	}
	if size == 0 {
		return nil, nil
	}
	return rest, nil
}

// appendFrame appends one Opus packet in the given framing to dst. timestamp
// is in ms and goes out in framing 2 only. A packet too long for framing 3's
// size field (65535 bytes) is an error, and dst comes back as it was.
func appendFrame(dst []byte, framing int, timestamp uint32, packet []byte) ([]byte, error) {
	switch framing {
	case 2:
		dst = append(dst, 0, 2, 0, 0, 0, 0, 0, 0)
		dst = binary.BigEndian.AppendUint32(dst, timestamp)
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(packet)))
	case 3:
		if len(packet) > math.MaxUint16 {
			return dst, fmt.Errorf("%w: %d bytes do not fit framing 3", errFrame, len(packet))
		}
		dst = append(dst, 0, 0)
		dst = binary.BigEndian.AppendUint16(dst, uint16(len(packet)))
	}
	return append(dst, packet...), nil
}
