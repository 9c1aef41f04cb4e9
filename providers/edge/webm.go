package edge

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/bits"
)

// Elements of WebM that hold others, or packets. All others are gone over.
const (
	idSegment     = 0x18538067
	idCluster     = 0x1F43B675
	idBlockGroup  = 0xA0
	idBlock       = 0xA1
	idSimpleBlock = 0xA3
)

// maxBlock is the length of a block in bytes: one packet, and a few bytes before it.
const maxBlock = 64 << 10

// errWebM says that a stream is no WebM.
var errWebM = errors.New("the sound is not the WebM that was asked for")

// webm takes the packets of one track out of a WebM stream while it comes.
type webm struct {
	in *bufio.Reader
}

func newWebM(r io.Reader) *webm { return &webm{in: bufio.NewReader(r)} }

// next returns the next packet, or io.EOF when there is none.
func (w *webm) next() ([]byte, error) {
	for {
		id, err := w.id()
		if err != nil {
			return nil, err
		}
		size, known, err := w.size()
		if err != nil {
			return nil, short(err)
		}
		switch {
		case id == idSegment || id == idCluster || id == idBlockGroup:
			continue // what is inside comes next
		case !known:
			return nil, fmt.Errorf("%w: an element of unknown length", errWebM)
		case id == idSimpleBlock || id == idBlock:
			return w.block(size)
		}
		if _, err := io.CopyN(io.Discard, w.in, size); err != nil {
			return nil, short(err)
		}
	}
}

// id reads the id of an element, with its length mark.
func (w *webm) id() (uint32, error) {
	first, err := w.in.ReadByte()
	if err != nil {
		return 0, err
	}
	n := bits.LeadingZeros8(first)
	if n > 3 {
		return 0, fmt.Errorf("%w: byte %#x begins no element", errWebM, first)
	}
	id := uint32(first)
	for range n {
		b, err := w.in.ReadByte()
		if err != nil {
			return 0, short(err)
		}
		id = id<<8 | uint32(b)
	}
	return id, nil
}

// size reads the length of an element, which a stream may leave unknown.
func (w *webm) size() (size int64, known bool, err error) {
	first, err := w.in.ReadByte()
	if err != nil {
		return 0, false, err
	}
	n := bits.LeadingZeros8(first)
	if n > 7 {
		return 0, false, fmt.Errorf("%w: a length of more than 8 bytes", errWebM)
	}
	value := uint64(first) & (1<<(7-n) - 1)
	ones := value == 1<<(7-n)-1
	for range n {
		b, err := w.in.ReadByte()
		if err != nil {
			return 0, false, err
		}
		value = value<<8 | uint64(b)
		ones = ones && b == 0xFF
	}
	return int64(value), !ones, nil
}

// block reads a block and returns its packet.
func (w *webm) block(size int64) ([]byte, error) {
	if size > maxBlock {
		return nil, fmt.Errorf("%w: a packet of %d bytes", errWebM, size)
	}
	b := make([]byte, size)
	if _, err := io.ReadFull(w.in, b); err != nil {
		return nil, short(err)
	}
	if len(b) < 4 || b[0]&0x80 == 0 { // a track of one byte, a time of two, flags
		return nil, fmt.Errorf("%w: a block without a track", errWebM)
	}
	if b[3]&0x06 != 0 {
		return nil, fmt.Errorf("%w: several packets in a block", errWebM)
	}
	return b[4:], nil
}

// short turns a plain end where more should come into io.ErrUnexpectedEOF.
func short(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
