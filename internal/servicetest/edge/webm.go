package edge

import (
	"bytes"
	"encoding/binary"
)

// matroska is a WebM file of Opus packets of 20 ms each, as one that streams is written:
// segment and clusters do not say how long they are.
func matroska(packets [][]byte) []byte {
	head := append([]byte("OpusHead\x01\x01\x00\x00"), binary.LittleEndian.AppendUint32(nil, 24000)...)
	out := element(0x1A45DFA3, element(0x4282, []byte("webm")), element(0x4287, []byte{4}), element(0x4285, []byte{2}))
	out = append(out, 0x18, 0x53, 0x80, 0x67, 0x01, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF) // a segment of unknown size
	out = append(out, element(0x1549A966, element(0x2AD7B1, []byte{0x0F, 0x42, 0x40}))...)    // ticks of 1 ms
	out = append(out, element(0x1654AE6B, element(0xAE,
		element(0xD7, []byte{1}), element(0x73C5, []byte{1}), element(0x83, []byte{2}), element(0x86, []byte("A_OPUS")),
		element(0x63A2, append(head, 0, 0, 0)), element(0xE1, element(0x9F, []byte{1}), element(0xB5, binary.BigEndian.AppendUint32(nil, 0x46BB8000))),
	))...)
	for i, p := range packets {
		at := 20 * i
		if i%50 == 0 {
			out = append(out, 0x1F, 0x43, 0xB6, 0x75, 0x01, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF) // a cluster of unknown size
			out = append(out, element(0xE7, binary.BigEndian.AppendUint32(nil, uint32(at)))...)
		}
		block := binary.BigEndian.AppendUint16([]byte{0x81}, uint16(at%1000))
		out = append(out, element(0xA3, append(append(block, 0x80), p...))...)
	}
	return out
}

// element is an EBML element.
func element(id uint32, parts ...[]byte) []byte {
	var out []byte
	for shift := 24; shift >= 0; shift -= 8 {
		if b := byte(id >> shift); b != 0 || len(out) > 0 {
			out = append(out, b)
		}
	}
	body := bytes.Join(parts, nil)
	return append(append(out, 0x40|byte(len(body)>>8), byte(len(body))), body...)
}
