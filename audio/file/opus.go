package file

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"xiaozhi/audio"
)

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
