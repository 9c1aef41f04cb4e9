package audio

import (
	"errors"
	"fmt"
	"io"
	"slices"
)

// maxBroken is how many packets in a row may be broken before a file is given up.
const maxBroken = 50

// oggTrack decodes Opus in Ogg at 48 kHz.
type oggTrack struct {
	pages   *OggReader
	decoder *Decoder
	buffer  []int16
	left    []int16 // of the last packet
	skip    int     // samples still to leave out
}

func openOgg(r io.Reader) (trackSource, int, error) {
	pages := NewOggReader(r)
	first, err := pages.Next()
	if err != nil {
		return nil, 0, fmt.Errorf("open ogg: %w", oggShort(err))
	}
	head, err := ParseOpusHead(first)
	if err != nil {
		return nil, 0, err
	}
	if err := pages.Skip(); err != nil { // tags
		return nil, 0, err
	}
	decoder, err := NewDecoder(48000)
	if err != nil {
		return nil, 0, err
	}
	return &oggTrack{pages: pages, decoder: decoder, buffer: make([]int16, MaxFrameSamples(48000)), skip: head.PreSkip}, 48000, nil
}

func (o *oggTrack) read(pcm []int16) (int, error) {
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
