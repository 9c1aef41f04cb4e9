package modelfile

import (
	"bytes"
	"errors"
	"io"
	"os"
)

// Limits of what is read of an ONNX file.
const (
	maxValue    = 1 << 20 // bytes of one metadata entry
	maxMetadata = 256     // entries
	maxVersion  = 64      // of the format; 13 is the newest of 2026
)

// network holds the metadata of an ONNX file.
type network struct {
	metadata map[string]string
}

// Reasons for which a file is no network.
var (
	errTruncated = errors.New("it ends too early")
	errForeign   = errors.New("it is no ONNX file")
	errHuge      = errors.New("its metadata are too long")
)

// readNetwork reads the metadata of an ONNX file and looks whether the file is whole. The network itself
// is passed over, so it takes a millisecond whatever the size.
func readNetwork(file string) (network, error) {
	f, err := os.Open(file)
	if err != nil {
		return network{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return network{}, err
	}
	if !info.Mode().IsRegular() {
		return network{}, errForeign
	}
	n, err := parseNetwork(f, info.Size())
	if errors.Is(err, errForeign) {
		if what := disguise(f); what != "" {
			err = &mask{what}
		}
	}
	return n, err
}

// mask says what a file is that is no network: the name of a message.
type mask struct{ is string }

func (m *mask) Error() string { return errForeign.Error() + ": " + m.is }

// Unwrap returns errForeign.
func (m *mask) Unwrap() error { return errForeign }

// disguise returns the message for a file that is often found in place of a model, or "".
func disguise(f io.ReaderAt) string {
	head := make([]byte, 64)
	n, _ := f.ReadAt(head, 0)
	head = bytes.ToLower(bytes.TrimSpace(head[:n]))
	switch {
	case n == 0:
		return "sherpa/is-empty"
	case bytes.HasPrefix(head, []byte("version https://git-lfs")):
		return "sherpa/is-pointer"
	case bytes.HasPrefix(head, []byte("<!doctype")), bytes.HasPrefix(head, []byte("<html")):
		return "sherpa/is-page"
	case bytes.HasPrefix(head, []byte("bzh")), bytes.HasPrefix(head, []byte("pk\x03\x04")), bytes.HasPrefix(head, []byte("\x1f\x8b")):
		return "sherpa/is-archive"
	}
	return ""
}

// Fields of ONNX's ModelProto and StringStringEntryProto.
const (
	fieldVersion  = 1 // ir_version
	fieldGraph    = 7
	fieldMetadata = 14
)

// Wire types of protocol buffers.
const (
	wireVarint = 0
	wireFixed8 = 1
	wireBytes  = 2
	wireFixed4 = 5
)

// parseNetwork walks over the fields of a ModelProto of a size.
func parseNetwork(r io.ReaderAt, size int64) (network, error) {
	n := network{metadata: make(map[string]string)}
	in := &protoReader{r: r, size: size}
	var version, graph uint64
	for in.at < size {
		field, wire, length, err := in.field()
		if err != nil {
			return n, err
		}
		switch {
		case field == fieldVersion && wire == wireVarint:
			version = length
		case field == fieldGraph && wire == wireBytes:
			graph = max(graph, length)
		case field == fieldMetadata && wire == wireBytes:
			if length > maxValue || len(n.metadata) >= maxMetadata {
				return n, errHuge
			}
			entry := make([]byte, length)
			if _, err := r.ReadAt(entry, in.at); err != nil {
				return n, errTruncated
			}
			if key, value, ok := parseEntry(entry); ok {
				n.metadata[key] = value
			}
		}
		if wire != wireVarint {
			in.at += int64(length)
		}
	}
	if version == 0 || version > maxVersion || graph == 0 {
		return n, errForeign
	}
	return n, nil
}

// protoReader reads heads of fields.
type protoReader struct {
	r    io.ReaderAt
	size int64
	at   int64
	seen bool // a whole field
}

// field reads the head of a field: its number, its wire type, and its value (of a varint) or the length
// of what follows, all of which is in the file.
func (p *protoReader) field() (number, wire, length uint64, err error) {
	head, err := p.varint()
	if err != nil {
		return 0, 0, 0, err
	}
	number, wire = head>>3, head&7
	switch wire {
	case wireVarint, wireBytes:
		if length, err = p.varint(); err != nil {
			return 0, 0, 0, err
		}
	case wireFixed8:
		length = 8
	case wireFixed4:
		length = 4
	default:
		return 0, 0, 0, errForeign
	}
	if number == 0 || number > 64 || !p.seen && number > fieldMetadata {
		return 0, 0, 0, errForeign
	}
	if wire != wireVarint && length > uint64(p.size-p.at) {
		if !p.seen { // a model begins with its version: this is a text or the like
			return 0, 0, 0, errForeign
		}
		return 0, 0, 0, errTruncated
	}
	p.seen = true
	return number, wire, length, nil
}

// varint reads a number of 1 to 10 bytes.
func (p *protoReader) varint() (uint64, error) {
	var b [10]byte
	n, err := p.r.ReadAt(b[:min(int64(len(b)), p.size-p.at)], p.at)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	v, used := uvarint(b[:n])
	switch {
	case used > 0:
		p.at += int64(used)
		return v, nil
	case n < len(b):
		return 0, errTruncated
	}
	return 0, errForeign
}

// uvarint decodes a number; used is 0 when b ends before it does or it is too long.
func uvarint(b []byte) (v uint64, used int) {
	for i, c := range b {
		v |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			return v, i + 1
		}
	}
	return 0, 0
}

// parseEntry reads a StringStringEntryProto.
func parseEntry(b []byte) (key, value string, ok bool) {
	in := &protoReader{r: bytes.NewReader(b), size: int64(len(b))}
	for in.at < in.size {
		field, wire, length, err := in.field()
		if err != nil {
			return "", "", false
		}
		if wire == wireVarint {
			continue
		}
		part := string(b[in.at : in.at+int64(length)])
		in.at += int64(length)
		switch field {
		case 1:
			key = part
		case 2:
			value = part
		}
	}
	return key, value, key != ""
}
