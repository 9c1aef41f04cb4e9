package fishspeech

import (
	"encoding/binary"
	"errors"
	"io"
)

var errMsgpack = errors.New("msgpack: a type that the fake does not know")

// unpack reads the members of a request in MessagePack.
func unpack(r io.Reader) (q request, err error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return q, err
	}
	defer func() {
		if recover() != nil {
			err = errMsgpack
		}
	}()
	v, _ := value(b)
	m, ok := v.(map[string]any)
	if !ok {
		return q, errMsgpack
	}
	q.Text, _ = m["text"].(string)
	q.Format, _ = m["format"].(string)
	q.Reference, _ = m["reference_id"].(string)
	q.Streaming, _ = m["streaming"].(bool)
	if n, ok := m["sample_rate"].(int); ok {
		q.Rate = n
	}
	if n, ok := m["chunk_length"].(int); ok {
		q.Chunk = &n
	}
	return q, nil
}

// value reads one value and returns what follows it. It panics when there is none.
func value(b []byte) (any, []byte) {
	t, rest := b[0], b[1:]
	size := func(bytes int) (int, []byte) {
		n := 0
		for _, c := range rest[:bytes] {
			n = n<<8 | int(c)
		}
		return n, rest[bytes:]
	}
	text := func(n int, rest []byte) (any, []byte) { return string(rest[:n]), rest[n:] }
	switch {
	case t < 0x80:
		return int(t), rest
	case t < 0x90:
		return object(int(t&15), rest)
	case t < 0xA0:
		return list(int(t&15), rest)
	case t < 0xC0:
		return text(int(t&31), rest)
	case t >= 0xE0:
		return int(int8(t)), rest
	}
	switch t {
	case 0xC0:
		return nil, rest
	case 0xC2, 0xC3:
		return t == 0xC3, rest
	case 0xC4, 0xC5, 0xC6: // bytes
		return text(size(1 << (t - 0xC4)))
	case 0xCA:
		return float64(binary.BigEndian.Uint32(rest)), rest[4:]
	case 0xCB:
		return 0.0, rest[8:]
	case 0xCC, 0xCD, 0xCE, 0xCF:
		n, rest := size(1 << (t - 0xCC))
		return n, rest
	case 0xD0, 0xD1, 0xD2, 0xD3:
		n, rest := size(1 << (t - 0xD0))
		return n, rest
	case 0xD9, 0xDA, 0xDB:
		return text(size(1 << (t - 0xD9)))
	case 0xDC:
		return list(size(2))
	case 0xDE:
		return object(size(2))
	}
	panic(errMsgpack)
}

func object(n int, rest []byte) (any, []byte) {
	m := map[string]any{}
	for range n {
		var k, v any
		k, rest = value(rest)
		v, rest = value(rest)
		m[k.(string)] = v
	}
	return m, rest
}

func list(n int, rest []byte) (any, []byte) {
	out := make([]any, 0, n)
	for range n {
		var v any
		v, rest = value(rest)
		out = append(out, v)
	}
	return out, rest
}
