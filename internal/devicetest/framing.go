package devicetest

import (
	"encoding/binary"
	"fmt"
)

// Lengths of the binary headers (2.4).
const (
	header2 = 16
	header3 = 4
)

// frameUp puts the header of the device's framing version before an Opus packet.
func frameUp(protocol int, timestamp uint32, packet []byte) []byte {
	switch protocol {
	case 2:
		b := make([]byte, header2, header2+len(packet))
		binary.BigEndian.PutUint16(b[0:], 2)
		binary.BigEndian.PutUint32(b[8:], timestamp)
		binary.BigEndian.PutUint32(b[12:], uint32(len(packet)))
		return append(b, packet...)
	case 3:
		b := make([]byte, header3, header3+len(packet))
		binary.BigEndian.PutUint16(b[2:], uint16(len(packet)))
		return append(b, packet...)
	default:
		return packet
	}
}

// frameDown takes the header off a binary message. The error says which field lies.
func frameDown(protocol int, data []byte) ([]byte, uint32, error) {
	switch protocol {
	case 2:
		if len(data) < header2 {
			return nil, 0, fmt.Errorf("framing 2 needs a header of %d bytes, got %d", header2, len(data))
		}
		if v := binary.BigEndian.Uint16(data); v != 2 {
			return nil, 0, fmt.Errorf("framing 2 header says version %d", v)
		}
		if t := binary.BigEndian.Uint16(data[2:]); t != 0 {
			return nil, 0, fmt.Errorf("framing 2 header says type %d", t)
		}
		size := binary.BigEndian.Uint32(data[12:])
		if int64(size) != int64(len(data)-header2) {
			return nil, 0, fmt.Errorf("framing 2 header says %d bytes, %d follow", size, len(data)-header2)
		}
		return data[header2:], binary.BigEndian.Uint32(data[8:]), nil
	case 3:
		if len(data) < header3 {
			return nil, 0, fmt.Errorf("framing 3 needs a header of %d bytes, got %d", header3, len(data))
		}
		if data[0] != 0 {
			return nil, 0, fmt.Errorf("framing 3 header says type %d", data[0])
		}
		if size := int(binary.BigEndian.Uint16(data[2:])); size != len(data)-header3 {
			return nil, 0, fmt.Errorf("framing 3 header says %d bytes, %d follow", size, len(data)-header3)
		}
		return data[header3:], 0, nil
	default:
		return data, 0, nil
	}
}
