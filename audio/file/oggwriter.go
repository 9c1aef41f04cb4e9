package file

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"xiaozhi/audio"
)

const (
	oggBegins   = 2
	oggEnds     = 4
	oggPoly     = 0x04c11db7
	oggSegments = 255         // of a page, at most
	oggPage     = time.Second // of sound on a page: who seeks, seeks to a page
	oggVendor   = "xiaozhi"   // in the tags
	oggSerial   = 0x6f697a78  // of the only stream
)

// WriteOpus writes packets of one channel as an Ogg Opus file (RFC 7845), without encoding anything anew: each
// packet is in it byte for byte, and its length is that of the packets, to the sample. rate is that of the sound
// before it was encoded, for those who want to know. The error is that of w, or says that there is nothing to write.
func WriteOpus(w io.Writer, p *audio.Packets, rate int) error {
	if p.Length() <= 0 {
		return errors.New("write ogg: there is no sound")
	}
	o := oggWriter{w: w, table: oggTable()}
	head := append([]byte("OpusHead\x01\x01\x00\x00"), binary.LittleEndian.AppendUint32(nil, uint32(rate))...)
	o.add(append(head, 0, 0, 0))
	o.flush(0, oggBegins)
	tags := append([]byte("OpusTags"), binary.LittleEndian.AppendUint32(nil, uint32(len(oggVendor)))...)
	o.add(append(append(tags, oggVendor...), 0, 0, 0, 0))
	o.flush(0, 0)
	var played, begun time.Duration
	for packet, length := range p.All() {
		if len(o.lacing) > 0 && (played-begun >= oggPage || len(o.lacing)+len(packet)/255+1 > oggSegments) {
			o.flush(played, 0)
			begun = played
		}
		o.add(packet)
		played += length
	}
	o.flush(p.Length(), oggEnds)
	if o.err != nil {
		return fmt.Errorf("write ogg: %w", o.err)
	}
	return nil
}

// oggWriter writes the pages of one stream. After its first error it does nothing.
type oggWriter struct {
	w      io.Writer
	table  *[256]uint32
	lacing []byte // of the page that is being filled
	body   []byte
	pages  uint32
	err    error
}

// add puts a packet on the page. There is room for it.
func (o *oggWriter) add(packet []byte) {
	o.body = append(o.body, packet...)
	n := len(packet)
	for ; n >= 255; n -= 255 {
		o.lacing = append(o.lacing, 255)
	}
	o.lacing = append(o.lacing, byte(n))
}

// flush writes the page, which ends at a time of the sound.
func (o *oggWriter) flush(at time.Duration, flags byte) {
	page := append([]byte("OggS\x00"), flags)
	page = binary.LittleEndian.AppendUint64(page, uint64(int64(at)*opusRate/int64(time.Second)))
	page = binary.LittleEndian.AppendUint32(page, oggSerial)
	page = binary.LittleEndian.AppendUint32(page, o.pages)
	page = append(page, 0, 0, 0, 0, byte(len(o.lacing)))
	page = append(append(page, o.lacing...), o.body...)
	binary.LittleEndian.PutUint32(page[22:], o.checksum(page))
	o.lacing, o.body, o.pages = o.lacing[:0], o.body[:0], o.pages+1
	if o.err == nil {
		_, o.err = o.w.Write(page)
	}
}

func (o *oggWriter) checksum(page []byte) (sum uint32) {
	for _, b := range page {
		sum = sum<<8 ^ o.table[byte(sum>>24)^b]
	}
	return sum
}

// oggTable is the table of the checksum of pages, which is not reflected as those of [hash/crc32] are.
func oggTable() *[256]uint32 {
	var table [256]uint32
	for i := range table {
		r := uint32(i) << 24
		for range 8 {
			if r&0x80000000 != 0 {
				r = r<<1 ^ oggPoly
			} else {
				r <<= 1
			}
		}
		table[i] = r
	}
	return &table
}
