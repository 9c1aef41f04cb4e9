package openai

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// wavFormat is the fmt chunk: PCM is 1, an extensible header hides the same.
type wavFormat struct {
	Tag, Channels uint16
	Rate, Bytes   uint32
	Align, Bits   uint16
}

const (
	wavPCM        = 1
	wavExtensible = 0xFFFE
	maxWAVChunk   = 1 << 20 // bytes of a chunk before the sound
	unknownSize   = 0x7FFFF000
)

// playWAV plays a WAV stream. Servers that make it on the fly do not know its
// length and write 0 or a huge number: then the sound goes on until the end.
func playWAV(r io.Reader, p *player) error {
	if _, err := io.CopyN(io.Discard, r, 12); err != nil { // RIFF, size, WAVE
		return fmt.Errorf("wav header: %w", short(err))
	}
	var format *wavFormat
	for {
		var chunk struct {
			ID   [4]byte
			Size uint32
		}
		if err := binary.Read(r, binary.LittleEndian, &chunk); err != nil {
			return fmt.Errorf("wav chunk: %w", short(err))
		}
		if string(chunk.ID[:]) == "data" {
			return playWAVData(r, format, chunk.Size, p)
		}
		if chunk.Size > maxWAVChunk {
			return fmt.Errorf("wav chunk %q has %d bytes", chunk.ID, chunk.Size)
		}
		body := make([]byte, chunk.Size+chunk.Size%2) // chunks begin at even places
		if _, err := io.ReadFull(r, body); err != nil {
			return fmt.Errorf("wav chunk %q: %w", chunk.ID, short(err))
		}
		if string(chunk.ID[:]) == "fmt " {
			f, err := parseWAVFormat(body)
			if err != nil {
				return err
			}
			format = f
		}
	}
}

// parseWAVFormat reads the fmt chunk and refuses what playPCM cannot play.
func parseWAVFormat(body []byte) (*wavFormat, error) {
	var f wavFormat
	if err := binary.Read(bytes.NewReader(body), binary.LittleEndian, &f); err != nil {
		return nil, fmt.Errorf("wav format: %w", short(err))
	}
	switch {
	case f.Tag != wavPCM && f.Tag != wavExtensible || f.Bits != 16:
		return nil, fmt.Errorf("wav format: %d bit of kind %d is not 16 bit PCM", f.Bits, f.Tag)
	case f.Channels < 1 || f.Channels > 8:
		return nil, fmt.Errorf("wav format: %d channels", f.Channels)
	case f.Rate < minRate || f.Rate > maxRate:
		return nil, fmt.Errorf("wav format: %d Hz", f.Rate)
	}
	return &f, nil
}

// playWAVData plays the data chunk and looks that it was whole.
func playWAVData(r io.Reader, f *wavFormat, size uint32, p *player) error {
	if f == nil {
		return errors.New("wav: the sound comes before its format")
	}
	if size == 0 || size >= unknownSize {
		return playPCM(r, int(f.Rate), int(f.Channels), p)
	}
	limited := &io.LimitedReader{R: r, N: int64(size)}
	if err := playPCM(limited, int(f.Rate), int(f.Channels), p); err != nil {
		return err
	}
	if limited.N > 0 && !p.left {
		return fmt.Errorf("wav: %d of %d bytes are missing", limited.N, size)
	}
	return nil
}

// short makes the plain end of a file that should go on the error it is.
func short(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
