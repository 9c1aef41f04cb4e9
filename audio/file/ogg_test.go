package file

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

// TestOggSkip: tags as long as a picture are gone over.
func TestOggSkip(t *testing.T) {
	page := func(flags byte, lacing []byte, body []byte) []byte {
		b := append([]byte("OggS\x00"), flags)
		b = append(b, make([]byte, 20)...)
		b = append(b, byte(len(lacing)))
		return append(append(b, lacing...), body...)
	}
	full := bytes.Repeat([]byte{255}, 255)
	var data []byte
	for i := range 3 {
		data = append(data, page(byte(min(i, 1)), full, make([]byte, 255*255))...)
	}
	data = append(data, page(1, []byte{4, 3}, []byte("tailabc"))...)
	r := NewOggReader(bytes.NewReader(data))
	if err := r.Skip(); err != nil {
		t.Fatal(err)
	}
	if packet, err := r.Next(); err != nil || string(packet) != "abc" {
		t.Errorf("after the tags: %q, %v", packet, err)
	}
	if err := r.Skip(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("skipping past the end: %v", err)
	}
	if _, err := NewOggReader(bytes.NewReader(data)).Next(); err == nil {
		t.Error("a packet of 190 KiB was taken whole")
	}
}
