package file

import (
	"errors"
	"fmt"
	"io"

	"github.com/mewkiz/flac"
)

// FLACReader reads the sound of a FLAC file, frame by frame. It is for one goroutine.
type FLACReader struct {
	stream *flac.Stream
	shift  int     // bits to take away for 16; below 0: to add
	left   []int16 // of the last frame
}

// NewFLACReader reads the head of a FLAC file.
func NewFLACReader(r io.Reader) (f *FLACReader, err error) {
	defer recoverAs(&err, "flac")
	stream, err := flac.New(r)
	if err != nil {
		return nil, fmt.Errorf("open flac: %w", short(err))
	}
	bits := int(stream.Info.BitsPerSample)
	if bits < 4 || bits > 32 {
		return nil, fmt.Errorf("open flac: %d bits per sample", bits)
	}
	return &FLACReader{stream: stream, shift: bits - 16}, nil
}

// Rate returns the rate of the samples in Hz.
func (f *FLACReader) Rate() int { return int(f.stream.Info.SampleRate) }

// Read decodes into pcm: mono samples of 16 bit, the mean of all channels, or an
// error; io.EOF at the end.
func (f *FLACReader) Read(pcm []int16) (n int, err error) {
	for len(f.left) == 0 {
		if err := f.frame(); err != nil {
			return 0, err
		}
	}
	n = copy(pcm, f.left)
	f.left = f.left[n:]
	return n, nil
}

// frame decodes the next one, the mean of all its channels.
func (f *FLACReader) frame() (err error) {
	defer recoverAs(&err, "flac")
	frame, err := f.stream.ParseNext()
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	if err != nil {
		return fmt.Errorf("decode flac: %w", err)
	}
	channels := len(frame.Subframes)
	if channels == 0 {
		return errors.New("decode flac: a frame without channels")
	}
	samples := len(frame.Subframes[0].Samples)
	f.left = make([]int16, samples)
	for i := range samples {
		sum := 0
		for _, channel := range frame.Subframes {
			sum += int(channel.Samples[i])
		}
		sum /= channels
		if f.shift >= 0 {
			sum >>= f.shift
		} else {
			sum <<= -f.shift
		}
		f.left[i] = int16(max(min(sum, 1<<15-1), -1<<15))
	}
	return nil
}
