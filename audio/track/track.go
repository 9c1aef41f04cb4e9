// Package track reads music: WAV, MP3, FLAC or Ogg Opus, decoded piece by piece.
package track

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"xiaozhi/audio/file"
)

// source decodes one kind of file, a piece at a time.
type source interface {
	Rate() int // in Hz
	// Read puts mono samples into pcm, or returns an error, io.EOF at the end.
	Read(pcm []int16) (int, error)
}

// wav is a [file.WAVReader] as a source.
type wav struct{ *file.WAVReader }

// Rate returns the rate of the samples in Hz.
func (w wav) Rate() int { return w.WAVReader.Rate }

// Track is a piece of music that is decoded while it is read: WAV, MP3, FLAC or
// Ogg Opus. It is for one goroutine; only Close may be called by another.
type Track struct {
	source source
	rate   int
	file   io.Closer
	fold   int     // number of samples that become one: rates over 48 kHz
	left   []int16 // decoded, not yet folded
	err    error   // the end, or what ended it
}

// maxRate is the highest rate that a Track gives.
const maxRate = 48000

// Open reads the head of a file and knows its kind by it, whatever its name is.
// The [Track] closes the file. Where Open returns an error, the file is closed.
func Open(f io.ReadCloser) (t *Track, err error) {
	defer func() {
		if err != nil {
			t, err = nil, errors.Join(err, f.Close())
		}
	}()
	r := bufio.NewReaderSize(f, 16<<10)
	if err := skipTags(r); err != nil {
		return nil, fmt.Errorf("read the tags of the music file: %w", short(err))
	}
	s, err := decode(r)
	if err != nil {
		return nil, err
	}
	t = &Track{source: s, rate: s.Rate(), file: f, fold: 1}
	for t.rate > maxRate {
		t.rate, t.fold = t.rate/2, t.fold*2
	}
	if t.rate < 8000 {
		return nil, fmt.Errorf("the music file has a rate of %d Hz, want at least 8000", t.rate)
	}
	return t, nil
}

// decode opens the decoder of the kind that the head of a file names.
func decode(r *bufio.Reader) (source, error) {
	head, err := r.Peek(12)
	if err != nil {
		return nil, fmt.Errorf("read the head of the music file: %w", short(err))
	}
	switch {
	case bytes.HasPrefix(head, []byte("RIFF")):
		w, err := file.NewWAVReader(r)
		return wav{w}, err
	case bytes.HasPrefix(head, []byte("fLaC")):
		return file.NewFLACReader(r)
	case bytes.HasPrefix(head, []byte("OggS")):
		return file.NewOpusReader(r)
	case head[0] == 0xFF && head[1]&0xE0 == 0xE0:
		return file.NewMP3Reader(r)
	}
	return nil, fmt.Errorf("the music file is of no known kind: it begins with %q", head)
}

// short turns a plain end where more should come into [io.ErrUnexpectedEOF].
func short(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// skipTags goes over the ID3 tags in front of a file, pictures and all. The MP3
// library would hold what their heads claim: up to 512 MiB.
func skipTags(r *bufio.Reader) error {
	const headBytes, footer = 10, 0x10
	for {
		head, _ := r.Peek(headBytes) // the next read meets its error
		if len(head) < headBytes || !bytes.HasPrefix(head, []byte("ID3")) {
			return nil
		}
		size := headBytes
		if head[5]&footer != 0 {
			size += headBytes
		}
		for i, b := range head[6:] { // seven bits each
			size += int(b&0x7f) << (7 * (3 - i))
		}
		if _, err := r.Discard(size); err != nil {
			return err
		}
	}
}

// Rate returns the rate of the samples in Hz, 8000 to 48000.
func (t *Track) Rate() int { return t.rate }

// Read decodes into pcm: mono samples, at least one if there is room, or an
// error; io.EOF at the end. After an error it returns the same one.
func (t *Track) Read(pcm []int16) (int, error) {
	for len(pcm) > 0 && t.err == nil {
		if t.fold == 1 {
			n, err := t.source.Read(pcm)
			t.err = err
			if n > 0 {
				return n, nil
			}
			continue
		}
		if n := t.folded(pcm); n > 0 {
			return n, nil
		}
	}
	return 0, t.err
}

// folded reads and takes the mean of each few samples.
func (t *Track) folded(pcm []int16) int {
	if t.left == nil {
		t.left = make([]int16, 0, 4096)
	}
	n, err := t.source.Read(t.left[len(t.left):min(cap(t.left), len(pcm)*t.fold)])
	t.left, t.err = t.left[:len(t.left)+n], err
	done := 0
	for ; (done+1)*t.fold <= len(t.left); done++ {
		sum := 0
		for _, s := range t.left[done*t.fold : (done+1)*t.fold] {
			sum += int(s)
		}
		pcm[done] = int16(sum / t.fold)
	}
	t.left = t.left[:copy(t.left, t.left[done*t.fold:])]
	return done
}

// Close closes the file. Reading after it fails.
func (t *Track) Close() error { return t.file.Close() }
