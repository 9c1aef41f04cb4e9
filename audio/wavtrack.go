package audio

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// wavTrack reads the sound of a WAV file piece by piece.
type wavTrack struct {
	shape *wavShape
	data  io.Reader
	raw   []byte
}

func openWAV(r *bufio.Reader) (trackSource, int, error) {
	shape, size, err := readWAVHead(r)
	if err != nil {
		return nil, 0, err
	}
	return &wavTrack{shape: shape, data: wavData(r, size), raw: make([]byte, 8<<10)}, shape.rate, nil
}

func (w *wavTrack) read(pcm []int16) (int, error) {
	width := w.shape.channels * w.shape.bits / 8
	n, err := io.ReadFull(w.data, w.raw[:min(len(w.raw)/width, len(pcm))*width])
	copied := copy(pcm, w.shape.mono(w.raw[:n]))
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return copied, io.EOF
	case err != nil:
		return copied, fmt.Errorf("read WAV file: %w", err)
	}
	return copied, nil
}
