package file

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"xiaozhi/audio"
)

// Ogg pages (RFC 3533): a header of 27 bytes, as many lacing values as it says in its last byte,
// then the segments. A packet ends with a lacing value below 255 and may go on over pages. Opus in
// Ogg (RFC 7845): the first packet is OpusHead, the second OpusTags, the rest is sound.
const (
	oggHeader     = 27
	oggContinued  = 1
	maxOggPacket  = 64 << 10 // bytes; far above any Opus packet, enough for tags
	opusHeadBytes = 19
)

// OggReader takes packets out of one logical stream, or of several one after another.
// Checksums are not looked at. It is for one goroutine.
type OggReader struct {
	r       io.Reader
	lacing  []byte // of the current page, not yet used
	partial []byte // a packet that goes on
	serial  uint32
	begun   bool
	sounds  bool // the page before did not begin a stream: one that begins now follows it
	header  [oggHeader]byte
	table   [255]byte
}

// Next returns the next packet, valid until the next call, or io.EOF at the end of a page.
func (o *OggReader) Next() ([]byte, error) {
	if err := o.packet(true); err != nil {
		return nil, err
	}
	return o.partial, nil
}

// Skip goes over the next packet, however long it is: tags may hold pictures.
func (o *OggReader) Skip() error { return o.packet(false) }

// packet reads the next packet into partial, or over it.
func (o *OggReader) packet(keep bool) error {
	for o.partial = o.partial[:0]; ; {
		for len(o.lacing) > 0 {
			n, from := int(o.lacing[0]), len(o.partial)
			o.lacing = o.lacing[1:]
			var err error
			switch {
			case !keep:
				_, err = io.CopyN(io.Discard, o.r, int64(n))
				o.partial = append(o.partial[:0], 0) // the packet goes on
			case from+n > maxOggPacket:
				return fmt.Errorf("ogg: a packet is longer than %d bytes", maxOggPacket)
			default:
				o.partial = append(o.partial, o.table[:n]...) // room; the bytes come next
				_, err = io.ReadFull(o.r, o.partial[from:])
			}
			if err != nil {
				return fmt.Errorf("ogg: %w", short(err))
			}
			if n < 255 {
				return nil
			}
		}
		err := o.page()
		if errors.Is(err, io.EOF) && (len(o.partial) > 0 || !keep) {
			return fmt.Errorf("ogg: %w", io.ErrUnexpectedEOF)
		}
		if err != nil {
			return err
		}
	}
}

// page reads the head of the next page. Only a clean end gives io.EOF itself.
func (o *OggReader) page() error {
	if _, err := io.ReadFull(o.r, o.header[:]); err != nil {
		if errors.Is(err, io.EOF) {
			return io.EOF
		}
		return fmt.Errorf("ogg: %w", err)
	}
	if string(o.header[:4]) != "OggS" || o.header[4] != 0 {
		return errors.New("ogg: a page does not begin as it should")
	}
	serial := binary.LittleEndian.Uint32(o.header[14:])
	if next := o.header[5]&oggBegins != 0 && o.sounds && len(o.partial) == 0; o.begun && serial != o.serial && !next {
		return errors.New("ogg: there is more than one stream in it")
	}
	o.sounds = o.header[5]&oggBegins == 0
	o.begun, o.serial = true, serial
	if continued := o.header[5]&oggContinued != 0; continued != (len(o.partial) > 0) {
		return errors.New("ogg: a page is missing")
	}
	count := int(o.header[26])
	if _, err := io.ReadFull(o.r, o.table[:count]); err != nil {
		return fmt.Errorf("ogg: %w", short(err))
	}
	o.lacing = append(o.lacing[:0], o.table[:count]...)
	return nil
}

// NewOggReader reads from r, in small pieces.
func NewOggReader(r io.Reader) *OggReader { return &OggReader{r: r} }

// OpusHead holds the header of an Ogg Opus stream, its first packet.
type OpusHead struct {
	Channels int // 1 or 2
	PreSkip  int // samples at 48 kHz to leave out at the beginning
}

// ParseOpusHead reads the first packet.
func ParseOpusHead(packet []byte) (OpusHead, error) {
	if len(packet) < opusHeadBytes || string(packet[:8]) != "OpusHead" {
		return OpusHead{}, errors.New("ogg: it holds no opus")
	}
	head := OpusHead{Channels: int(packet[9]), PreSkip: int(binary.LittleEndian.Uint16(packet[10:]))}
	if packet[8]>>4 != 0 || packet[18] != 0 || head.Channels < 1 || head.Channels > 2 {
		return OpusHead{}, fmt.Errorf("ogg: opus version %d with %d channels in family %d is not known", packet[8], head.Channels, packet[18])
	}
	return head, nil
}

// IsOpusHeader reports whether a packet is no sound but one of the two that begin an Ogg Opus
// stream: others may follow the first.
func IsOpusHeader(packet []byte) bool {
	return bytes.HasPrefix(packet, []byte("OpusHead")) || bytes.HasPrefix(packet, []byte("OpusTags"))
}

// opusRate is the rate of the sound of an OpusReader in Hz.
const opusRate = 48000

// maxBroken is the number of broken packets in a row at which a file is given up.
const maxBroken = 50

// OpusReader reads the sound of an Ogg Opus file. It is for one goroutine.
type OpusReader struct {
	pages   *OggReader
	decoder *audio.Decoder
	buffer  []int16
	left    []int16 // of the last packet
	skip    int     // samples still to leave out
}

// NewOpusReader reads the head of an Ogg Opus file.
func NewOpusReader(r io.Reader) (*OpusReader, error) {
	pages := NewOggReader(r)
	first, err := pages.Next()
	if err != nil {
		return nil, fmt.Errorf("open ogg: %w", short(err))
	}
	head, err := ParseOpusHead(first)
	if err != nil {
		return nil, err
	}
	if err := pages.Skip(); err != nil { // tags
		return nil, err
	}
	decoder, err := audio.NewDecoder(opusRate)
	if err != nil {
		return nil, err
	}
	return &OpusReader{pages: pages, decoder: decoder, buffer: make([]int16, audio.MaxFrameSamples(opusRate)), skip: head.PreSkip}, nil
}

// Rate returns the rate of the samples, 48000 Hz.
func (o *OpusReader) Rate() int { return opusRate }

// Read decodes into pcm: mono samples, or an error; io.EOF at the end. Packets
// that are broken are left out, up to 50 in a row.
func (o *OpusReader) Read(pcm []int16) (int, error) {
	for broken := 0; len(o.left) == 0; {
		packet, err := o.pages.Next()
		if err != nil {
			return 0, err
		}
		if IsOpusHeader(packet) {
			continue
		}
		n, err := o.decoder.Decode(packet, o.buffer)
		if err != nil {
			if broken++; broken == maxBroken {
				return 0, errors.New("ogg: nothing of it is sound any more")
			}
			continue
		}
		left := min(o.skip, n)
		o.skip -= left
		o.left = o.buffer[left:n]
	}
	n := copy(pcm, o.left)
	o.left = slices.Clip(o.left[n:])
	return n, nil
}
