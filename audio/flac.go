package audio

import (
	"errors"
	"fmt"
	"io"

	"github.com/mewkiz/flac"
)

// flacTrack decodes FLAC frame by frame.
type flacTrack struct {
	stream *flac.Stream
	shift  int     // bits to take away for 16; below 0: to add
	left   []int16 // of the last frame
}

func openFLAC(r io.Reader) (t trackSource, rate int, err error) {
	defer recoverFLAC(&err)
	stream, err := flac.New(r)
	if err != nil {
		return nil, 0, fmt.Errorf("open flac: %w", oggShort(err))
	}
	bits := int(stream.Info.BitsPerSample)
	if bits < 4 || bits > 32 {
		return nil, 0, fmt.Errorf("open flac: %d bits per sample", bits)
	}
	return &flacTrack{stream: stream, shift: bits - 16}, int(stream.Info.SampleRate), nil
}

func (f *flacTrack) read(pcm []int16) (n int, err error) {
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
func (f *flacTrack) frame() (err error) {
	defer recoverFLAC(&err)
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

// recoverFLAC turns a panic of the decoder over broken bytes into an error.
func recoverFLAC(err *error) {
	if broken := recover(); broken != nil {
		*err = fmt.Errorf("decode flac: the file is broken: %v", broken)
	}
}
