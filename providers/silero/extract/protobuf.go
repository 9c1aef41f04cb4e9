package main

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// field is one field of a protobuf message as it stands on the wire.
type field struct {
	number int
	value  uint64 // wire types 0, 1 and 5
	bytes  []byte // wire type 2
}

var errTruncated = errors.New("message ends within a field")

// fields splits a protobuf message into its fields. Only the four wire types
// that ONNX uses are known.
func fields(msg []byte) ([]field, error) {
	var out []field
	for len(msg) > 0 {
		key, n := binary.Uvarint(msg)
		if n <= 0 {
			return nil, errTruncated
		}
		msg = msg[n:]
		f := field{number: int(key >> 3)}
		size := 0
		switch key & 7 {
		case 0:
			f.value, size = binary.Uvarint(msg)
			if size <= 0 {
				return nil, errTruncated
			}
		case 1:
			if size = 8; len(msg) < size {
				return nil, errTruncated
			}
			f.value = binary.LittleEndian.Uint64(msg)
		case 2:
			length, n := binary.Uvarint(msg)
			if n <= 0 || length > uint64(len(msg)-n) {
				return nil, errTruncated
			}
			size = n + int(length)
			f.bytes = msg[n:size]
		case 5:
			if size = 4; len(msg) < size {
				return nil, errTruncated
			}
			f.value = uint64(binary.LittleEndian.Uint32(msg))
		default:
			return nil, fmt.Errorf("field %d has the unknown wire type %d", f.number, key&7)
		}
		out = append(out, f)
		msg = msg[size:]
	}
	return out, nil
}

// messages returns the contents of every field of that number.
func messages(msg []byte, number int) ([][]byte, error) {
	all, err := fields(msg)
	if err != nil {
		return nil, err
	}
	var out [][]byte
	for _, f := range all {
		if f.number == number && f.bytes != nil {
			out = append(out, f.bytes)
		}
	}
	return out, nil
}

// message returns the first field of that number, or nil.
func message(msg []byte, number int) ([]byte, error) {
	all, err := messages(msg, number)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return all[0], nil
}
